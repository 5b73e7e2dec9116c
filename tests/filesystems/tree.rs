//! Files with known contents.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::{Random, pattern, with_files_open};

/// Some hundred files: their names, lengths and contents follow from one seed.
pub(crate) struct Tree {
    seed: u64,
    files: u64,
}

impl Tree {
    pub(crate) fn new(seed: u64, files: u64) -> Tree {
        Tree { seed, files }
    }

    /// Path below `root` and length of file number `index`: empty, short, and up to 100 KB.
    fn file(&self, root: &Path, index: u64) -> (PathBuf, u64) {
        let mut random = Random::new(self.seed ^ (index << 20));
        let folder = format!("{}-{}/{}", self.seed, random.below(5), random.below(4));
        let length = match random.below(4) {
            0 => random.below(200),
            _ => random.below(100_000),
        };
        (root.join(folder).join(format!("file-{index}")), length)
    }

    fn contents(&self, index: u64, length: u64) -> Vec<u8> {
        pattern(self.seed ^ (index << 32), 0, length)
    }

    /// Writes all files; `durable` waits until each is on the disk.
    pub(crate) fn write(&self, root: &Path, durable: bool) {
        for index in 0..self.files {
            let (path, length) = self.file(root, index);
            let contents = self.contents(index, length);
            with_files_open(|| {
                std::fs::create_dir_all(path.parent().expect("it has a folder"))?;
                let mut file = File::create(&path)?;
                file.write_all(&contents)?;
                if durable { file.sync_all() } else { Ok(()) }
            })
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    /// Compares each file with its expected content.
    #[track_caller]
    pub(crate) fn check(&self, root: &Path) {
        for index in 0..self.files {
            let (path, length) = self.file(root, index);
            let found = with_files_open(|| std::fs::read(&path))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(found == self.contents(index, length), "{} has changed", path.display());
        }
    }
}
