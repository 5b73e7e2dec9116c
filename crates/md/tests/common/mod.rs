//! Superblocks and bitmaps that the kernel wrote.

#![allow(dead_code)] // Each test program uses some of it.

use std::fs;
use std::path::{Path, PathBuf};

use braid_md::{Superblock, Version};

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
