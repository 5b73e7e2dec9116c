//! Measures that keep a process that serves a block device to its own kernel from waiting for memory that
//! only its own progress can free.
//!
//! ```text
//!   before the shards    one heap; the kernel told (PR_SET_IO_FLUSHER), where it listens; no limit
//!                        that could end this process
//!   shards start         pools and reserves locked; stacks touched; where the kernel does not listen, threads
//!                        for what blocks started, and what it keeps of requests made
//!   before attaching     a reserve of heap; all of heap and program there, and locked
//! ```
//!
//! The kernel is told by each thread for itself and those that it starts: before there are others.
//!
//! A limit on the memory of a cgroup is another matter. A file system that finds room for what is
//! written to a member (a hole, a copy on write) has its notes charged to the cgroup of the
//! writer: this process. When writers in the same cgroup have filled it with what they wrote to
//! the volume, that charge fails, the kernel ends the largest process, and that is this one: what is
//! mounted on the volume waits for ever. Block devices as members take no such room.
//!
//! Invariant: a volume is attached only when its memory is held, and no limit can end it, or if
//! that was asked for by name (`--attach fuse`). What this machine does not give, whichever the
//! volume, `braid doctor` says.
//!
//! Deliberately absent: memory of RAM disks, which is taken as they are written: for such members
//! nothing is guaranteed, and a status says how many page faults there were.

use std::io;
use std::sync::OnceLock;

use braid_mem::{Buf, Pool, steady};
use braid_stack::{ByteSize, Node, Stack};
use braid_uring::Workers;

use super::budget::TooLittle;
use super::promises;
use super::spec::Attach;
use crate::cgroup;

/// More than a shard ever has on its stack, in bytes.
const SHARD_STACK: usize = 1 << 20;

/// Returns true if the kernel knows that this process serves a block device: asked once, because it is the
/// first thread that must ask.
static FLUSHER: OnceLock<Result<(), i32>> = OnceLock::new();

fn flusher() -> Result<(), io::Error> {
    let set = || {
        braid_sys::process::set_io_flusher()
            .map_err(|error| error.raw_os_error().unwrap_or_default())
    };
    FLUSHER.get_or_init(set).map_err(io::Error::from_raw_os_error)
}

/// Freed heap that a volume for clients keeps for the next burst of requests, in bytes: TLS has 256 KiB of records.
const FREED: i32 = 2 << 20;
/// The same of a volume over images of Ceph: librbd receives into its heap what large reads ask for.
const FREED_BY_CEPH: i32 = 32 << 20;

/// For the start of the process of a volume with this `stack`, before it has other threads.
pub(super) fn prepare(attach: Attach, stack: &Stack) {
    if !attach.attaches() {
        let is_ceph = |(one, _): (&Stack, bool)| matches!(one.node, Node::Rbd(_));
        let has_ceph = stack.remotes().into_iter().any(is_ceph);
        return steady::keep_freed(if has_ceph { FREED_BY_CEPH } else { FREED });
    }
    steady::one_heap();
    // What comes of it is asked again below.
    let _ = flusher();
}

/// The threads that wait for members in a shard of a volume that will be attached, or not.
pub(super) fn workers(attaches: bool) -> Workers {
    match attaches && flusher().is_err() {
        true => Workers::Own,
        false => Workers::Kernel,
    }
}

/// For the thread of a shard, before it builds anything.
pub(super) fn prepare_shard() {
    steady::touch_stack(SHARD_STACK);
}

/// Lets pools of this thread begin small, where what they need later can be had: no limit of a cgroup must be
/// shared with processes that write to an attached volume, and no limit on locked memory.
///
/// # Errors
/// No thread for that.
pub(super) fn let_pools_grow(attach: Attach) -> io::Result<()> {
    let can_have_more = !attach.attaches() || (may_lock() && cgroup::memory_limit().is_none());
    if can_have_more { braid_mem::let_pools_grow() } else { Ok(()) }
}

/// Keeps the memory of a shard in place: its pool, and a `reserve` of so many bytes, if any.
///
/// # Errors
/// No memory, or it cannot be locked.
pub(super) fn lock(pool: &Pool, reserve: usize) -> io::Result<()> {
    pool.lock()?;
    if reserve == 0 {
        return Ok(());
    }
    let reserve = Pool::new(reserve)?;
    Buf::keep_reserve(reserve.clone());
    reserve.lock()
}

/// Checks whether a limit on memory can end a volume that will be attached; `files` are the members that lie
/// in file systems, and are written. Before anything is written: a refusal leaves all as it was.
/// Answers what is to be said of it.
///
/// # Errors
/// The limit can end it, and the user did not ask for the volume to be attached anyway.
pub(super) fn check_limit(attach: Attach, files: &[String]) -> Result<Option<String>, NotHeld> {
    let (Some(limit), [first, others @ ..]) = (cgroup::memory_limit(), files) else {
        return Ok(None);
    };
    let limited = Limited { limit: ByteSize(limit), file: first.clone(), others: others.len() };
    match attach.is_by_name() {
        true => Ok(Some(limited.to_string())),
        false => Err(NotHeld::Limited(limited)),
    }
}

/// Returns the largest size of a RAM disk: all that the machine has. Its addresses are reserved for that;
/// under a limit on locked memory, which counts addresses, none are, where all will be locked.
pub(super) fn most_ram(attach: Attach) -> u64 {
    if attach.attaches() && !may_lock() { 0 } else { promises::total_memory() }
}

/// Returns true if no limit on locked memory holds for this process.
fn may_lock() -> bool {
    braid_sys::process::locked_memory_limit().is_ok_and(|limit| limit.is_none())
        || has_capability(CAP_IPC_LOCK)
}

/// `CAP_IPC_LOCK` of capabilities(7).
const CAP_IPC_LOCK: u32 = 14;

fn has_capability(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits >> number & 1 != 0)
}

/// Holds all that serving takes, and `heap` bytes for requests to come; answers what is not as it should be.
///
/// # Errors
/// Memory cannot be locked, and the user did not ask for the volume to be attached anyway.
pub(super) fn hold(attach: Attach, heap: usize) -> Result<Vec<String>, NotHeld> {
    let mut warnings = Vec::new();
    steady::fill_heap(heap);
    if let Err(error) = steady::touch_memory() {
        warnings.push(format!(
            "the memory of the program was not touched ({error}): under memory pressure, writing \
             to the device may stall"
        ));
    }
    // Under a limit, what is mapped later would fail instead of being paged out.
    let unlimited = braid_sys::process::locked_memory_limit().is_ok_and(|limit| limit.is_none());
    match steady::lock(unlimited || steady::lock(true).is_ok()) {
        Ok(()) => {}
        Err(source) if attach.is_by_name() => warnings.push(format!(
            "the program could not be locked in memory ({source}): under memory pressure, \
             writing to the device may stall for good (`braid doctor` says what to do)"
        )),
        Err(source) => return Err(NotHeld::Unlocked(source)),
    }
    Ok(warnings)
}

/// Why memory is not there when it must be.
#[derive(Debug, thiserror::Error)]
pub enum NotHeld {
    #[error(
        "the volume's memory cannot be locked ({0}), and a block device that is served without that \
         can stall the machine when memory is short"
    )]
    Unlocked(io::Error),
    #[error("{0}")]
    Limited(Limited),
    #[error("{0}")]
    TooLittle(TooLittle),
}

/// Members that are files, under a limit on memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "this process and others may use {limit:#} of memory (a cgroup's limit), and {file}{} in a \
     file system: when the others have filled that by writing to the volume, the kernel may find no \
     room for what that file system notes of its files, end this process, and leave what is mounted \
     on the volume waiting for ever",
    lie(*others)
)]
pub struct Limited {
    limit: ByteSize,
    file: String,
    /// Number of the others.
    others: usize,
}

fn lie(others: usize) -> String {
    match others {
        0 => " lies".to_owned(),
        1 => " and another member lie".to_owned(),
        more => format!(" and {more} other members lie"),
    }
}

/// Bytes of this process's memory, by the name of a line of `/proc/self/status`; 0 if it does not say.
pub(super) fn of_process(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|one| one.strip_prefix(line));
    let kib = value.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// Returns true if the file of the program that this process runs was replaced or removed: see proc(5),
/// `/proc/PID/exe`.
pub(super) fn is_program_replaced() -> bool {
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    program.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
}

/// Page faults of a thread of this process so far; 0 if it has ended.
pub(super) fn faults(thread: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // Fields 10 (minor) and 12 (major) of proc(5). The name in field 2 may contain anything, but
    // nothing behind it a parenthesis.
    let stat = stat.unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let fields: Vec<u64> = fields.skip(7).take(3).filter_map(|field| field.parse().ok()).collect();
    fields.first().unwrap_or(&0) + fields.get(2).unwrap_or(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_thread_are_counted() {
        let thread = std::fs::read_link("/proc/thread-self").unwrap();
        let thread = thread.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let before = faults(thread);
        let fresh = braid_mem::Pool::new(1 << 20).unwrap();
        assert!(faults(thread) > before, "{}", fresh.total_bytes());
        assert_eq!(faults(u32::MAX), 0);
    }

    #[test]
    fn memory_of_the_process_is_told_in_bytes() {
        let resident = of_process("VmRSS:");
        assert!(resident > 1 << 20 && resident.is_multiple_of(1024), "{resident}");
        assert!(of_process("VmPeak:") >= resident);
        assert_eq!(of_process("Name:"), 0);
        assert!(!is_program_replaced());
    }
}
