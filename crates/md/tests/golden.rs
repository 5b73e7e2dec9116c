//! Superblocks of the kernel: read as mdadm reads them, and written back byte for byte.

mod common;

use braid_md::superblock::checksum;
use braid_md::{Bitmap, Level, Role, Superblock, Version, detect};
use common::{Golden, goldens};

#[test]
fn every_byte_comes_back() {
    for golden in goldens() {
        let superblock = golden.superblock();
        assert_eq!(superblock.encode(), golden.bytes, "{}", golden.name);
        assert!(!superblock.has_unknown(), "{}", golden.name);
        braid_md::fuzz::assert_in_range(&superblock, golden.device_size);
    }
}

#[test]
fn the_facts_are_those_that_mdadm_prints() {
    for golden in goldens() {
        let superblock = golden.superblock();
        let mut checked = 0;
        for (key, value) in &golden.printed {
            let Some(ours) = fact(&golden, &superblock, key) else { continue };
            // mdadm appends sizes in other units, and what it thinks of the checksum.
            assert!(
                value == &ours || value.starts_with(&format!("{ours} ")),
                "{}: {key} is {value}, not {ours}",
                golden.name
            );
            checked += 1;
            if key == "Device Role" || key == "Chunk Size" && superblock.old.is_some() {
                break; // What follows is about the bitmap.
            }
        }
        assert!(checked >= 9, "{}: {checked} facts", golden.name);
    }
}

/// Returns mdadm's value for a key.
fn fact(golden: &Golden, superblock: &Superblock, key: &str) -> Option<String> {
    let sectors = |bytes: u64| format!("{} sectors", bytes / 512);
    let old = superblock.old;
    Some(match key {
        "Magic" => "a92b4efc".to_owned(),
        "Version" => match old {
            Some(old) => format!("0.{}.{:02}", old.minor_version, old.patch_version),
            None => superblock.version.to_string(),
        },
        "Feature Map" => format!("{:#x}", superblock.features.0),
        "Array UUID" | "UUID" => superblock.array_uuid.to_string(),
        "Name" => superblock.name.clone(),
        "Raid Level" => superblock.level.to_string(),
        "Raid Devices" => superblock.raid_disks.to_string(),
        "Avail Dev Size" => sectors(superblock.data_size),
        "Used Dev Size" if old.is_some() => (superblock.component_size / 1024).to_string(),
        "Used Dev Size" => sectors(usable(superblock)),
        "Array Size" => (superblock.array_size()? / 1024).to_string(),
        "Data Offset" => sectors(superblock.data_offset),
        "Super Offset" => sectors(superblock.super_offset),
        "State" => if superblock.is_clean() { "clean" } else { "active" }.to_owned(),
        "Device UUID" => superblock.device_uuid.to_string(),
        "Internal Bitmap" => format!("{} sectors", superblock.bitmap_offset? / 512),
        "PPL" => {
            let (offset, size) = superblock.ppl?;
            let (offset, size) = (offset / 512, size / 512);
            format!("{size} sectors at offset {offset} sectors from superblock")
        }
        "Bad Block Log" => {
            let log = superblock.bad_block_log?;
            let (entries, offset) = (log.size / 8, log.offset / 512);
            format!("{entries} entries available at offset {offset} sectors")
        }
        "Flags" => if superblock.write_mostly { "write-mostly" } else { "none" }.to_owned(),
        "Checksum" => {
            let (stored, expected) = checksum(superblock.version, &golden.bytes)?;
            assert_eq!(stored, expected, "{}", golden.name);
            format!("{stored:x} - correct")
        }
        "Events" => superblock.events.to_string(),
        "Chunk Size" => format!("{}K", superblock.chunk / 1024),
        "Layout" => layout(superblock).to_owned(),
        "Device Role" => match superblock.role() {
            Role::Active(role) => format!("Active device {role}"),
            other => format!("{other:?}").to_lowercase(),
        },
        "Total Devices" => old?.nr_disks.to_string(),
        "Preferred Minor" => old?.preferred_minor.to_string(),
        "Active Devices" => old?.counts[0].to_string(),
        "Working Devices" => old?.counts[1].to_string(),
        "Failed Devices" => old?.counts[2].to_string(),
        "Spare Devices" => old?.counts[3].to_string(),
        _ => return None,
    })
}

/// mdadm prints what is used in whole chunks.
fn usable(superblock: &Superblock) -> u64 {
    let has_chunk = superblock.chunk > 0 && superblock.level != Level::Raid1;
    let unit = if has_chunk { superblock.chunk } else { 1 };
    superblock.component_size / unit * unit
}

fn layout(superblock: &Superblock) -> &'static str {
    match (superblock.level, superblock.layout) {
        (Level::Raid5 | Level::Raid6, 0) => "left-asymmetric",
        (Level::Raid5 | Level::Raid6, 2) => "left-symmetric",
        (Level::Raid10, 0x102) => "near=2",
        (Level::Raid10, 0x201) => "far=2",
        (Level::Raid10, 0x1_0201) => "offset=2",
        (Level::Raid0, 2) => "alternate",
        (level, layout) => panic!("no {level} of layout {layout} among them"),
    }
}

#[test]
fn roles_are_those_of_the_array_state() {
    for golden in goldens() {
        let superblock = golden.superblock();
        let Some(state) = golden.says("Array State", 0) else { continue };
        let (letters, _) = state.split_once(' ').expect("a legend follows");
        for (role, letter) in (0..).zip(letters.chars()) {
            let devices = superblock.devices_in(role).count();
            assert_eq!(devices, usize::from(letter == 'A'), "{} {role}", golden.name);
        }
        assert_eq!(letters.len(), superblock.raid_disks as usize, "{}", golden.name);
    }
}

#[test]
fn the_table_of_0_90_is_readable() {
    let all = goldens();
    let golden = all.iter().find(|golden| golden.name == "raid1-2-v0.90-m1").expect("it");
    let (this, table) = golden.superblock().old_disks().expect("0.90");
    assert_eq!((this.number, this.major, this.minor, this.state), (1, 98, 16, 6));
    assert_eq!((table.len(), table[1]), (27, this));
    assert_eq!((table[0].number, table[0].minor), (0, 0));
}

#[test]
fn bitmaps_come_back_and_say_what_mdadm_says() {
    let mut count = 0;
    for golden in goldens() {
        let Some(bytes) = &golden.bitmap else { continue };
        let bitmap = Bitmap::parse(bytes).unwrap_or_else(|why| panic!("{}: {why}", golden.name));
        assert_eq!(&bitmap.page(0)[..], &bytes[..], "{}", golden.name);
        assert_eq!(bitmap.page_count(), 1);
        let header = &bitmap.header;
        assert_eq!(header.uuid.0, golden.superblock().uuid_on_disk());
        let chunks =
            format!("{} bits (chunks), {} dirty", bitmap.chunk_count(), bitmap.count_set());
        let state = if header.stale { "Out of date" } else { "OK" };
        let facts = [
            ("Version", 1, header.version.to_string()),
            ("Events", 1, header.events.to_string()),
            ("Events Cleared", 0, header.events_cleared.to_string()),
            ("State", 1, state.to_owned()),
            ("Chunksize", 0, format!("{} KB", header.chunk_size / 1024)),
            ("Daemon", 0, format!("{}s flush period", header.daemon_sleep)),
            ("Sync Size", 0, format!("{} ", header.sync_size / 1024)),
            ("Bitmap", 0, chunks),
        ];
        for (key, nth, ours) in facts {
            let theirs = golden.says(key, nth).expect(key);
            assert!(theirs.starts_with(&ours), "{}: {key} is {theirs}, not {ours}", golden.name);
        }
        count += 1;
    }
    assert_eq!(count, 4);
}

/// A member as `read` sees it: some superblocks in their places, zeroes elsewhere.
fn read(pieces: &[(u64, &[u8])], at: u64, to: &mut [u8]) {
    for (offset, bytes) in pieces {
        if *offset == at {
            to[..bytes.len()].copy_from_slice(bytes);
        }
    }
}

#[test]
fn the_superblock_created_last_holds() {
    let all = goldens();
    let named = |name: &str| all.iter().find(|golden| golden.name == name).expect("it");
    let (old, new) = (named("raid1-2-v0.90-m1"), named("raid5-3-dirty-m2"));
    let mut broken = named("raid1-2-v1.0-m0").bytes.clone();
    broken[300] ^= 1;
    let pieces = [
        (old.offset, &old.bytes[..]),
        (new.offset, &new.bytes[..]),
        (named("raid1-2-v1.0-m0").offset, &broken[..]),
    ];
    let found = detect::find(16 << 20, &mut |at, to| {
        read(&pieces, at, to);
        Ok(())
    });
    let found = found.expect("no errors");
    let versions: Vec<Version> = found.iter().map(|found| found.version).collect();
    assert_eq!(versions, [Version::V1_2, Version::V1_0, Version::V0_90]);
    assert!(found[1].result.is_err());
    let choice = detect::choose(&found).expect("two are valid");
    assert_eq!(choice.superblock, &new.superblock());
    assert_eq!(
        choice.to_string(),
        "version 1.2 was created last (1795292360 s), after version 0.90 (1795292073 s)"
    );
    let choice = detect::choose(&found[2..]).expect("one is valid");
    assert_eq!(choice.to_string(), "version 0.90 is the only valid superblock");
    assert_eq!(detect::choose(&found[1..2]), None);
}

/// The same superblock of a big-endian host: every word's bytes the other way round, and the two
/// words of each 64-bit number changed.
#[test]
fn version_0_90_of_a_big_endian_host() {
    for golden in goldens().iter().filter(|golden| golden.version == Version::V0_90) {
        let mut bytes = golden.bytes.clone();
        bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        for at in [156, 164, 176] {
            let (low, high) = bytes[at..at + 8].split_at_mut(4);
            low.swap_with_slice(high);
        }
        let big = golden.parse(&bytes).unwrap_or_else(|why| panic!("{}: {why}", golden.name));
        assert_eq!(big.encode(), bytes);
        let mut little = golden.superblock().into_contents();
        assert_eq!(big.uuid_on_disk(), big.array_uuid.0);
        assert_ne!(little.uuid_on_disk(), little.array_uuid.0);
        little.old.as_mut().expect("0.90").byte_order = braid_md::superblock::ByteOrder::Big;
        little.raw = bytes;
        assert_eq!(little, *big);
    }
}
