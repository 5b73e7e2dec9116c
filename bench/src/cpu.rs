//! Processor time of a process: user and system, all threads, also those that have ended.
//!
//! From the process's own clock (`clock_getcpuclockid`), which counts in nanoseconds where
//! `/proc/PID/stat` counts in ticks of 10 ms, and which keeps the time of threads that have
//! ended where `/proc/PID/task/*/schedstat` loses it: nbdkit makes threads for every connection.
//!
//! The work of the kernel for a process in threads of its own (kworkers of loop devices) is not
//! in it.

use std::process::{Command, Stdio};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{Error, Result};

/// Processor time that process `pid` has used so far, in nanoseconds.
///
/// # Errors
/// If there is no such process.
pub fn process_ns(pid: u32) -> Result<u64> {
    let now = clock_getcpuclockid(Pid::from_raw(pid as i32)).and_then(ClockId::now);
    let failed = Error::io(format!("processor time of process {pid}"));
    let time = now.map_err(|errno| failed(errno.into()))?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Processor time that this thread has used so far, in nanoseconds.
///
/// # Errors
/// None is documented.
pub fn thread_ns() -> Result<u64> {
    let now = ClockId::CLOCK_THREAD_CPUTIME_ID.now();
    let time = now.map_err(|errno| Error::io("processor time")(errno.into()))?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Keeps this thread, and the programs it starts from now on, on one processor.
///
/// # Errors
/// The error of the kernel.
pub fn stay_on_one_core() -> Result<()> {
    let failed = || Error::io("processor affinity");
    let allowed = sched_getaffinity(None).map_err(|errno| failed()(errno.into()))?;
    // The last one: the first is where interrupts usually go.
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu));
    let mut one = CpuSet::new();
    one.set(last.ok_or_else(|| Error::Unexpected("no processor is allowed".into()))?);
    sched_setaffinity(None, &one).map_err(|errno| failed()(errno.into()))
}

/// Has this thread, and the programs it starts from now on, run before others where that is
/// allowed: for measurements in wall time that mostly wait, of what is woken in time.
pub fn go_first() {
    // As a real-time thread: beside many others even a negative nice value comes milliseconds late.
    let own = std::process::id().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["--fifo", "--pid", "1", &own]).stdout(Stdio::null()).stderr(Stdio::null());
    if !chrt.status().is_ok_and(|status| status.success()) {
        // Without the right to either, the figures are noisier and no less true.
        let _ = setpriority_process(None, -20);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn the_time_of_ended_threads_is_kept() {
        let before = process_ns(std::process::id()).unwrap();
        let spun = std::thread::spawn(|| {
            for number in 0..20_000_000u64 {
                black_box(number);
            }
            thread_ns().unwrap()
        })
        .join()
        .unwrap();
        let used = process_ns(std::process::id()).unwrap() - before;
        assert!(spun > 0 && used >= spun, "{used} ns of which one thread {spun}");
    }
}
