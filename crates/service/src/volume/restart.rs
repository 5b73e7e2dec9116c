//! Repairs after a crash, before clients are served, and reasons why a shard does not start.

use std::io;

use braid_cache::LogError;
use braid_engine::redundant::RestartError;
use braid_shell::shell_path;
use braid_uring::Executor;
use braid_wiring::Array;

use super::build::AtCache;
use super::cache_log::next_of_log;
use crate::control::ErrorCode;
use crate::failure::Failure;

/// Why a shard did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    #[error("a shard panicked: {0}")]
    Panicked(String),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{array}: {source}")]
    Restart { array: String, members: Vec<String>, source: RestartError },
    #[error("{log}, the log of {cache}: {source}")]
    Log { log: String, cache: String, source: LogError },
}

impl ShardError {
    /// The failure that says so.
    pub(super) fn failure(&self) -> Failure {
        match self {
            ShardError::Panicked(_) | ShardError::Io(_) => Failure::failed(self),
            ShardError::Restart { members, source: RestartError::Log { .. }, .. } => {
                let members: Vec<String> = members.iter().map(shell_path).collect();
                let members = members.join(" ");
                Failure::failed(self).next(format_args!(
                    "with the member that is missing; or, to copy what can be read, `braid assemble {members} \
                     --read-only`"
                ))
            }
            ShardError::Restart { source: RestartError::Write { .. }, .. } => {
                Failure::failed(self).next("look at the members: `dmesg` says what failed")
            }
            ShardError::Log { log, source, .. } => {
                Failure::refused(self).next(next_of_log(source, log)).code(ErrorCode::LogUnfit)
            }
        }
    }
}

/// Repairs an array after a crash, before it takes requests. The steps are in the volume's log, too, where the
/// reason of a slow start is looked for.
pub(super) fn restart(executor: &Executor, one: &Array) -> Result<(), ShardError> {
    let array = one.array.clone();
    let restarted = executor.block_on(async move { array.restart().await });
    let status = one.array.status();
    restarted.map_err(|source| {
        let members = status.members.iter().map(|member| member.label.clone()).collect();
        ShardError::Restart { array: one.name.clone(), members, source }
    })?;
    for (_, text) in &status.log {
        eprintln!("{}: {text}", one.name);
    }
    Ok(())
}

/// Writes to the origin what the log of a cache holds, before anybody may ask for anything.
pub(super) fn replay(executor: &Executor, one: &AtCache) -> Result<(), ShardError> {
    let cache = one.cache.clone();
    let replayed = executor.block_on(async move { cache.restart().await });
    let replayed = replayed.map_err(|source| {
        let (log, cache) = (one.log.clone(), one.text.clone());
        ShardError::Log { log, cache, source }
    })?;
    if replayed.is_some_and(|replayed| replayed.was_given_up) {
        eprintln!(
            "{}: it was given up when the origin had all of it: nothing was replayed, and it is made anew",
            one.log
        );
    }
    if let Some(offset) = replayed.and_then(|replayed| replayed.damaged) {
        eprintln!("{}: its superblock at byte {offset} was damaged; its copy counted", one.log);
    }
    if let Some(replayed) = replayed.filter(|replayed| replayed.records > 0 || replayed.is_torn) {
        let torn =
            if replayed.is_torn { "; the last one was cut off, and does not count" } else { "" };
        eprintln!(
            "{}: {} bytes in {} records were written to the origin{torn}",
            one.log, replayed.bytes, replayed.records
        );
    }
    Ok(())
}
