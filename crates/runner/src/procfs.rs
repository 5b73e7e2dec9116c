//! Facts from `/proc`: children of this process, the processor time that they used, the load of the machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// A process, as `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// True if the process has ended and waits for its parent.
    pub has_ended: bool,
    /// Processor time of the process and of its children that it waited for.
    pub time: Duration,
}

/// Parses `/proc/PID/stat`; `ticks` is the kernel's clock ticks in a second.
fn parse_stat(text: &str, ticks: u64) -> Option<Usage> {
    // The program's name stands in parentheses and may hold any character.
    let rest = text.rsplit_once(')')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // proc(5): state is field 3; utime, stime, cutime, cstime are fields 14 to 17.
    let sum = (11..15).map(|at| fields.get(at)?.parse::<u64>().ok()).sum::<Option<u64>>()?;
    let time = Duration::from_millis(sum * 1000 / ticks);
    Some(Usage { has_ended: matches!(*fields.first()?, "Z" | "X"), time })
}

/// Usage of process `pid`; none if there is no such process.
pub fn usage(pid: u32) -> Option<Usage> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&text, rustix::param::clock_ticks_per_second())
}

/// Processor time of all children that this process has waited for.
pub fn time_of_children() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = rustix::param::clock_ticks_per_second();
    let fields: Vec<&str> =
        text.rsplit_once(')').map_or("", |two| two.1).split_whitespace().collect();
    let of = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((of(13) + of(14)) * 1000 / ticks)
}

/// Processes whose parent is this one, adopted ones included.
pub fn children() -> Vec<u32> {
    let me = std::process::id();
    let text = fs::read_to_string(format!("/proc/self/task/{me}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The value of `name` in the environment with which process `pid` was started; none if it has no such variable.
/// The outer option is none while that cannot be said: the process is about to execute its program, or has ended.
#[allow(clippy::option_option, reason = "not known yet, and known to be absent, differ")]
pub fn variable(pid: u32, name: &str) -> Option<Option<String>> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok().filter(|bytes| !bytes.is_empty())?;
    let value = |entry: &[u8]| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    Some(bytes.split(|byte| *byte == 0).find_map(value))
}

/// The command line of process `pid`, for people.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', " ")
}

/// Every process that was started with variable `name` set to a value for which `is_meant` holds.
pub fn all_with(name: &str, is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &u32| variable(*pid, name).flatten().is_some_and(|value| is_meant(&value));
    pids.filter(has).collect()
}

/// Bytes of memory that are free or can be freed at once.
pub fn memory_available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

/// Time that all processors were idle since the machine's start, summed.
pub fn idle(stat: &Path) -> Option<Duration> {
    let text = fs::read_to_string(stat).ok()?;
    parse_idle(&text, rustix::param::clock_ticks_per_second())
}

fn parse_idle(text: &str, ticks: u64) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // proc(5): user, nice, system, idle, iowait. A processor that waits for a disk is free, too.
    Some(Duration::from_millis((fields.get(3)? + fields.get(4)?) * 1000 / ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) b) Z 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1 0 0";
        let usage = parse_stat(line, 100).expect("a line of proc");
        assert_eq!(usage, Usage { has_ended: true, time: Duration::from_millis(1270) });
        assert_eq!(parse_stat("7 (a) S 1", 100), None);
    }

    #[test]
    fn idle_is_what_waits_for_disks_too() {
        assert_eq!(
            parse_idle("cpu  1 2 3 40 5 6\ncpu0 9\n", 100),
            Some(Duration::from_millis(450))
        );
        assert_eq!(parse_idle("intr 1\n", 100), None);
    }

    #[test]
    fn this_process_is_there_and_has_its_environment() {
        let me = std::process::id();
        assert!(usage(me).is_some_and(|usage| !usage.has_ended));
        let path = std::env::var("PATH").expect("a path");
        assert_eq!(variable(me, "PATH"), Some(Some(path)));
        assert_eq!(variable(me, "PAT"), Some(None));
        assert_eq!(variable(u32::MAX, "PATH"), None);
        assert!(!command_line(me).is_empty());
    }
}
