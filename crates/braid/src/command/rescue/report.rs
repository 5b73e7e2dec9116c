//! The report beside a folder into which files are copied: a line for each name that is not good, and marks of what is
//! durable, from which an interrupted copy goes on.
//!
//! ```text
//!   # braid rescue: VOLUME SIZE STACK          what it is a copy of
//!   lost    4096+8192    /a/b     why          state, bytes of the file, path; tabs between them
//!   # durable: 12000                           names in the order of the walk
//! ```
//!
//! Invariant: a mark is written after all names before it, and their lines, are durable.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use braid_service::failure::{Context, Failure};
use braid_shell::shown;

use crate::command::listing::{Counts, State};

const MARK: &str = "# durable: ";
/// More than a report has.
const LONGEST: u64 = 1 << 30;

pub(super) struct Report {
    pub(super) path: PathBuf,
    file: BufWriter<File>,
    /// Names that were durable when it was opened.
    pub(super) durable: u64,
    pub(super) counts: Counts,
}

impl Report {
    /// Makes the report, or opens the one that is there, whose lines behind the last mark are dropped.
    ///
    /// # Errors
    /// It is of another copy, or cannot be written.
    pub(super) fn open(path: PathBuf, copied: &str) -> Result<Report, Failure> {
        let head = format!("# braid rescue: {copied}").replace('\n', " ") + "\n";
        let cannot = format!("cannot write {}", path.display());
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.context(&cannot)?;
        let mut text = Vec::new();
        (&file).take(LONGEST).read_to_end(&mut text).context(&cannot)?;
        let (mut durable, mut kept, mut counts) = (0, head.len(), Counts::default());
        if text.is_empty() {
            file.write_all(head.as_bytes()).context(&cannot)?;
        } else if !text.starts_with(head.as_bytes()) {
            let there = format!("{} is there already, and of another copy", path.display());
            return Err(Failure::refused(there).next("name another folder with --to"));
        } else {
            let (mut at, mut seen) = (head.len(), Counts::default());
            for line in text[head.len()..].split_inclusive(|byte| *byte == b'\n') {
                at += line.len();
                seen.lost += u64::from(line.starts_with(b"lost\t"));
                seen.doubtful += u64::from(line.starts_with(b"doubt\t"));
                let mark = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix(MARK));
                if let Some(mark) = mark.and_then(|mark| mark.strip_suffix('\n')?.parse().ok()) {
                    (durable, kept) = (mark, at);
                    (counts.lost, counts.doubtful) = (seen.lost, seen.doubtful);
                }
            }
        }
        file.set_len(kept as u64).context(&cannot)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0)).context(&cannot)?;
        Ok(Report { path, file: BufWriter::new(file), durable, counts })
    }

    /// True if there is a report of a copy there.
    pub(super) fn is_there(path: &Path) -> bool {
        path.exists()
    }

    /// Enters the state of a name, if it is not good.
    pub(super) fn add(&mut self, path: &[u8], state: &State) -> Result<(), Failure> {
        self.counts.add(state);
        if state.is_good() {
            return Ok(());
        }
        let (word, places) = match state.is_lost() {
            true => ("lost", &state.lost),
            false => ("doubt", &state.doubtful),
        };
        self.line(word, &places.words(), path, &state.why.join("; "))
    }

    /// Enters a name that is not copied, and loses nothing: a device.
    pub(super) fn add_left_out(&mut self, path: &[u8], why: &str) -> Result<(), Failure> {
        self.line("left out", "", path, why)
    }

    fn line(&mut self, word: &str, places: &str, path: &[u8], why: &str) -> Result<(), Failure> {
        let path = String::from_utf8_lossy(path);
        let line = [word, places, &shown(&path), &shown(why)].join("\t");
        writeln!(self.file, "{line}").context(format!("cannot write {}", self.path.display()))
    }

    /// Says that the first `names` names of the walk are durable.
    pub(super) fn mark(&mut self, names: u64) -> Result<(), Failure> {
        let mut write = || {
            writeln!(self.file, "{MARK}{names}")?;
            self.file.flush()?;
            self.file.get_ref().sync_data()
        };
        write().context(format!("cannot write {}", self.path.display()))
    }
}
