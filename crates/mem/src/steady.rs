//! A process that takes no page faults while it serves.
//!
//! ```text
//!                 before serving                              while serving
//!  heap     one arena; a reserve; all of it touched        taken from the reserve
//!  stacks   touched as far down as they will be used       nothing new
//!  program  read in but for tables of panics, data copied  nothing new
//!  all      locked: present pages stay                     no page comes back
//! ```
//!
//! A page fault asks the kernel for memory. If memory is short, the kernel writes dirty pages out and may wait
//! for the result; if these belong to the very block device that the faulting thread serves, both wait for
//! ever. `PR_SET_IO_FLUSHER` tells the kernel not to wait, but needs `CAP_SYS_RESOURCE`, which containers do
//! not have. So there must be no faults.
//!
//! Invariants
//! * One arena for all threads ([`one_heap`]): a thread that holds the lock of an arena never waits
//!   for memory with it, because no arena has pages that were not touched.
//! * Freed memory stays with the process.
//!
//! Deliberately absent: the bodies of RAM disks, which take their pages as they are written; the kernel's
//! own memory in system calls; and the tables by which a panic finds its way, a tenth of the program, which
//! serving never reads: a panic may take page faults.
//!
//! Source: mallopt(3) and malloc.c of glibc 2.36, madvise(2), dl_iterate_phdr(3), `mm/vmscan.c`
//! (`shrink_folio_list`, "legacy memcg encounters a folio already under writeback").

use std::ffi::{c_int, c_void};
use std::io;

use crate::PAGE;

/// Longest anonymous mapping that is touched wherever it comes from, in bytes: zeroed data of the
/// program and its libraries, but no stack and no RAM disk.
const SMALL: usize = 1 << 20;

/// Makes the heap one that keeps what it has: a single arena that grows by the program break only.
/// For the start of a process, before it has threads. Without glibc nothing happens.
pub fn one_heap() {
    #[cfg(target_env = "gnu")]
    set(&[
        (libc::M_ARENA_MAX, 1),
        // Memory for long allocations would be mapped, and touched for the first time, each time.
        (libc::M_MMAP_MAX, 0),
        (libc::M_TRIM_THRESHOLD, i32::MAX),
        (libc::M_TOP_PAD, 128 << 10),
    ]);
}

/// Has each arena of the heap keep up to `bytes` that are freed, in allocations of at most 32 MiB. By default it keeps
/// 128 KiB, and a burst of requests takes a page fault for each page that the burst before it gave back. Without glibc
/// nothing happens.
pub fn keep_freed(bytes: i32) {
    let _ = bytes;
    #[cfg(target_env = "gnu")]
    set(&[(libc::M_TRIM_THRESHOLD, bytes), (libc::M_MMAP_THRESHOLD, bytes.min(32 << 20))]);
}

#[cfg(target_env = "gnu")]
fn set(parameters: &[(c_int, c_int)]) {
    for (parameter, value) in parameters {
        // SAFETY: a call without pointers that sets a number of the allocator's.
        unsafe { libc::mallopt(*parameter, *value) };
    }
}

/// Takes and touches `bytes` of heap, and frees them again: what is allocated from now on finds
/// touched memory until more than that is in use. Call [`one_heap`] before.
pub fn fill_heap(bytes: usize) {
    let mut reserve: Vec<u8> = Vec::with_capacity(bytes);
    // By hand, because [`touch_memory`] needs Linux 5.14.
    for page in reserve.spare_capacity_mut().chunks_mut(PAGE) {
        page[0].write(1);
    }
    // The writes above have an effect that the compiler cannot see.
    std::hint::black_box(reserve.spare_capacity_mut());
}

/// Touches the next `bytes` of the calling thread's stack.
#[inline(never)]
pub fn touch_stack(bytes: usize) {
    let mut page = [0u8; PAGE];
    std::hint::black_box(&mut page);
    if bytes > PAGE {
        touch_stack(bytes - PAGE);
    }
    // Not a tail call: each page has a frame of its own.
    std::hint::black_box(&mut page);
}

/// Reads the program and its libraries in, but for their tables for unwinding, makes their data this
/// process's own, and touches all of the heap: also what was allocated and not written yet, such as room in
/// tables and queues.
///
/// # Errors
/// `/proc` cannot be read; `EINVAL` before Linux 5.14.
pub fn touch_memory() -> io::Result<()> {
    let unwinding = unwinding_tables();
    for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
        let Some(mapping) = Mapping::parse(line).map(|one| one.before(&unwinding)) else {
            continue;
        };
        if let Some(advice) = mapping.advice() {
            // SAFETY: the range was just mapped; populating pages changes no byte of them. If it
            // has gone meanwhile, the kernel says so.
            let result = unsafe {
                libc::madvise(std::ptr::without_provenance_mut(mapping.start), mapping.len, advice)
            };
            let error = io::Error::last_os_error();
            // Pages past the end of a file cannot be had, and are not used.
            let passing = [libc::ENOMEM, libc::EFAULT];
            if result != 0 && !error.raw_os_error().is_some_and(|code| passing.contains(&code)) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The address at which each loaded object's tables for unwinding begin. Linkers put them last in a segment
/// that is only read: `.eh_frame_hdr`, `.eh_frame` and, some, `.gcc_except_table`.
fn unwinding_tables() -> Vec<usize> {
    extern "C" fn note(object: *mut libc::dl_phdr_info, _: usize, starts: *mut c_void) -> c_int {
        // SAFETY: the loader passes an object that stays loaded during the call, and the pointer that it was
        // given below, to a vector that nothing else uses meanwhile.
        let (object, starts) = unsafe { (&*object, &mut *starts.cast::<Vec<usize>>()) };
        if object.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the object has that many headers there.
        let headers =
            unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        let tables = headers.iter().filter(|header| header.p_type == libc::PT_GNU_EH_FRAME);
        let starts_at = tables.map(|header| object.dlpi_addr.wrapping_add(header.p_vaddr));
        starts.extend(starts_at.filter_map(|address| usize::try_from(address).ok()));
        0
    }
    let mut starts = Vec::new();
    // SAFETY: the callback takes the vector as what it is, and keeps nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut starts).cast()) };
    starts
}

/// Keeps what is mapped now in memory from its first touch on; `and_later` what is mapped later,
/// too, which is not to be asked for under a limit on locked memory: it would make mappings fail.
///
/// # Errors
/// `ENOMEM` or `EPERM` when the limit on locked memory is too low.
pub fn lock(and_later: bool) -> io::Result<()> {
    let later = if and_later { libc::MCL_FUTURE } else { 0 };
    // SAFETY: a call without pointers; it changes what may be paged out and nothing else.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT | later) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A line of `/proc/PID/maps`: `55d0-55e0 r-xp 00002000 08:01 1234  /usr/bin/braid`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: usize,
    len: usize,
    readable: bool,
    writable: bool,
    private: bool,
    /// True for the mapping of a file.
    file: bool,
    /// The kernel's name of it, such as `[stack]`; but not `[heap]`.
    special: bool,
    /// The whole range up to the program break.
    heap: bool,
}

impl Mapping {
    fn parse(line: &str) -> Option<Mapping> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let rights = fields.next()?.as_bytes();
        let inode = fields.nth(2)?;
        let name = fields.next().unwrap_or("");
        let heap = name == "[heap]";
        Some(Mapping {
            start,
            len: end.checked_sub(start)?,
            readable: rights.first() == Some(&b'r'),
            writable: rights.get(1) == Some(&b'w'),
            private: rights.get(3) == Some(&b'p'),
            file: inode != "0",
            special: name.starts_with('[') && !heap,
            heap,
        })
    }

    /// Its part before the first of these addresses: all of it, if it has none of them.
    fn before(mut self, addresses: &[usize]) -> Mapping {
        let inside = addresses.iter().filter_map(|address| address.checked_sub(self.start));
        let end = inside.filter(|offset| *offset < self.len).min();
        self.len = end.map_or(self.len, |offset| offset.next_multiple_of(PAGE).min(self.len));
        self
    }

    /// The advice that populates its pages, if they are wanted.
    fn advice(&self) -> Option<i32> {
        let wanted = self.readable && self.private && !self.special;
        match (wanted, self.file, self.writable) {
            (true, true, false) => Some(libc::MADV_POPULATE_READ),
            (true, true, true) => Some(libc::MADV_POPULATE_WRITE),
            (true, false, true) if self.heap || self.len <= SMALL => {
                Some(libc::MADV_POPULATE_WRITE)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(line: &str) -> Option<i32> {
        Mapping::parse(line).and_then(|mapping| mapping.advice())
    }

    #[test]
    fn what_is_read_in_and_what_is_copied() {
        let text = "55d0c0000000-55d0c0400000 r-xp 00002000 fe:00 1234   /usr/bin/bra id";
        assert_eq!(advice(text), Some(libc::MADV_POPULATE_READ));
        let data = "55d0c0400000-55d0c0410000 rw-p 00002000 fe:00 1234   /usr/bin/braid";
        assert_eq!(advice(data), Some(libc::MADV_POPULATE_WRITE));
        let zeroed = "55d0c0410000-55d0c0420000 rw-p 00000000 00:00 0 ";
        assert_eq!(advice(zeroed), Some(libc::MADV_POPULATE_WRITE));
        let heap = "55961a138000-55961c37a000 rw-p 00000000 00:00 0        [heap]";
        assert_eq!(advice(heap), Some(libc::MADV_POPULATE_WRITE));
        for other in [
            "7f0000000000-7f0040000000 rw-p 00000000 00:00 0 ",
            "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]",
            "7ffd00022000-7ffd00023000 r-xp 00000000 00:00 0    [vdso]",
            "7f0000000000-7f0000001000 ---p 00000000 00:00 0 ",
            "7f0000000000-7f0000001000 rw-s 00000000 00:0f 5    /dev/shm/x",
            "nonsense",
        ] {
            assert_eq!(advice(other), None, "{other}");
        }
    }

    #[test]
    fn tables_for_unwinding_are_left_out() {
        let program = "55d0c0000000-55d0c0400000 r--p 00000000 fe:00 1234   /usr/bin/braid";
        let len_before = |addresses: &[usize]| {
            Mapping::parse(program).map(|mapping| mapping.before(addresses).len)
        };
        assert_eq!(len_before(&[0x55d0_c000_0000 - 1, 0x55d0_c040_0000]), Some(0x40_0000));
        assert_eq!(len_before(&[0x55d0_c030_0001, 0x55d0_c020_0001]), Some(0x20_1000));
        // Those of this program lie in one of its mappings that is only read.
        let tables = unwinding_tables();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let cut = maps.lines().filter(|line| {
            let whole = Mapping::parse(line).unwrap();
            let len = whole.len;
            !whole.writable && whole.file && whole.before(&tables).len < len
        });
        let program = std::env::current_exe().unwrap();
        assert_eq!(cut.filter(|line| line.ends_with(&*program.to_string_lossy())).count(), 1);
    }

    /// Page faults of this thread: field 10 of its `stat`.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[7].parse().unwrap()
    }

    #[inline(never)]
    fn use_stack(depth: usize) -> usize {
        let page = std::hint::black_box([depth as u8; PAGE]);
        if depth == 0 { page.len() } else { use_stack(depth - 1) + page[7] as usize }
    }

    #[test]
    fn a_touched_stack_takes_no_faults() {
        let in_thread = |touch: usize| {
            let run = move || {
                touch_stack(touch);
                let before = faults();
                std::hint::black_box(use_stack(60));
                faults() - before
            };
            let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
            thread.join().unwrap()
        };
        let (untouched, touched) = (in_thread(PAGE), in_thread(1 << 20));
        assert!(touched < 8 && untouched > 40, "{touched} of {untouched} faults are left");
    }
}
