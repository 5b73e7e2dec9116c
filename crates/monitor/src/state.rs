//! The monitor's state that survives a restart: its knowledge, and the waiting messages.
//!
//! Invariants: the file is replaced as a whole; one process has it at a time; a file that is not understood is
//! put aside, not lost, and the monitor continues.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::outbox::Outbox;
use crate::watch::Known;

/// Raised when a field changes its meaning.
const VERSION: u32 = 1;

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    version: u32,
    pub(crate) known: Known,
    pub(crate) waiting: BTreeMap<String, Outbox>,
}

/// The file, which is ours.
pub(crate) struct Store {
    path: PathBuf,
    /// Held as long as this is.
    _lock: File,
    /// Its content.
    last: String,
}

/// The reason why there is no state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("another monitor has it")]
    Taken,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Store {
    /// Takes the file in `folder`; answers what it holds, and what was wrong with it.
    pub(crate) fn open(folder: &Path) -> Result<(Store, State, Option<String>), StoreError> {
        std::fs::create_dir_all(folder)?;
        let lock = File::create(folder.join("monitor.lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => StoreError::Taken,
            errno => StoreError::Io(errno.into()),
        })?;
        let path = folder.join("monitor.json");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Some(String::new()),
            Err(error) => return Err(error.into()),
        };
        let (state, remark) = match text.as_deref().map(parse) {
            None => (State::default(), None),
            Some(Ok(state)) => (state, None),
            Some(Err(why)) => {
                let aside = path.with_extension("json.bad");
                std::fs::rename(&path, &aside)?;
                let remark = format!(
                    "{} is not understood ({why}), and is now {}: what lasts is told anew",
                    path.display(),
                    aside.display()
                );
                (State::default(), Some(remark))
            }
        };
        Ok((Store { path, _lock: lock, last: text.unwrap_or_default() }, state, remark))
    }

    /// Replaces what is in it, if that has changed.
    pub(crate) fn save(
        &mut self,
        known: &Known,
        waiting: BTreeMap<String, Outbox>,
    ) -> io::Result<()> {
        let state = State { version: VERSION, known: known.clone(), waiting };
        let text = serde_json::to_string(&state)?;
        if text == self.last {
            return Ok(());
        }
        let new = self.path.with_extension("json.new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&new, &self.path)?;
        self.last = text;
        Ok(())
    }
}

fn parse(text: &str) -> Result<State, String> {
    let state: State = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match state.version {
        VERSION => Ok(state),
        other => Err(format!("version {other}, and this braid knows {VERSION}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back_and_what_is_not_understood_is_put_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut store, state, remark) = Store::open(folder.path()).expect("a store");
        assert_eq!((state, remark), (State::default(), None));
        let waiting: BTreeMap<_, _> = [("mail".to_owned(), Outbox::default())].into();
        store.save(&Known::default(), waiting.clone()).expect("saved");
        assert!(matches!(Store::open(folder.path()), Err(StoreError::Taken)));
        drop(store);
        let (store, state, remark) = Store::open(folder.path()).expect("a store");
        assert_eq!((state.waiting, remark), (waiting, None));
        drop(store);
        for text in
            ["{", "", "{\"version\":9,\"known\":{\"volumes\":{},\"open\":{}},\"waiting\":{}}", "[]"]
        {
            let file = folder.path().join("monitor.json");
            std::fs::write(&file, text).expect("written");
            let (_store, state, remark) = Store::open(folder.path()).expect("a store");
            assert_eq!(state, State::default());
            assert!(remark.expect("a remark").contains("not understood"));
            assert_eq!(
                std::fs::read_to_string(file.with_extension("json.bad")).expect("aside"),
                text
            );
        }
    }
}
