//! Bytes that can be told from one another: every block knows where it belongs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use braid_seed::Rng;

/// A small generator of pseudo-random numbers; equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Rng::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Fills `bytes`, which lie at `offset`: every 8 of them depend on their place and on `seed`.
pub(crate) fn fill(bytes: &mut [u8], seed: u64, offset: u64) {
    for (index, word) in bytes.chunks_mut(8).enumerate() {
        let mut random = Random::new(seed ^ (offset + 8 * index as u64));
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

/// `len` bytes for `offset`.
pub(crate) fn pattern(seed: u64, offset: u64, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    fill(&mut bytes, seed, offset);
    bytes
}

/// Compares two files to the last byte.
#[track_caller]
pub(crate) fn assert_same_bytes(one: &Path, other: &Path) {
    let names = format!("{} and {}", one.display(), other.display());
    let length = |path: &Path| path.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    assert_eq!(length(one), length(other), "the lengths of {names}");
    let open = |path: &Path| File::open(path).unwrap_or_else(|error| panic!("{names}: {error}"));
    let (mut first, mut second) = (open(one), open(other));
    let mut buffers = [vec![0; 1 << 20], vec![0; 1 << 20]];
    let mut offset = 0;
    loop {
        let count = first.read(&mut buffers[0]).expect("a file that was opened can be read");
        second.read_exact(&mut buffers[1][..count]).expect("the lengths are the same");
        if count == 0 {
            return;
        }
        if buffers[0][..count] != buffers[1][..count] {
            let differs = |at: &usize| buffers[0][*at] != buffers[1][*at];
            let at = (0..count).find(differs).unwrap_or_default();
            panic!("{names} differ at byte {}", offset + at);
        }
        offset += count;
    }
}
