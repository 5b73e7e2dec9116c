//! Which logs of caches were given up: an empty file each, named after the log and the time that it was open.
//!
//! A log whose device fails cannot say of itself that nothing in it counts any more; replayed, it would put
//! older data over newer. A name is of one time that a log was open, so a file may stay for ever.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use braid_cache::{GivenUp, LogId};

use crate::control::with_next;

/// The folder of these files, as one log uses it.
#[derive(Clone, Debug)]
pub(super) struct GivenUpLogs {
    folder: PathBuf,
    /// The log's path, for people.
    log: String,
}

impl GivenUpLogs {
    /// In `folder`, for the log at `path`.
    pub(super) fn in_folder(folder: &Path, path: Option<&Path>) -> GivenUpLogs {
        let log = path.map(|path| path.display().to_string()).unwrap_or_default();
        GivenUpLogs { folder: folder.to_owned(), log }
    }

    fn file(&self, log: LogId) -> PathBuf {
        let hex: String = log.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{hex}-{}", log.generation))
    }
}

impl GivenUp for GivenUpLogs {
    fn remember(&self, log: LogId) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let file = self.file(log);
        OpenOptions::new().create(true).append(true).mode(0o600).open(&file)?.sync_all()?;
        // The folder may be new itself.
        for folder in self.folder.ancestors().take(2).filter(|path| !path.as_os_str().is_empty()) {
            File::open(folder)?.sync_all()?;
        }
        let why = format!(
            "{}: it is given up, as the origin has all of it, and does not take even that: {} remembers it, on this \
             machine alone",
            self.log,
            file.display()
        );
        let next = "before the disks are used on another machine, which would replay the log: `braid down`, then \
                    `braid up` and `braid down` once more, which makes the log anew";
        eprintln!("{}", with_next(why, Some(next)));
        Ok(())
    }

    fn has(&self, log: LogId) -> io::Result<bool> {
        self.file(log).try_exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_of_one_log_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = || GivenUpLogs::in_folder(&folder.path().join("state/given-up"), None);
        let log = LogId { uuid: [7; 16], generation: 3 };
        assert!(!logs().has(log).expect("a look"));
        logs().remember(log).expect("a note");
        logs().remember(log).expect("again");
        assert!(logs().has(log).expect("a look"));
        assert!(!logs().has(LogId { generation: 4, ..log }).expect("a look"));
        assert!(!logs().has(LogId { uuid: [8; 16], ..log }).expect("a look"));
    }
}
