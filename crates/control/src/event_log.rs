//! The log of events: a ring in a file, which `braid monitor` writes and `braid web` reads. A reader that knows the id of
//! the last event that it saw goes on behind it, or learns that events in between are gone.
//!
//! ```text
//!   {"id": 1764…01, "before": 0,       "event": {…}}
//!   {"id": 1764…57, "before": 1764…01, "event": {…}}      appended; the older half goes when there are too many
//! ```
//!
//! Invariant: ids grow, also if the file is lost: an id is the time of the event in milliseconds since 1970, or one
//! more than the last.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Events that a reader can go back to at least.
const KEPT: usize = 500;
/// No file is read for longer, in bytes.
const LARGEST: u64 = 16 << 20;

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// Later events have larger ids.
    pub id: u64,
    /// The id of the event before it; 0 for the first.
    pub before: u64,
    /// The event as the monitor prints it.
    pub event: Value,
}

/// Returns the last events of the log at `path`, the oldest first: at most 500; none without a file. A line that was
/// not written to its end is left out.
///
/// # Errors
/// The file cannot be read.
pub fn read_events(path: &Path) -> io::Result<Vec<LoggedEvent>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?.take(LARGEST).read_to_end(&mut bytes)?,
    };
    let lines = bytes.split(|byte| *byte == b'\n');
    let mut all: Vec<LoggedEvent> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    all.drain(..all.len().saturating_sub(KEPT));
    Ok(all)
}

/// Returns whether events behind the one with the id `after` are gone from the log that has `events`. After 0 none is.
pub fn are_missed(after: u64, events: &[LoggedEvent]) -> bool {
    let (first, last) = match (events.first(), events.last()) {
        (Some(first), Some(last)) => (first, last),
        _ => return after != 0,
    };
    after != 0 && (after > last.id || after < first.id && after != first.before)
}

/// The log, for writing.
#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: File,
    last: u64,
    lines: usize,
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl EventLog {
    /// Opens the log at `path`, which is made if it is not there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<EventLog> {
        let mut log = EventLog { path: path.to_owned(), file: append_to(path)?, last: 0, lines: 0 };
        // Also ends a line that was not written to its end.
        log.shorten()?;
        Ok(log)
    }

    /// Appends events, at `now_ms` in milliseconds since 1970.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append<'a, E: Serialize + 'a>(
        &mut self,
        events: impl IntoIterator<Item = &'a E>,
        now_ms: u64,
    ) -> io::Result<()> {
        let mut text = String::new();
        for event in events {
            let (id, before) = (now_ms.max(self.last + 1), self.last);
            let event = serde_json::to_value(event)?;
            text += &serde_json::to_string(&LoggedEvent { id, before, event })?;
            text += "\n";
            self.last = id;
            self.lines += 1;
        }
        self.file.write_all(text.as_bytes())?;
        if self.lines > 2 * KEPT { self.shorten() } else { Ok(()) }
    }

    /// Writes the file anew, with the last events alone.
    fn shorten(&mut self) -> io::Result<()> {
        let events = read_events(&self.path)?;
        let new = self.path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        for event in &events {
            file.write_all(format!("{}\n", serde_json::to_string(event)?).as_bytes())?;
        }
        std::fs::rename(&new, &self.path)?;
        self.file = append_to(&self.path)?;
        self.lines = events.len();
        self.last = events.last().map_or(self.last, |last| last.id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_on_where_it_was_or_learns_that_events_are_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        assert_eq!(read_events(&path).expect("none"), []);
        let mut log = EventLog::open(&path).expect("a log");
        log.append(&[1, 2], 1000).expect("written");
        // The clock went back, and the process was started again.
        drop(log);
        let mut log = EventLog::open(&path).expect("a log");
        log.append(&[3], 500).expect("written");
        let events = read_events(&path).expect("events");
        let told: Vec<_> =
            events.iter().map(|one| (one.id, one.before, one.event.clone())).collect();
        assert_eq!(told, [(1000, 0, 1.into()), (1001, 1000, 2.into()), (1002, 1001, 3.into())]);
        for (after, missed) in [(0, false), (1000, false), (1002, false), (999, true), (1003, true)]
        {
            assert_eq!(are_missed(after, &events), missed, "{after}");
        }
        assert!(are_missed(7, &[]) && !are_missed(0, &[]));
        // A crash in the middle of a line costs that line alone.
        let whole = std::fs::read(&path).expect("the file");
        std::fs::write(&path, &whole[..whole.len() - 3]).expect("cut");
        let mut log = EventLog::open(&path).expect("a log");
        log.append(&[4], 2000).expect("written");
        let ids: Vec<u64> = read_events(&path).expect("events").iter().map(|one| one.id).collect();
        assert_eq!(ids, [1000, 1001, 2000]);
    }

    #[test]
    fn the_file_is_bounded_and_the_last_events_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.jsonl");
        let mut log = EventLog::open(&path).expect("a log");
        for number in 0..3 * KEPT {
            log.append(&[number], 1).expect("written");
        }
        let events = read_events(&path).expect("events");
        assert_eq!((events.len(), events[KEPT - 1].event.clone()), (KEPT, (3 * KEPT - 1).into()));
        assert!(are_missed(1, &events) && !are_missed(events[0].before, &events));
        let lines = std::fs::read_to_string(&path).expect("the file").lines().count();
        assert!(lines <= 2 * KEPT, "{lines}");
    }
}
