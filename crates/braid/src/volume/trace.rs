//! What clients ask of a volume, recorded as lines of a fio iolog.
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
/// How long the thread sleeps between two turns.
const TURN: Duration = Duration::from_millis(20);

/// Where a trace is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TraceTo {
    /// An absolute path, at which there is nothing.
    pub(crate) path: PathBuf,
    /// The file gets no larger, in bytes.
    pub(crate) most: u64,
}

/// Records a trace until it is dropped; then what is left is written. Nothing stays of one that was not
/// kept.
pub(super) struct Recorder {
    recording: Arc<Recording>,
    thread: Option<JoinHandle<()>>,
    is_kept: bool,
}

/// What is known of a trace while it is recorded.
pub(super) struct Recording {
    to: TraceTo,
    started: Instant,
    is_ending: AtomicBool,
    /// Nothing is recorded any more.
    is_stopped: AtomicBool,
    why: Mutex<Option<String>>,
    lines: AtomicU64,
    bytes: AtomicU64,
    /// By each shard, and by the thread.
    dropped: Vec<Arc<AtomicU64>>,
}

/// Where a shard puts its requests.
pub(super) struct Lane {
    recording: Arc<Recording>,
    queue: SyncSender<Request>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// Makes the file, and a lane for each of `shards` shards of the volume `name`.
    ///
    /// # Errors
    /// What the file system answers; that there is a file already.
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
        let (queues, receivers): (Vec<_>, Vec<_>) =
            (0..shards).map(|_| sync_channel(QUEUE)).unzip();
        let mut writer = Writer::new(Arc::clone(&recording), file, name, receivers)?;
        let thread = std::thread::Builder::new().name("trace".to_owned());
        recorder.thread = Some(thread.spawn(move || writer.run())?);
        let lane = |(index, queue): (usize, _)| Lane {
            recording: Arc::clone(&recording),
            queue,
            dropped: Arc::clone(&recording.dropped[index]),
        };
        Ok((recorder, queues.into_iter().enumerate().map(lane).collect()))
    }

    /// The volume is up: the file stays.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// What a status is made of.
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
            // It was made a moment ago, and nobody asks for it.
            let _ = std::fs::remove_file(self.recording.path());
        }
    }
}

impl Recording {
    fn new(to: TraceTo, shards: usize) -> Recording {
        Recording {
            to,
            started: Instant::now(),
            is_ending: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            why: Mutex::new(None),
            lines: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            dropped: (0..=shards).map(|_| Arc::default()).collect(),
        }
    }

    fn path(&self) -> &Path {
        &self.to.path
    }

    /// For `braid status`.
    pub(super) fn status(&self) -> TraceStatus {
        TraceStatus {
            path: self.path().display().to_string(),
            size_limit_bytes: self.to.most,
            size_bytes: self.bytes.load(Relaxed),
            requests: self.lines.load(Relaxed),
            dropped: self.dropped.iter().map(|count| count.load(Relaxed)).sum(),
            stopped: self.why.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn stop(&self, why: String) {
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

/// The thread that writes.
struct Writer {
    recording: Arc<Recording>,
    file: File,
    name: String,
    queues: Vec<Receiver<Request>>,
    /// What was taken from the queues and not written yet.
    waiting: Vec<Request>,
    text: Vec<u8>,
    /// What stays free for the last line, in bytes.
    tail: u64,
}

impl Writer {
    fn new(
        recording: Arc<Recording>,
        file: File,
        name: &str,
        queues: Vec<Receiver<Request>>,
    ) -> io::Result<Writer> {
        let tail = iolog::tail(name, u64::MAX).len() as u64;
        let (waiting, text) = (Vec::new(), Vec::new());
        let name = name.to_owned();
        let mut writer = Writer { recording, file, name, queues, waiting, text, tail };
        writer.text.extend_from_slice(iolog::head(&writer.name).as_bytes());
        writer.store(0)?;
        Ok(writer)
    }

    fn run(&mut self) {
        loop {
            // Asked before the queues are: what was put there before the end is taken.
            let is_ending = self.recording.is_ending.load(SeqCst);
            let now_ns = ns(self.recording.started.elapsed());
            for queue in &self.queues {
                self.waiting.extend(queue.try_iter().take(QUEUE));
            }
            // What came while others were taken waits until these are all there.
            self.waiting.sort_by_key(|request| request.at_ns);
            let due = match is_ending {
                true => self.waiting.len(),
                false => self.waiting.partition_point(|request| request.at_ns <= now_ns),
            };
            self.write_first(due);
            if is_ending {
                if !self.is_stopped() {
                    self.write_tail(now_ns);
                }
                return;
            }
            std::thread::park_timeout(TURN);
        }
    }

    /// Writes the first `due` requests that wait, or counts them.
    fn write_first(&mut self, due: usize) {
        let mut fitting = 0;
        if !self.is_stopped() {
            let room = self.recording.to.most.saturating_sub(self.tail);
            let mut size = self.size();
            for request in &self.waiting[..due] {
                let before = self.text.len();
                iolog::line(&mut self.text, &self.name, request);
                size += (self.text.len() - before) as u64;
                if size > room {
                    self.text.truncate(before);
                    break;
                }
                fitting += 1;
            }
            match self.store(fitting as u64) {
                Ok(()) if fitting < due => {
                    let most = ByteSize(self.recording.to.most);
                    self.recording.stop(format!("the file has the {most:#} that it may have"));
                    self.write_tail(self.waiting[fitting].at_ns);
                }
                Ok(()) => {}
                Err(error) => {
                    fitting = 0;
                    self.recording.stop(format!("it cannot be written: {error}"));
                }
            }
        }
        let dropped = &self.recording.dropped[self.queues.len()];
        dropped.fetch_add((due - fitting) as u64, Relaxed);
        self.waiting.drain(..due);
    }

    /// Writes the last line, for which there is room.
    fn write_tail(&mut self, at_ns: u64) {
        self.text.extend_from_slice(iolog::tail(&self.name, at_ns).as_bytes());
        // Readers do without it.
        let _ = self.store(0);
    }

    fn is_stopped(&self) -> bool {
        self.recording.is_stopped.load(Relaxed)
    }

    fn size(&self) -> u64 {
        self.recording.bytes.load(Relaxed)
    }

    /// Writes `text`, which has `lines` requests, or leaves the file as it was.
    fn store(&mut self, lines: u64) -> io::Result<()> {
        let size = self.size();
        let written = self.file.write_all(&self.text);
        match written {
            Ok(()) => {
                self.recording.bytes.store(size + self.text.len() as u64, Relaxed);
                self.recording.lines.fetch_add(lines, Relaxed);
            }
            // A line that is cut off stays where this fails, too: readers know it by its missing end.
            Err(_) => drop(self.file.set_len(size)),
        }
        self.text.clear();
        written
    }
}

/// Nanoseconds of a time since the trace began, which is shorter than 584 years.
pub(super) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A lane without a thread behind it.
#[cfg(test)]
pub(super) struct Queue {
    recording: Arc<Recording>,
    pub(super) receiver: Receiver<Request>,
}

#[cfg(test)]
impl Queue {
    pub(super) fn dropped(&self) -> u64 {
        self.recording.status().dropped
    }

    pub(super) fn stop(&self) {
        self.recording.stop("a test".to_owned());
    }
}

#[cfg(test)]
impl Recording {
    /// A lane that takes so many requests, and its other end.
    pub(super) fn lane_of(most: usize) -> (Lane, Queue) {
        let to = TraceTo { path: PathBuf::from("none"), most: 0 };
        let recording = Arc::new(Recording::new(to, 1));
        let (queue, receiver) = sync_channel(most);
        let dropped = Arc::clone(&recording.dropped[0]);
        let lane = Lane { recording: Arc::clone(&recording), queue, dropped };
        (lane, Queue { recording, receiver })
    }
}
