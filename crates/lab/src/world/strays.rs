//! Processes of a killed run: found by a variable in their environment, which names the results folder and is
//! inherited by children.
//!
//! A signal at the parent's death (`PR_SET_PDEATHSIG`) is not enough: it reaches children but not theirs, and a
//! volume has to outlive the `braid up` that starts it. The search that finds volumes also finds the rest.
//!
//! Starting a process records nothing, so no process can be missed; and a reused process number does no harm.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::LabError;

/// The name of the variable.
pub(super) const MARK: &str = "BRAID_LAB_RESULTS";
/// Time for processes to end after SIGTERM, and again after SIGKILL.
const GRACE: Duration = Duration::from_secs(10);
/// Interval of searches meanwhile.
const POLL: Duration = Duration::from_millis(20);

/// Ends all processes with the mark; `but_volumes` spares braid's volumes. Returns their number.
///
/// # Errors
///
/// A process does not end.
pub(super) fn end_strays(mark: &OsString, but_volumes: bool) -> Result<usize, LabError> {
    let found = find(mark, but_volumes)?;
    let count = found.len();
    for signal in [Signal::TERM, Signal::KILL] {
        let deadline = Instant::now() + GRACE;
        let mut left = find(mark, but_volumes)?;
        for (_, process) in &left {
            // A process that has ended by itself is fine.
            let _ = pidfd_send_signal(process, signal);
        }
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(POLL);
            left = find(mark, but_volumes)?;
        }
        if left.is_empty() {
            return Ok(count);
        }
    }
    let numbers = find(mark, but_volumes)?;
    let numbers: Vec<String> =
        numbers.iter().map(|(pid, _)| pid.as_raw_nonzero().to_string()).collect();
    Err(LabError::LeftBehind {
        subject: "an earlier run".to_owned(),
        reason: "its processes do not end".to_owned(),
        next: format!("kill -9 {}", numbers.join(" ")),
    })
}

/// Returns the running processes with the mark.
fn find(mark: &OsString, but_volumes: bool) -> Result<Vec<(Pid, OwnedFd)>, LabError> {
    let folder = Path::new("/proc");
    let entries = fs::read_dir(folder).map_err(LabError::file("read", folder))?;
    let mut wanted = format!("{MARK}=").into_bytes();
    wanted.extend_from_slice(mark.as_bytes());
    let own = rustix::process::getpid();
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter_map(Pid::from_raw).filter(|pid| *pid != own);
    Ok(pids.filter_map(|pid| Some((pid, look_at(pid, &wanted, but_volumes)?))).collect())
}

/// Returns a hold on the process if it has the mark. The hold is taken before the process is examined, so both
/// refer to the same one. Processes of other users cannot be examined, and belong to other runs.
fn look_at(pid: Pid, wanted: &[u8], but_volumes: bool) -> Option<OwnedFd> {
    let hold = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let read = |name: &str| fs::read(format!("/proc/{}/{name}", pid.as_raw_nonzero())).ok();
    // A zombie has no environment any more.
    let is_marked = read("environ")?.split(|byte| *byte == 0).any(|word| word == wanted);
    let is_volume = || {
        let words = read("cmdline").unwrap_or_default();
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        program.ends_with(b"braid-volume")
    };
    (is_marked && !(but_volumes && is_volume())).then_some(hold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandLine, Exit};
    use crate::world::process::Process;

    #[test]
    fn those_with_the_mark_end_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        // Named like a volume's process, from its start on.
        let program = dir.path().join("braid-volume");
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let volume = CommandLine::new(program.to_str().unwrap()).arg("1000");
        let sleep = CommandLine::new("sleep").arg("1000");
        let (mine, other) = (dir.path().join("a"), dir.path().join("a-b"));
        let (mine, other) = (mine.into_os_string(), other.into_os_string());
        let start = |command, mark| Process::start(command, mark).unwrap();
        let ended = |mut process: Process| {
            process.look(false).unwrap();
            assert!(!process.runs());
            process.finished().unwrap().0.exit
        };
        let stray = start(&sleep, Some(&mine));
        let mut served = start(&volume, Some(&mine));
        let mut others = [start(&sleep, Some(&other)), start(&sleep, None)];

        assert_eq!(end_strays(&mine, true).unwrap(), 1);
        assert_eq!(ended(stray), Exit::Signal(15));
        served.look(false).unwrap();
        assert!(served.runs(), "volumes are spared");
        assert_eq!(end_strays(&mine, false).unwrap(), 1);
        assert_eq!(ended(served), Exit::Signal(15));
        assert_eq!(end_strays(&mine, false).unwrap(), 0);
        for process in &mut others {
            process.look(false).unwrap();
            assert!(process.runs(), "its mark is another");
        }
    }
}
