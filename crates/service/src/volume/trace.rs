//! Client requests to a volume, recorded as lines of a fio iolog.
//!
//! ```text
//!   front ──▶ Lane: 32 bytes, or a count; never waits, takes no memory
//!              └──▶ a queue for each shard ──▶ a thread of its own ──▶ FILE
//! ```
//!
//! Invariants
//! * No request waits for the trace or fails by it. What finds its queue full, the file full, or a file
//!   that cannot be written, is not recorded, and is counted.
//! * No data is recorded, and nothing is overwritten: the file is new.
//! * Lines are in order of time, but for requests that a shard was interrupted in for longer than a turn
//!   of the thread. What was written is whole lines, also after an error.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use braid_stack::ByteSize;
use braid_trace::{Request, iolog};
use serde::{Deserialize, Serialize};

use crate::control::TraceStatus;

/// Requests of a shard that may wait for the thread: 2.5 MiB, and a turn's at 3 million a second.
const QUEUE: usize = 1 << 16;
/// As much is written at a time, in bytes.
const PIECE: usize = 64 << 10;
/// Pause of the thread between two turns.
const TURN: Duration = Duration::from_millis(20);

/// File of a trace, and its limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TraceTo {
    /// An absolute path, at which there is nothing.
    pub path: PathBuf,
    /// The file gets no larger, in bytes.
    pub most: u64,
}

/// Records a trace until it is dropped; then what is left is written. Nothing stays of one that was not
/// kept.
pub(super) struct Recorder {
    recording: Arc<Recording>,
    thread: Option<JoinHandle<()>>,
    is_kept: bool,
}

/// State of a trace while it is recorded.
pub(super) struct Recording {
    to: TraceTo,
    started: Instant,
    is_ending: AtomicBool,
    /// Nothing is recorded any more.
    is_stopped: AtomicBool,
    why: Mutex<Option<String>>,
    lines: AtomicU64,
    bytes: AtomicU64,
    /// By each shard.
    dropped: Vec<Arc<AtomicU64>>,
    /// By the thread.
    unwritten: AtomicU64,
}

/// Queue for the requests of a shard.
pub(super) struct Lane {
    recording: Arc<Recording>,
    queue: SyncSender<Request>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// Makes the file, and a lane for each of `shards` shards of the volume `name`.
    ///
    /// # Errors
    /// The error of the file system, also if there is a file already.
    pub(super) fn create(
        to: &TraceTo,
        name: &str,
        shards: usize,
    ) -> io::Result<(Recorder, Vec<Lane>)> {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut new = OpenOptions::new();
        let file =
            new.write(true).create_new(true).mode(0o600).custom_flags(nofollow).open(&to.path)?;
        let recording = Arc::new(Recording::new(to.clone(), shards));
        let mut recorder =
            Recorder { recording: Arc::clone(&recording), thread: None, is_kept: false };
        let (lanes, queues) = recording.lanes(QUEUE);
        let mut writer = Writer::new(recording, file, name, queues)?;
        let thread = std::thread::Builder::new().name("trace".to_owned());
        recorder.thread = Some(thread.spawn(move || writer.run())?);
        Ok((recorder, lanes))
    }

    /// The volume is up: the file stays.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Returns the status of the trace.
    pub(super) fn recording(&self) -> Arc<Recording> {
        Arc::clone(&self.recording)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.recording.is_ending.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                eprintln!("the trace {} is not whole", self.recording.path().display());
            }
        }
        if !self.is_kept {
            // It was made a moment ago, and is not needed.
            let _ = std::fs::remove_file(self.recording.path());
        }
    }
}

impl Recording {
    pub(super) fn new(to: TraceTo, shards: usize) -> Recording {
        Recording {
            to,
            started: Instant::now(),
            is_ending: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            why: Mutex::new(None),
            lines: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            dropped: (0..shards).map(|_| Arc::default()).collect(),
            unwritten: AtomicU64::new(0),
        }
    }

    /// A lane for each shard, of `room` requests, and their other ends.
    pub(super) fn lanes(self: &Arc<Recording>, room: usize) -> (Vec<Lane>, Vec<Receiver<Request>>) {
        let lane = |dropped: &Arc<AtomicU64>| {
            let (queue, receiver) = sync_channel(room);
            let (recording, dropped) = (Arc::clone(self), Arc::clone(dropped));
            (Lane { recording, queue, dropped }, receiver)
        };
        self.dropped.iter().map(lane).unzip()
    }

    fn path(&self) -> &Path {
        &self.to.path
    }

    /// For `braid status`.
    pub(super) fn status(&self) -> TraceStatus {
        let by_shards = self.dropped.iter().map(|count| count.load(Relaxed));
        TraceStatus {
            path: self.path().display().to_string(),
            size_limit_bytes: self.to.most,
            size_bytes: self.bytes.load(Relaxed),
            requests: self.lines.load(Relaxed),
            dropped: by_shards.sum::<u64>() + self.unwritten.load(Relaxed),
            stopped: self.why.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    pub(super) fn stop(&self, why: String) {
        eprintln!("{}: no more requests are recorded: {why}", self.path().display());
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.is_stopped.store(true, Relaxed);
    }
}

impl Lane {
    /// Has `request` recorded, or counted if it cannot be: at once, and without taking memory.
    #[inline]
    pub(super) fn put(&self, request: Request) {
        // A thread that takes without waiting is never woken, so this makes no system call.
        if self.recording.is_stopped.load(Relaxed) || self.queue.try_send(request).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// The time of the trace now.
    pub(super) fn elapsed(&self) -> Duration {
        self.recording.started.elapsed()
    }
}

/// The thread that writes. It takes no memory either: of a volume that is attached, nothing does.
struct Writer {
    recording: Arc<Recording>,
    file: File,
    name: String,
    queues: Vec<Receiver<Request>>,
    /// The next request of each queue.
    heads: Vec<Option<Request>>,
    /// Lines that are not written yet, of so many requests.
    text: Vec<u8>,
    lines: u64,
    /// Room that stays free for the last line, in bytes.
    tail: u64,
}

impl Writer {
    /// Writes the first lines.
    fn new(
        recording: Arc<Recording>,
        mut file: File,
        name: &str,
        queues: Vec<Receiver<Request>>,
    ) -> io::Result<Writer> {
        let head = iolog::head(name);
        file.write_all(head.as_bytes())?;
        recording.bytes.store(head.len() as u64, Relaxed);
        Ok(Writer {
            recording,
            file,
            heads: vec![None; queues.len()],
            queues,
            text: Vec::with_capacity(PIECE + iolog::LONGEST_LINE + name.len()),
            lines: 0,
            tail: iolog::tail(name, u64::MAX).len() as u64,
            name: name.to_owned(),
        })
    }

    fn run(&mut self) {
        loop {
            // Asked before the queues are: what was put there before the end is taken.
            let is_ending = self.recording.is_ending.load(SeqCst);
            let now_ns = ns(self.recording.started.elapsed());
            self.turn(if is_ending { u64::MAX } else { now_ns });
            if is_ending {
                if !self.is_stopped() {
                    self.write_tail(now_ns);
                }
                return;
            }
            std::thread::park_timeout(TURN);
        }
    }

    /// Writes what was asked up to `until_ns`, in order of time. That all of it is in the queues is why
    /// what came later has to wait: before it there may be others to come.
    fn turn(&mut self, until_ns: u64) {
        loop {
            for (head, queue) in self.heads.iter_mut().zip(&self.queues) {
                if head.is_none() {
                    *head = queue.try_recv().ok();
                }
            }
            let at = |head: &&mut Option<Request>| head.map_or(u64::MAX, |request| request.at_ns);
            let next = self.heads.iter_mut().min_by_key(at);
            let Some(request) = next.and_then(|head| head.take_if(|one| one.at_ns <= until_ns))
            else {
                break;
            };
            self.write(&request);
        }
        self.store();
    }

    /// Writes the line of `request`, or counts it.
    fn write(&mut self, request: &Request) {
        if self.is_stopped() {
            self.recording.unwritten.fetch_add(1, Relaxed);
            return;
        }
        let before = self.text.len();
        iolog::line(&mut self.text, &self.name, request);
        let most = self.recording.to.most;
        if self.size() + self.text.len() as u64 + self.tail > most {
            self.text.truncate(before);
            self.recording.unwritten.fetch_add(1, Relaxed);
            if self.store() {
                self.write_tail(request.at_ns);
                let most = ByteSize(most);
                self.recording.stop(format!("the file has the {most:#} that it may have"));
            }
            return;
        }
        self.lines += 1;
        if self.text.len() >= PIECE {
            self.store();
        }
    }

    /// Writes the last line, for which there is room.
    fn write_tail(&mut self, at_ns: u64) {
        self.text.extend_from_slice(iolog::tail(&self.name, at_ns).as_bytes());
        self.store();
    }

    fn is_stopped(&self) -> bool {
        self.recording.is_stopped.load(Relaxed)
    }

    fn size(&self) -> u64 {
        self.recording.bytes.load(Relaxed)
    }

    /// Writes the text, or leaves the file as it was and stops; answers whether it was written.
    fn store(&mut self) -> bool {
        let (size, lines) = (self.size(), std::mem::take(&mut self.lines));
        let written = self.file.write_all(&self.text);
        match &written {
            Ok(()) => {
                self.recording.bytes.store(size + self.text.len() as u64, Relaxed);
                self.recording.lines.fetch_add(lines, Relaxed);
            }
            Err(error) => {
                // Where this fails, too, a line stays that is cut off: readers know it by its missing end.
                let _ = self.file.set_len(size);
                self.recording.unwritten.fetch_add(lines, Relaxed);
                self.recording.stop(format!("it cannot be written: {error}"));
            }
        }
        self.text.clear();
        written.is_ok()
    }
}

/// Nanoseconds of a time since the trace began, which is shorter than 584 years.
pub(super) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_shards_are_written_in_order_of_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t");
        let to = TraceTo { path: path.clone(), most: 200 };
        let recording = Arc::new(Recording::new(to, 2));
        let (lanes, queues) = recording.lanes(9);
        let [one, other] = &lanes[..] else { panic!("two shards") };
        let file = File::create(&path).expect("a file");
        let mut writer = Writer::new(Arc::clone(&recording), file, "v", queues).expect("a head");
        let head = iolog::head("v");
        let put = |lane: &Lane, us: u64| lane.put(Request::flush(us * 1000));
        let lines =
            |times: &[u64]| times.iter().map(|us| format!("{us} v sync 0 0\n")).collect::<String>();
        let written = || std::fs::read_to_string(&path).expect("a file");
        put(one, 1);
        put(one, 4);
        put(other, 2);
        put(other, 7);
        // Of the first queue there may be more that came before 7.
        writer.turn(5000);
        assert_eq!(written(), head.clone() + &lines(&[1, 2, 4]));
        put(one, 6);
        writer.turn(7000);
        assert_eq!(written(), head.clone() + &lines(&[1, 2, 4, 6, 7]));
        // Up to its size, the last line included.
        (10..30).for_each(|us| if us % 2 == 0 { put(one, us) } else { put(other, us) });
        writer.turn(u64::MAX);
        let status = recording.status();
        assert!((180..=200).contains(&status.size_bytes), "{status:?}");
        assert_eq!(status.size_bytes, written().len() as u64);
        let trace = braid_trace::parse(written().as_bytes(), None).expect("a trace");
        assert_eq!(trace.requests.len() as u64, status.requests);
        assert_eq!(status.requests + status.dropped, 5 + 20, "two found their queue full");
        assert!(written().ends_with(" v close\n") && status.stopped.is_some());
        put(one, 40);
        assert_eq!(recording.status().dropped, status.dropped + 1);
    }
}
