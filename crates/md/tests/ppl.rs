//! The partial parity log: entries of the kernel are read with their meaning, and invalid ones are refused.

use braid_golden::{Golden, named};
use braid_md::ppl::{
    Covered, Entry, HEADER_BYTES, Header, MOST_ENTRIES, Newest, RING_PARITY_BYTES, Units,
    check_parity_role, covered, newest, parity_checksum, signature,
};
use braid_md::rejection::PplRejection;
use braid_md::{Superblock, Uuid, Version};
use braid_mutate::Random;
use proptest::prelude::*;

const SIGNATURE: u32 = 0x1234_5678;

/// A member of the kernel's array: its superblock, its image, and the log's area in it.
fn member(golden: &Golden, index: usize) -> (Superblock, Vec<u8>, std::ops::Range<usize>) {
    let image = golden.expand_member(index);
    let (version, size) = (Version::V1_2, image.len() as u64);
    let superblock = Superblock::parse(version, 4096, size, &image[4096..]).expect("a superblock");
    let (offset, len) = superblock.ppl.expect("a log");
    let start = superblock.super_offset.strict_add_signed(offset) as usize;
    let area = start..start + len as usize;
    (superblock, image, area)
}

/// The headers of an area in the order of the chain that starts at its start.
fn chain(area: &[u8], signature: u32) -> Vec<(usize, Header)> {
    let mut chain: Vec<(usize, Header)> = Vec::new();
    let mut offset = 0;
    while let Ok(header) = Header::parse(&area[offset.min(area.len())..], signature) {
        let len = header.unit_len();
        chain.push((offset, header));
        offset += len;
    }
    chain
}

#[test]
fn the_kernels_own_log() {
    let golden = named("raid5-3-ppl");
    for index in 0..3 {
        let (superblock, image, area) = member(&golden, index);
        let area = &image[area];
        let signature = signature(&superblock.array_uuid);
        let chain = chain(area, signature);
        assert!(chain.len() > 3, "member {index} was written to: {}", chain.len());
        for (offset, header) in &chain {
            assert_eq!(header.encode(), area[*offset..offset + HEADER_BYTES], "at {offset}");
            assert!(header.entries.iter().all(|entry| usize::from(entry.parity_role) == index));
        }
        let newest = newest(area, signature).expect("a log");
        let most = chain.iter().map(|(_, header)| header.generation).max();
        assert_eq!(Some(newest.header.generation), most, "member {index}");
        assert!(newest.header.generation > 500);
        for (entry, range) in newest.parity_ranges() {
            assert_eq!(range.start, newest.offset + HEADER_BYTES);
            assert!(Newest::parity(area, entry, range).is_ok(), "member {index}");
        }
    }
}

/// The range of an entry is the same as the kernel's: its partial parity and the columns that it names give the parity
/// on the member.
#[test]
fn the_kernels_entries_make_the_parity() {
    let golden = named("raid5-3-ppl");
    let members: Vec<_> = (0..3).map(|index| member(&golden, index)).collect();
    let chunk = golden.chunk_bytes;
    let mut compared = 0;
    for (index, (superblock, image, area)) in members.iter().enumerate() {
        let area = &image[area.clone()];
        let newest = newest(area, signature(&superblock.array_uuid)).expect("a log");
        for (entry, range) in newest.parity_ranges() {
            let covered = covered(entry, chunk, 2, golden.array_bytes).expect("an entry of md's");
            // Left-symmetric: parity moves down by one a stripe, data begins behind it.
            let parity_role = 2 - (covered.stripe % 3) as usize;
            assert_eq!(check_parity_role(entry, parity_role as u16, index as u16), Ok(()));
            let rows = |role: usize| {
                let (superblock, image, _) = &members[role];
                let start = superblock.data_offset as usize;
                &image[start + covered.rows.0 as usize..start + covered.rows.1 as usize]
            };
            let mut parity = vec![0; (covered.rows.1 - covered.rows.0) as usize];
            if entry.parity_len > 0 {
                parity.copy_from_slice(Newest::parity(area, entry, range).expect("sound"));
            }
            for column in covered.first..covered.first + covered.count {
                let data = rows((parity_role + 1 + column) % 3);
                parity.iter_mut().zip(data).for_each(|(byte, data)| *byte ^= data);
            }
            assert!(parity == rows(parity_role), "member {index}: {covered:?}");
            compared += parity.len();
        }
    }
    assert!(compared >= 3 * 4096, "{compared} bytes of parity");
}

fn any_entry() -> impl Strategy<Value = Entry> {
    (0..1_u64 << 54, any::<u32>(), any::<u32>(), any::<u16>(), any::<u32>()).prop_map(
        |(sector, data_len, parity_len, parity_role, checksum)| Entry {
            data_start: sector * 512,
            data_len,
            parity_len,
            parity_role,
            checksum,
        },
    )
}

fn any_header() -> impl Strategy<Value = Header> {
    let entries = prop::collection::vec(any_entry(), 0..=MOST_ENTRIES);
    (any::<u32>(), any::<u64>(), entries).prop_map(|(signature, generation, entries)| Header {
        signature,
        generation,
        entries,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_written_is_read(header in any_header()) {
        let bytes = header.encode();
        prop_assert_eq!(Header::parse(&bytes, header.signature), Ok(header.clone()));
        // Over any earlier contents.
        let mut dirty = vec![0xa5; HEADER_BYTES];
        header.encode_into(&mut dirty);
        prop_assert_eq!(dirty, bytes);
    }

    /// The last unit is found after any sequence of earlier units.
    #[test]
    fn the_last_unit_is_the_newest(seed in any::<u64>(), pages in 3_u64..80) {
        let mut random = Random::new(seed);
        let mut area = vec![0; pages as usize * 4096];
        Header::empty(SIGNATURE).encode_into(&mut area[..HEADER_BYTES]);
        let mut units = Units::new(area.len() as u64);
        for generation in 1..60 {
            let mut room = random.below(units.most_parity() as usize / 4096 + 1) as u32;
            let mut entries = Vec::new();
            while room > 0 {
                let pages = random.below(room as usize + 1) as u32;
                room -= pages.max(1);
                entries.push(Entry { parity_len: pages * 4096, ..Entry::default() });
            }
            let parity_len: u32 = entries.iter().map(|entry| entry.parity_len).sum();
            let header = Header { signature: SIGNATURE, generation, entries };
            let at = units.place(u64::from(parity_len)) as usize;
            prop_assert!(at + header.unit_len() < area.len());
            header.encode_into(&mut area[at..at + HEADER_BYTES]);
            area[at + HEADER_BYTES..at + header.unit_len()].fill(random.next() as u8);
            prop_assert_eq!(newest(&area, SIGNATURE), Ok(Newest { header, offset: at }));
        }
    }
}

#[test]
fn one_unit_or_a_ring() {
    // The kernel's border: two units of 128 KiB with their headers.
    assert!(!Units::new(264 * 1024 - 4096).is_ring());
    assert!(Units::new(264 * 1024).is_ring());
    let mut plain = Units::new(132 * 1024);
    assert_eq!(plain.most_parity(), RING_PARITY_BYTES - 4096, "ends before the area");
    assert_eq!([plain.place(4096), plain.place(4096)], [0, 0]);
    let mut ring = Units::new(1 << 20);
    let places: Vec<u64> = (0..9).map(|_| ring.place(RING_PARITY_BYTES)).collect();
    let unit = RING_PARITY_BYTES + 4096;
    assert_eq!(places, [0, unit, 2 * unit, 3 * unit, 4 * unit, 5 * unit, 6 * unit, 0, unit]);
}

#[test]
fn every_flipped_byte_is_seen() {
    let entries = vec![Entry { data_start: 512, data_len: 512, ..Entry::default() }; 3];
    let bytes = Header { signature: SIGNATURE, generation: 3, entries }.encode();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let refused = Header::parse(&changed, SIGNATURE);
        assert!(matches!(refused, Err(PplRejection::Checksum { .. })), "byte {at}");
    }
    for len in 0..bytes.len() {
        let refused = Header::parse(&bytes[..len], SIGNATURE);
        assert_eq!(refused, Err(PplRejection::Truncated { got: len }));
    }
}

/// Puts a number into a header, and the checksum right.
fn with(header: &Header, at: usize, value: u64, width: usize) -> Vec<u8> {
    let mut bytes = header.encode();
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    bytes[532..536].fill(0);
    let sum = parity_checksum([&bytes[..]]);
    bytes[532..536].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn every_field_under_a_right_checksum() {
    let header = Header { signature: SIGNATURE, generation: 3, entries: vec![Entry::default(); 2] };
    let refused = |at, value, width| {
        Header::parse(&with(&header, at, value, width), SIGNATURE).unwrap_err().to_string()
    };
    assert_eq!(refused(512, 1, 4), "the log is signed 00000001, this array signs 12345678");
    assert_eq!(refused(528, 149, 4), "the log header counts 149 entries, there is room for 148");
    assert_eq!(
        refused(536 + 24, 1 << 54, 8),
        "entry 1 of the log is about sector 18014398509481984, it must be below 2^54"
    );
    assert_eq!(
        refused(536 + 16, 65536, 4),
        "entry 0 of the log has its parity at role 65536, it must be below 2^16"
    );
    // The other fields may have any value: another generation, other lengths, reserved bytes.
    for at in (0..HEADER_BYTES).step_by(4).filter(|at| *at != 532) {
        if let Ok(parsed) = Header::parse(&with(&header, at, u64::from(u32::MAX), 4), SIGNATURE) {
            assert!(parsed.entries.len() <= MOST_ENTRIES);
        }
    }
    let parsed = Header::parse(&with(&header, 520, 9, 8), SIGNATURE).expect("a header");
    assert_eq!(parsed, Header { generation: 9, ..header });
}

/// Two units of one entry each, of these generations; the second one's start.
fn two(first: u64, second: u64) -> (Vec<u8>, usize) {
    let entry = Entry { data_len: 512, parity_len: 512, data_start: 512, ..Entry::default() };
    let unit = |generation| Header { signature: SIGNATURE, generation, entries: vec![entry] };
    let mut area = unit(first).encode();
    area.resize(HEADER_BYTES + 512, 0);
    area.extend(unit(second).encode());
    area.resize(64 * 1024, 0);
    (area, HEADER_BYTES + 512)
}

#[test]
fn the_chain_ends_where_the_kernel_ends_it() {
    let offset_of = |area: &[u8]| newest(area, SIGNATURE).map(|newest| newest.offset);
    let (area, second) = two(4, 5);
    assert_eq!(offset_of(&area), Ok(second));
    assert_eq!(offset_of(&two(4, 4).0), Ok(second), "equal ones go on");
    assert_eq!(offset_of(&two(5, 4).0), Ok(0), "an older turn");
    // If the second header is torn and cannot be read, the first unit is used.
    let mut torn = area.clone();
    torn[second..second + 512].fill(0);
    assert_eq!(offset_of(&torn), Ok(0));
    // The same for a second header of another array,
    let mut other = area.clone();
    let header = Header::empty(SIGNATURE + 1);
    header.encode_into(&mut other[second..second + HEADER_BYTES]);
    assert_eq!(offset_of(&other), Ok(0));
    // and for one that is cut off by the end of the area.
    assert_eq!(offset_of(&area[..second + 4095]), Ok(0));
    // Without a first header there is no log.
    let mut gone = area;
    gone[600] ^= 1;
    assert!(matches!(offset_of(&gone), Err(PplRejection::Checksum { .. })));
    let refused = newest(&two(1, 2).0, 7);
    assert_eq!(refused, Err(PplRejection::Signature { found: SIGNATURE, expected: 7 }));
}

/// The unit before it was durable in place. If that unit were replayed, its parity would not match the data of the damaged one.
#[test]
fn a_flipped_bit_in_any_header_of_the_chain_leaves_none_in_force() {
    let (area, second) = two(4, 5);
    for start in [0, second] {
        for bit in 0..8 * HEADER_BYTES {
            let mut area = area.clone();
            area[start + bit / 8] ^= 1 << (bit % 8);
            let refused = newest(&area, SIGNATURE);
            assert!(refused.is_err_and(|why| why.is_torn()), "bit {bit} of the header at {start}");
        }
    }
}

#[test]
fn parity_is_used_only_with_its_checksum() {
    let (mut area, second) = two(1, 2);
    let parity = |area: &[u8]| {
        let newest = newest(area, SIGNATURE).expect("a log");
        let (entry, range) = newest.parity_ranges().next().expect("an entry");
        Newest::parity(area, entry, range).map(<[u8]>::len)
    };
    assert!(matches!(parity(&area), Err(PplRejection::ParityChecksum { stored: 0, .. })));
    let sum = parity_checksum([&[0x11; 256][..], &[0x11; 256][..]]);
    let entry = Entry { data_len: 512, parity_len: 512, checksum: sum, ..Entry::default() };
    let header = Header { signature: SIGNATURE, generation: 2, entries: vec![entry] };
    header.encode_into(&mut area[second..second + HEADER_BYTES]);
    area[second + HEADER_BYTES..][..512].fill(0x11);
    assert_eq!(parity(&area), Ok(512));
    area.truncate(second + HEADER_BYTES + 511);
    let end = area.len() + 1;
    let outside = PplRejection::ParityOutside { start: end - 512, end, area: end - 1 };
    assert_eq!(parity(&area), Err(outside));
}

/// The cells that the kernel makes good for an entry: (array sector of the column's chunk start,
/// row in sectors), by its own loops.
fn kernels_cells(entry: &Entry, chunk: u64, columns: u64) -> Option<Vec<u64>> {
    let (data_len, parity_len) =
        (u64::from(entry.data_len) / 512, u64::from(entry.parity_len) / 512);
    let (first, chunk) = (entry.data_start / 512, chunk / 512);
    let (disks, strip, last) = if parity_len < chunk {
        let (disks, strip) = match parity_len {
            0 => (columns, data_len / columns),
            rows => (data_len / rows, rows),
        };
        (disks, strip, first + disks.checked_sub(1)? * chunk + strip)
    } else {
        (columns, chunk, first + data_len)
    };
    let mut cells = Vec::new();
    for row in 0..strip {
        for disk in 0..disks {
            let sector = first + row + disk * chunk;
            if sector < last {
                cells.push(sector);
            }
        }
    }
    cells.sort_unstable();
    Some(cells)
}

/// All entries of small worlds: what is accepted covers what the kernel makes good, and every
/// rectangle is accepted.
#[test]
fn small_worlds_are_covered_as_the_kernel_does() {
    const CHUNK_SECTORS: u64 = 8;
    let chunk = CHUNK_SECTORS * 512;
    let mut accepted = 0;
    for columns in 1..4_u64 {
        let size = 3 * columns * chunk;
        let mut rectangles = 0;
        for start in 0..size / 512 + 2 {
            for data in 0..=columns * CHUNK_SECTORS + 1 {
                for parity in 0..=CHUNK_SECTORS + 1 {
                    let entry = Entry {
                        data_start: start * 512,
                        data_len: data as u32 * 512,
                        parity_len: parity as u32 * 512,
                        ..Entry::default()
                    };
                    let Ok(covered) = covered(&entry, chunk, columns as usize, size) else {
                        continue;
                    };
                    let cells = kernels_cells(&entry, chunk, columns);
                    assert_eq!(cells, Some(cells_of(&covered, chunk, columns)), "{entry:?}");
                    rectangles += usize::from(parity > 0);
                    accepted += 1;
                }
            }
        }
        // Stripes × ranges of rows × ranges of columns.
        let rows = CHUNK_SECTORS * (CHUNK_SECTORS + 1) / 2;
        let all = 3 * rows * (columns * (columns + 1) / 2);
        assert_eq!(rectangles as u64, all, "{columns} columns");
    }
    assert!(accepted > 1000, "{accepted}");
}

/// Returns the covered range as array sectors.
fn cells_of(covered: &Covered, chunk: u64, columns: u64) -> Vec<u64> {
    let (chunk, rows) = (chunk / 512, (covered.rows.0 / 512, covered.rows.1 / 512));
    let mut cells: Vec<u64> = (covered.first..covered.first + covered.count)
        .flat_map(|column| {
            let start = (covered.stripe * columns + column as u64) * chunk;
            (rows.0..rows.1).map(move |row| start + row % chunk)
        })
        .collect();
    cells.sort_unstable();
    cells
}

#[test]
fn entries_that_cannot_be() {
    let sound =
        Entry { data_start: 65536, data_len: 8192, parity_len: 4096, parity_role: 3, checksum: 0 };
    let covered = |entry: Entry| covered(&entry, 65536, 3, 6 * 65536);
    let rows = (0, 4096);
    assert_eq!(covered(sound), Ok(Covered { stripe: 0, rows, first: 1, count: 2 }));
    let cases = [
        (Entry { data_len: 8191, ..sound }, "what was written is no multiple of its rows"),
        (Entry { data_len: 0, ..sound }, "what was written is no multiple of its rows"),
        (Entry { data_start: 65537, ..sound }, "it is not in whole sectors"),
        (Entry { data_start: 65536 + 62 * 1024, ..sound }, "its rows go beyond their chunk"),
        (Entry { data_start: 2 * 65536, ..sound }, "its columns go beyond their stripe"),
        (Entry { parity_len: 0, ..sound }, "what was written is no multiple of its rows"),
        (Entry { parity_len: 0, data_len: 12288, ..sound }, "its columns go beyond their stripe"),
        (
            Entry { parity_len: 131_072, data_len: 131_072, ..sound },
            "its rows go beyond their chunk",
        ),
    ];
    for (entry, why) in cases {
        let refused = covered(entry).unwrap_err().to_string();
        assert!(refused.ends_with(why), "{refused}");
    }
    let behind = Entry { data_start: 6 * 65536, ..sound };
    let (data_start, array_size) = (6 * 65536, 6 * 65536);
    assert_eq!(covered(behind), Err(PplRejection::OutsideArray { data_start, array_size }));
    let role = Entry { parity_role: 4, ..sound };
    assert_eq!(covered(role), Err(PplRejection::NoSuchRole { role: 4, members: 4 }));
    let elsewhere = PplRejection::ParityElsewhere { role: 3, by_layout: 2, member: 3 };
    assert_eq!(check_parity_role(&sound, 2, 3), Err(elsewhere));
    assert_eq!(check_parity_role(&sound, 3, 3), Ok(()));
}

#[test]
fn a_signature_is_of_the_uuid_as_it_lies_on_disk() {
    let uuid: Uuid = "563aaa77:5b7d80a1:749e4dab:878ce2ce".parse().expect("a UUID");
    assert_eq!(signature(&uuid), 0x3916_475f);
}
