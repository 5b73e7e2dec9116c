//! `/proc/meminfo`.

use std::fs;

/// Returns the memory that programs can still get without swapping, in bytes.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    find_line(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

pub(crate) fn find_memory_bytes(meminfo: &str) -> Option<u64> {
    find_line(meminfo, "MemTotal:")
}

fn find_line(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}
