//! Telling processes apart, and waiting for their end.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A process, also after its number was given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: i32,
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
}

impl Process {
    /// This one.
    pub fn this() -> Process {
        let pid = std::process::id().cast_signed();
        Process { pid, start_ticks: start_ticks(pid).unwrap_or(0) }
    }

    /// True if it runs.
    pub fn runs(self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// Its number, while it runs.
    pub fn id(self) -> Option<u32> {
        self.runs().then(|| self.pid.unsigned_abs())
    }

    /// Waits for its end, but not longer than `limit`; answers whether it has ended.
    pub fn wait(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.runs() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Ends it without asking, and waits for that.
    pub fn kill(self) -> bool {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid)
            && self.runs()
        {
            // It may have gone since: that is what is wanted.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.wait(Duration::from_secs(10))
    }
}

/// True if a process has been killed, or has ended, and is exiting: its open files will be closed without any
/// further action.
pub fn is_ending(pid: u32) -> bool {
    // A process that no longer exists counts as well.
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    is_ending_by(&status)
}

/// The same, by the text of `/proc/PID/status`.
fn is_ending_by(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let is_dead = field("State:").is_some_and(|state| state.trim().starts_with(['Z', 'X']));
    // Pending signals, of the thread and of the process, as bits from 1 on.
    let is_killed = |name| {
        let bits = field(name).and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        bits.is_some_and(|bits| bits & 1 << (9 - 1) != 0)
    };
    is_dead || is_killed("SigPnd:") || is_killed("ShdPnd:")
}

/// Field 22 of `/proc/PID/stat`, for a process that has not ended. One whose first thread has
/// ended keeps its files open until the others have, too.
fn start_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in field 2 may contain anything, but nothing behind it a parenthesis.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "X" || (state == "Z" && threads(pid) <= 1) {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn threads(pid: i32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_killed_is_ending_and_one_that_sleeps_is_not() {
        let status = |state: &str, own: &str, shared: &str| {
            format!("Name:\tbraid\nState:\t{state}\nSigPnd:\t{own}\nShdPnd:\t{shared}\n")
        };
        let none = "0000000000000000";
        assert!(!is_ending_by(&status("S (sleeping)", none, none)));
        assert!(!is_ending_by(&status("D (disk sleep)", none, "0000000000004000")));
        assert!(is_ending_by(&status("D (disk sleep)", none, "0000000000000100")));
        assert!(is_ending_by(&status("R (running)", "0000000000000100", none)));
        assert!(is_ending_by(&status("Z (zombie)", none, none)));
        assert!(!is_ending(std::process::id()));
    }
}
