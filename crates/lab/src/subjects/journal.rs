//! The journal of held objects, a file in the results folder, from which the next run there removes the objects
//! of a killed run.
//!
//! ```text
//!   DIR/held.json   {"version": 1, "boot": "0d3c...", "notes": [{"kind": "loop", ...}, ...]}
//! ```
//!
//! Invariants:
//!
//! * an object is recorded before it is made, or right after if the system gives its name (loop devices, RAM
//!   disks, folders), and struck when it is removed: a run that ends in order leaves no file;
//! * objects of an earlier run stay recorded until they are removed, or the system has been restarted.
//!
//! Reasons why the kernel does not own these objects. A mount namespace of the run would end with it, but no
//! process outside could see the mounts (`df`, `fuser`, the checks of another run), nor unmount a disk. A loop
//! device that clears itself (`LO_FLAGS_AUTOCLEAR`) stays while a mount or an array has it, which outlive the
//! run; and when the array is stopped it is gone before the superblock on it can be removed. Arrays, RAM disks
//! and superblocks have no owner that could end.
//!
//! Deliberately absent: processes, which are found by their environment ([`crate::world`]); and flushing: after
//! a power cut only folders and superblocks are left, which do no harm.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::hand::remove_file;
use super::things::Thing;
use crate::error::LabError;
use crate::store::write_whole;

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Document<N> {
    version: u32,
    boot: String,
    notes: Vec<N>,
}

/// The journal file.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    boot: String,
    /// The first key of this run's own records.
    own: u64,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    notes: BTreeMap<u64, Thing>,
    next: u64,
    /// The first change that was not written.
    failure: Option<LabError>,
}

impl Journal {
    /// Reads the records of an earlier run in the folder, if there are any.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed.
    pub(super) fn open(folder: &Path) -> Result<Rc<Self>, LabError> {
        let path = folder.join("held.json");
        let boot = crate::world::read_text(Path::new("/proc/sys/kernel/random/boot_id"))?;
        let boot = boot.unwrap_or_default().trim().to_owned();
        let notes = match crate::world::read_text(&path)? {
            None => Vec::new(),
            Some(text) => parse(&text, &boot).map_err(|reason| {
                let advice = "it lists the objects that a run has left; check them (mount, \
                              losetup, braid status) and remove the file";
                LabError::file("understand", &path)(io::Error::other(format!("{reason}; {advice}")))
            })?,
        };
        let own = notes.len() as u64;
        let state = State { next: own, notes: (0..).zip(notes).collect(), failure: None };
        Ok(Rc::new(Self { path, boot, own, state: RefCell::new(state) }))
    }

    /// Returns the remaining records of an earlier run, first to last.
    pub(super) fn earlier(&self) -> Vec<(u64, Thing)> {
        let state = self.state.borrow();
        state.notes.range(..self.own).map(|(key, note)| (*key, note.clone())).collect()
    }

    /// Returns the record of a key.
    pub(super) fn get(&self, key: u64) -> Option<Thing> {
        self.state.borrow().notes.get(&key).cloned()
    }

    /// Records an object; the returned key strikes it.
    pub(super) fn note(&self, note: Thing) -> u64 {
        let mut state = self.state.borrow_mut();
        let key = state.next;
        state.next += 1;
        state.notes.insert(key, note);
        self.write(&mut state);
        key
    }

    /// Strikes the record of a removed object.
    pub(super) fn strike(&self, key: u64) {
        let mut state = self.state.borrow_mut();
        if state.notes.remove(&key).is_some() {
            self.write(&mut state);
        }
    }

    /// Checks that all changes were written so far.
    ///
    /// # Errors
    ///
    /// The first change that was not written.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        self.state.borrow_mut().failure.take().map_or(Ok(()), Err)
    }

    fn write(&self, state: &mut State) {
        let written = match state.notes.is_empty() {
            true => remove_file(&self.path),
            false => render(&self.boot, state).and_then(|text| write_whole(&self.path, &text)),
        };
        // The object exists, so its record stays in memory; the next check reports the error.
        if let Err(error) = written {
            state.failure.get_or_insert(error);
        }
    }
}

fn render(boot: &str, state: &State) -> Result<String, LabError> {
    let notes: Vec<&Thing> = state.notes.values().collect();
    serde_json::to_string_pretty(&Document { version: VERSION, boot: boot.to_owned(), notes })
        .map_err(|error| LabError::Serialise { what: "what is held", reason: error.to_string() })
}

/// Parses the records whose objects can still exist.
fn parse(text: &str, boot: &str) -> Result<Vec<Thing>, String> {
    let found: Document<Thing> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if found.version != VERSION {
        return Err(format!("its version is {}, and {VERSION} is known", found.version));
    }
    let same_system = found.boot == boot;
    Ok(found.notes.into_iter().filter(|one| same_system || one.outlives_the_system()).collect())
}

/// A recorded folder for the time of a run.
#[derive(Debug)]
pub(crate) struct Room {
    folder: tempfile::TempDir,
    journal: Rc<Journal>,
    key: u64,
}

impl Room {
    /// Makes the folder in `parent`, with a name that begins with `prefix`.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub(crate) fn new(
        parent: &Path,
        prefix: &str,
        journal: &Rc<Journal>,
    ) -> Result<Self, LabError> {
        let folder = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir_in(parent)
            .map_err(LabError::file("create a folder in", parent))?;
        let key = journal.note(Thing::Folder { path: folder.path().into(), with_content: true });
        Ok(Self { folder, journal: Rc::clone(journal), key })
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.journal.strike(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> Thing {
        Thing::Folder { path: "/tmp/braid-lab-x".into(), with_content: false }
    }

    #[test]
    fn what_is_noted_is_found_by_the_next_run_until_it_is_struck() {
        let dir = tempfile::tempdir().unwrap();
        let first = Journal::open(dir.path()).unwrap();
        let mount = Thing::Mount { folder: "/tmp/braid-lab-x".into() };
        let struck = first.note(Thing::Zram { number: 3 });
        first.note(folder());
        first.note(mount.clone());
        first.strike(struck);
        first.check().unwrap();

        let second = Journal::open(dir.path()).unwrap();
        let left = second.earlier();
        let notes: Vec<&Thing> = left.iter().map(|(_, note)| note).collect();
        assert_eq!(notes, [&folder(), &mount]);
        let own = second.note(Thing::Zram { number: 4 });
        for key in left.iter().map(|(key, _)| *key).chain([own]) {
            assert!(dir.path().join("held.json").exists());
            second.strike(key);
        }
        assert!(!dir.path().join("held.json").exists(), "nothing is held any more");
    }

    #[test]
    fn after_a_new_start_of_the_system_only_what_lies_on_disks_is_left() {
        let text = r#"{"version": 1, "boot": "a", "notes": [
            {"kind": "loop", "device": "/dev/loop3", "file": "/srv/a.img"},
            {"kind": "folder", "path": "/tmp/braid-lab-x", "with_content": false}]}"#;
        assert_eq!(parse(text, "a").unwrap().len(), 2);
        assert_eq!(parse(text, "b").unwrap(), [folder()]);
    }

    #[test]
    fn what_is_not_understood_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{", r#"{"version": 2, "boot": "", "notes": []}"#] {
            std::fs::write(dir.path().join("held.json"), text).unwrap();
            let error = Journal::open(dir.path()).unwrap_err().to_string();
            assert!(error.contains("held.json") && error.contains("remove the file"), "{error}");
            assert_eq!(std::fs::read_to_string(dir.path().join("held.json")).unwrap(), text);
        }
    }

    #[test]
    fn a_note_that_cannot_be_written_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("gone")).unwrap();
        journal.note(folder());
        assert!(journal.check().unwrap_err().to_string().contains("held.json"));
        journal.check().unwrap();
    }

    #[test]
    fn a_room_is_noted_while_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let room = Room::new(dir.path(), "braid-lab-", &journal).unwrap();
        let path = room.path().to_owned();
        assert_eq!(
            Journal::open(dir.path()).unwrap().earlier(),
            [(0, Thing::Folder { path: path.clone(), with_content: true })]
        );
        drop(room);
        assert!(!path.exists() && journal.get(0).is_none());
    }
}
