//! Other programs' use of a disk and of processors during a measurement, and the holes of a file.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use braid_probe::{FileKind, MemberFacts};

/// The share of a file that is holes, if that is more than a hundredth; `None` for a block device.
pub(super) fn holes(facts: &MemberFacts) -> io::Result<Option<f64>> {
    if facts.kind != FileKind::Regular || facts.size == 0 {
        return Ok(None);
    }
    // `st_blocks` counts 512 bytes on every file system: stat(2).
    let there = fs::metadata(&facts.path)?.blocks() * 512;
    let share = 1.0 - there as f64 / facts.size as f64;
    Ok((share > 0.01).then_some(share))
}

/// Returns the requests per second of the kernel's disk `name` without load from this process;
/// `None` if the kernel does not count them.
pub(super) fn requests(name: &str, during: Duration) -> io::Result<Option<f64>> {
    let began = Instant::now();
    let Some(before) = answered(&fs::read_to_string("/proc/diskstats")?, name) else {
        return Ok(None);
    };
    std::thread::sleep(during);
    let after = answered(&fs::read_to_string("/proc/diskstats")?, name);
    let seconds = began.elapsed().as_secs_f64();
    Ok(after.map(|after| after.saturating_sub(before) as f64 / seconds))
}

/// Reads and writes that were completed (Documentation/admin-guide/iostats.rst: fields 1 and 5).
fn answered(diskstats: &str, name: &str) -> Option<u64> {
    let mut lines = diskstats.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let line = lines.find(|line| line.get(2) == Some(&name))?;
    let number = |index: usize| line.get(index)?.parse::<u64>().ok();
    Some(number(3)? + number(7)?)
}

/// The processors of this machine since a moment.
pub(super) struct Processors {
    began: Instant,
    /// Microseconds in which a task waited: Documentation/accounting/psi.rst.
    waited_us: Option<u64>,
    /// Ticks at work, and in all: proc_stat(5).
    ticks: Option<(u64, u64)>,
}

impl Processors {
    /// Begins to watch.
    pub(super) fn watch() -> Processors {
        let (waited_us, ticks) = (waited_us(&read("pressure/cpu")), ticks(&read("stat")));
        Processors { began: Instant::now(), waited_us, ticks }
    }

    /// Returns the share of the time since then in which a task waited for a processor, from 0 to 1. A kernel
    /// without pressure information counts ticks: the share in which all processors would be at work, if each was
    /// so independently of the others.
    pub(super) fn waits(&self) -> f64 {
        if let Some((before, after)) = self.waited_us.zip(waited_us(&read("pressure/cpu"))) {
            let since_us = self.began.elapsed().as_micros().max(1) as f64;
            return (after.saturating_sub(before) as f64 / since_us).min(1.0);
        }
        let Some((before, after)) = self.ticks.zip(ticks(&read("stat"))) else { return 0.0 };
        let all = after.1.saturating_sub(before.1).max(1) as f64;
        let busy = after.0.saturating_sub(before.0) as f64 / all;
        busy.powf(std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64))
    }
}

/// A file of /proc; empty if it cannot be read, as in a container that hides it.
fn read(name: &str) -> String {
    fs::read_to_string(Path::new("/proc").join(name)).unwrap_or_default()
}

fn waited_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    some.split_once("total=")?.1.trim().parse().ok()
}

/// Ticks of all processors at work, and in all.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    // What guests had is within what users had.
    let fields = fields.take(8).map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let all = fields.iter().sum::<u64>();
    Some((all - fields.get(3)? - fields.get(4)?, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_processors_are_read() {
        let pressure = "some avg10=1.53 avg60=0.87 avg300=0.73 total=62\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!((waited_us(pressure), waited_us("")), (Some(62), None));
        let stat = "cpu  10 1 4 80 5 1 2 3 7 0\ncpu0 10 1 4 80 5 1 2 3 7 0\n";
        assert_eq!(
            (ticks(stat), ticks("cpu0 1 2 3 4 5"), ticks("")),
            (Some((21, 106)), None, None)
        );
    }

    #[test]
    fn reads_and_writes_are_counted_by_the_whole_name() {
        let text = "   8       0 sda 10 1 80 5 20 2 160 9 0 7 14\n   8       1 sda1 1 0 8 0 2 0 16 0 0 0 0\n";
        assert_eq!(answered(text, "sda"), Some(30));
        assert_eq!(answered(text, "sda1"), Some(3));
        assert_eq!(answered(text, "sd"), None);
        assert_eq!(answered("   8       0 sda 10\n", "sda"), None);
    }
}
