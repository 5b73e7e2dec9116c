//! The events in the order of their time: kept only for a run that will be printed.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use braid_block::Flags;

use crate::found::label;
use crate::{Handle, SimDisk};

/// A record of a run; clones are the same.
#[derive(Clone, Default)]
pub struct Timeline {
    lines: Option<Rc<RefCell<Vec<Line>>>>,
}

struct Line {
    life: usize,
    at_ns: u64,
    who: String,
    what: String,
}

impl Timeline {
    /// One that keeps what it is told.
    pub fn kept() -> Timeline {
        Timeline { lines: Some(Rc::default()) }
    }

    /// True if it keeps events.
    pub fn is_kept(&self) -> bool {
        self.lines.is_some()
    }

    /// Takes note of what `who` does or meets now.
    pub fn note(&self, handle: &Handle, who: &str, what: impl FnOnce() -> String) {
        self.put(handle.now(), who, what);
    }

    /// The same at this time.
    pub fn put(&self, at_ns: u64, who: &str, what: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let mut lines = lines.borrow_mut();
            let life = lines.last().map_or(0, |line| line.life);
            lines.push(Line { life, at_ns, who: who.to_owned(), what: what() });
        }
    }

    /// Another life begins.
    pub fn begin(&self, life: usize) {
        if let Some(lines) = &self.lines {
            let (who, what) = ("world".to_owned(), format!("life {life} begins"));
            lines.borrow_mut().push(Line { life, at_ns: 0, who, what });
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { life, at_ns, who, what } in self.lines.iter().flat_map(|all| all.take()) {
            let (ms, ns) = (at_ns / 1_000_000, at_ns % 1_000_000);
            writeln!(f, "{life} {ms:>7}.{ns:06} ms  {who:<10} {what}")?;
        }
        Ok(())
    }
}

/// Has every request of `disk` told to `timeline`.
pub(crate) fn watch(disk: &SimDisk, number: usize, timeline: &Timeline) {
    let (timeline, name) = (timeline.clone(), label(number));
    disk.listen(Box::new(move |index, record| {
        let fua = if record.flags.contains(Flags::FUA) { " fua" } else { "" };
        let (op, span) = (record.op, record.span);
        match record.end {
            None => {
                timeline.put(record.start_ns, &name, || format!("  {op:?} {span}{fua} [{index}]"))
            }
            Some((end_ns, result)) => timeline.put(end_ns, &name, || match result {
                Ok(()) => format!("  [{index}] done"),
                Err(errno) => format!("  [{index}] {op:?} {span} failed: {errno}"),
            }),
        }
    }));
}
