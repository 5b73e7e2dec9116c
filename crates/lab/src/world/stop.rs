//! The flag by which signals, or a test, ask a run to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::LabError;

/// Tells the runner to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that SIGINT, SIGTERM and SIGHUP set. A second SIGINT or SIGTERM ends the process at
    /// once, as without a handler.
    ///
    /// A second SIGHUP does not: a terminal that goes sends one by the kernel and one by the shell,
    /// and nobody has lost patience. Who ignores SIGHUP (`nohup`) is not stopped by it.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub fn on_signals() -> Result<Self, LabError> {
        let flag = Self::default();
        let failed = |source| LabError::Process {
            action: "catch signals of",
            program: "this program".to_owned(),
            source,
        };
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the second signal must find the flag set by the first.
            flag::register_conditional_default(signal, Arc::clone(&flag.0))
                .and_then(|_| flag::register(signal, Arc::clone(&flag.0)))
                .map_err(failed)?;
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !is_ignored(SIGHUP, &status) {
            flag::register(SIGHUP, Arc::clone(&flag.0)).map_err(failed)?;
        }
        Ok(flag)
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a process ignores a signal, by its `/proc/PID/status`: a mask with bit 0 for signal 1.
fn is_ignored(signal: i32, status: &str) -> bool {
    let masks = status.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
    let mut masks = masks.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    masks.next().is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_mask() {
        let status =
            |mask: &str| format!("Name:\tbraid\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(is_ignored(SIGHUP, &status("0000000000001001")));
        assert!(!is_ignored(SIGHUP, &status("0000000000001000")), "that is SIGPIPE");
        assert!(!is_ignored(SIGHUP, &status("many")));
        assert!(!is_ignored(SIGHUP, ""));
    }
}
