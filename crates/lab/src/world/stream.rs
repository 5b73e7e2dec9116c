//! What a program says on one of its streams, read by a thread of its own.
//!
//! Invariants:
//!
//! * a stream is read for as long as somebody reads here, so the program is never stopped by it;
//! * no more than [`MOST_OUTPUT`](MOST) bytes of it are in memory, whatever the program says;
//! * nobody waits for ever for its end: children of the program may keep it open.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::command::MOST_OUTPUT as MOST;

/// How long the end of a stream is waited for once its program has ended: what the program said is
/// in the pipe then and needs but to be read.
pub(super) const LINGER: Duration = Duration::from_secs(3);
/// Bytes of one read: what a pipe holds.
const PIECE: usize = 64 << 10;

/// A stream that is being read.
pub(super) struct Stream(Arc<Shared>);

#[derive(Default)]
struct Shared {
    said: Mutex<Said>,
    end: Condvar,
}

#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    /// More came than is kept.
    is_flood: bool,
    /// The end was reached.
    is_whole: bool,
    /// Nobody will ask for more.
    is_collected: bool,
}

impl Shared {
    /// A reader that panicked has lost no more than what it was about to add.
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Begins to read.
    pub(super) fn read(mut pipe: impl Read + Send + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let reader = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut piece = vec![0; PIECE];
            loop {
                let read = pipe.read(&mut piece);
                let mut said = reader.said();
                match read {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Ok(read) if read > 0 && !said.is_collected => said.take(&piece[..read]),
                    Ok(_) => break said.is_whole = true,
                    Err(error) => {
                        said.take(format!("\n[the rest could not be read: {error}]").as_bytes());
                        break said.is_whole = true;
                    }
                }
            }
            reader.end.notify_all();
        });
        Self(shared)
    }

    /// Whether more was said than is kept.
    pub(super) fn is_flood(&self) -> bool {
        self.0.said().is_flood
    }

    /// What was said, to the end if that comes in time.
    pub(super) fn collect(self, until: Instant) -> String {
        let mut said = self.0.said();
        while !said.is_whole {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.0.end.wait_timeout(said, left);
            said = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        said.is_collected = true;
        String::from_utf8_lossy(&std::mem::take(&mut said.bytes)).into_owned()
    }
}

impl Said {
    fn take(&mut self, bytes: &[u8]) {
        let room = MOST - self.bytes.len();
        self.is_flood |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(stream: Stream) -> String {
        stream.collect(Instant::now() + Duration::from_secs(600))
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        let stream = Stream::read(&b"all of it \xff"[..]);
        assert_eq!(collect(stream), "all of it \u{fffd}");
        let long = Stream::read(std::io::repeat(b'x').take(MOST as u64));
        assert_eq!(collect(long).len(), MOST);
    }

    #[test]
    fn a_flood_is_told_and_cut() {
        let stream = Stream::read(std::io::repeat(b'x').take(MOST as u64 + 1));
        while !stream.is_flood() {
            std::thread::yield_now();
        }
        assert_eq!(collect(stream).len(), MOST);
    }

    #[test]
    fn what_stays_open_is_not_waited_for() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let stream = Stream::read(reader);
        std::io::Write::write_all(&mut writer, b"said").unwrap();
        while stream.0.said().bytes.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(stream.collect(Instant::now()), "said");
        // Nobody reads any more once this has been seen: the writer is told.
        let refused = |_| std::io::Write::write_all(&mut writer, b"more").is_err();
        assert!((0..).any(refused));
    }

    #[test]
    fn a_stream_that_breaks_off_says_why() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("cut"))
            }
        }
        let said = collect(Stream::read((&b"half"[..]).chain(Broken)));
        assert_eq!(said, "half\n[the rest could not be read: cut]");
    }
}
