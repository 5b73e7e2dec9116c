//! What others do to a disk meanwhile, and what of a file no disk has.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
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

/// Requests a second that the kernel's disk `name` answers while nothing is asked from here; `None` if it
/// counts none for it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_counted_by_the_whole_name() {
        let text = "   8       0 sda 10 1 80 5 20 2 160 9 0 7 14\n   8       1 sda1 1 0 8 0 2 0 16 0 0 0 0\n";
        assert_eq!(answered(text, "sda"), Some(30));
        assert_eq!(answered(text, "sda1"), Some(3));
        assert_eq!(answered(text, "sd"), None);
        assert_eq!(answered("   8       0 sda 10\n", "sda"), None);
    }
}
