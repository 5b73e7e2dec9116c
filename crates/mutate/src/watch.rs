//! The input that is being tried: kept in a file when it fails, or when it does not come to an end.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use crate::LONGEST;

/// The input under way, and how many came before it.
type Current = Arc<Mutex<(u64, Vec<u8>)>>;

pub(crate) struct Watch {
    kept: Kept,
    current: Current,
    /// Dropped, it ends the thread that watches.
    _end: Sender<()>,
}

/// The place for a failing input, and its message.
#[derive(Clone)]
struct Kept {
    target: String,
    again: String,
}

impl Watch {
    /// Watches the inputs of `target`.
    pub(crate) fn new(target: &str, again: &str) -> Watch {
        let kept = Kept { target: target.to_owned(), again: again.to_owned() };
        let current = Current::default();
        let (end, ended) = mpsc::channel();
        let (watched, told) = (Arc::clone(&current), kept.clone());
        std::thread::spawn(move || {
            let mut before = u64::MAX;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LONGEST) {
                let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if current.0 == before {
                    told.keep(&current.1, &format!("no end after {} s", LONGEST.as_secs()));
                    std::process::exit(101);
                }
                before = current.0;
            }
        });
        Watch { kept, current, _end: end }
    }

    /// Gives `entry` an input.
    pub(crate) fn give(&self, input: &[u8], entry: fn(&[u8])) {
        {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            current.0 += 1;
            current.1.clear();
            current.1.extend_from_slice(input);
        }
        let guard = Guard { kept: &self.kept, input };
        entry(input);
        drop(guard);
    }
}

/// Keeps its input when it is dropped by a panic.
struct Guard<'a> {
    kept: &'a Kept,
    input: &'a [u8],
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.kept.keep(self.input, "it failed");
        }
    }
}

impl Kept {
    /// Writes the input to a file and says how to try it again; the input itself if that fails.
    fn keep(&self, input: &[u8], why: &str) {
        let Kept { target, again } = self;
        let path = place(target, input);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        match made.and_then(|()| std::fs::write(&path, input)) {
            Ok(()) => {
                eprintln!("{target}: {why}. again: BRAID_FUZZ_INPUT={} {again}", path.display())
            }
            Err(error) => eprintln!("{target}: {why}: {input:02x?} ({}: {error})", path.display()),
        }
    }
}

/// The path under which a failed input is kept: different inputs have different files (FNV-1a).
fn place(target: &str, input: &[u8]) -> PathBuf {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let sum = input.iter().fold(0x811c_9dc5, step);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz");
    folder.join(format!("{target}-{sum:08x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_fails_is_kept() {
        let watch = Watch::new("a-test-of-its-own", "cargo test");
        let input = b"what fails".as_slice();
        let failed = std::thread::scope(|scope| {
            scope.spawn(|| watch.give(input, |_| panic!("as it should"))).join().is_err()
        });
        let path = place("a-test-of-its-own", input);
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(failed && kept == input);
    }
}
