//! Regular files and block devices, whole or a part of them.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_device::{Access, File, Metered};
use braid_engine::Dev;
use braid_probe::{Holder, Place};
use braid_uring::{ExecutorClock, Failures};

use crate::kind::{Kind, MemberError, OnShard};

/// Said of a file that cannot be found again.
const GOES: &str = "what it holds goes when the volume goes down";

/// Time for which a locked file is waited for: a process that was killed lets go of its members as one of the last
/// things that it does.
const DYING: Duration = Duration::from_secs(2);
/// Time between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// Opens `length` bytes from `offset` on of the member that is called `path`.
///
/// # Errors
/// [`MemberError::Locked`] only for a file that stays locked.
pub fn open_file(
    path: &Path,
    access: Access,
    offset: u64,
    length: Option<u64>,
) -> Result<File, MemberError> {
    let deadline = Instant::now() + DYING;
    let cannot = |source| MemberError::Open { path: path.to_owned(), source };
    let place = Place::of(path).map_err(|error| cannot(io::Error::other(error.to_string())))?;
    let part_of = |file: File| match (place.start, place.length, offset, length) {
        (0, None, 0, None) => Ok(file),
        _ => {
            let behind = place.size_in(file.size())?.saturating_sub(offset);
            file.part(place.start.saturating_add(offset), Some(length.unwrap_or(behind)))
        }
    };
    loop {
        match File::open(&place.path, access, 0, None) {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline =>
            {
                std::thread::sleep(RETRY);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(MemberError::Locked { path: path.to_owned(), by: locked_by(path) });
            }
            Err(source) => return Err(cannot(source)),
            Ok(file) => return part_of(file).map_err(cannot),
        }
    }
}

/// The process that has a file locked, as far as that can be seen: `, by braid (pid 12)`.
fn locked_by(path: &Path) -> String {
    let holders = braid_probe::find_users(path).map(|usage| usage.holders).unwrap_or_default();
    let process = holders.iter().find_map(|holder| match holder {
        Holder::Process { pid, command, .. } => Some(format!(", by {command} (pid {pid})")),
        _ => None,
    });
    process.unwrap_or_default()
}

impl Kind for File {
    fn limits(&self) -> Limits {
        self.limits()
    }

    fn size(&self) -> u64 {
        self.size()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, bytes)
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        let (device, deadline) =
            (self.device(shard.handle, shard.pool)?, shard.deadline(self.failures()));
        Ok(Dev::new(Metered::new(device, shard.label, shard.tally, tasks, deadline)))
    }

    fn path(&self, label: &str) -> Option<String> {
        let is_it = Path::new(label) == self.path() || label.starts_with("part(");
        is_it.then(|| label.to_owned())
    }

    fn is_at(&self, path: &Path) -> bool {
        let leads =
            || Some(braid_probe::leads_to(path, self.identity().ok()?.0).ok()? == Some(true));
        self.path() == path || leads() == Some(true)
    }

    fn vanished(&self) -> Option<&'static str> {
        self.vanished()
    }

    fn gone(&self) -> Option<String> {
        if let Some(why) = self.vanished() {
            return Some(why.to_owned());
        }
        // What cannot be found out is not said.
        let (identity, links) = self.identity().ok()?;
        if links == 0 {
            return Some(format!("its file was deleted while the volume is up: {GOES}"));
        }
        let there = braid_probe::leads_to(self.path(), identity).ok()?;
        (there == Some(false))
            .then(|| format!("another file, or none, lies at its path now: {GOES}"))
    }

    fn is_direct(&self) -> Option<bool> {
        Some(self.is_direct())
    }

    fn is_writable_image(&self) -> bool {
        !self.is_block_device() && !self.limits().read_only
    }

    fn failures(&self) -> Option<&Arc<Failures>> {
        Some(self.failures())
    }
}
