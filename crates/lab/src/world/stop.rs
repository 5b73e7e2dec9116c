//! The flag by which signals, or a test, ask a run to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::error::LabError;

/// Time within which signals are one request: `timeout` sends two, to the process and to its group.
const TOGETHER: Duration = Duration::from_secs(1);

/// Tells the runner to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that SIGINT, SIGTERM and SIGHUP set. Another SIGINT or SIGTERM a second later or more
    /// ends the process at once, as without a handler.
    ///
    /// Another SIGHUP never does: a closed terminal sends one by the kernel and one by the shell, without a
    /// second request of the user. A process that ignores SIGHUP (`nohup`) is not stopped by it.
    ///
    /// # Errors
    ///
    /// The handlers cannot be installed.
    pub fn on_signals() -> Result<Self, LabError> {
        let failed = |source| LabError::Process {
            action: "catch signals of",
            program: "this program".to_owned(),
            source,
        };
        let mut wanted = vec![SIGINT, SIGTERM];
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if !is_ignored(SIGHUP, &status) {
            wanted.push(SIGHUP);
        }
        let signals = Signals::new(wanted).map_err(failed)?;
        let flag = Self::default();
        let own = flag.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || own.watch(signals))
            .map_err(failed)?;
        Ok(flag)
    }

    fn watch(&self, mut signals: Signals) {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            self.set();
            let since = first.get_or_insert_with(Instant::now).elapsed();
            if is_impatient(signal, since) {
                // It fails only for signals without a default, and these have one.
                let _ = emulate_default_handler(signal);
            }
        }
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if a stop was requested.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns true if a signal so long after the first is a second request.
fn is_impatient(signal: i32, since_the_first: Duration) -> bool {
    signal != SIGHUP && since_the_first >= TOGETHER
}

/// Returns true if a process ignores a signal, by its `/proc/PID/status`: a mask with bit 0 for signal 1.
fn is_ignored(signal: i32, status: &str) -> bool {
    let masks = status.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
    let mut masks = masks.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    masks.next().is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_come_together_are_one_wish() {
        let at = Duration::from_millis;
        assert!(!is_impatient(SIGTERM, at(0)), "the first");
        assert!(!is_impatient(SIGTERM, at(20)) && !is_impatient(SIGINT, at(999)));
        assert!(is_impatient(SIGTERM, at(1000)) && is_impatient(SIGINT, at(60_000)));
        assert!(!is_impatient(SIGHUP, at(60_000)));
    }

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
