//! One look at all volumes, and at the machine's memory.
//!
//! They are asked one after the other, which costs least, until one does not answer at once: it and those after
//! it, and those that kept silent last time, are asked all together. So a look takes at most as long as one
//! that keeps silent is waited for (5 s), and a moment, however many do.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use braid_control::{ControlError, Named, Status, get_status_within, get_statuses, volumes};

use crate::watch::{Memory, Observation, Seen};

/// A volume that is on its way down, or up, has its socket for a moment without answering.
const MOMENT: Duration = Duration::from_millis(300);

/// Looks at the volumes in `run`; `before` is what was seen last.
pub(crate) fn observe(run: &Path, before: &Observation) -> io::Result<Observation> {
    let kept_silent = |one: &Named| matches!(before.volumes.get(&one.name), Some(seen) if !matches!(seen, Seen::Up(_)));
    let (silent, usual): (Vec<Named>, Vec<Named>) =
        volumes(run)?.into_iter().partition(kept_silent);
    let mut seen = BTreeMap::new();
    let mut doubtful = Vec::new();
    let mut usual = usual.into_iter();
    for one in usual.by_ref() {
        match judge(get_status_within(&one.socket, MOMENT)) {
            Seen::Dead(_) => doubtful.push(one),
            Seen::Silent(_) => {
                doubtful.push(one);
                break;
            }
            answer => drop(seen.insert(one.name, answer)),
        }
    }
    doubtful.extend(usual);
    if !doubtful.is_empty() {
        std::thread::sleep(MOMENT);
    }
    let again: Vec<Named> =
        doubtful.into_iter().chain(silent).filter(|one| one.socket.exists()).collect();
    let sockets: Vec<_> = again.iter().map(|one| one.socket.clone()).collect();
    let answers = get_statuses(&sockets).into_iter().map(judge);
    seen.extend(again.into_iter().map(|one| one.name).zip(answers));
    Ok(Observation { volumes: seen, memory: memory() })
}

fn judge(answer: Result<Status, ControlError>) -> Seen {
    match answer {
        // What it says besides is not of now.
        Ok(status) if status.state == "stalled" => {
            Seen::Silent(status.why.unwrap_or_else(|| "what serves it does not answer".to_owned()))
        }
        Ok(status) => Seen::Up(Box::new(status)),
        Err(ControlError::Unreachable(error))
            if error.kind() == io::ErrorKind::PermissionDenied =>
        {
            Seen::Unreadable(error.to_string())
        }
        Err(ControlError::Unreachable(error)) => {
            Seen::Dead(format!("its process is gone, and was not told to go ({error})"))
        }
        Err(error @ ControlError::TimedOut(_)) => Seen::Silent(error.to_string()),
        Err(error) => Seen::Unreadable(error.to_string()),
    }
}

/// By `/proc/meminfo`.
fn memory() -> Option<Memory> {
    parse_memory(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_memory(text: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    Some(Memory { total: bytes("MemTotal:")?, available: bytes("MemAvailable:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "MemTotal:        8000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n";
        let memory = Memory { total: 8000 * 1024, available: 4000 * 1024 };
        assert_eq!(parse_memory(text), Some(memory));
        assert_eq!(parse_memory("MemTotal: 8000 kB\n"), None);
        assert_eq!(parse_memory("MemTotal: 8000 kB\nMemAvailable: 9 MB\n"), None);
    }

    #[test]
    fn a_folder_of_sockets_that_nobody_answers_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let nothing =
            observe(&folder.path().join("none"), &Observation::default()).expect("a look");
        assert!(nothing.volumes.is_empty());
        drop(std::os::unix::net::UnixListener::bind(folder.path().join("home.sock")));
        let seen = observe(folder.path(), &Observation::default()).expect("a look");
        assert!(matches!(seen.volumes["home"], Seen::Dead(_)), "{seen:?}");
        let seen = observe(folder.path(), &seen).expect("a look");
        assert!(matches!(seen.volumes["home"], Seen::Dead(_)), "{seen:?}");
    }

    /// Sockets whose process is stopped: the kernel accepts the connection, and no process reads from it.
    #[test]
    fn those_that_keep_silent_are_waited_for_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let names: Vec<String> = (0..12).map(|number| format!("v{number:02}")).collect();
        let _silent: Vec<_> = names
            .iter()
            .map(|name| folder.path().join(format!("{name}.sock")))
            .map(|path| std::os::unix::net::UnixListener::bind(path).expect("a socket"))
            .collect();
        let began = std::time::Instant::now();
        let seen = observe(folder.path(), &Observation::default()).expect("a look");
        assert!(seen.volumes.values().all(|seen| matches!(seen, Seen::Silent(_))), "{seen:?}");
        assert_eq!(seen.volumes.len(), names.len());
        // One after the other would be a minute.
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
