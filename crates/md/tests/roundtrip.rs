//! Whatever can be said in a superblock, a bitmap or a bad-block log is read as it was written.

mod common;

use std::collections::BTreeSet;

use braid_md::superblock::{BadBlockLog, ByteOrder, Contents, Old};
use braid_md::{
    BadBlocks, Bitmap, BitmapHeader, Features, Level, Reshape, Resync, Role, Superblock, Timestamp,
    Uuid, Version,
};
use proptest::prelude::*;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// A level with a chunk, a layout and a number of members that md would run.
fn shape(most: u32) -> impl Strategy<Value = (Level, u32, u64, u32)> {
    let chunk = || (12_u32..24).prop_map(|bits| 1_u64 << bits);
    let raid10 = prop_oneof![Just(0x102), Just(0x201), Just(0x1_0201), Just(0x103), Just(0x202)];
    prop_oneof![
        (1..=most).prop_map(|disks| (Level::Raid1, 0, 0, disks)),
        (1..=most).prop_map(|disks| (Level::Linear, 0, 0, disks)),
        (chunk(), 1..=most, 0_u32..3).prop_map(|(chunk, n, layout)| (
            Level::Raid0,
            layout,
            chunk,
            n
        )),
        (chunk(), 2..=most).prop_map(|(chunk, disks)| (Level::Raid4, 0, chunk, disks)),
        (chunk(), 2..=most, 0_u32..6).prop_map(|(chunk, n, layout)| (
            Level::Raid5,
            layout,
            chunk,
            n
        )),
        (chunk(), 4..=most, 8_u32..11).prop_map(|(chunk, n, layout)| (
            Level::Raid6,
            layout,
            chunk,
            n
        )),
        (chunk(), 4..=most, raid10).prop_map(|(chunk, n, layout)| (
            Level::Raid10,
            layout,
            chunk,
            n
        )),
    ]
}

/// Roles for `devices` devices: every member once, failed and spare ones between them.
fn roles(disks: u32, devices: usize) -> impl Strategy<Value = Vec<Role>> {
    let mut roles: Vec<Role> = (0..disks as u16).map(Role::Active).collect();
    roles.resize(devices, Role::Spare);
    (Just(roles).prop_shuffle(), prop::collection::vec(0..devices, 0..3)).prop_map(
        |(mut roles, failed)| {
            failed.into_iter().for_each(|number| roles[number] = Role::Faulty);
            roles
        },
    )
}

fn time(micros: u32) -> impl Strategy<Value = Timestamp> {
    (0..1_u64 << 32, 0..=micros).prop_map(|(seconds, micros)| Timestamp { seconds, micros })
}

/// Superblock and size of the member of a sound array of version 1.
fn version_1() -> impl Strategy<Value = (Contents, u64)> {
    let version = prop_oneof![Just(Version::V1_0), Just(Version::V1_1), Just(Version::V1_2)];
    let first = (version, shape(120), 1_usize..4, 1_u64..1 << 20, 0..MIB / 512);
    let all = first.prop_flat_map(|(version, shape, steps, blocks, slack)| {
        let devices = 128 * steps;
        let facts = (
            any::<([u8; 16], [u8; 16], u64, u32, bool, bool)>(),
            "[a-zé:]{0,14}",
            (time(999_999), time(999_999)),
            prop::option::of(0..blocks),
            roles(shape.3, devices),
            (0..devices as u32, 0_u8..5, 0_u8..8, any::<i32>(), any::<bool>()),
        );
        (Just((version, shape, blocks * MIB, slack * 512)), facts)
    });
    all.prop_map(|((version, (level, layout, chunk, raid_disks), component, slack), facts)| {
        let (
            (array, device, events, reads, write_mostly, fail_fast),
            name,
            times,
            part,
            roles,
            more,
        ) = facts;
        let (device_number, optional, shift, moved, backwards) = more;
        let data_size = component + slack;
        let (data_offset, device_size) = match version {
            Version::V1_0 => (0, data_size + MIB),
            _ => (MIB, data_size + MIB),
        };
        let mut superblock = Contents {
            version,
            array_uuid: Uuid(array),
            name,
            created: times.0,
            updated: times.1,
            level,
            layout,
            chunk,
            component_size: if level.is_redundant() { component } else { 0 },
            raid_disks,
            events: events >> 1,
            resync: part.map_or(Resync::Clean, |part| Resync::From(part * MIB)),
            features: Features::default(),
            bitmap_offset: None,
            ppl: None,
            reshape: None,
            roles,
            logical_block_size: 0,
            super_offset: version.superblock_offset(device_size).expect("room"),
            data_offset,
            data_size,
            device_uuid: Uuid(device),
            device_number,
            corrected_reads: reads,
            write_mostly,
            fail_fast,
            recovery_offset: None,
            bad_block_log: None,
            old: None,
            raw: Vec::new(),
        };
        // Before the superblock of 1.0, behind the others; 1.0 has 4 KiB behind as well.
        let side = if version == Version::V1_0 { -1 } else { 1 };
        match optional {
            1 if level.is_redundant() => superblock.bitmap_offset = Some(side * 64 * 1024),
            2 if level == Level::Raid5 => superblock.ppl = Some((side * 128 * 512, 9 * 512)),
            3 if level.is_redundant() => superblock.recovery_offset = Some(component / 2),
            4 if level == Level::Raid5 && raid_disks > 2 => {
                let new_offset = i64::from(moved % 8) * 512 * i64::from(version != Version::V1_0);
                superblock.reshape = Some(Reshape {
                    position: component,
                    delta_disks: i32::from(!backwards),
                    new_level: 5,
                    new_layout: 2,
                    new_chunk: 64 * KIB,
                    new_offset: new_offset.min(slack as i64),
                    backwards,
                });
                superblock.roles = vec![Role::Spare; superblock.roles.len()];
            }
            _ => {}
        }
        if shift > 0 {
            superblock.bad_block_log = Some(BadBlockLog { offset: side * 4096, size: 4096, shift });
        }
        (superblock, device_size)
    })
}

/// The same for 0.90, in either byte order.
fn version_0() -> impl Strategy<Value = (Contents, u64)> {
    let first = (shape(20), 1_u64..1 << 20, 0_u64..1 << 10);
    let all = first.prop_flat_map(|(shape, blocks, slack)| {
        let facts = (
            any::<([u8; 16], u64, bool, bool, bool, bool)>(),
            (time(0), time(0)),
            prop::option::of(0..blocks),
            roles(shape.3, 27),
            any::<(u32, u32, bool, u32, [u32; 4], bool)>(),
            (0_u32..27, any::<bool>()),
        );
        (Just((shape, blocks * 128 * KIB, slack * KIB)), facts)
    });
    all.prop_map(|(((level, layout, chunk, raid_disks), component, slack), facts)| {
        let ((array, events, write_mostly, fail_fast, bitmap, big), times, part, roles, old, own) =
            facts;
        let (preferred_minor, patch_version, errors, nr_disks, counts, reshaping) = old;
        let device_size = component + slack + 128 * KIB;
        let super_offset = Version::V0_90.superblock_offset(device_size).expect("room");
        let reshape = (reshaping && level == Level::Raid5 && raid_disks > 2).then_some(Reshape {
            position: component,
            delta_disks: if errors { 1 } else { -1 },
            new_level: 5,
            new_layout: 2,
            new_chunk: 64 * KIB,
            new_offset: 0,
            backwards: !errors,
        });
        let is_active = matches!(roles[own.0 as usize], Role::Active(_));
        let superblock = Contents {
            version: Version::V0_90,
            array_uuid: Uuid(array),
            name: String::new(),
            created: times.0,
            updated: times.1,
            level,
            layout: if level == Level::Raid0 { 0 } else { layout },
            chunk,
            component_size: component,
            raid_disks,
            events: events >> 1,
            resync: part.map_or(Resync::Clean, |part| Resync::From(part * 512)),
            features: if bitmap { Features::BITMAP } else { Features::default() },
            bitmap_offset: bitmap.then_some(4096),
            ppl: None,
            recovery_offset: (reshape.is_some() && is_active && own.1).then_some(0),
            reshape,
            roles: if errors && reshape.is_some() { vec![Role::Faulty; 27] } else { roles },
            logical_block_size: 0,
            super_offset,
            data_offset: 0,
            data_size: super_offset,
            device_uuid: Uuid::default(),
            device_number: own.0,
            corrected_reads: 0,
            write_mostly,
            fail_fast,
            bad_block_log: None,
            old: Some(Old {
                preferred_minor,
                minor_version: if reshape.is_some() { 91 } else { 90 },
                patch_version,
                errors,
                nr_disks,
                counts,
                byte_order: if big { ByteOrder::Big } else { ByteOrder::Little },
            }),
            raw: Vec::new(),
        };
        (superblock, device_size)
    })
}

/// Returns the superblock that is read after it was written; the feature bits of optional fields follow from
/// those.
fn again(superblock: &Contents, device_size: u64) -> Contents {
    let bytes = superblock.encode();
    let read = Superblock::parse(superblock.version, superblock.super_offset, device_size, &bytes);
    let read = read.unwrap_or_else(|why| panic!("{why}: {superblock:?}"));
    assert_eq!(read.encode(), bytes);
    braid_md::fuzz::assert_in_range(&read, device_size);
    read.into_contents()
}

fn expected(superblock: Contents, read: &Contents) -> Contents {
    Contents { raw: read.raw.clone(), features: read.features, ..superblock }
}

proptest! {
    #[test]
    fn version_1_is_read_as_written((superblock, device_size) in version_1()) {
        let read = again(&superblock, device_size);
        let has = |feature| read.features.contains(feature);
        prop_assert_eq!(has(Features::BITMAP), superblock.bitmap_offset.is_some());
        prop_assert_eq!(has(Features::PPL), superblock.ppl.is_some());
        prop_assert_eq!(has(Features::RESHAPE), superblock.reshape.is_some());
        prop_assert_eq!(has(Features::RECOVERY_OFFSET), superblock.recovery_offset.is_some());
        prop_assert_eq!(expected(superblock, &read), read);
    }

    #[test]
    fn version_0_90_is_read_as_written((mut superblock, device_size) in version_0()) {
        // A failed member is not being filled.
        if !matches!(superblock.role(), Role::Active(_)) {
            superblock.recovery_offset = None;
        }
        let read = again(&superblock, device_size);
        prop_assert_eq!(expected(superblock, &read), read);
    }

    /// Changes on top of what the kernel wrote: only what was changed is another.
    #[test]
    fn what_the_kernel_wrote_can_be_changed(
        index in 0_usize..20,
        events in any::<u64>(),
        seconds in 0_u64..1 << 32,
        clean in any::<bool>(),
        other_role in prop_oneof![Just(Role::Faulty), Just(Role::Spare)],
    ) {
        let golden = &common::goldens()[index];
        let mut superblock = golden.superblock().into_contents();
        superblock.events = events >> 1;
        superblock.updated = Timestamp { seconds, micros: 0 };
        superblock.resync = if clean { Resync::Clean } else { Resync::From(512 * 1024) };
        let own = superblock.device_number as usize;
        let other = (0..4).find(|number| *number != own).expect("one of four");
        superblock.roles[other] = other_role;
        let read = again(&superblock, golden.device_size);
        prop_assert_eq!(expected(superblock, &read), read);
    }

    /// The bitmap against a set of numbers, over pages.
    #[test]
    fn a_bitmap_is_a_set_of_chunks(
        chunks in 1_u64..80_000,
        cut in 0_u64..512,
        marks in prop::collection::vec((any::<u64>(), any::<bool>()), 0..200),
    ) {
        let header = header(chunks * 4096 - cut * 7);
        let chunks = header.chunk_count();
        let area = header.byte_len().next_multiple_of(512);
        let mut bitmap = Bitmap::new(header, area).expect("room");
        let mut set = BTreeSet::new();
        for (chunk, mark) in marks {
            let chunk = chunk % chunks;
            let changed = if mark { bitmap.set(chunk) } else { bitmap.clear(chunk) };
            prop_assert_eq!(changed, if mark { set.insert(chunk) } else { set.remove(&chunk) });
            prop_assert_eq!(bitmap.is_set(chunk), mark);
            let page = bitmap.page(bitmap.page_of(chunk));
            let bit = 8 * 256 + chunk;
            let byte = page[(bit / 8 % 4096) as usize];
            prop_assert_eq!(byte >> (bit % 8) & 1 == 1, mark);
        }
        prop_assert_eq!(bitmap.count_set(), set.len() as u64);
        let found = std::iter::successors(bitmap.next_set(0), |chunk| bitmap.next_set(chunk + 1));
        prop_assert!(found.eq(set.iter().copied()));
        let mut disk = Vec::new();
        for index in 0..bitmap.page_count() {
            disk.extend_from_slice(&bitmap.page(index)[..bitmap.page_len(index)]);
        }
        prop_assert_eq!(disk.len() as u64, area);
        prop_assert_eq!(Bitmap::parse(&disk), Ok(bitmap.clone()));
        bitmap.set_all();
        prop_assert_eq!(bitmap.count_set(), chunks);
        prop_assert!((0..chunks).all(|chunk| bitmap.is_set(chunk)));
    }

    /// The bad-block log against a set of units.
    #[test]
    fn bad_blocks_are_a_set_of_units(
        shift in 0_u8..3,
        steps in prop::collection::vec((0_u64..4000, 1_u64..1500, any::<bool>()), 1..30),
    ) {
        let unit = 512_u64 << shift;
        let mut log = BadBlocks::new(4096, shift).expect("a shift that can be");
        let mut set = BTreeSet::new();
        for (at, len, bad) in steps {
            // Ragged edges: bad blocks grow to whole units, good ones shrink to them.
            let (offset, bytes) = (at * unit + unit / 2, len * unit);
            if bad {
                log.insert(offset, bytes).expect("room");
                set.extend(at..=at + len);
            } else {
                log.remove(offset, bytes).expect("room");
                (at + 1..at + len).for_each(|unit| { set.remove(&unit); });
            }
            for probe in [at.saturating_sub(1), at, at + 1, at + len, at + len + 1] {
                let hit = log.overlaps(probe * unit, 1).is_some();
                prop_assert_eq!(hit, set.contains(&probe), "unit {}", probe);
            }
        }
        let units: Vec<u64> = log
            .iter()
            .flat_map(|range| range.offset / unit..(range.offset + range.len) / unit)
            .collect();
        prop_assert!(units.iter().eq(set.iter()), "sorted, without touching");
        let bytes = log.encode();
        prop_assert_eq!(bytes.len(), 4096);
        prop_assert_eq!(BadBlocks::parse(&bytes, shift, 1 << 40), Ok(log));
    }
}

fn header(sync_size: u64) -> BitmapHeader {
    BitmapHeader {
        version: 4,
        uuid: Uuid([7; 16]),
        events: 3,
        events_cleared: 2,
        sync_size: sync_size / 512 * 512,
        stale: false,
        write_error: false,
        host_endian: false,
        chunk_size: 4096,
        daemon_sleep: 5,
        write_behind: 0,
        reserved: 0,
        nodes: 0,
        cluster_name: [0; 64],
        unknown: braid_md::bitmap::Unknown::default(),
    }
}

#[test]
fn a_full_log_refuses_and_keeps_what_it_has() {
    let mut log = BadBlocks::new(16, 0).expect("a shift that can be");
    log.insert(0, 512).expect("room");
    log.insert(2048, 1536).expect("room");
    let before = log.clone();
    let full = "the bad-block log needs 3 entries, it has room for 2";
    assert_eq!(log.insert(8192, 512).map_err(|why| why.to_string()), Err(full.to_owned()));
    assert_eq!(log.remove(2560, 512).map_err(|why| why.to_string()), Err(full.to_owned()));
    assert_eq!(log, before);
    assert_eq!(log.entries(), 2);
    log.remove(0, 512).expect("fewer");
    log.insert(8192, 512 * 512).expect("an entry's most");
    assert!(log.insert(8192, 513 * 512).is_err(), "two entries");
}

/// The last unit of a member can be bad; what lies behind it is not the member's.
#[test]
fn bad_blocks_end_with_the_member() {
    let log = |units: u64| {
        let entry = 1000 << 10 | units;
        BadBlocks::parse(&[entry.to_le_bytes(), [0xff; 8]].concat(), 0, 1008 * 512)
    };
    let read = log(8).expect("up to the member's end");
    assert_eq!(read.iter().map(|range| range.offset + range.len).collect::<Vec<_>>(), [1008 * 512]);
    let why = log(9).expect_err("a unit behind the end").to_string();
    assert!(why.contains("beyond the member's 516096 bytes"), "{why}");
}

/// A member with fewer events than before would be taken for one that was left behind.
#[test]
#[should_panic(expected = "an array's events go from")]
fn events_only_grow() {
    let later = common::goldens()[0].superblock().at_event(9);
    let _ = later.at_event(8);
}

/// A superblock made from nothing has room for 128 roles, as mdadm makes it.
#[test]
fn a_new_superblock_has_room_for_128_roles() {
    let golden = &common::goldens()[0];
    let mut superblock = golden.superblock().into_contents();
    superblock.raw = Vec::new();
    superblock.roles.truncate(2);
    let bytes = superblock.encode();
    assert_eq!(bytes.len(), 512);
    let read = golden.parse(&bytes).expect("valid");
    assert_eq!((read.roles.len(), read.roles[2]), (128, Role::Spare));
    superblock.roles.resize(129, Role::Spare);
    assert_eq!(superblock.encode().len(), 1024);
}

/// A bit that is set in one copy counts, and the later `events_cleared` of both: a member that left before that
/// is not brought up to date by bits.
#[test]
fn copies_of_a_bitmap_count_together() {
    let copy = |chunk, events_cleared, chunk_size| {
        let header = BitmapHeader { events_cleared, chunk_size, ..header(1 << 20) };
        let mut copy = Bitmap::new(header, 64 << 10).expect("there is room");
        copy.set(chunk);
        copy
    };
    for (ours, theirs) in [(3, 5), (5, 3)] {
        let mut one = copy(1, ours, 4096);
        assert!(one.join(&copy(2, theirs, 4096)));
        assert_eq!((one.count_set(), one.header.events_cleared), (2, 5));
        assert!(one.is_set(1) && one.is_set(2));
        let before = one.clone();
        assert!(!one.join(&copy(3, 9, 8192)), "their chunks are others");
        assert_eq!(one, before);
    }
}

#[test]
fn planted_faults_are_found() {
    braid_canary::hunt(braid_md::canary::Canary::ALL, file!());
}
