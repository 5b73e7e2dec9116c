//! New arrays: what is planned is what is read back, nothing overlaps, and what cannot be is
//! refused with its values.

use braid_md::assembly::{Candidate, Options, Start, State, group};
use proptest::prelude::*;

use braid_md::create::{
    BitmapChoice, BitmapPlace, Consistency, CreateError, Device, NoPlace, Place, Plan, Request,
    What, Write, bitmap_place, bitmap_room_at, past_offsets, plan,
};
use braid_md::ppl::{Header, Newest};
use braid_md::stripe_log::Head;
use braid_md::superblock::Contents;
use braid_md::{
    BadBlocks, Bitmap, Features, Level, Resync, Role, Superblock, Timestamp, Uuid, Version, ppl,
    stripe_log,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn device(index: usize, size: u64) -> Device {
    let uuid = Uuid([index as u8 + 1; 16]);
    Device { label: format!("m{index}"), size, uuid, write_mostly: false }
}

fn request(level: Level, version: Version, sizes: &[u64]) -> Request {
    let place = |(index, size): (usize, &u64)| Place::Device(device(index, *size));
    Request {
        level,
        layout: None,
        version,
        chunk: None,
        members: sizes.iter().enumerate().map(place).collect(),
        spares: Vec::new(),
        size: None,
        data_offset: None,
        bitmap: BitmapChoice::Default,
        consistency: None,
        write_behind: 0,
        assume_clean: false,
        array_uuid: Uuid([7; 16]),
        name: "v".to_owned(),
        homehost: Some("host".to_owned()),
        created: Timestamp { seconds: 1_700_000_000, micros: 0 },
    }
}

fn planned(request: &Request) -> Plan {
    plan(request).unwrap_or_else(|error| panic!("{error}: {request:?}"))
}

fn refused(request: &Request) -> String {
    plan(request)
        .map(|plan| panic!("{plan:?}"))
        .unwrap_or_else(|error: CreateError| error.to_string())
}

/// Many requests that can be: all levels and versions, even and uneven sizes, spares and members
/// that are missing, bitmaps.
fn requests() -> Vec<Request> {
    const LEVELS: [(Level, usize); 7] = [
        (Level::Linear, 0),
        (Level::Raid0, 0),
        (Level::Raid1, 1),
        (Level::Raid4, 1),
        (Level::Raid5, 1),
        (Level::Raid6, 2),
        (Level::Raid10, 1),
    ];
    let mut requests = Vec::new();
    for (level, most_missing) in LEVELS {
        for version in Version::ALL {
            for size in [16 * MIB, 16 * MIB + 12345, 100 * MIB, 9 * GIB, 250 * GIB, 3 << 40] {
                for missing in 0..=most_missing {
                    let mut request = request(level, version, &[size; 4]);
                    for place in request.members.iter_mut().skip(1).take(missing) {
                        *place = Place::Missing;
                    }
                    requests.push(request.clone());
                    if level.is_redundant() {
                        request.spares = vec![device(9, size + 5 * MIB)];
                        request.bitmap = BitmapChoice::Internal { chunk: None };
                        requests.push(request.clone());
                        request.assume_clean = true;
                        requests.push(request);
                    }
                }
            }
        }
    }
    requests
}

fn size_of(request: &Request, label: &str) -> u64 {
    request.devices().find(|device| device.label == label).expect("a device").size
}

#[test]
fn what_is_planned_is_what_is_read_back() {
    for request in requests() {
        let plan = planned(&request);
        assert_eq!(plan.members.len(), request.devices().count());
        for member in &plan.members {
            let ours = &member.superblock;
            let size = size_of(&request, &member.label);
            let read = Superblock::parse(ours.version, ours.super_offset, size, &ours.encode())
                .unwrap_or_else(|rejection| panic!("{rejection}: {request:?}"));
            let known = ours.roles.len();
            assert!(read.roles[known..].iter().all(|role| *role == Role::Spare));
            let roles = read.roles[..known].to_vec();
            let read = Contents { roles, raw: Vec::new(), ..read.into_contents() };
            assert_eq!(read, **ours, "{request:?}");
        }
    }
}

/// The bytes themselves: each area once, whole, and readable as what it is.
#[test]
fn what_is_written_is_readable() {
    for request in requests().iter().step_by(5) {
        let plan = planned(request);
        let writes: Vec<Write> = plan.writes().collect();
        assert_eq!(writes.iter().map(|write| write.area).collect::<Vec<_>>(), plan.areas());
        for Write { area, bytes } in writes {
            assert_eq!(bytes.len() as u64, area.len);
            let ours = &plan.members[area.member].superblock;
            match area.what {
                What::Superblock => assert!(bytes.starts_with(&ours.encode())),
                What::Ppl => {
                    let signature = ppl::signature(&ours.array_uuid);
                    let newest = ppl::newest(&bytes, signature).expect("a log");
                    assert_eq!(newest, Newest { header: Header::empty(signature), offset: 0 });
                    assert_eq!(ours.ppl.map(|(_, size)| size), Some(area.len));
                    assert!(bytes[ppl::HEADER_BYTES..].iter().all(|byte| *byte == 0));
                }
                What::StripeLog => {
                    let place = stripe_log::place(ours).expect("room");
                    assert_eq!(area.offset, place.head);
                    let (uuid, number) = (&ours.array_uuid, ours.device_number);
                    let head = Head::parse(&bytes, uuid, number, place.room).expect("a head");
                    assert_eq!((head.events, Some(head.area)), (ours.events, plan.stripe_log));
                }
                What::BadBlockLog => {
                    assert!(BadBlocks::parse(&bytes, 0, u64::MAX).expect("a log").is_empty());
                }
                What::Bitmap => {
                    let planned = plan.bitmap.expect("a bitmap");
                    let bitmap = Bitmap::parse(&bytes).expect("a bitmap");
                    assert_eq!(bitmap.header.uuid.0, ours.uuid_on_disk());
                    assert_eq!(bitmap.header.events, ours.events);
                    assert_eq!(bitmap.header.chunk_size, planned.chunk);
                    let set = if planned.all_set { bitmap.chunk_count() } else { 0 };
                    assert_eq!(bitmap.count_set(), set);
                    assert!(bitmap.chunk_count() > 0);
                }
            }
        }
    }
}

#[test]
fn areas_lie_on_the_member_and_overlap_nothing() {
    for request in requests() {
        let plan = planned(&request);
        let areas = plan.areas();
        for (index, member) in plan.members.iter().enumerate() {
            let superblock = &member.superblock;
            let mut places: Vec<(u64, u64)> = areas
                .iter()
                .filter(|area| area.member == index)
                .map(|area| (area.offset, area.len))
                .collect();
            if let Some(area) = plan.stripe_log {
                // Its ring, which is not written.
                let start = superblock.data_offset - area;
                places.push((start, area - 4096));
            }
            places.push((superblock.data_offset, superblock.data_size));
            places.sort_unstable();
            for pair in places.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{places:?} of {request:?}");
            }
            let (offset, len) = places[places.len() - 1];
            assert!(offset + len <= size_of(&request, &member.label), "{places:?}");
            assert!(superblock.component_size <= superblock.data_size);
        }
        // The superblocks come last.
        let first = areas.iter().position(|area| area.what == What::Superblock);
        assert_eq!(first, Some(areas.len() - plan.members.len()));
    }
}

/// A new array can be started at once, and has the requested properties.
#[test]
fn what_is_planned_can_be_assembled() {
    for request in requests() {
        let plan = planned(&request);
        let candidates = plan.members.iter().map(|member| Candidate {
            label: member.label.clone(),
            size: size_of(&request, &member.label),
            superblock: member.superblock.clone(),
            bitmap: None,
            log_head: None,
            bitmap_trouble: None,
            log_trouble: None,
        });
        let sets = group(candidates.collect());
        let options = Options {
            force: false,
            read_only: false,
            degraded: false,
            raid0_layout: None,
            supported: &|_| true,
        };
        let assembly = sets[0].assess(options);
        assert_eq!(assembly.can_start, Start::ReadWrite, "{assembly}: {request:?}");
        assert_eq!(assembly.array_size, Some(plan.array_size));
        let missing = request.members.iter().filter(|place| **place == Place::Missing).count();
        let resync = plan.members[0].superblock.resync != Resync::Clean;
        match assembly.state {
            State::Clean => assert!(missing == 0 && !resync),
            State::Dirty(_) => assert!(missing == 0 && resync),
            State::Degraded(_) => assert!(missing > 0 && !resync),
            State::DegradedDirty { write_hole, .. } => assert!(missing > 0 && !write_hole),
            other => panic!("{other}"),
        }
    }
}

/// With one of raid6's members missing, mdadm makes the last one a spare: what is missing is
/// defined by nothing else.
#[test]
fn raid6_with_one_missing_rebuilds_another() {
    for (missing, spare) in [(0, 3), (1, 3), (3, 2)] {
        let mut request = request(Level::Raid6, Version::V1_2, &[16 * MIB; 4]);
        request.members[missing] = Place::Missing;
        let plan = planned(&request);
        let spares: Vec<&str> = plan
            .members
            .iter()
            .filter(|member| member.superblock.role() == Role::Spare)
            .map(|member| &*member.label)
            .collect();
        assert_eq!(spares, [format!("m{spare}")]);
        assert_eq!(plan.members[0].superblock.resync, Resync::Clean);
        request.assume_clean = true;
        let roles = planned(&request).members;
        assert!(roles.iter().all(|one| matches!(one.superblock.role(), Role::Active(_))));
    }
}

/// Choices of mdadm 4.2, from its printouts of arrays on disks of these sizes.
#[test]
fn data_offset_and_bitmap_of_large_members() {
    const SECTORS_OF_4_TB: u64 = 7_814_037_168;
    let request = request(Level::Raid1, Version::V1_2, &[SECTORS_OF_4_TB * 512; 2]);
    let plan = planned(&request);
    assert_eq!(plan.members[0].superblock.data_offset, 264_192 * 512);
    let bitmap = plan.bitmap.expect("more than 100 GiB of each member");
    assert_eq!((bitmap.chunk, bitmap.offset), (64 * MIB, 4096));
    assert!(bitmap.all_set);
    // Up to 100 GiB of each member there is none unless it is asked for.
    for (size, has_bitmap) in [(100 * GIB, false), (101 * GIB, true)] {
        let small = self::request(Level::Raid10, Version::V1_2, &[size; 3]);
        assert_eq!(planned(&small).bitmap.is_some(), has_bitmap, "{size}");
        let none = Request { bitmap: BitmapChoice::None, ..small.clone() };
        assert_eq!(planned(&none).bitmap, None);
        let resync = Request { consistency: Some(Consistency::Resync), ..small.clone() };
        assert_eq!(planned(&resync).bitmap, None);
        let wanted = Request { consistency: Some(Consistency::Bitmap), ..small };
        assert!(planned(&wanted).bitmap.is_some());
    }
    // A chunk that would make more bits than there is room for is refused, with the smallest.
    let chunk = BitmapChoice::Internal { chunk: Some(4096) };
    let crowded = Request { bitmap: chunk, ..request };
    assert_eq!(
        refused(&crowded),
        "a bitmap's chunk of 4096 bytes is not possible: it is a power of two from 4194304"
    );
}

/// Start of the data by mdadm 4.2, of arrays that the kernel ran.
#[test]
fn the_latest_of_past_data_offsets_is_that_of_golden_arrays() {
    let mut count = 0;
    for golden in braid_golden::all() {
        let version: Version = golden.metadata.parse().expect("a version");
        // A partial parity log takes more room, and a journal has no data.
        let has_ppl = golden.members.iter().any(|one| one.ppl_sector.is_some());
        let Some(first) = golden.members.iter().find(|one| one.data_offset_bytes.is_some()) else {
            continue;
        };
        if has_ppl || golden.create.contains("--data-offset") {
            continue;
        }
        let level: Level = golden.level.parse().expect("a level");
        let chunk = (golden.chunk_bytes > 0).then_some(golden.chunk_bytes);
        let past = past_offsets(version, level, chunk, first.bytes);
        let latest = past.last().map_or(0, |one| one.offset);
        assert_eq!(Some(latest), first.data_offset_bytes, "{}: {past:?}", golden.name);
        count += usize::from(latest > 0);
    }
    assert!(count > 40, "{count} arrays of versions 1.1 and 1.2");
}

/// Returns the protection of a new array against the write hole: the log, the start of its data, and the length
/// of the stripe log.
fn protection(request: &Request) -> (Option<Consistency>, u64, u64) {
    let plan = planned(request);
    let superblock = &plan.members[0].superblock;
    let kinds = [
        plan.bitmap.map(|_| Consistency::Bitmap),
        superblock.ppl.map(|_| Consistency::Ppl),
        plan.stripe_log.map(|_| Consistency::Log),
    ];
    let mut kinds = kinds.into_iter().flatten();
    let kind = kinds.next();
    assert_eq!(kinds.next(), None, "one of them");
    assert_eq!(superblock.features.contains(Features::MULTIPLE_PPLS), superblock.ppl.is_some());
    (kind, superblock.data_offset, plan.stripe_log.unwrap_or(0))
}

#[test]
fn levels_with_parity_get_a_log() {
    use Consistency::{Bitmap, Log, Ppl};
    let of = |level, version, size| protection(&request(level, version, &[size; 4])).0;
    for version in [Version::V1_1, Version::V1_2] {
        assert_eq!(of(Level::Raid5, version, GIB), Some(Ppl));
        assert_eq!(of(Level::Raid4, version, GIB), Some(Log));
        assert_eq!(of(Level::Raid6, version, 3 << 40), Some(Log));
        assert_eq!(of(Level::Raid1, version, GIB), None);
        assert_eq!(of(Level::Raid0, version, 3 << 40), None);
    }
    assert_eq!(of(Level::Raid5, Version::V1_0, GIB), Some(Ppl));
    assert_eq!(of(Level::Raid6, Version::V1_0, GIB), None);
    assert_eq!(of(Level::Raid6, Version::V1_0, 3 << 40), Some(Bitmap));
    assert_eq!(of(Level::Raid5, Version::V0_90, GIB), None);
    assert_eq!(of(Level::Raid5, Version::V0_90, 250 * GIB), Some(Bitmap));
    // A bitmap that is asked for is instead of a log; without one there still is a log.
    let mut asked = request(Level::Raid5, Version::V1_2, &[GIB; 4]);
    asked.bitmap = BitmapChoice::Internal { chunk: None };
    assert_eq!(protection(&asked).0, Some(Bitmap));
    asked.bitmap = BitmapChoice::None;
    assert_eq!(protection(&asked).0, Some(Ppl));
    // raid5 with the stripe log, raid4 and raid6 without.
    asked.consistency = Some(Log);
    assert_eq!(protection(&asked).0, Some(Log));
    asked.consistency = Some(Consistency::Resync);
    assert_eq!(protection(&asked).0, None);
    // The kernel's limit.
    let many = request(Level::Raid5, Version::V1_2, &[GIB; 65]);
    assert_eq!(protection(&many).0, None);
}

#[test]
fn the_room_of_a_stripe_log() {
    let of = |size, chunk| {
        let mut request = request(Level::Raid6, Version::V1_2, &[size, size + GIB, size, size]);
        request.chunk = Some(chunk);
        let (kind, data_offset, area) = protection(&request);
        assert_eq!(kind, Some(Consistency::Log));
        (data_offset, area)
    };
    // 4 MiB, in the headroom that large members have anyway.
    assert_eq!(of(3 << 40, 65536), (129 * MIB, 4 * MIB));
    assert_eq!(of(GIB, 65536), (5 * MIB, 4 * MIB));
    // Eight records of a chunk.
    assert_eq!(of(3 << 40, 512 * 1024), (129 * MIB, 5 * MIB));
    assert_eq!(of(GIB, 4 * MIB), (34 * MIB, 33 * MIB));
    // A sixteenth of a small member, but two records of a chunk.
    assert_eq!(of(32 * MIB, 65536), (3 * MIB, 2 * MIB));
    assert_eq!(of(16 * MIB, 512 * 1024), (2 * MIB, MIB + 3 * 4096));
    // What fits in front of the data.
    let mut request = request(Level::Raid6, Version::V1_2, &[GIB; 4]);
    request.chunk = Some(65536);
    request.data_offset = Some(MIB);
    assert_eq!(protection(&request), (Some(Consistency::Log), MIB, MIB - 16 * 1024));
    request.data_offset = Some(128 * 1024);
    assert_eq!(protection(&request), (None, 128 * 1024, 0), "not asked for, and no room");
    request.consistency = Some(Consistency::Log);
    assert_eq!(
        refused(&request),
        "there is no room for a stripe log: 114688 bytes in front of the data at 131072, and 143360 are needed"
    );
    request.consistency = Some(Consistency::Ppl);
    request.level = Level::Raid5;
    assert_eq!(
        refused(&request),
        "data cannot start at 131072: it starts at a multiple of 4096, from 1056768"
    );
    // What a size that was asked for leaves.
    let mut sized = self::request(Level::Raid6, Version::V1_2, &[64 * MIB; 4]);
    (sized.chunk, sized.size) = (Some(65536), Some(62 * MIB));
    assert_eq!(protection(&sized), (Some(Consistency::Log), MIB, MIB - 16 * 1024));
    sized.size = Some(63 * MIB);
    assert_eq!(protection(&sized), (Some(Consistency::Log), MIB, 35 * 4096));
    sized.size = Some(63 * MIB + 65536);
    assert_eq!(
        refused(&sized),
        "m0 is too small: of its 67108864 bytes 66060288 are free for data, and 66125824 are needed"
    );
}

#[test]
fn policies_that_make_no_sense() {
    let refusal = |level, version, bitmap, policy: &str| {
        let consistency = Some(policy.parse().expect("a policy"));
        refused(&Request { bitmap, consistency, ..request(level, version, &[GIB; 4]) })
    };
    let (default, internal) = (BitmapChoice::Default, BitmapChoice::Internal { chunk: None });
    let cases = [
        (Level::Raid6, Version::V1_2, default, "ppl", "raid6, only with raid5"),
        (Level::Raid5, Version::V0_90, default, "ppl", "metadata 0.90"),
        (Level::Raid5, Version::V1_2, internal, "ppl", "a bitmap"),
        (Level::Raid6, Version::V1_2, internal, "log", "a bitmap"),
        (Level::Raid6, Version::V1_2, internal, "resync", "a bitmap"),
        (Level::Raid6, Version::V1_0, default, "log", "metadata 1.0, only with 1.1 and 1.2"),
        (Level::Raid10, Version::V1_2, default, "log", "raid10, which has no parity"),
        (Level::Raid0, Version::V1_2, default, "log", "raid0, which has no parity"),
    ];
    for (level, version, bitmap, policy, with) in cases {
        assert_eq!(
            refusal(level, version, bitmap, policy),
            format!("a consistency policy of {policy} does not go with {with}")
        );
    }
    for host in ["a:b", "a\nb"] {
        let named = request(Level::Raid1, Version::V1_2, &[GIB; 2]);
        let refusal = refused(&Request { homehost: Some(host.to_owned()), ..named });
        assert!(refusal.contains("cannot be the host in an array's name"), "{refusal}");
    }
    let mut many = request(Level::Raid5, Version::V1_2, &[GIB; 65]);
    many.consistency = Some(Consistency::Ppl);
    assert_eq!(
        refused(&many),
        "a consistency policy of ppl does not go with 65 members, only with up to 64"
    );
    for policy in Consistency::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let refused = "journal".parse::<Consistency>().unwrap_err();
    assert!(refused.starts_with("\"journal\" is no consistency policy"), "{refused}");
}

#[test]
fn names_and_hosts() {
    let name = |name: &str, host: Option<&str>| {
        let mut request = request(Level::Raid1, Version::V1_2, &[16 * MIB; 2]);
        (request.name, request.homehost) = (name.to_owned(), host.map(str::to_owned));
        plan(&request).map(|plan| plan.members[0].superblock.name.clone())
    };
    let (eleven, twenty) = ("elevenbytes", "twentytwentytwenty20");
    assert_eq!(name("v", Some("host")), Ok("host:v".to_owned()));
    assert_eq!(name("v", None), Ok("v".to_owned()));
    assert_eq!(name("other:v", Some("host")), Ok("other:v".to_owned()));
    assert_eq!(name(twenty, Some("tenbytes10")), Ok(format!("tenbytes10:{twenty}")));
    assert_eq!(name(twenty, Some(eleven)), Ok(twenty.to_owned()), "32 bytes are too many");
    assert!(name(&"x".repeat(32), None).is_ok());
    assert!(matches!(name(&"x".repeat(33), None), Err(CreateError::Name { len: 33, .. })));
}

#[test]
fn raid0_records_its_layout() {
    for sizes in [[16 * MIB, 16 * MIB], [16 * MIB, 20 * MIB]] {
        let plan = planned(&request(Level::Raid0, Version::V1_2, &sizes));
        let superblock = &plan.members[0].superblock;
        assert_eq!((superblock.layout, superblock.component_size), (2, 0));
        assert!(superblock.features.contains(Features::RAID0_LAYOUT));
    }
    let old = request(Level::Raid0, Version::V0_90, &[16 * MIB, 16 * MIB]);
    assert_eq!(planned(&old).members[0].superblock.layout, 0);
    let uneven = request(Level::Raid0, Version::V0_90, &[16 * MIB, 20 * MIB]);
    assert_eq!(plan(&uneven), Err(CreateError::UnequalForOld));
}

#[test]
fn refusals_carry_their_values() {
    type Change<'a> = &'a dyn Fn(&mut Request);
    let base = |level| request(level, Version::V1_2, &[16 * MIB; 4]);
    let with = |level, change: Change<'_>| {
        let mut request = base(level);
        change(&mut request);
        refused(&request)
    };
    let cases: [(Level, Change<'_>, &str); 16] = [
        (
            Level::Raid6,
            &|request| request.members.truncate(3),
            "raid6 needs at least 4 members, and 3 were given",
        ),
        (
            Level::Raid1,
            &|request| request.members.resize(385, Place::Missing),
            "385 members and spares are too many: metadata 1.2 has room for 384",
        ),
        (
            Level::Raid1,
            &|request| {
                request.version = Version::V0_90;
                request.members.resize(28, Place::Missing);
            },
            "28 members and spares are too many: metadata 0.90 has room for 27",
        ),
        (
            Level::Raid0,
            &|request| request.members[1] = Place::Missing,
            "raid0 needs all of its members, and 1 are \"missing\"",
        ),
        (
            Level::Raid10,
            &|request| {
                request.members[0] = Place::Missing;
                request.members[1] = Place::Missing;
            },
            "raid10 does not hold its data without the 2 members that are \"missing\"",
        ),
        (
            Level::Linear,
            &|request| request.spares = vec![device(9, MIB)],
            "linear has no redundancy, so that no spare can replace a member",
        ),
        (
            Level::Raid10,
            &|request| request.layout = Some("n5".to_owned()),
            "5 copies of each chunk need as many members, and 4 were given",
        ),
        (
            Level::Raid1,
            &|request| request.chunk = Some(65536),
            "raid1 has no chunk, and 65536 bytes were given",
        ),
        (
            Level::Raid5,
            &|request| request.chunk = Some(3 * 4096),
            "a chunk of 12288 bytes is not possible for raid5: it is a power of two, from 4096",
        ),
        (
            Level::Raid1,
            &|request| request.members[2] = Place::Device(device(2, MIB)),
            "m2 is too small: of its 1048576 bytes 0 are free for data, and 65536 are needed",
        ),
        (
            Level::Raid1,
            &|request| request.size = Some(16 * MIB),
            "m0 is too small: of its 16777216 bytes 15728640 are free for data, and 16777216 are needed",
        ),
        (
            Level::Raid0,
            &|request| request.size = Some(MIB),
            "a size for each member means nothing to raid0, which uses all of them",
        ),
        (
            Level::Raid1,
            &|request| request.data_offset = Some(4096),
            "data cannot start at 4096: it starts at a multiple of 4096, from 8192",
        ),
        (
            Level::Raid0,
            &|request| request.bitmap = BitmapChoice::Internal { chunk: None },
            "a bitmap means nothing to raid0",
        ),
        (
            Level::Raid5,
            &|request| {
                request.bitmap = BitmapChoice::None;
                request.consistency = Some(Consistency::Bitmap);
            },
            "a consistency policy of bitmap does not go with no bitmap",
        ),
        (
            Level::Raid5,
            &|request| request.array_uuid = Uuid::default(),
            "the array has no identifier: its UUID is all zeroes",
        ),
    ];
    for (level, change, message) in cases {
        assert_eq!(with(level, change), message);
    }
    let huge = request(Level::Raid1, Version::V0_90, &[5 << 40; 2]);
    assert!(matches!(plan(&huge), Err(CreateError::TooLargeForOld { .. })));
}

#[test]
fn the_plan_in_words() {
    let plan = planned(&request(Level::Raid1, Version::V1_2, &[16 * MIB; 2]));
    assert_eq!(
        plan.explain(),
        [
            "raid1 of 2 members, metadata 1.2, 15 MiB (15728640 bytes)",
            "a resync follows",
            "m0: role 0, data 1048576..16777216",
            "m1: role 1, data 1048576..16777216",
            "write 4096 bytes at 12288 of m0: bad-block log",
            "write 4096 bytes at 12288 of m1: bad-block log",
            "write 4096 bytes at 4096 of m0: superblock",
            "write 4096 bytes at 4096 of m1: superblock",
        ]
    );
}

fn any_request() -> impl Strategy<Value = Request> {
    let sizes = prop::collection::vec(
        prop_oneof![20 => MIB..200 * MIB, 20 => 0..64 * GIB, 1 => Just(u64::MAX), 1 => Just(1 << 62)],
        0..9,
    );
    let layout = prop::sample::select(vec![
        None,
        None,
        None,
        Some("n2"),
        Some("f3"),
        Some("o2"),
        Some("ra"),
    ]);
    let number = prop_oneof![
        6 => Just(None),
        2 => (9..34_u32).prop_map(|shift| Some(1_u64 << shift)),
        1 => any::<u64>().prop_map(Some),
    ];
    let level = prop::sample::select(vec![-1, 0, 1, 4, 5, 6, 10]);
    let version = prop::sample::select(Version::ALL.to_vec());
    let places = (0..2_usize, 0..2_usize, any::<bool>());
    let policies = [&[None; 4][..], &Consistency::ALL.map(Some)].concat();
    let policy = prop::sample::select(policies);
    (
        level,
        version,
        sizes,
        layout,
        [number.clone(), number.clone(), number.clone(), number],
        (places, policy),
    )
        .prop_map(|(level, version, sizes, layout, numbers, (places, policy))| {
            let (missing, spares, has_bitmap) = places;
            let mut request = request(Level::from_number(level).unwrap(), version, &sizes);
            let [chunk, size, data_offset, bitmap_chunk] = numbers;
            (request.chunk, request.size, request.data_offset) = (chunk, size, data_offset);
            request.layout = layout.map(str::to_owned);
            request.consistency = policy;
            if has_bitmap {
                request.bitmap = BitmapChoice::Internal { chunk: bitmap_chunk };
            }
            request.members.iter_mut().take(missing).for_each(|place| *place = Place::Missing);
            request.spares = (20..20 + spares).map(|index| device(index, 300 * MIB)).collect();
            request
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8000, failure_persistence: None, ..Default::default() })]

    /// Whatever is asked for: a refusal, or superblocks that can be read.
    #[test]
    fn any_request_is_refused_or_readable(request in any_request()) {
        for device in request.devices() {
            let Request { version, level, chunk, .. } = request;
            let past = past_offsets(version, level, chunk, device.size);
            prop_assert!(past.iter().all(|one| one.offset < device.size));
        }
        let Ok(plan) = plan(&request) else { return Ok(()) };
        prop_assert!(plan.array_size > 0);
        prop_assert!(!plan.explain().is_empty());
        for member in &plan.members {
            let ours = &member.superblock;
            let size = size_of(&request, &member.label);
            let read = Superblock::parse(ours.version, ours.super_offset, size, &ours.encode());
            prop_assert!(read.is_ok(), "{}", read.unwrap_err());
        }
    }
}

/// mdadm takes a descriptor of zeroes for that of member 0, and refuses the second of two.
#[test]
fn the_descriptor_of_a_0_90_spare_has_its_number() {
    let mut request = request(Level::Raid1, Version::V0_90, &[64 * MIB; 2]);
    request.spares = vec![device(9, 64 * MIB)];
    let plan = planned(&request);
    for member in &plan.members {
        let bytes = member.superblock.encode();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        // The third of the descriptors: its number, and the number of its role.
        let third = 512 + 2 * 128;
        assert_eq!((word(third), word(third + 12)), (2, 2), "{}", member.label);
        // This device's own descriptor, at the end.
        assert_eq!(word(992 * 4), member.superblock.device_number, "{}", member.label);
    }
}

/// A bitmap that is added later lies where nothing else does, on every member, and is as fine as it is asked
/// to be, or the answer says how fine it can be.
#[test]
fn a_bitmap_that_is_added_later_lies_where_nothing_else_does() {
    let mut placed = 0;
    for request in requests() {
        let request = Request {
            bitmap: BitmapChoice::None,
            consistency: Some(Consistency::Resync),
            ..request
        };
        if !request.level.is_redundant() {
            continue;
        }
        let Ok(plan) = plan(&request) else { continue };
        let superblocks: Vec<Superblock> =
            plan.members.iter().map(|member| member.superblock.clone()).collect();
        let sync_size = match request.level {
            Level::Raid10 => plan.array_size,
            _ => superblocks[0].component_size,
        };
        for chunk in [None, Some(4 << 10), Some(1 << 20), Some(64 << 20)] {
            let BitmapPlace { offset, room, chunk } =
                match bitmap_place(&superblocks, sync_size, chunk) {
                    Ok(place) => place,
                    Err(NoPlace::TooFine { chunk, least }) => {
                        assert!(chunk < least, "{request:?}");
                        let place = bitmap_place(&superblocks, sync_size, Some(least));
                        let place = place.unwrap_or_else(|why| panic!("{why}: {request:?}"));
                        let half = bitmap_place(&superblocks, sync_size, Some(least / 2));
                        assert!(least == 4096 || half.is_err(), "{request:?}");
                        place
                    }
                    Err(why) => panic!("{why}: {request:?}"),
                };
            placed += 1;
            let len = (256 + sync_size.div_ceil(chunk).div_ceil(8)).next_multiple_of(4096);
            assert!(len <= room && offset % 4096 == 0, "{request:?}");
            for superblock in &superblocks {
                let start = superblock.super_offset.checked_add_signed(offset).unwrap();
                let mine = start..start + len;
                let log = superblock.bad_block_log.map(|log| {
                    let start = superblock.super_offset.checked_add_signed(log.offset).unwrap();
                    start..start + log.size
                });
                let data =
                    superblock.data_offset..superblock.data_offset + superblock.component_size;
                let own = superblock.super_offset..superblock.super_offset + 4096;
                for other in [Some(own), Some(data), log].into_iter().flatten() {
                    assert!(
                        mine.end <= other.start || other.end <= mine.start,
                        "{mine:?} {other:?}"
                    );
                }
                assert!(bitmap_room_at(superblock, offset) >= len, "{request:?}");
                assert_eq!(
                    bitmap_room_at(
                        superblock,
                        superblock.data_offset as i64 - superblock.super_offset as i64
                    ),
                    0
                );
                let mut with = superblock.clone();
                with.set_bitmap(Some(offset));
                let again = Superblock::parse(
                    with.version,
                    with.super_offset,
                    u64::MAX >> 1,
                    &with.encode(),
                );
                assert_eq!(again.map(|one| one.bitmap_offset), Ok(Some(offset)), "{request:?}");
                with.set_bitmap(None);
                assert_eq!(with, *superblock);
            }
        }
    }
    assert!(placed > 1000, "{placed}");
}

/// A new array that would have had one has it in the same place.
#[test]
fn a_bitmap_that_is_added_later_lies_where_a_new_array_has_it() {
    for version in Version::ALL {
        let mut request = request(Level::Raid1, version, &[9 * GIB, 9 * GIB]);
        request.bitmap = BitmapChoice::Internal { chunk: None };
        let planned = planned(&request);
        let superblocks: Vec<Superblock> = planned
            .members
            .iter()
            .map(|member| {
                let mut superblock = member.superblock.clone();
                superblock.set_bitmap(None);
                superblock
            })
            .collect();
        let place = bitmap_place(&superblocks, superblocks[0].component_size, None).unwrap();
        assert_eq!(planned.members[0].superblock.bitmap_offset, Some(place.offset), "{version}");
        assert_eq!(planned.bitmap.unwrap().chunk, place.chunk, "{version}");
    }
}

/// Members need not begin their data at the same place: what is free is free on every one of them, whichever is first.
#[test]
fn a_bitmap_that_is_added_later_lies_where_it_is_free_on_every_member() {
    let of_size = |size| {
        let mut request = request(Level::Raid1, Version::V1_2, &[size; 2]);
        (request.bitmap, request.consistency) = (BitmapChoice::None, Some(Consistency::Resync));
        planned(&request).members[0].superblock.clone()
    };
    let (near, far) = (of_size(8 * MIB), of_size(64 * GIB));
    assert!(near.data_offset < far.data_offset, "{} {}", near.data_offset, far.data_offset);
    let mut is_bound = false;
    for shift in 12..30 {
        let (sync_size, chunk) = (far.component_size, Some(1 << shift));
        let place = bitmap_place([&far, &near], sync_size, chunk);
        assert_eq!(place, bitmap_place([&near, &far], sync_size, chunk));
        is_bound |= place != bitmap_place([&far], sync_size, chunk);
        let Ok(BitmapPlace { offset, chunk, .. }) = place else { continue };
        let len = 256 + sync_size.div_ceil(chunk).div_ceil(8);
        assert!(bitmap_room_at(&near, offset) >= len && bitmap_room_at(&far, offset) >= len);
    }
    assert!(is_bound, "the first alone would have had room");
}
