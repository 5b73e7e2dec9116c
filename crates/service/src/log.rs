//! Messages on standard error: a command shows them on its terminal; a volume in the background writes
//! `NAME.log`, which is bounded: beyond a mebibyte it becomes `NAME.log.1`, in place of the one before.
//!
//! A volume's standard error is its log, opened to append. So the file is copied and emptied, and whatever
//! still writes to it (a panic) goes on at its start.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use braid_shell::{shown, shown_lines};

/// Bytes of a log, but for the last line.
const MOST: u64 = 1 << 20;

static VERBOSE: AtomicBool = AtomicBool::new(false);
static BOUNDED: OnceLock<Mutex<Bounded>> = OnceLock::new();

/// Says more, from now on.
pub fn set_verbose(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
}

/// True with `--verbose`: more is logged.
pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Standard error is the file at `path`, which is bounded from now on.
pub fn bound(path: &Path) {
    let written = std::fs::metadata(path).map_or(0, |file| file.len());
    // A process has one log.
    let _ = BOUNDED.set(Mutex::new(Bounded { path: path.to_owned(), written, most: MOST }));
}

/// Parts of paths with line breaks in them, the longest first: a message that quotes one shows it in one line.
static BROKEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes note of a path from outside (a command line, a folder, a record): it may be quoted in a message, whose own
/// line breaks cannot be told from those of a name any more when it is shown.
pub fn note_path(path: &Path) {
    if !path.as_os_str().as_encoded_bytes().contains(&b'\n') {
        return;
    }
    let mut broken = BROKEN.lock().unwrap_or_else(PoisonError::into_inner);
    for part in path.iter().map(|part| part.to_string_lossy()).filter(|part| part.contains('\n')) {
        // A name of blanks alone is known by what is in front of it.
        let is_blank = part.trim().is_empty();
        let part = if is_blank { format!("/{part}") } else { part.into_owned() };
        if !broken.contains(&part) {
            broken.push(part);
        }
    }
    broken.sort_by_key(|part| std::cmp::Reverse(part.len()));
}

/// Text whose lines are its own, with names in it in one line each.
fn own_lines(text: &str) -> String {
    let broken = BROKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = |text: String, part: &String| text.replace(part.as_str(), &shown(part));
    shown_lines(&broken.iter().fold(text.to_owned(), whole)).into_owned()
}

/// Writes text to standard output, with names in it shown escaped. Errors of writing are ignored, since it has no
/// reader then.
pub fn out(text: Arguments<'_>) {
    let _ = io::stdout().write_all(own_lines(&text.to_string()).as_bytes());
}

/// Writes a line. A failed write is ignored.
pub fn line(text: Arguments<'_>) {
    let text = own_lines(&text.to_string());
    let Some(bounded) = BOUNDED.get() else {
        let _ = writeln!(io::stderr(), "{text}");
        return;
    };
    // A thread that panicked in here has left a line half written.
    let mut bounded = bounded.lock().unwrap_or_else(PoisonError::into_inner);
    let line = format!("{text}\n");
    let _ = bounded.write(&mut io::stderr(), &line);
}

/// The log before the one at `path`.
pub fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Puts a log aside that a process before has filled. Without a log there is room.
pub fn make_room(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(file) if file.is_file() && file.len() >= MOST => std::fs::rename(path, older(path)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A log that is written to the end of a file.
struct Bounded {
    path: PathBuf,
    /// Bytes in it.
    written: u64,
    most: u64,
}

impl Bounded {
    /// Writes a line to `out`, which appends to the file, and puts the file aside when it is full.
    fn write(&mut self, out: &mut impl Write, line: &str) -> io::Result<()> {
        if self.written >= self.most {
            // Whatever comes of it is tried again only after so many bytes more.
            self.written = 0;
            std::fs::copy(&self.path, older(&self.path))?;
            File::options().write(true).open(&self.path)?.set_len(0)?;
        }
        self.written += line.len() as u64;
        out.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_put_aside_when_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.log");
        let mut out = File::options().create(true).append(true).open(&path).unwrap();
        let mut log = Bounded { path: path.clone(), written: 0, most: 100 };
        for number in 0..1000 {
            log.write(&mut out, &format!("line {number}\n")).unwrap();
            let len = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
            assert!(len(&path) <= 110 && len(&older(&path)) <= 110, "after line {number}");
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let both = read(&older(&path)) + &read(&path);
        assert!(both.ends_with("line 998\nline 999\n"), "{both}");
        let first: usize = both.lines().next().unwrap()[5..].parse().unwrap();
        assert_eq!(both.lines().count(), 1000 - first, "lines are missing: {both}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_name_with_line_breaks_is_one_line_of_a_message() {
        for path in ["/srv/plain.img", "/srv/new\nstate: online/\n", "/srv/new\nstate: online, too"]
        {
            note_path(Path::new(path));
        }
        let message = "/srv/new\nstate: online/\n is refused\n  next: braid examine '/srv/new\nstate: online, too'";
        let expected = "/srv/new\\nstate: online/\\n is refused\n  next: braid examine '/srv/new\\nstate: online, too'";
        assert_eq!(own_lines(message), expected);
    }

    #[test]
    fn a_log_of_a_process_before_is_put_aside_only_if_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.log");
        make_room(&path).unwrap();
        std::fs::write(&path, "short").unwrap();
        make_room(&path).unwrap();
        assert!(path.exists());
        File::options().write(true).open(&path).unwrap().set_len(MOST).unwrap();
        make_room(&path).unwrap();
        assert!(!path.exists() && older(&path).exists());
    }
}
