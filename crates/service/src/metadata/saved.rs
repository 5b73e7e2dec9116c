//! Bytes from before a change of members: the state folder's `undo/`, with one number for each change.
//!
//! ```text
//!   undo/7.json   what was done, to which members, in which places
//!   undo/7.data   the bytes of all places before, then the bytes of all places after
//! ```
//!
//! Invariants: the data is on stable storage before the description is, and that before anything
//! is overwritten; a description without its data does not exist. The files are for their owner
//! alone, as they hold what was on disks.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use braid_md::Uuid;
use serde::{Deserialize, Serialize};

use crate::failure::{Context, Failure};
use crate::record::Known;

/// Bytes for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Which member, by its index.
    pub member: usize,
    /// Offset on the member, in bytes.
    pub offset: u64,
    /// Name of the structure in this place.
    pub what: &'static str,
    /// The bytes that are written there.
    pub bytes: Vec<u8>,
}

/// A change of members that can be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// Counts up: a later change has a higher one.
    #[serde(default)]
    pub number: u64,
    /// Which of braid's commands it was.
    pub command: String,
    /// Seconds since 1970.
    pub time_s: u64,
    /// The arrays' names, as far as they have any.
    pub names: Vec<String>,
    /// The arrays' identifiers, as mdadm prints them.
    pub arrays: Vec<String>,
    /// The `NAME.toml` that was written with it, and its stack.
    pub record: Option<(PathBuf, String)>,
    /// As they were when they were changed.
    pub members: Vec<Known>,
    /// The places that were written.
    pub patches: Vec<SavedPatch>,
}

/// A place on a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPatch {
    /// Index of the member.
    pub member: usize,
    /// Position on the member.
    pub offset_bytes: u64,
    /// Number of bytes written.
    pub length_bytes: u64,
    /// The bytes that were written.
    pub what: String,
}

/// The bytes of a change, one for each of its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Bytes that were there.
    pub before: Vec<Vec<u8>>,
    /// Bytes that were written.
    pub after: Vec<Vec<u8>>,
}

impl Saved {
    /// A change about which nothing else is known yet.
    pub fn new(command: &str) -> Saved {
        Saved {
            number: 0,
            command: command.to_owned(),
            time_s: super::host::now().seconds,
            names: Vec::new(),
            arrays: Vec::new(),
            record: None,
            members: Vec::new(),
            patches: Vec::new(),
        }
    }

    /// Returns true if `text` is its number, or the name or identifier of one of its arrays.
    pub fn is_meant_by(&self, text: &str) -> bool {
        let uuid = text.parse::<Uuid>().map(|uuid| uuid.to_string());
        self.number.to_string() == text
            || self.names.iter().any(|name| name == text)
            || uuid.is_ok_and(|uuid| self.arrays.contains(&uuid))
    }

    /// `create of md0, 2 members, 6 places`.
    pub fn describe(&self) -> String {
        let names = if self.names.is_empty() { &self.arrays } else { &self.names };
        let (members, places) = (self.members.len(), self.patches.len());
        format!("{} of {}: {members} members, {places} places", self.command, names.join(", "))
    }
}

/// The folder of changes that can be undone.
#[derive(Clone, Debug)]
pub struct Trail {
    folder: PathBuf,
    /// The next command if nothing can be saved there.
    next: &'static str,
}

impl Trail {
    /// The changes that are kept in `folder`, which need not be there yet.
    pub fn new(folder: PathBuf) -> Trail {
        Trail { folder, next: "set BRAID_STATE_DIR to a folder that can be written" }
    }

    /// Sets the next command of the failure if nothing can be saved in the folder.
    #[must_use]
    pub fn with_next(self, next: &'static str) -> Trail {
        Trail { next, ..self }
    }

    /// All changes, the latest first. What cannot be read is not one.
    pub fn list(&self) -> Vec<Saved> {
        let mut all: Vec<Saved> =
            self.numbers().into_iter().filter_map(|number| self.describe(number)).collect();
        all.sort_by_key(|saved| std::cmp::Reverse(saved.number));
        all
    }

    fn describe(&self, number: u64) -> Option<Saved> {
        let text = fs::read(self.file(number, "json")).ok()?;
        let saved: Saved = serde_json::from_slice(&text).ok()?;
        Some(Saved { number, ..saved })
    }

    /// The bytes of a change.
    ///
    /// # Errors
    /// They cannot be read, or are not as many as they should be.
    pub fn contents(&self, saved: &Saved) -> Result<Contents, Failure> {
        let path = self.file(saved.number, "data");
        let bytes = fs::read(&path).context(format_args!("cannot read {}", path.display()))?;
        let mut rest = &bytes[..];
        let mut take = || -> Option<Vec<Vec<u8>>> {
            let cut = |patch: &SavedPatch| {
                let (head, tail) = rest.split_at_checked(patch.length_bytes.try_into().ok()?)?;
                rest = tail;
                Some(head.to_vec())
            };
            saved.patches.iter().map(cut).collect()
        };
        match (take(), take(), rest) {
            (Some(before), Some(after), []) => Ok(Contents { before, after }),
            _ => Err(Failure::failed(format!(
                "{} is damaged: it has {} bytes, which is not what was saved",
                path.display(),
                bytes.len()
            ))),
        }
    }

    /// Saves the bytes `before` the patches, and the patches, durably. Answers its number.
    ///
    /// # Errors
    /// Something could not be written: then there is nothing saved.
    pub fn save(
        &self,
        saved: Saved,
        before: &[Vec<u8>],
        patches: &[Patch],
    ) -> Result<u64, Failure> {
        let place = |patch: &Patch| SavedPatch {
            member: patch.member,
            offset_bytes: patch.offset,
            length_bytes: patch.bytes.len() as u64,
            what: patch.what.to_owned(),
        };
        let saved = Saved { patches: patches.iter().map(place).collect(), ..saved };
        let after = patches.iter().map(|patch| &patch.bytes);
        let write_as = |number: u64, mut data: File| -> io::Result<u64> {
            for bytes in before.iter().chain(after) {
                data.write_all(bytes)?;
            }
            data.sync_all()?;
            let text = serde_json::to_vec_pretty(&Saved { number, ..saved })?;
            let temporary = self.file(number, "new");
            let mut file = create(&temporary)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&temporary, self.file(number, "json"))?;
            File::open(&self.folder)?.sync_all()?;
            Ok(number)
        };
        let write = || -> io::Result<u64> {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let (number, data) = self.claim_number()?;
            write_as(number, data).inspect_err(|_| {
                // A full file system gets its room back.
                let left = ["json", "new", "data"].map(|extension| self.file(number, extension));
                left.iter().for_each(|path| drop(fs::remove_file(path)));
            })
        };
        write().map_err(|error| {
            let folder = self.folder.display();
            Failure::failed(format!(
                "cannot save in {folder} what would be overwritten: {error}; so nothing was"
            ))
            .next(self.next)
        })
    }

    /// Creates the data file of the next number, which no other process gets.
    fn claim_number(&self) -> io::Result<(u64, File)> {
        let mut number = self.numbers().into_iter().max().unwrap_or(0) + 1;
        loop {
            match create(&self.file(number, "data")) {
                Ok(file) => return Ok((number, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Forgets a change.
    ///
    /// # Errors
    /// Its description cannot be removed.
    pub fn remove(&self, number: u64) -> Result<(), Failure> {
        let path = self.file(number, "json");
        fs::remove_file(&path).context(format_args!("cannot remove {}", path.display()))?;
        // Without a description the data is nothing.
        let _ = fs::remove_file(self.file(number, "data"));
        Ok(())
    }

    fn numbers(&self) -> Vec<u64> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut numbers: Vec<u64> = entries
            .filter_map(|entry| {
                Path::new(&entry.ok()?.file_name()).file_stem()?.to_str()?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    fn file(&self, number: u64, extension: &str) -> PathBuf {
        self.folder.join(format!("{number}.{extension}"))
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
