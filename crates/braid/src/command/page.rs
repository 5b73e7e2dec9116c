//! A page that a command writes where it is told to, over nothing.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use braid_service::failure::{Context, Failure};

/// Refuses a file that is there already, before anything is done for its sake.
pub(super) fn check_new(file: &Path) -> Result<(), Failure> {
    match file.symlink_metadata() {
        Ok(_) => Err(already_there(file)),
        Err(_) => Ok(()),
    }
}

fn already_there(file: &Path) -> Failure {
    let text = format!("{} is there already; nothing was written", file.display());
    Failure::refused(text).next("name another file")
}

/// Writes a file that is not there yet.
pub(super) fn write_new(file: &Path, page: &str) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let mut made = match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(already_there(file)),
        made => made.context(format!("cannot write {}", file.display()))?,
    };
    made.write_all(page.as_bytes()).context(format!("cannot write {}", file.display()))
}
