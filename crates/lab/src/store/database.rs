//! The database file: made only in an empty place, distinguished from other programs' databases, opened for
//! reading without a trace.
//!
//! Invariants:
//!
//! * tables are made only by [`open_to_write`], and only in a new database in a folder without other files;
//! * a database of another program is never written: it is inspected read-only first;
//! * [`open_to_read`] writes nothing, and needs no permission to write. A database that no process has open is
//!   read as a file that does not change (`immutable`), under the run's lock, shared, so that it does not. A
//!   database with a write-ahead log, of a running or killed run, is read through that log;
//! * a folder may be another user's, with files that are made to trap a reader: only a regular file is opened,
//!   and only one without views, triggers and virtual tables, which may compute for ever.
//!
//! Deliberately absent: older tables. Only one older version has results; it had no mark and is recognised by
//! its tables.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use braid_nbd::uri::escape;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::files::share_lock;
use crate::error::LabError;

/// The mark of the laboratory's databases, in `PRAGMA application_id`: "brlb".
const APPLICATION_ID: i64 = 0x6272_6c62;
/// Version of the tables, in `PRAGMA user_version`.
const SCHEMA_VERSION: i64 = 2;
/// The tables, without the mark and the version.
const SCHEMA: &str = include_str!("schema.sql");
/// Name of the database in a results folder; the names of its logs begin with it.
const NAME: &str = "results.sqlite";

/// Returns the path of the database of a results folder.
pub(super) fn path_in(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// Opens the database in a folder for writing, and makes it if the folder is new or empty. `fill` writes the
/// content of a new one, in one transaction with the tables.
///
/// # Errors
///
/// The folder holds other files, or the database cannot be written.
pub(super) fn open_to_write(
    dir: &Path,
    fill: impl FnOnce(&Connection) -> Result<(), LabError>,
) -> Result<Connection, LabError> {
    let path = path_in(dir);
    match length(&path)? {
        None => refuse_occupied(dir)?,
        Some(0) => {}
        Some(_) => match open_to_read(dir) {
            // Another run is making the database now.
            Err(LabError::NoResults { .. }) => {}
            looked => drop(looked?),
        },
    }
    fs::create_dir_all(dir).map_err(LabError::file("create", dir))?;
    let mut db = Connection::open(&path).map_err(LabError::store("open results.sqlite"))?;
    // Of two runs that begin at once, the second waits here, and finds the tables of the first.
    let begun = db.transaction_with_behavior(TransactionBehavior::Immediate);
    let made = begun.map_err(LabError::store("begin"))?;
    if is_new(&made, &path)? {
        refuse_occupied(dir)?;
        made.execute_batch(SCHEMA)
            .and_then(|()| made.pragma_update(None, "application_id", APPLICATION_ID))
            .and_then(|()| made.pragma_update(None, "user_version", SCHEMA_VERSION))
            .map_err(LabError::store("create the tables"))?;
        fill(&made)?;
    }
    made.commit().map_err(LabError::store("create the tables"))?;
    // A write-ahead log saves a sync of the whole file at each trial, and a crash loses nothing.
    db.pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| db.pragma_update(None, "synchronous", "NORMAL"))
        .map_err(LabError::store("set the journal up"))?;
    Ok(db)
}

/// Opens the database in a folder for reading. The lock, if there is one, keeps runs out and must live as long
/// as the connection.
///
/// # Errors
///
/// There is none, it is another program's or of another version, or cannot be read.
pub(super) fn open_to_read(dir: &Path) -> Result<(Connection, Option<File>), LabError> {
    let path = path_in(dir);
    let none = || LabError::NoResults { dir: dir.to_path_buf() };
    length(&path)?.ok_or_else(none)?;
    let lock = share_lock(&super::lock_in(dir), &dir.display().to_string());
    let is_settled = lock.is_ok() && !has_log(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match is_settled {
        true => Connection::open_with_flags(unchanging(&path)?, flags | OpenFlags::SQLITE_OPEN_URI),
        false => Connection::open_with_flags(&path, flags),
    };
    let db = opened.map_err(LabError::store("open results.sqlite"))?;
    // The schema of the file must not call functions with side effects.
    db.pragma_update(None, "trusted_schema", false)
        .map_err(LabError::store("open results.sqlite"))?;
    match is_new(&db, &path) {
        Ok(false) => Ok((db, lock.ok().flatten())),
        Ok(true) => Err(none()),
        Err(LabError::Store { source, .. })
            if !is_settled && source.sqlite_error_code() == Some(ErrorCode::CannotOpen) =>
        {
            let action = "replay the log of a killed run in a folder that cannot be written; \
                          next: copy the folder, and open the copy";
            Err(LabError::Store { action, source })
        }
        Err(error) => Err(error),
    }
}

/// Returns true if a database is empty; else it holds a campaign's results.
///
/// # Errors
///
/// It is another program's, or of an unknown version.
fn is_new(db: &Connection, path: &Path) -> Result<bool, LabError> {
    let ask = |query: &str| -> Result<i64, LabError> {
        db.query_row(query, [], |row| row.get(0))
            .map_err(LabError::store("look at what results.sqlite is"))
    };
    let application = ask("PRAGMA application_id")?;
    let version = ask("PRAGMA user_version")?;
    let tables = ask("SELECT count(*) FROM sqlite_schema")?;
    let ours = ask("SELECT count(*) FROM sqlite_schema WHERE type = 'table' \
                    AND name IN ('campaign', 'session', 'subject', 'trial', 'sample')")?;
    let programs = ask("SELECT count(*) FROM sqlite_schema WHERE type IN ('view', 'trigger') \
                        OR sql LIKE 'CREATE VIRTUAL%'")?;
    if programs > 0 {
        return Err(LabError::ForeignDatabase { path: path.to_path_buf() });
    }
    match (application, version) {
        (0, 0) if tables == 0 => Ok(true),
        (0, 1..) if ours < 5 => Err(LabError::ForeignDatabase { path: path.to_path_buf() }),
        (0 | APPLICATION_ID, SCHEMA_VERSION) => Ok(false),
        (0, 1..) | (APPLICATION_ID, _) => {
            let (found, known) = (version, SCHEMA_VERSION);
            Err(LabError::SchemaVersion { path: path.to_path_buf(), found, known })
        }
        _ => Err(LabError::ForeignDatabase { path: path.to_path_buf() }),
    }
}

/// Refuses a folder with files, except for a database that is being made.
fn refuse_occupied(dir: &Path) -> Result<(), LabError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(LabError::file("list", dir))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(LabError::file("list", dir))?.file_name();
        found.push(name.to_string_lossy().into_owned());
    }
    // Another run made it meanwhile: it is inspected next.
    if found.iter().all(|name| name.starts_with(NAME)) {
        return Ok(());
    }
    found.sort();
    Err(LabError::Occupied { dir: dir.to_path_buf(), found })
}

/// Returns true if committed data may be in a log beside the file.
fn has_log(path: &Path) -> Result<bool, LabError> {
    for end in ["-wal", "-journal"] {
        let mut log = path.as_os_str().to_owned();
        log.push(end);
        if length(Path::new(&log))?.is_some_and(|length| length > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the length of a regular file; `None` if it does not exist.
fn length(path: &Path) -> Result<Option<u64>, LabError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found.len())),
        // Opening a pipe would wait for its writer.
        Ok(_) => Err(LabError::file("read", path)(io::Error::other("it is no regular file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::file("look at", path)(error)),
    }
}

/// Returns the URI by which SQLite assumes that a file does not change, and makes no lock and no log.
fn unchanging(path: &Path) -> Result<String, LabError> {
    let path = std::path::absolute(path).map_err(LabError::file("look at", path))?;
    Ok(format!("file://{}?immutable=1", escape(path)))
}
