//! Invalid bytes: damage, and superblocks made to mislead, with a correct checksum.

mod common;

use braid_md::fuzz::{assert_in_range, seal};
use braid_md::{BadBlocks, Bitmap, BitmapHeader, Rejection, Version};
use common::{Golden, goldens};

/// Damage of a byte is always seen: every byte is under the checksum.
#[test]
fn every_flipped_byte_is_seen() {
    for golden in goldens() {
        let mut bytes = golden.bytes.clone();
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                bytes[at] ^= mask;
                assert!(golden.parse(&bytes).is_err(), "{} byte {at} ^ {mask:#x}", golden.name);
                bytes[at] ^= mask;
            }
        }
    }
}

/// Bytes behind the superblock make no difference, and missing ones are noticed.
#[test]
fn bytes_behind_are_ignored_and_missing_ones_refused() {
    for golden in goldens() {
        let mut longer = golden.bytes.clone();
        longer.resize(8192, 0x5a);
        assert_eq!(golden.parse(&longer), Ok(golden.superblock()));
        for len in 0..golden.bytes.len() {
            let refused = golden.parse(&golden.bytes[..len]);
            assert!(matches!(refused, Err(Rejection::Truncated { .. })), "{} {len}", golden.name);
        }
    }
}

/// With the checksum made right, a changed byte is refused or leads to another sound superblock.
#[test]
fn every_changed_byte_under_a_right_checksum() {
    let mut accepted = 0;
    for golden in goldens() {
        // In 0.90 most of the 4096 bytes are reserved.
        let step = if golden.version == Version::V0_90 { 3 } else { 1 };
        for at in (0..golden.bytes.len()).step_by(step) {
            for mask in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = golden.bytes.clone();
                bytes[at] ^= mask;
                seal(golden.version, &mut bytes);
                if let Ok(superblock) = golden.parse(&bytes) {
                    assert_in_range(&superblock, golden.device_size);
                    accepted += 1;
                }
            }
        }
    }
    assert!(accepted > 1000, "some changes are harmless, {accepted} were");
}

fn named(name: &str) -> Golden {
    goldens().into_iter().find(|golden| golden.name == name).expect("it is there")
}

/// Why a superblock is refused after `bytes` were put at `at`.
fn refused(golden: &Golden, puts: &[(usize, &[u8])]) -> String {
    let mut bytes = golden.bytes.clone();
    bytes.resize(4096, 0xff);
    for (at, put) in puts {
        bytes[*at..*at + put.len()].copy_from_slice(put);
    }
    seal(golden.version, &mut bytes);
    match golden.parse(&bytes) {
        Ok(_) => "accepted".to_owned(),
        Err(why) => why.to_string(),
    }
}

#[test]
fn absurd_values_of_version_1_are_named() {
    let raid5 = named("raid5-3-dirty-m2");
    let huge = u64::MAX.to_le_bytes();
    let most = (u64::MAX / 512 - 1).to_le_bytes();
    let beyond = "the data at 1048576 of";
    for (at, put, starts) in [
        (0, &b"\xa9\x2b\x4e\xfc"[..], "the superblock is big-endian"),
        (0, b"junk", "the magic number is 6b6e756a, md's is a92b4efc"),
        (4, &[2], "the major version is 2, a superblock in this place has 1"),
        (72, &(-4_i32).to_le_bytes(), "the level is -4"),
        (72, &[0; 4], "accepted"), // raid0 of the same members
        (72, &6_i32.to_le_bytes(), "raid_disks is 3, an array of this level and version has 4"),
        (76, &[6, 0, 0, 0], "raid5 of 3 members has no layout 0x6"),
        (80, &huge, "size is 18446744073709551615 sectors, it must be below 2^63 bytes"),
        (80, &most, "size is 36028797018963966 sectors"),
        (80, &[0; 8], "size is 0 bytes, it must be at least 512"),
        (80, &30721_u64.to_le_bytes(), "size is 15729152 bytes, it must be at most 15728640"),
        (88, &[0; 4], "the chunk is 0 bytes, raid5 needs a power of two from 4096"),
        (88, &[4, 0, 0, 0], "the chunk is 2048 bytes"),
        (88, &[24, 0, 0, 0], "the chunk is 12288 bytes"),
        (92, &[0; 4], "raid_disks is 0, an array of this level and version has 2 to 384"),
        (92, &(1_u32 << 31).to_le_bytes(), "raid_disks is 2147483648, an array of"),
        (92, &385_u32.to_le_bytes(), "raid_disks is 385"),
        (92, &2_u32.to_le_bytes(), "device 3 has role 2, the array has roles 0 to 1"),
        (128, &huge, "data_offset is 18446744073709551615 sectors"),
        (128, &[0; 8], "data_offset is 0 bytes, it must be at least 4608"),
        (128, &8_u64.to_le_bytes(), "data_offset is 4096 bytes, it must be at least 4608"),
        (136, &huge, "data_size is 18446744073709551615 sectors"),
        (136, &30721_u64.to_le_bytes(), beyond),
        (136, &(1_u64 << 53).to_le_bytes(), beyond),
        (136, &[9, 0, 0, 0, 0, 0, 0, 0], "data_size is 4608 bytes, it must be at least 5120"),
        (144, &[0; 8], "the superblock says that it lies at sector 0, it was found at sector 8"),
        (160, &128_u32.to_le_bytes(), "the device number is 128, there are roles for 128"),
        (160, &huge[..4], "the device number is 4294967295"),
        (185, &[64], "the bad-block log of 8 sectors at offset 16, shift 64: the shift is below"),
        (186, &[9, 0], "the bad-block log of 9 sectors at offset 16"),
        (188, &(-16_i32).to_le_bytes(), "the bad-block log lies -8192 bytes from the superblock"),
        (188, &i32::MAX.to_le_bytes(), "the bad-block log lies 1099511627264 bytes"),
        (188, &[1, 0, 0, 0], "accepted"),
        (188, &(-1_i32).to_le_bytes(), "the bad-block log (bytes 3584 to 7680) and the superblock"),
        (
            188,
            &2040_i32.to_le_bytes(),
            "the data (bytes 1048576 to 16777216) and the bad-block log",
        ),
        (200, &huge, "the event count is 18446744073709551615, it must be below 2^63"),
        (200, &(u64::MAX - 1).to_le_bytes(), "the event count is 18446744073709551614"),
        (200, &(u64::MAX >> 1).to_le_bytes(), "accepted"),
        (208, &huge, "accepted"),
        (208, &most, "resync_offset is 36028797018963966 sectors"),
        (220, &[0; 4], "max_dev is 0, there is room for 1 to 1920"),
        (220, &1921_u32.to_le_bytes(), "max_dev is 1921"),
        (220, &huge[..4], "max_dev is 4294967295"),
        (220, &1920_u32.to_le_bytes(), "accepted"),
        (220, &127_u32.to_le_bytes(), "accepted"),
        (256, &[3, 0], "device 0 has role 3, the array has roles 0 to 2"),
        (256, &[0, 0xff], "device 0 has role 65280"),
        (256, &[1, 0], "accepted"), // a replacement beside its member
        (262, &[1, 0, 1, 0], "3 devices have role 1, at most 2 can"),
        (256, &[0xfd, 0xff], "accepted"),
        (262, &[0xfd, 0xff], "the feature map is 0x0: a journal device without a journal"),
    ] {
        let why = refused(&raid5, &[(at, put)]);
        assert!(why.starts_with(starts), "{put:x?} at {at}: {why}");
    }
}

#[test]
fn absurd_features_of_version_1_are_named() {
    let raid5 = named("raid5-3-dirty-m2");
    let features = |bits: u32| bits.to_le_bytes();
    let (reshape, shape) = (features(4), [5, 0, 0, 0]);
    let all_new: &[(usize, &[u8])] =
        &[(8, &reshape), (100, &shape), (116, &[2, 0, 0, 0]), (120, &[128, 0, 0, 0])];
    let with = |more: &[(usize, &[u8])]| refused(&raid5, &[all_new, more].concat());
    assert_eq!(with(&[]), "accepted");
    for (puts, starts) in [
        (&[(112, &3_i32.to_le_bytes()[..])][..], "raid_disks before the reshape is 0"),
        (&[(112, &(-500_i32).to_le_bytes())], "raid_disks before the reshape is 503"),
        (&[(112, &i32::MIN.to_le_bytes())], "raid_disks before the reshape is 2147483651"),
        (&[(100, &[9, 0, 0, 0])], "the level is 9"),
        (&[(116, &[6, 0, 0, 0])], "raid5 of 3 members has no layout 0x6"),
        (&[(120, &[0; 4])], "the chunk is 0 bytes"),
        (&[(104, &[0xff; 8])], "reshape_position is 18446744073709551615 sectors"),
        (&[(8, &features(68)), (124, &i32::MIN.to_le_bytes())], "the data after the reshape at"),
        (&[(8, &features(68)), (124, &i32::MAX.to_le_bytes())], "the data after the reshape at"),
        (&[(8, &features(68)), (124, &(-2047_i32).to_le_bytes())], "data_offset after the reshape"),
    ] {
        let why = with(puts);
        assert!(why.starts_with(starts), "{why}");
    }
    for (bits, put, starts) in [
        (1, &[0_u8; 4][..], "the superblock (bytes 4096 to 4608) and the bitmap"),
        (1, &[8, 0, 0, 0], "accepted"),
        (1, &[16, 0, 0, 0], "the bitmap (bytes 12288 to 12800) and the bad-block log (bytes 12288"),
        (1, &i32::MIN.to_le_bytes(), "the bitmap lies -1099511627776 bytes"),
        (1, &[0, 16, 0, 0], "the data (bytes 1048576 to 16777216) and the bitmap"),
        (1025, &[8, 0, 8, 0], "the feature map is 0x401: a partial parity log and a bitmap"),
        (3072, &[8, 0, 8, 0], "the feature map is 0xc00: two kinds of partial parity log"),
        (1536, &[8, 0, 8, 0], "the feature map is 0x600: a partial parity log and a journal"),
        (1024, &[24, 0, 8, 0], "ppl.size is 4096 bytes, it must be at least 4608"),
        (1024, &[24, 0, 9, 0], "accepted"),
        (1024, &[0, 0x80, 9, 0], "the partial parity log lies -16777216 bytes"),
        (4096, &[0; 4], "the feature map is 0x1000: a raid0 layout without raid0"),
        (0x8000_0000, &[0; 4], "accepted"),
    ] {
        let why = refused(&raid5, &[(8, &features(bits)), (96, put)]);
        assert!(why.starts_with(starts), "{bits:#x}: {why}");
    }
    let too_far = (30721_u64).to_le_bytes();
    let why = refused(&raid5, &[(8, &features(2)), (152, &too_far)]);
    assert_eq!(why, "recovery_offset is 15729152 bytes, it must be at most 15728640");
    let why = refused(&raid5, &[(8, &features(8)), (188, &[0; 4])]);
    assert!(why.ends_with("there are bad blocks and no room for them"), "{why}");
}

#[test]
fn unknown_bits_are_read_and_told() {
    let raid5 = named("raid5-3-dirty-m2");
    for at in [11, 12, 15, 228, 255] {
        let mut bytes = raid5.bytes.clone();
        bytes[at] |= 0x40;
        seal(raid5.version, &mut bytes);
        let superblock = raid5.parse(&bytes).expect("it may be read");
        assert!(superblock.has_unknown(), "{at}");
        assert_eq!(superblock.encode(), bytes, "{at}");
    }
}

#[test]
fn absurd_values_of_version_0_90_are_named() {
    let raid5 = named("raid5-3-v0.90-m0");
    let huge = [0xff; 8];
    for (at, put, starts) in [
        (4, &[1, 0, 0, 0][..], "the major version is 1, a superblock in this place has 0"),
        (8, &[89, 0, 0, 0], "the version is 0.89"),
        (8, &[92, 0, 0, 0], "the version is 0.92"),
        (8, &[91, 0, 0, 0], "the chunk is 0 bytes"), // a reshape to nothing
        (28, &(-4_i32).to_le_bytes(), "the level is -4"),
        (32, &huge[..4], "size is 4398046510080 bytes, it must be at most 16711680"),
        (
            40,
            &huge[..4],
            "raid_disks is 4294967295, an array of this level and version has 2 to 27",
        ),
        (40, &28_u32.to_le_bytes(), "raid_disks is 28"),
        (260, &[0; 4], "the chunk is 0 bytes"),
        (512 + 12, &huge[..4], "device 0 has role 4294967295"),
        (512 + 12, &[3, 0, 0, 0], "device 0 has role 3"),
        (512 + 12, &[1, 0, 0, 0], "2 devices have role 1, at most 1 can"),
        (3968, &27_u32.to_le_bytes(), "the device number is 27, there are roles for 27"),
        (3968, &huge[..4], "the device number is 4294967295"),
    ] {
        let why = refused(&raid5, &[(at, put)]);
        assert!(why.starts_with(starts), "{put:x?} at {at}: {why}");
    }
}

/// Whatever the place and the size that are claimed, nothing overflows.
#[test]
fn absurd_places_and_sizes_of_the_member() {
    let edges = [0, 1, 511, 512, 4096, 1 << 20, 16 << 20, 1 << 63, u64::MAX - 4096, u64::MAX];
    for golden in goldens() {
        for version in Version::ALL {
            for offset in edges.into_iter().chain([golden.offset]) {
                for device_size in edges.into_iter().chain([golden.device_size]) {
                    let parsed =
                        braid_md::Superblock::parse(version, offset, device_size, &golden.bytes);
                    if let Ok(superblock) = parsed {
                        assert_in_range(&superblock, device_size);
                    }
                }
            }
        }
    }
}

#[test]
fn absurd_bitmaps_are_named() {
    let golden = named("raid1-2-bitmap-m1");
    let page = golden.bitmap.expect("a bitmap");
    for (at, put, starts) in [
        (0, &b"bits"[..], "the bitmap's magic number is 73746962"),
        (4, &[2], "the bitmap's version is 2"),
        (4, &[5], "the bitmap is a clustered one (version 5, 0 nodes)"),
        (4, &[6], "the bitmap is a lockless one"),
        (4, &[7], "the bitmap's version is 7"),
        (40, &[0xff; 8], "the bitmap covers 18446744073709551615 sectors"),
        (40, &(1_u64 << 53).to_le_bytes(), "the bitmap has 70368744177664 chunks, and at most"),
        (40, &((1_u64 << 30) + 1).to_le_bytes(), "the bitmap has 8388609 chunks, and at most"),
        (
            40,
            &(1_u64 << 30).to_le_bytes(),
            "the bitmap has 8388608 chunks and 1048832 bytes, there",
        ),
        (52, &[0; 4], "the bitmap's chunk is 0 bytes"),
        (52, &[0, 1, 0, 0], "the bitmap's chunk is 256 bytes"),
        (52, &[0, 3, 0, 0], "the bitmap's chunk is 768 bytes"),
        (52, &[0, 2, 0, 0], "the bitmap has 30720 chunks and 4096 bytes"),
        (56, &[0; 4], "the bitmap's flush period is 0 s"),
        (60, &[0, 0x40, 0, 0], "the bitmap's write-behind limit is 16384"),
    ] {
        let mut bytes = page.clone();
        bytes[at..at + put.len()].copy_from_slice(put);
        let why = match Bitmap::parse(&bytes) {
            Ok(bitmap) => format!(
                "the bitmap has {} chunks and {} bytes",
                bitmap.chunk_count(),
                bitmap.byte_len()
            ),
            Err(why) => why.to_string(),
        };
        assert!(why.starts_with(starts), "{put:x?} at {at}: {why}");
    }
    for len in 0..256 {
        assert!(BitmapHeader::parse(&page[..len]).is_err());
    }
    for at in 0..256 {
        for mask in [1, 0x10, 0x80, 0xff] {
            let mut bytes = page.clone();
            bytes[at] ^= mask;
            if let Ok(bitmap) = Bitmap::parse(&bytes) {
                assert_eq!(&bitmap.page(0)[..], &bytes[..], "{at} ^ {mask:#x}");
            }
        }
    }
}

/// A bitmap has no checksum: what rot cleared in one copy is set in the others.
#[test]
fn copies_of_a_bitmap_count_together() {
    let page = named("raid1-2-bitmap-m1").bitmap.expect("a bitmap");
    let mut one = Bitmap::parse(&page).expect("valid");
    let mut other = one.clone();
    (one.header.events_cleared, other.header.events_cleared) = (7, 9);
    one.set(0);
    other.clear(0);
    other.set(5);
    assert!(one.join(&other));
    assert!(one.is_set(0) && one.is_set(5) && one.header.events_cleared == 9);
    let less = other.covering(one.header.sync_size / 2);
    assert!(less.chunk_count() < one.chunk_count() && less.is_set(5));
    assert!(!one.join(&less), "its chunks are not the same");
}

#[test]
fn a_bitmap_of_a_hosts_own_order_is_not_portable() {
    let golden = named("raid1-2-bitmap-m1");
    let mut page = golden.bitmap.expect("a bitmap");
    assert!(BitmapHeader::parse(&page).expect("valid").is_portable());
    page[4] = 3;
    assert!(!BitmapHeader::parse(&page).expect("valid").is_portable());
}

#[test]
fn absurd_bad_blocks_are_refused() {
    const SIZE: u64 = 1 << 40;
    let parse = |first: u64, units: u64, shift: u8, size: u64| {
        BadBlocks::parse(&(first << 10 | units).to_le_bytes(), shift, size)
            .map_err(|why| why.to_string())
    };
    let beyond = "entry 0 of the bad-block log is 1 units from unit 18014398509481983 << 0 on, \
                  beyond the member's 1099511627776 bytes";
    assert_eq!(parse((1 << 54) - 1, 1, 0, SIZE), Err(beyond.to_owned()));
    assert!(parse((1 << 54) - 1, 1, 0, u64::MAX).is_err());
    for shift in [10, 32, 54, 255] {
        let refused = format!("the bad-block log's shift is {shift}: md writes 0, and at most 9");
        let why = parse(1, 1, shift, SIZE).expect_err("a shift that no md writes");
        assert!(why.starts_with(&refused), "{why}");
    }
    for (first, units) in [(1, 1023), (1, 513), (1, 0)] {
        let damaged = format!(
            "entry 0 of the bad-block log is {units} units from unit {first} on, the one before"
        );
        let why = parse(first, units, 0, SIZE).expect_err("an entry that no md writes");
        assert!(why.starts_with(&damaged), "{why}");
    }
    let entries = |all: &[(u64, u64)]| {
        let bytes: Vec<u8> =
            all.iter().flat_map(|(first, units)| (first << 10 | units).to_le_bytes()).collect();
        BadBlocks::parse(&bytes, 0, SIZE)
    };
    assert!(entries(&[(8, 512), (520, 1), (600, 8)]).is_ok());
    assert!(
        entries(&[(8, 8), (15, 1)]).is_err() && entries(&[(8, 8), (1, 1)]).is_err(),
        "not in order"
    );
    assert!(parse(7, 1, 0, 4096).is_ok() && parse(8, 1, 0, 4096).is_err(), "the last sector");
    assert!(parse(1, 1, 1, 1536).is_ok() && parse(2, 1, 1, 1536).is_err(), "a unit that is cut");
}

#[test]
fn planted_faults_are_found() {
    braid_canary::hunt(braid_md::canary::Canary::ALL, file!());
}
