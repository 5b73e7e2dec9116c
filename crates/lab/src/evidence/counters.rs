//! Parsers of the kernel's counters of devices and processors.

use super::Moved;

/// `/proc/diskstats` counts in units of 512 bytes whatever the device's own block is.
const SECTOR: u64 = 512;

/// Returns the counters of a block device in `/proc/diskstats`.
///
/// ```text
/// 8 16 sdb  reads merged SECTORS ms  writes merged SECTORS ms  in-flight BUSY-MS ...
/// ```
pub(super) fn find_disk(diskstats: &str, name: &str) -> Option<Moved> {
    let mut lines = diskstats.lines().map(str::split_ascii_whitespace);
    let mut fields = lines.find_map(|mut fields| (fields.nth(2)? == name).then_some(fields))?;
    let mut number = |skip: usize| fields.nth(skip)?.parse::<u64>().ok();
    Some(Moved {
        read_bytes: number(2)?.checked_mul(SECTOR)?,
        written_bytes: number(3)?.checked_mul(SECTOR)?,
        busy_ms: number(2)?,
    })
}

/// Processor time of the whole machine, in ticks since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Processors {
    /// Ticks in which a processor was busy, or was taken away by a hypervisor: no other process could have had
    /// that time.
    pub(super) busy: u64,
    /// All ticks.
    pub(super) total: u64,
    /// Number of processors.
    pub(super) count: u32,
}

/// Parses `/proc/stat`: `cpu user nice system idle iowait irq softirq steal guest guest_nice`. Guests' time is
/// included in `user`.
pub(super) fn parse_processors(stat: &str) -> Option<Processors> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> =
        all.split_ascii_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let sum = |values: &[u64]| values.iter().try_fold(0_u64, |sum, &value| sum.checked_add(value));
    let total = sum(ticks.get(..8)?)?;
    let idle = sum(ticks.get(3..5)?)?;
    let is_one = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let count = stat.lines().filter(is_one).count() as u32;
    Some(Processors { busy: total - idle, total, count })
}

impl Processors {
    /// Returns the used share of the time since an earlier value, 0 to 1; `None` if no time passed.
    pub(super) fn busy_since(&self, earlier: &Self) -> Option<f64> {
        let busy = self.busy.checked_sub(earlier.busy)?;
        let total = self.total.checked_sub(earlier.total).filter(|ticks| *ticks > 0)?;
        // The kernel's idle time can be corrected backwards by a tick.
        Some((busy as f64 / total as f64).min(1.0))
    }
}
