//! Processes: their processor time, and the bytes that they moved.
//!
//! Bytes come from `/proc/PID/io`: `read_bytes` and `write_bytes`, which count transfers to and from storage,
//! not hits of the page cache. When a process ends and is waited for, the kernel adds its counts to its
//! parent's. So bytes from before the first snapshot appear at the parent when the process ends, and have to be
//! subtracted there:
//!
//! ```text
//! first         cargo 1 GiB ── rustc 3 GiB
//! second        cargo 4 GiB                  grew by 3 GiB, of which 3 GiB are old: moved nothing
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Bytes below which a process is ignored.
const NOTABLE: u64 = 1 << 20;
/// Largest number of strangers that are named.
const NAMED: usize = 5;
/// `PF_KTHREAD` of the flags: kernel threads write back data of other processes.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Longest chain of parents that is followed; a longer one has changed during the read.
const GENERATIONS: usize = 64;

/// The contents of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessStat {
    /// Name of the program, at most 15 bytes.
    pub(super) name: String,
    /// The parent's process number.
    pub(super) parent: u32,
    /// True for a kernel thread.
    pub(super) is_kernel: bool,
    /// Processor time in ticks, threads that have ended included.
    pub(super) ticks: u64,
    /// Processor time of waited-for children and their descendants, in ticks.
    pub(super) children_ticks: u64,
    /// Start time in ticks since the machine started; distinguishes two processes with one number.
    pub(super) started: u64,
}

/// Parses `PID (NAME) STATE PPID ...`. The name may contain anything, so fields are counted from its end.
pub(super) fn parse_process(stat: &str) -> Option<ProcessStat> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(ProcessStat {
        name: name.to_owned(),
        parent: number(1)?.try_into().ok()?,
        is_kernel: number(6)? & KERNEL_THREAD != 0,
        ticks: number(11)?.checked_add(number(12)?)?,
        children_ticks: number(13)?.checked_add(number(14)?)?,
        started: number(19)?,
    })
}

/// Returns the bytes to and from storage in `/proc/PID/io`.
pub(super) fn parse_io(io: &str) -> Option<u64> {
    let field = |name: &str| {
        io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    field("read_bytes:")?.checked_add(field("write_bytes:")?)
}

/// A process that moved a notable number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mover {
    pub(super) bytes: u64,
    pub(super) stat: ProcessStat,
}

/// Processes that moved bytes so far, and the parents of processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Movers {
    /// By process number.
    pub(super) all: BTreeMap<u32, Mover>,
    /// The parents of those in `all`, and their ancestors, up to the first process.
    pub(super) parents: BTreeMap<u32, u32>,
}

/// Reads `/proc/PID/stat` of a process.
pub(super) fn read_process(proc: &Path, process: u32) -> Option<ProcessStat> {
    parse_process(&read(proc, process, "stat")?)
}

/// Reads a file of a process. A program's name need not be UTF-8.
fn read(proc: &Path, process: u32, file: &str) -> Option<String> {
    let bytes = fs::read(proc.join(process.to_string()).join(file)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads all processes: `io` of each, and `stat` of each that moved something, and of its ancestors.
pub(super) fn read_movers(proc: &Path) -> Option<Movers> {
    let mut movers = Movers::default();
    for entry in fs::read_dir(proc).ok()?.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let bytes = read(proc, process, "io").and_then(|io| parse_io(&io));
        if let Some(bytes) = bytes.filter(|bytes| *bytes >= NOTABLE)
            && let Some(stat) = read_process(proc, process)
        {
            movers.all.insert(process, Mover { bytes, stat });
        }
    }
    let mut wanted: Vec<u32> = Vec::new();
    for (process, mover) in &movers.all {
        movers.parents.insert(*process, mover.stat.parent);
        wanted.push(mover.stat.parent);
    }
    while let Some(process) = wanted.pop() {
        if process > 1 && !movers.parents.contains_key(&process) {
            let Some(stat) = read_process(proc, process) else { continue };
            movers.parents.insert(process, stat.parent);
            wanted.push(stat.parent);
        }
    }
    Some(movers)
}

impl Movers {
    /// Returns a process and its known ancestors.
    fn line_of(&self, process: u32) -> impl Iterator<Item = u32> {
        let parent = |process: &u32| self.parents.get(process).copied();
        std::iter::successors(Some(process), parent).take(GENERATIONS)
    }

    /// Returns true if a process is one of `roots` or a descendant.
    fn is_of(&self, process: u32, roots: &[u32]) -> bool {
        self.line_of(process).any(|one| roots.contains(&one))
    }

    /// Returns the processes that moved a notable number of bytes since an earlier snapshot, most first,
    /// without the kernel and without `own` processes and their descendants.
    pub(super) fn strangers_since(&self, earlier: &Self, own: &[u32]) -> Vec<(String, u64)> {
        let mut old: BTreeMap<u32, u64> =
            earlier.all.iter().map(|(process, mover)| (*process, mover.bytes)).collect();
        for (process, gone) in &earlier.all {
            if !self.is_same(*process, &gone.stat) {
                // The kernel has added its bytes to the nearest ancestor that is still there.
                old.remove(process);
                if let Some(heir) =
                    earlier.line_of(*process).skip(1).find(|one| self.all.contains_key(one))
                {
                    let inherited = old.entry(heir).or_default();
                    *inherited = inherited.saturating_add(gone.bytes);
                }
            }
        }
        let mut found: Vec<(String, u64)> = self
            .all
            .iter()
            .filter(|(process, mover)| !mover.stat.is_kernel && !self.is_of(**process, own))
            .filter(|(process, _)| !earlier.is_of(**process, own))
            .map(|(process, mover)| {
                let before = old.get(process).copied().unwrap_or(0);
                (mover.stat.name.clone(), mover.bytes.saturating_sub(before))
            })
            .filter(|(_, bytes)| *bytes >= NOTABLE)
            .collect();
        found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        found.truncate(NAMED);
        found
    }

    /// Returns true if a process of an earlier snapshot is still this one.
    fn is_same(&self, process: u32, then: &ProcessStat) -> bool {
        self.all.get(&process).is_some_and(|now| now.stat.started == then.started)
    }
}
