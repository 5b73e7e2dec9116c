//! One anonymous memory mapping, shared between threads by copying in and out.
//!
//! Invariants
//! * `base..base + len` is mapped readable and writable for the life of the value.
//! * No reference into the mapping is ever handed out from here: bytes move by `memcpy` between
//!   the mapping and a slice that the caller owns, so Rust's aliasing rules hold whatever other
//!   threads do. Two threads that touch the same bytes at once get either's bytes, as on a disk.
//!
//! Deliberately absent: bounds that clip. An access outside the mapping is a bug of the caller,
//! who has already checked the request against the device's size, and panics.

use std::io;
use std::ptr::NonNull;

use crate::stream;

/// What the kernel is told about a mapping when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Pages of the base size, given on first touch.
    Sparse,
    /// As `Sparse`, and huge pages where the kernel can make them (`MADV_HUGEPAGE`).
    SparseHuge,
}

/// An anonymous private mapping of fixed length; all zeroes when made.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
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
    /// What `mmap` answers: usually `ENOMEM` when the address space or the overcommit limit
    /// does not allow it.
    pub fn new(len: usize, advice: Advice) -> io::Result<Region> {
        // SAFETY: an anonymous mapping at an address of the kernel's choosing touches no memory
        // that exists; the result is checked before use.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let region = Region { base, len };
        if advice == Advice::SparseHuge {
            // Advice only: a kernel without transparent huge pages answers EINVAL and the
            // mapping works all the same.
            let _ = region.advise(0, len, libc::MADV_HUGEPAGE);
        }
        Ok(region)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the mapping has no bytes (it always has some).
    pub fn is_empty(&self) -> bool {
        self.len == 0
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

    /// Makes the range read as zeroes, giving whole pages back to the kernel unless `keep`.
    ///
    /// # Panics
    /// If the range is not inside the region.
    pub fn zero(&self, offset: usize, len: usize, keep: bool) {
        self.check(offset, len);
        let page = crate::PAGE;
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
    fn give_back(&self, offset: usize, len: usize) -> io::Result<()> {
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
        // SAFETY: the range is this value's own mapping.
        match unsafe { libc::mlock(self.base.as_ptr().cast(), self.len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Faults every page in, so that later writes take no page fault.
    pub fn populate(&self) {
        if self.advise(0, self.len, libc::MADV_POPULATE_WRITE).is_err() {
            // Before Linux 5.14: touch each page.
            for offset in (0..self.len).step_by(crate::PAGE) {
                self.fill_zero(offset, 1);
            }
        }
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn fill_zero(&self, offset: usize, len: usize) {
        // SAFETY: callers checked the range; writing bytes into the mapping aliases nothing.
        unsafe { std::ptr::write_bytes(self.base.as_ptr().add(offset), 0, len) }
    }

    fn advise(&self, offset: usize, len: usize, advice: i32) -> io::Result<()> {
        // SAFETY: the range lies in this value's own private anonymous mapping, to whose bytes
        // no reference exists, so dropping or populating pages surprises nobody.
        match unsafe { libc::madvise(self.base.as_ptr().add(offset).cast(), len, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[inline]
    fn check(&self, offset: usize, len: usize) {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "access to {len} bytes at {offset} outside a region of {} bytes",
            self.len
        );
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
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
        let mut pages = vec![0u8; region.len / crate::PAGE];
        // SAFETY: the range is the region's own mapping, and the vector has a byte for each page.
        let result = unsafe {
            libc::mincore(region.base.as_ptr().cast(), region.len, pages.as_mut_ptr().cast())
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
    #[should_panic(expected = "outside a region")]
    fn an_access_past_the_end_panics() {
        Region::new(4096, Advice::Sparse).unwrap().read(4090, &mut [0; 7]);
    }
}
