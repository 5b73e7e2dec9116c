//! Superblocks and bitmaps that the kernel wrote, and what must hold for whatever is accepted.

#![allow(dead_code)] // Each test program uses some of it.

use std::fs;
use std::path::{Path, PathBuf};

use braid_md::superblock::checksum;
use braid_md::{Level, Superblock, Version};

/// A superblock that the kernel wrote, with what `mdadm --examine` printed about its member.
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) offset: u64,
    pub(crate) device_size: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) bitmap: Option<Vec<u8>>,
    /// mdadm's lines, as (key, value); those of the bitmap behind those of the superblock.
    pub(crate) printed: Vec<(String, String)>,
}

impl Golden {
    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Superblock, braid_md::Rejection> {
        Superblock::parse(self.version, self.offset, self.device_size, bytes)
    }

    pub(crate) fn superblock(&self) -> Superblock {
        self.parse(&self.bytes).unwrap_or_else(|why| panic!("{}: {why}", self.name))
    }

    /// The value of the `nth` line of mdadm's with this key.
    pub(crate) fn says(&self, key: &str, nth: usize) -> Option<&str> {
        let mut values = self.printed.iter().filter(|(found, _)| found == key);
        values.nth(nth).map(|(_, value)| value.as_str())
    }
}

/// All of them, in order of their names.
pub(crate) fn goldens() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/md/superblocks");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("testdata")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sb"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 20, "the superblocks are there");
    paths.iter().map(|path| golden(path)).collect()
}

fn golden(path: &Path) -> Golden {
    let text = fs::read_to_string(path.with_extension("txt")).expect("mdadm's printout");
    let printed: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once(" : "))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let name = path.file_stem().expect("name").to_string_lossy().into_owned();
    let mut golden = Golden {
        device_size: if name.starts_with("raid10-3-f2") { 17 << 20 } else { 16 << 20 },
        version: Version::V0_90,
        offset: 0,
        bytes: fs::read(path).expect("superblock"),
        bitmap: fs::read(path.with_extension("bitmap")).ok(),
        name,
        printed,
    };
    let version = golden.says("Version", 0).expect("version");
    golden.version = version.trim_end_matches(".00").trim_end_matches(".03").parse().expect("one");
    golden.offset = golden.version.superblock_offset(golden.device_size).expect("room");
    golden
}

/// Puts the right checksum into bytes that were changed.
pub(crate) fn seal(version: Version, bytes: &mut [u8]) {
    let at = if version == Version::V0_90 { 152 } else { 216 };
    let big = bytes.starts_with(&[0xa9]);
    if let Some((_, sum)) = checksum(version, bytes) {
        let sum = if big { sum.to_be_bytes() } else { sum.to_le_bytes() };
        bytes[at..at + 4].copy_from_slice(&sum);
    }
}

/// What is promised of every superblock that was accepted.
pub(crate) fn assert_in_range(superblock: &Superblock, device_size: u64) {
    let most = if superblock.version == Version::V0_90 { 27 } else { 384 };
    assert!((1..=most).contains(&superblock.raid_disks));
    assert!((1..=most).contains(&superblock.previous_raid_disks()));
    let limit = 1 << 63;
    for size in [superblock.data_offset, superblock.data_size, superblock.component_size] {
        assert!(size < limit);
    }
    assert!(superblock.data_offset + superblock.data_size <= device_size);
    assert!((superblock.device_number as usize) < superblock.roles.len());
    assert_eq!(superblock.raw.len() % 512, 0);
    assert!(superblock.super_offset + superblock.raw.len() as u64 <= device_size);
    match superblock.array_size() {
        None => assert!(matches!(superblock.level, Level::Linear | Level::Raid0)),
        Some(size) => assert!(size < limit),
    }
    if matches!(superblock.level, Level::Raid4 | Level::Raid5 | Level::Raid6 | Level::Raid10) {
        assert!(superblock.chunk >= 4096 && superblock.chunk.is_power_of_two());
    }
    if superblock.level == Level::Raid0 {
        assert_ne!(superblock.chunk, 0);
    }
    let start = superblock.super_offset.cast_signed();
    let log = superblock.bad_block_log.map(|log| (log.offset, log.size));
    let bitmap = superblock.bitmap_offset.map(|offset| (offset, 512));
    for (offset, len) in [log, bitmap, superblock.ppl].into_iter().flatten() {
        assert!(start + offset >= 0 && (start + offset) as u64 + len <= device_size);
    }
    assert_same_again(superblock, device_size);
}

/// What was accepted is written so that the same is read again.
fn assert_same_again(superblock: &Superblock, device_size: u64) {
    let bytes = superblock.encode();
    let again = Superblock::parse(superblock.version, superblock.super_offset, device_size, &bytes);
    let mut same = superblock.clone();
    same.raw.clone_from(&bytes);
    assert_eq!(again.as_ref(), Ok(&same));
    assert_eq!(bytes.len(), superblock.raw.len());
}
