//! Fuzzing with the stable compiler: a target's committed corpus goes through its entry point, and then
//! inputs that seeds make of the corpus. Their number and first seed follow from the commit, so a run can be
//! repeated and takes the same processor time on a loaded machine.
//!
//! ```text
//!  fuzz/corpus/TARGET/*  ──────────────▶ entry(&[u8])
//!          └──▶ mutate(seed, corpus) ──▶ entry(&[u8])      for COUNT seeds from the commit's first on
//! ```
//!
//! libFuzzer, which knows what an input reached, has the same entry points and the same corpora in
//! `fuzz/`. What it finds comes back here as a file of the corpus.
//!
//! | variable           | meaning                                                                     |
//! |--------------------|-----------------------------------------------------------------------------|
//! | `BRAID_FUZZ_TIMES` | how many times its count of inputs each target is given; 1 if not set       |
//! | `BRAID_FUZZ_SEED`  | the seed of the first input; the commit's if not set                        |
//! | `BRAID_FUZZ_INPUT` | a file: this input alone                                                    |
//!
//! Invariants: an input that fails, or takes longer than [`LONGEST`], is in a file whose name is printed
//! with the command that repeats it. A seed and a corpus make the same input everywhere.
//!
//! Deliberately absent: what an input reached; and the promises, which are with the entry points.

mod change;
mod fields;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use change::{Random, mutate};
pub use fields::change_superblock;
use watch::Watch;

/// The longest that an entry point may take for one input; a thousand times what any takes.
pub const LONGEST: Duration = Duration::from_secs(60);

/// The folder of a target's corpus.
pub fn corpus_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// The inputs of a target's corpus, in order of their names.
///
/// # Panics
/// If there are none, or they cannot be read.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = corpus_folder(target);
    let read = || -> std::io::Result<Vec<Vec<u8>>> {
        let entries = std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
        let mut paths = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        paths.iter().map(std::fs::read).collect()
    };
    let inputs = read().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    assert!(!inputs.is_empty(), "{} has no inputs", folder.display());
    inputs
}

/// Gives `entry` the corpus of `target`, and then `count` changed inputs. A failing input is kept, and `again`,
/// the cargo command that runs this test alone, is printed for it.
///
/// # Panics
/// If `entry` does, or the corpus cannot be read.
pub fn run(target: &str, count: u64, again: &str, entry: fn(&[u8])) {
    let watch = Watch::new(target, again);
    if let Some(path) = std::env::var_os("BRAID_FUZZ_INPUT") {
        let input = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        return watch.give(&input, entry);
    }
    let corpus = corpus(target);
    corpus.iter().for_each(|input| watch.give(input, entry));
    let count = count * number("BRAID_FUZZ_TIMES").unwrap_or(1);
    let first = number("BRAID_FUZZ_SEED")
        .unwrap_or_else(|| braid_seed::first_of_commit(&braid_seed::commit()));
    for index in 0..count {
        let seed = first.wrapping_add(index);
        watch.give(&mutate(&mut Random::new(seed), &corpus), entry);
    }
    println!("{target}: {count} changed inputs from seed {first} on");
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}
