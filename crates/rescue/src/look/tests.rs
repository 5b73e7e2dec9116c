//! Volumes on arrays in memory, whose labels and texts are made here.

use std::io;

use braid_probe::ReadAt;

use super::{Found, Place, look};
use crate::evidence::crc::{START_LVM2, advance_ieee};

const MIB: usize = 1 << 20;
/// A metadata area begins here, and has so many bytes.
const AREA: usize = 4096;
const RING: usize = 64 << 10;
const EXTENT: u64 = MIB as u64;

/// An array in memory, of which one range cannot be read.
struct Array {
    bytes: Vec<u8>,
    bad: std::ops::Range<u64>,
}

impl ReadAt for Array {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = (offset as usize).min(self.bytes.len());
        let count = buffer.len().min(self.bytes.len() - from);
        if offset < self.bad.end && offset + count as u64 > self.bad.start {
            return Err(io::ErrorKind::InvalidData.into());
        }
        buffer[..count].copy_from_slice(&self.bytes[from..from + count]);
        Ok(count)
    }
}

/// The UUID of a physical volume, with dashes.
fn uuid(number: usize) -> String {
    format!("aaaaaa-bbbb-cccc-dddd-eeee-ffff-{number:06}")
}

/// The text of a group of two physical volumes.
fn text(seqno: u64, logical: &str) -> String {
    let physical = |number: usize| {
        format!(
            "pv{number} {{ id = \"{}\" dev_size = 32768 pe_start = 2048 pe_count = 15 }}\n",
            uuid(number)
        )
    };
    let physical = physical(0) + &physical(1);
    format!(
        "vg1 {{\nid = \"{}\"\nseqno = {seqno}\nextent_size = 2048\n\
         physical_volumes {{\n{physical}}}\nlogical_volumes {{\n{logical}}}\n}}\n",
        uuid(9)
    )
}

/// A logical volume with one segment.
fn one(name: &str, kind: &str, extents: u64, more: &str) -> String {
    let segment = format!(
        "segment1 {{ start_extent = 0 extent_count = {extents} type = \"{kind}\" {more} }}"
    );
    format!("{name} {{ id = \"x\" status = [\"READ\", \"VISIBLE\"] {segment} }}\n")
}

/// A physical volume whose text begins `from` bytes from the start of its area.
fn physical(number: usize, text: &str, from: usize) -> Array {
    let mut bytes = vec![0; 16 * MIB];
    let label = &mut bytes[512..1024];
    label[..8].copy_from_slice(b"LABELONE");
    label[8] = 1;
    label[20] = 32;
    label[24..32].copy_from_slice(b"LVM2 001");
    label[32..64].copy_from_slice(uuid(number).replace('-', "").as_bytes());
    label[64..72].copy_from_slice(&(16 * MIB as u64).to_le_bytes());
    // Data from 1 MiB on, the end of the list, the area, the end of the list.
    label[72..80].copy_from_slice(&(MIB as u64).to_le_bytes());
    label[104..112].copy_from_slice(&(AREA as u64).to_le_bytes());
    label[112..120].copy_from_slice(&(RING as u64).to_le_bytes());
    let sum = advance_ieee(START_LVM2, &label[20..]);
    label[16..20].copy_from_slice(&sum.to_le_bytes());
    let first = text.len().min(RING - from);
    bytes[AREA + from..AREA + from + first].copy_from_slice(&text.as_bytes()[..first]);
    bytes[AREA + 512..AREA + 512 + text.len() - first].copy_from_slice(&text.as_bytes()[first..]);
    let header = &mut bytes[AREA..AREA + 512];
    header[4..20].copy_from_slice(b" LVM2 x[5A%r0N*>");
    header[20] = 1;
    for (at, value) in [(24, AREA), (32, RING), (40, from), (48, text.len())] {
        header[at..at + 8].copy_from_slice(&(value as u64).to_le_bytes());
    }
    let sum = advance_ieee(START_LVM2, text.as_bytes());
    header[56..60].copy_from_slice(&sum.to_le_bytes());
    let sum = advance_ieee(START_LVM2, &header[4..]);
    header[..4].copy_from_slice(&sum.to_le_bytes());
    Array { bytes, bad: 0..0 }
}

fn found(arrays: &[Array]) -> Found {
    let name = |(index, array)| (format!("md{index}"), array as &dyn ReadAt);
    look(&arrays.iter().enumerate().map(name).collect::<Vec<_>>())
}

fn expression(found: &Found, name: &str) -> String {
    let one = found.volumes.iter().find(|one| one.name == name);
    let place = &one.unwrap_or_else(|| panic!("{name}: {found:?}")).place;
    place.expression(&["A".to_owned(), "B".to_owned()])
}

/// The group of the tests: two segments, stripes, and kinds that are not read.
fn logical() -> String {
    let two = "home { status = [\"VISIBLE\"]\n\
               segment1 { start_extent = 0 extent_count = 3 type = \"striped\" stripes = [\"pv0\", 2] }\n\
               segment2 { start_extent = 3 extent_count = 2 type = \"striped\" stripes = [\"pv1\", 0] } }\n";
    [
        two.to_owned(),
        one("fast", "striped", 4, "stripe_size = 128 stripes = [\"pv0\", 6, \"pv1\", 4]"),
        one("pool", "thin-pool", 1, ""),
        one("thin", "thin", 1, ""),
        one("far", "striped", 1, "stripes = [\"pv1\", 15]"),
        one("old", "striped", 1, "stripes = [\"pv0\", 12]"),
        one("snapshot0", "snapshot", 1, "origin = \"home\" cow_store = \"old\""),
    ]
    .concat()
}

#[test]
fn logical_volumes_over_two_arrays_are_expressions() {
    // The text of the second goes on behind the header of the ring; that of the first is older.
    let arrays = [
        physical(0, &text(3, &one("gone", "striped", 1, "stripes = [\"pv0\", 0]")), 512),
        physical(1, &text(4, &logical()), RING - 100),
    ];
    let found = found(&arrays);
    let home = "linear(slice(A, offset=3M, length=3M), slice(B, offset=1M, length=2M))".to_owned();
    assert_eq!(expression(&found, "vg1/home"), home);
    let fast = "raid0(chunk=64K, slice(A, offset=7M, length=2M), slice(B, offset=5M, length=2M))";
    assert_eq!(expression(&found, "vg1/fast"), fast);
    let names: Vec<&str> = found.volumes.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["md0", "md1", "vg1/fast", "vg1/home"]);
    assert!(found.volumes[0].is_divided && found.volumes[1].is_divided);
    let why = |name: &str| {
        let one = found.unread.iter().find(|(unread, _)| unread == name);
        one.map(|(_, why)| why.as_str()).unwrap_or_else(|| panic!("{name}: {found:?}"))
    };
    assert!(why("vg1/pool").contains("`thin-pool`") && why("vg1/thin").contains("`thin`"));
    assert!(why("vg1/far").contains("behind its array's end"), "{}", why("vg1/far"));
    assert!(why("vg1/old").contains("a snapshot"));
    assert_eq!(found.unread.len(), 4);
}

#[test]
fn a_group_without_one_of_its_arrays_says_what_is_missing() {
    let found = found(&[physical(0, &text(4, &logical()), 512)]);
    let home = found.unread.iter().find(|(name, _)| name == "vg1/home").expect("it is named");
    assert!(
        home.1.contains("physical volume pv1 (aaaaaabbbbccccddddeeeeffff000001)"),
        "{}",
        home.1
    );
    // None of its volumes can be read, so it is not divided.
    assert!(!found.volumes[0].is_divided, "{found:?}");
}

#[test]
fn a_damaged_area_gives_its_newest_text() {
    let mut array =
        physical(0, &text(7, &one("new", "striped", 1, "stripes = [\"pv0\", 0]")), 8192);
    let older = text(6, &one("older", "striped", 1, "stripes = [\"pv0\", 0]"));
    array.bytes[AREA + 512..AREA + 512 + older.len()].copy_from_slice(older.as_bytes());
    array.bytes[AREA + 40] ^= 0xff;
    assert_eq!(expression(&found(&[array]), "vg1/new"), "slice(A, offset=1M, length=1M)");
}

#[test]
fn partitions_are_looked_into_around_what_cannot_be_read() {
    let pv = physical(0, &text(1, &one("root", "striped", 15, "stripes = [\"pv0\", 0]")), 512);
    let mut bytes = vec![0; MIB];
    bytes.extend(pv.bytes);
    for (entry, first, count) in [(0, 2048_u32, 32768_u32), (1, 34816, 1 << 20)] {
        let entry = &mut bytes[446 + 16 * entry..];
        entry[4] = 0x8e;
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry[12..16].copy_from_slice(&count.to_le_bytes());
    }
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    bytes.resize(18 * MIB, 0);
    // The start of ext4 in the volume is not read, its label is.
    let found = found(&[Array { bytes, bad: MIB as u64 + 8192..MIB as u64 + 12288 }]);
    assert_eq!(expression(&found, "vg1/root"), "slice(A, offset=2M, length=15M)");
    assert!(found.volumes.iter().any(|one| one.name == "md0/p1" && one.is_divided), "{found:?}");
    assert_eq!(found.unread[0].0, "md0/p2");
}

#[test]
fn noise_has_no_volumes() {
    let bytes: Vec<u8> =
        (0..4 * MIB as u32).map(|at| (advance_ieee(7, &at.to_le_bytes()) >> 7) as u8).collect();
    let found = found(&[Array { bytes, bad: 0..0 }]);
    assert_eq!(found.volumes.len(), 1);
    assert_eq!(found.volumes[0].place, Place::Array(0, 4 * MIB as u64));
    let whole = found.volumes[0].place.part(EXTENT, EXTENT).expect("it is inside");
    assert_eq!(whole.size(), EXTENT);
}
