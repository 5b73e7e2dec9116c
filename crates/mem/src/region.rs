//! One anonymous memory mapping, shared between threads by copying in and out.
//!
//! Invariants
//! * `base..base + len` is mapped readable and writable for the life of the value; it may become longer
//!   ([`Region::grow`]) but never moves, so concurrent copies are not disturbed.
//! * This module never gives out a reference into the mapping: bytes move by `memcpy` between the mapping and a
//!   slice that the caller owns, so Rust's aliasing rules hold whatever other threads do. Two threads that
//!   touch the same bytes at once get either's bytes, as on a disk.
//!
//! ```text
//!   Region::new        | len                 |
//!   Region::reserve    no access | len, read and written | room to grow, no access | no access
//! ```
//!
//! Deliberately absent: bounds that clip. An access outside the mapping is a bug of the caller, which has
//! already checked the request against the device's size, and panics.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{PAGE, stream};

/// The advice to the kernel about a new mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Pages of the base size, given on first touch.
    Sparse,
    /// As `Sparse`, and huge pages where the kernel can make them (`MADV_HUGEPAGE`).
    SparseHuge,
}

/// Bytes of a page of the machine's pool of huge pages, as braid asks for them.
pub const HUGE_PAGE: usize = 2 << 20;

/// Which pages a region is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Pages of the base size; the kernel is advised to use huge ones (`MADV_HUGEPAGE`).
    #[default]
    Usual,
    /// Pages of the machine's pool of huge pages (`vm.nr_hugepages`), which are reserved at once.
    Pool,
}

impl Pages {
    /// Bytes of a page.
    fn bytes(self) -> usize {
        match self {
            Pages::Usual => PAGE,
            Pages::Pool => HUGE_PAGE,
        }
    }

    fn flags(self) -> i32 {
        match self {
            Pages::Usual => libc::MAP_NORESERVE,
            Pages::Pool => libc::MAP_HUGETLB | libc::MAP_HUGE_2MB,
        }
    }
}

/// An anonymous private mapping; all zeroes when made.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: AtomicUsize,
    /// The most that `len` can become.
    most: usize,
    pages: Pages,
    /// The whole mapping, including the inaccessible parts around it.
    whole: (NonNull<u8>, usize),
}

// SAFETY: the mapping belongs to this value alone and is only reached by raw copies (see the
// module header), which any thread may make.
unsafe impl Send for Region {}
// SAFETY: as above; no method hands out a reference into the mapping.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes (at least 1), which take no memory before they are written.
    ///
    /// # Errors
    /// The error of `mmap`: usually `ENOMEM` when the address space or the overcommit limit
    /// does not allow it.
    pub fn new(len: usize, advice: Advice) -> io::Result<Region> {
        let base = map(len, libc::PROT_READ | libc::PROT_WRITE)?;
        let pages = Pages::Usual;
        let region =
            Region { base, len: AtomicUsize::new(len), most: len, pages, whole: (base, len) };
        if advice == Advice::SparseHuge {
            // This is advice only: a kernel without transparent huge pages answers EINVAL, and the mapping
            // works without them.
            let _ = region.advise(0, len, libc::MADV_HUGEPAGE);
        }
        Ok(region)
    }

    /// Maps `len` bytes of `pages`, and reserves the addresses of up to `most`, for
    /// [`Region::grow`]: that takes no memory, but counts where addresses are limited.
    ///
    /// # Errors
    /// The error of `mmap`: `ENOMEM` also when the pool has too few huge pages.
    pub fn reserve(len: usize, most: usize, pages: Pages) -> io::Result<Region> {
        // The parts before and behind are inaccessible, so the kernel treats this as a separate mapping and
        // counts its pages separately.
        let page = pages.bytes();
        let most =
            most.max(len).checked_next_multiple_of(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let all = most.checked_add(3 * page).ok_or(io::ErrorKind::OutOfMemory)?;
        let start = map(all, libc::PROT_NONE)?;
        let skipped = start.as_ptr().addr().next_multiple_of(page) - start.as_ptr().addr() + page;
        // SAFETY: at most two pages of the mapping, which has three more than `most`.
        let base = unsafe { start.add(skipped) };
        let region = Region { base, len: AtomicUsize::new(0), most, pages, whole: (start, all) };
        region.grow(len)?;
        Ok(region)
    }

    /// Makes the region `len` bytes long; one that is as long stays as it is. What is new reads as
    /// zeroes. Not to be called from two threads at once.
    ///
    /// # Errors
    /// `ENOMEM` when more was never reserved, or as [`Region::reserve`]: then it is as long as before.
    pub fn grow(&self, len: usize) -> io::Result<()> {
        if len > self.most {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let (old, new) = (self.len(), self.pages.bytes());
        let (old, new) = (old.next_multiple_of(new), len.next_multiple_of(new));
        if old < new {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            if let Err(error) = self.remap(old, new - old, rights, self.pages.flags()) {
                // What could not be had may have left nothing at all at these addresses.
                self.remap(old, new - old, libc::PROT_NONE, libc::MAP_NORESERVE)?;
                return Err(error);
            }
            if self.pages == Pages::Usual {
                // Advice only, as in `new`.
                let _ = self.advise(old, new - old, libc::MADV_HUGEPAGE);
            }
        }
        self.len.fetch_max(len, Ordering::Release);
        Ok(())
    }

    /// Maps a part of this value's own addresses anew.
    fn remap(&self, offset: usize, len: usize, rights: i32, flags: i32) -> io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | flags;
        // SAFETY: the range lies behind `len` and inside this value's mapping (the callers checked it), where
        // no bytes are read or written.
        let address =
            unsafe { libc::mmap(self.base.as_ptr().add(offset).cast(), len, rights, flags, -1, 0) };
        if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The most bytes that it can be made to have.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Bytes of memory that the kernel holds for it now, in RAM or swapped out; pages that were only
    /// read are not among them. Of a region that was reserved. It walks the page tables of the whole
    /// process: for a status, not for a request.
    ///
    /// # Errors
    /// `/proc/self/smaps` cannot be read (proc_pid_smaps(5)).
    pub fn allocated(&self) -> io::Result<u64> {
        let first = self.base.as_ptr().addr();
        let smaps = io::BufReader::new(std::fs::File::open("/proc/self/smaps")?);
        allocated(smaps, first..first + self.most)
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // A thread that learns of a longer range learns of it from a thread that has seen that length.
        self.len.load(Ordering::Relaxed)
    }

    /// True if the mapping has no bytes (it always has some).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `into.len()` bytes from `offset` on.
    ///
    /// # Panics
    /// If the range is not inside the region.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: the source range is mapped (checked above); the target is a slice the caller
        // owns exclusively, and cannot overlap a mapping that hands out no references.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.base.as_ptr().add(offset),
                into.as_mut_ptr(),
                into.len(),
            );
        }
    }

    /// Copies `from` to `offset`.
    ///
    /// # Panics
    /// If the range is not inside the region.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        // SAFETY: as in `read`, with the roles exchanged.
        unsafe {
            let to = self.base.as_ptr().add(offset);
            match from.len() {
                0..stream::LEAST => std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()),
                len => stream::copy(from.as_ptr(), to, len),
            }
        }
    }

    /// As [`Region::write`], through the cache whatever the length: for bytes that are read again at once.
    ///
    /// # Panics
    /// If the range is not inside the region.
    #[inline]
    pub fn fill(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        // SAFETY: as in `write`.
        unsafe {
            let to = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
        }
    }

    /// Address of the byte at `offset`, for handing to the kernel. It stays the same for the life of the region.
    ///
    /// # Panics
    /// If the byte is not inside the region.
    pub fn address(&self, offset: usize) -> *mut u8 {
        self.check(offset, 1);
        self.base.as_ptr().wrapping_add(offset)
    }

    /// Makes the range read as zeroes, giving whole pages back to the kernel unless `keep`.
    ///
    /// # Panics
    /// If the range is not inside the region.
    pub fn zero(&self, offset: usize, len: usize, keep: bool) {
        self.check(offset, len);
        let page = self.pages.bytes();
        let first = offset.next_multiple_of(page);
        let last = (offset + len) / page * page;
        if keep || first >= last || self.give_back(first, last - first).is_err() {
            return self.fill_zero(offset, len);
        }
        self.fill_zero(offset, first - offset);
        self.fill_zero(last, offset + len - last);
    }

    /// Gives whole pages back to the kernel, also locked ones; they stay locked from their next touch
    /// on.
    pub(crate) fn give_back(&self, offset: usize, len: usize) -> io::Result<()> {
        /// As `MADV_DONTNEED`, and for locked memory, too (Linux 5.18).
        const MADV_DONTNEED_LOCKED: i32 = 24;
        self.advise(offset, len, MADV_DONTNEED_LOCKED)
            .or_else(|_| self.advise(offset, len, libc::MADV_DONTNEED))
            .or_else(|_| self.give_back_unlocked(offset, len))
    }

    /// The same where the kernel does not do it for locked memory.
    fn give_back_unlocked(&self, offset: usize, len: usize) -> io::Result<()> {
        let check =
            |result: i32| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: the range lies in this value's own mapping (callers checked it).
        let start = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: as above; it changes what may be paged out and nothing else.
        check(unsafe { libc::munlock(start.cast(), len) })?;
        let given = self.advise(offset, len, libc::MADV_DONTNEED);
        // Locked again, whatever became of it: it was, or else it would not have come to this.
        // SAFETY: as for `munlock`.
        check(unsafe { libc::mlock2(start.cast(), len, libc::MLOCK_ONFAULT as _) })?;
        given
    }

    /// Keeps the whole mapping in memory (`mlock`), which also faults it in.
    ///
    /// # Errors
    /// `ENOMEM` or `EPERM` when the limit on locked memory is too low.
    pub fn lock(&self) -> io::Result<()> {
        self.lock_part(0, self.len())
    }

    /// The same for a part of it.
    ///
    /// # Panics
    /// If the range is not inside the region.
    pub(crate) fn lock_part(&self, offset: usize, len: usize) -> io::Result<()> {
        self.check(offset, len);
        // SAFETY: the range is this value's own mapping.
        match unsafe { libc::mlock(self.base.as_ptr().add(offset).cast(), len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Keeps every page in memory from its first touch on (`mlock2`).
    ///
    /// # Errors
    /// As [`Region::lock`].
    pub fn lock_on_fault(&self) -> io::Result<()> {
        // SAFETY: the range is this value's own mapping.
        let result = unsafe {
            libc::mlock2(self.base.as_ptr().cast(), self.len(), libc::MLOCK_ONFAULT as _)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Has the kernel use huge pages for the first `len` bytes, if it can.
    pub(crate) fn prefer_huge(&self, len: usize) {
        self.check(0, len);
        // This is advice only: see `Region::new`.
        let _ = self.advise(0, len, libc::MADV_HUGEPAGE);
    }

    /// Faults every page of a new region in, so that later writes take no page fault.
    pub fn populate(&self) {
        // What there was no memory for is faulted in when it is written.
        let _ = self.populate_from(0);
    }

    /// Faults every page from `from` on in, so that later writes take no page fault; their content
    /// stays.
    ///
    /// # Errors
    /// No memory.
    pub fn populate_from(&self, from: usize) -> io::Result<()> {
        let from = from / PAGE * PAGE;
        self.populate_part(from, self.len().saturating_sub(from))
    }

    /// The same for a part of it that begins on a page.
    pub(crate) fn populate_part(&self, from: usize, len: usize) -> io::Result<()> {
        match self.advise(from, len, libc::MADV_POPULATE_WRITE) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            result => return result,
        }
        // Before Linux 5.14: write each page as it is.
        let mut byte = [0];
        for offset in (from..from + len).step_by(PAGE) {
            self.read(offset, &mut byte);
            self.write(offset, &byte);
        }
        Ok(())
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn fill_zero(&self, offset: usize, len: usize) {
        // SAFETY: callers checked the range; writing bytes into the mapping aliases nothing.
        unsafe { std::ptr::write_bytes(self.base.as_ptr().add(offset), 0, len) }
    }

    fn advise(&self, offset: usize, len: usize, advice: i32) -> io::Result<()> {
        // SAFETY: the range lies in this value's own private anonymous mapping, to whose bytes no reference
        // exists, so it is safe to drop or populate pages.
        match unsafe { libc::madvise(self.base.as_ptr().add(offset).cast(), len, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[inline]
    fn check(&self, offset: usize, len: usize) {
        let all = self.len();
        assert!(
            offset <= all && len <= all - offset,
            "access to {len} bytes at {offset} outside a region of {all} bytes"
        );
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let (start, all) = self.whole;
        // SAFETY: the mapping was made with the value and nothing refers to it any more.
        unsafe { libc::munmap(start.as_ptr().cast(), all) };
    }
}

/// Maps `len` bytes where the kernel likes.
fn map(len: usize, rights: i32) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: an anonymous mapping at an address of the kernel's choosing touches no memory that
    // exists; the result is checked before use.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(address.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?)
}

/// The memory that `smaps` counts for the mappings inside `range`, in bytes.
fn allocated(smaps: impl io::BufRead, range: std::ops::Range<usize>) -> io::Result<u64> {
    let (mut is_inside, mut kib) = (false, 0);
    for line in smaps.lines() {
        let line = line?;
        let Some((key, value)) = line.split_once(':') else { continue };
        if let Some(start) = line.split_once('-').and_then(|(start, rest)| {
            // 7f00-7f80 rw-p 00000000 00:00 0
            rest.split_once(' ')?;
            usize::from_str_radix(start, 16).ok()
        }) {
            is_inside = range.contains(&start);
        } else if is_inside && matches!(key, "Anonymous" | "Swap" | "Private_Hugetlb") {
            kib += value.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        }
    }
    Ok(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_as_zeroes_and_keeps_what_is_written() {
        let region = Region::new(1 << 20, Advice::SparseHuge).unwrap();
        let mut buf = [1u8; 100];
        region.read(5000, &mut buf);
        assert_eq!(buf, [0; 100]);
        region.write(5000, &[7; 100]);
        region.read(5000, &mut buf);
        assert_eq!(buf, [7; 100]);
    }

    #[test]
    fn zero_clears_exactly_the_range() {
        for keep in [false, true] {
            let region = Region::new(64 << 10, Advice::Sparse).unwrap();
            region.write(0, &vec![9; 64 << 10]);
            region.zero(4000, 20_000, keep);
            let mut all = vec![0; 64 << 10];
            region.read(0, &mut all);
            for (index, byte) in all.iter().enumerate() {
                let zeroed = (4000..24_000).contains(&index);
                assert_eq!(*byte, if zeroed { 0 } else { 9 }, "at {index}, keep {keep}");
            }
        }
    }

    /// Pages that are in memory.
    fn resident(region: &Region) -> usize {
        let mut pages = vec![0u8; region.len() / crate::PAGE];
        // SAFETY: the range is the region's own mapping, and the vector has a byte for each page.
        let result = unsafe {
            libc::mincore(region.base.as_ptr().cast(), region.len(), pages.as_mut_ptr().cast())
        };
        assert_eq!(result, 0);
        pages.iter().filter(|page| *page & 1 != 0).count()
    }

    #[test]
    fn what_is_discarded_is_given_back_though_it_is_locked() {
        type GiveBack = fn(&Region, usize, usize) -> io::Result<()>;
        let ways: [GiveBack; 2] = [Region::give_back, Region::give_back_unlocked];
        for give_back in ways {
            let region = Region::new(1 << 20, Advice::Sparse).unwrap();
            if let Err(error) = region.lock() {
                println!("skipped: memory cannot be locked here: {error}");
                return;
            }
            region.write(0, &vec![9; 1 << 20]);
            assert_eq!(resident(&region), 256);
            give_back(&region, 8192, 512 << 10).unwrap();
            assert_eq!(resident(&region), 128);
            let mut bytes = [1; 4];
            region.read((512 << 10) + 8190, &mut bytes);
            assert_eq!(bytes, [0, 0, 9, 9]);
            // Where it is written again it is locked again: it cannot be given back the old way.
            region.write(8192, &[7; 4096]);
            assert!(region.advise(8192, 4096, libc::MADV_DONTNEED).is_err(), "still locked");
        }
    }

    #[test]
    fn a_region_grows_in_place_and_says_what_it_holds() {
        for pages in [Pages::Usual, Pages::Pool] {
            let region = match Region::reserve(HUGE_PAGE, 3 * HUGE_PAGE, pages) {
                Ok(region) => region,
                Err(error) => {
                    println!("skipped: no {pages:?} pages here: {error}");
                    continue;
                }
            };
            assert_eq!(region.allocated().unwrap(), 0);
            region.write(HUGE_PAGE - 4096, &[7; 4096]);
            let base = region.base;
            region.grow(HUGE_PAGE + 512).unwrap();
            let mut end = [1; 512];
            region.read(HUGE_PAGE, &mut end);
            assert_eq!(end, [0; 512]);
            region.write(HUGE_PAGE, &[8; 512]);
            assert!(region.grow(3 * HUGE_PAGE + 1).is_err(), "more was never reserved");
            assert_eq!((region.len(), region.base), (HUGE_PAGE + 512, base));
            let held = region.allocated().unwrap();
            assert!((8192..=2 * HUGE_PAGE as u64).contains(&held), "{held} of {pages:?}");
            region.zero(0, HUGE_PAGE + 512, false);
            let mut all = vec![1; HUGE_PAGE + 512];
            region.read(0, &mut all);
            assert!(all.iter().all(|byte| *byte == 0), "{pages:?}");
        }
    }

    #[test]
    fn what_is_held_is_read_from_what_the_kernel_says() {
        let smaps = "\
1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\nAnonymous:          4 kB\nSwap:   0 kB\n\
2000-8000 rw-p 00000000 00:00 0\nRss: 9 kB\nAnonymous:          8 kB\nSwap:   12 kB\n\
8000-9000 ---p 00000000 00:00 0\nPrivate_Hugetlb:   2048 kB\nVmFlags: rd wr\n\
9000-a000 rw-p 00000000 00:00 0 [heap]\nAnonymous: 99 kB\n";
        assert_eq!(allocated(smaps.as_bytes(), 0x2000..0x9000).unwrap(), (8 + 12 + 2048) << 10);
    }

    #[test]
    #[should_panic(expected = "outside a region")]
    fn an_access_past_the_end_panics() {
        Region::new(4096, Advice::Sparse).unwrap().read(4090, &mut [0; 7]);
    }
}
