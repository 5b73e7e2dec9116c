//! Fuzzing with the stable compiler: a target's committed corpus goes through its entry point, and then
//! what a seed makes of the corpus does, for as long as is asked for.
//!
//! ```text
//!  fuzz/corpus/TARGET/*  ──────────────▶ entry(&[u8])      cargo test
//!          └──▶ mutate(seed, corpus) ──▶ entry(&[u8])      BRAID_FUZZ_SECONDS=10 cargo test
//! ```
//!
//! libFuzzer, which knows what an input reached, has the same entry points and the same corpora in
//! `fuzz/`. What it finds comes back here as a file of the corpus.
//!
//! | variable             | meaning                                                         |
//! |----------------------|-----------------------------------------------------------------|
//! | `BRAID_FUZZ_SECONDS` | how long each target is given changed inputs; 0 if not set      |
//! | `BRAID_FUZZ_SEED`    | the seed of the first one; from the clock if not set            |
//! | `BRAID_FUZZ_INPUT`   | a file: this input alone                                        |
//!
//! Invariants: an input that fails, or takes longer than [`LONGEST`], is in a file whose name is printed
//! with the command that repeats it. A seed and a corpus make the same input everywhere.
//!
//! Deliberately absent: what an input reached; and the promises, which are with the entry points.

mod change;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use change::{Random, mutate};
use watch::Watch;

/// The longest that an entry point may take for one input; a thousand times what any takes.
pub const LONGEST: Duration = Duration::from_secs(60);

/// Where a target's corpus lies.
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

/// Gives `entry` the corpus of `target`, and then changed inputs for `BRAID_FUZZ_SECONDS`. A failing
/// input is kept, and `again`, the cargo command that runs this test alone, is printed for it.
///
/// # Panics
/// If `entry` does, or the corpus cannot be read.
pub fn run(target: &str, again: &str, entry: fn(&[u8])) {
    let watch = Watch::new(target, again);
    if let Some(path) = std::env::var_os("BRAID_FUZZ_INPUT") {
        let input = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        return watch.give(&input, entry);
    }
    let corpus = corpus(target);
    corpus.iter().for_each(|input| watch.give(input, entry));
    let limit = Duration::from_secs(number("BRAID_FUZZ_SECONDS").unwrap_or(0));
    if limit.is_zero() {
        return;
    }
    let first = number("BRAID_FUZZ_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Runs start far from each other.
        Random::new(now.as_nanos() as u64).next() >> 1
    });
    let start = Instant::now();
    let mut inputs: u64 = 0;
    while start.elapsed() < limit {
        for _ in 0..16 {
            let seed = first.wrapping_add(inputs);
            watch.give(&mutate(&mut Random::new(seed), &corpus), entry);
            inputs += 1;
        }
    }
    println!("{target}: {inputs} changed inputs from seed {first} on");
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}
