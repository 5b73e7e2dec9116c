//! The folder of a case: which members belong to it, and what they looked like.
//!
//! ```text
//!   home.rescue/case.json     members: path, fingerprint, map, places of superblocks
//!              /maps/         what of each member must not be read: unreadable, or out of date
//! ```
//!
//! Invariants
//! * The text is untrusted: it has a limit, unknown fields are refused, and superblocks are read again from the
//!   members at each command. A path in it is only opened for reading.
//! * A case whose members no longer have their fingerprints is refused.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::patient::{Fingerprint, Patient, PatientError};
use crate::scan::Place;

/// The version of the text.
const VERSION: u32 = 1;
/// The most bytes of a case's text that are read.
const MOST_BYTES: u64 = 4 << 20;
/// The most members of a case.
pub const MOST_MEMBERS: usize = 384;
const FILE: &str = "case.json";

/// The members of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    version: u32,
    /// The members, in the order in which they were given.
    pub members: Vec<CaseMember>,
    #[serde(skip)]
    folder: PathBuf,
}

/// A member of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseMember {
    /// Its absolute path.
    pub path: String,
    /// Its fingerprint when it was scanned.
    pub fingerprint: Fingerprint,
    /// GNU ddrescue's map of what could not be read, absolute; `None` if all of it could.
    pub map: Option<String>,
    /// Places of superblocks.
    pub places: Vec<Place>,
}

/// Why a case cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// There is no case in the folder.
    #[error("there is no case in {folder}", folder = .0.display())]
    None(PathBuf),
    /// The text cannot be read, or is not that of a case.
    #[error("{path}: {why}", path = .path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file of the case cannot be written.
    #[error("cannot write {path}: {why}", path = .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A member cannot be opened.
    #[error(transparent)]
    Member(#[from] PatientError),
    /// A member is not what was scanned.
    #[error("{path} is not what was scanned: {what}")]
    Changed {
        /// The member.
        path: String,
        /// The difference.
        what: String,
    },
}

impl Case {
    /// A case without members, in this folder, which is made when the case is stored.
    #[must_use]
    pub fn new(folder: &Path) -> Case {
        Case { version: VERSION, members: Vec::new(), folder: folder.to_owned() }
    }

    /// Returns the folder that a user calls `name`: it ends in `.rescue`.
    #[must_use]
    pub fn folder_of(name: &Path) -> PathBuf {
        match name.extension() {
            Some(extension) if extension == "rescue" => name.to_owned(),
            _ => {
                let mut name = name.as_os_str().to_owned();
                name.push(".rescue");
                name.into()
            }
        }
    }

    /// Reads the case in a folder.
    ///
    /// # Errors
    /// [`CaseError`]: there is no case, or its text is malformed.
    pub fn read(folder: &Path) -> Result<Case, CaseError> {
        let text = text_in(folder, FILE)?.ok_or_else(|| CaseError::None(folder.to_owned()))?;
        let failed = |why: String| CaseError::Text { path: folder.join(FILE), why };
        let case = Case::parse(&text).map_err(failed)?;
        Ok(Case { folder: folder.to_owned(), ..case })
    }

    /// Returns the text of another file in the folder of the case; `None` if it is not there.
    ///
    /// # Errors
    /// [`CaseError`]: it is no file, too long, or cannot be read.
    pub fn text(&self, name: &str) -> Result<Option<String>, CaseError> {
        text_in(&self.folder, name)
    }

    /// Reads the text of a case.
    ///
    /// # Errors
    /// The reason for which it is no text of a case.
    pub fn parse(text: &str) -> Result<Case, String> {
        let case: Case = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if case.version != VERSION {
            return Err(format!("its version is {}, and this braid reads {VERSION}", case.version));
        }
        if case.members.is_empty() {
            return Err("it has no members".to_owned());
        }
        if case.members.len() > MOST_MEMBERS {
            return Err(format!(
                "it has {} members, and at most {MOST_MEMBERS} are read",
                case.members.len()
            ));
        }
        let is_absolute = |path: &String| Path::new(path).is_absolute() && !path.contains('\0');
        let mut paths =
            case.members.iter().flat_map(|one| [Some(&one.path), one.map.as_ref()]).flatten();
        let relative = paths.find(|path| !is_absolute(path)).cloned();
        drop(paths);
        match relative {
            Some(path) => Err(format!("the path {path:?} is not absolute")),
            None => Ok(case),
        }
    }

    /// Writes the case: the new text replaces the old one at once.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn store(&self) -> Result<(), CaseError> {
        let text = serde_json::to_string_pretty(self).expect("a case is plain data");
        self.write(FILE, &(text + "\n")).map(drop)
    }

    /// Writes a file of the case, all of it or nothing; returns its path.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, CaseError> {
        let path = self.folder.join(name);
        let new = path.with_added_extension("new");
        let write = || -> io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
            let mut file = fs::File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| {
            // A full file system gets its room back.
            drop(fs::remove_file(&new));
            CaseError::Unwritable { path: path.clone(), why: error.to_string() }
        })?;
        Ok(path)
    }

    /// The folder of the case.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the members, and checks that they are what was scanned.
    ///
    /// # Errors
    /// A member cannot be opened, or has another fingerprint.
    pub fn open(&self) -> Result<Vec<Patient>, CaseError> {
        let open = |member: &CaseMember| {
            let patient = Patient::open(Path::new(&member.path))?;
            match difference(&member.fingerprint, &patient.fingerprint()) {
                Some(what) => Err(CaseError::Changed { path: member.path.clone(), what }),
                None => Ok(patient),
            }
        };
        self.members.iter().map(open).collect()
    }
}

/// The first difference between what was and what is, in words.
fn difference(was: &Fingerprint, is: &Fingerprint) -> Option<String> {
    if was.size != is.size {
        return Some(format!("it had {} bytes and has {}", was.size, is.size));
    }
    if was.serial != is.serial {
        let words = |serial: &Option<String>| serial.clone().unwrap_or_else(|| "none".to_owned());
        let (was, is) = (words(&was.serial), words(&is.serial));
        return Some(format!("its serial number was {was} and is {is}: it is another disk"));
    }
    let head = (was.head_sha1 != is.head_sha1).then_some("first");
    let tail = (was.tail_sha1 != is.tail_sha1).then_some("last");
    let end = head.or(tail)?;
    Some(format!("its {end} MiB has changed, so something has written to it"))
}

/// Reads a file of a case; `None` if it is not there.
fn text_in(folder: &Path, name: &str) -> Result<Option<String>, CaseError> {
    let path = folder.join(name);
    let failed = |why: String| CaseError::Text { path: path.clone(), why };
    let metadata = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(|error| failed(error.to_string()))?,
    };
    if !metadata.is_file() || metadata.len() > MOST_BYTES {
        return Err(failed(format!("it is no file of at most {MOST_BYTES} bytes")));
    }
    fs::read_to_string(&path).map(Some).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_back_and_a_changed_member_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.img");
        fs::write(&path, vec![1; 5000]).expect("it can be written");
        let mut case = Case::new(&folder.path().join("x.rescue"));
        let fingerprint = Patient::open(&path).expect("a file").fingerprint();
        let path_text = path.to_str().expect("UTF-8").to_owned();
        case.members.push(CaseMember {
            path: path_text,
            fingerprint,
            map: None,
            places: Vec::new(),
        });
        case.store().expect("it can be stored");
        let read = Case::read(case.folder()).expect("it was stored");
        assert_eq!(read, case);
        assert_eq!(read.open().expect("unchanged").len(), 1);
        let mut bytes = vec![1; 5000];
        bytes[4000] = 2;
        fs::write(&path, bytes).expect("it can be written");
        let error = read.open().expect_err("changed").to_string();
        assert!(error.contains("its first MiB has changed"), "{error}");
    }

    #[test]
    fn text_that_is_no_case_is_refused() {
        for (text, why) in [
            ("", "EOF"),
            (r#"{"version": 2, "members": []}"#, "its version is 2"),
            (r#"{"version": 1, "members": [], "run": "x"}"#, "unknown field"),
            (
                r#"{"version": 1, "members": [{"path": "a", "fingerprint": {"size": 1, "serial": null,
                   "head_sha1": "", "tail_sha1": ""}, "map": null, "places": []}]}"#,
                "is not absolute",
            ),
        ] {
            let error = Case::parse(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_name_of_a_case_ends_in_rescue() {
        for (name, folder) in
            [("home", "home.rescue"), ("a/b.rescue", "a/b.rescue"), ("v1.2", "v1.2.rescue")]
        {
            assert_eq!(Case::folder_of(Path::new(name)), Path::new(folder));
        }
    }
}
