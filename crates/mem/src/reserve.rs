//! Memory apart from that of requests, for the time in which a device that does not answer holds theirs.
//!
//! Invariant: a thread that keeps a reserve maps memory only for what the reserve has not at hand and that cannot wait.

use std::cell::RefCell;
use std::io;

use crate::{Buf, Pool};

thread_local! {
    /// See [`Buf::keep_reserve`].
    static RESERVE: RefCell<Option<Pool>> = const { RefCell::new(None) };
}

impl Buf {
    /// Keeps `pool` as this thread's reserve for [`Buf::apart`]. A new mapping may wait until the kernel has freed
    /// memory, and the kernel may wait for the block device that this thread serves.
    pub fn keep_reserve(pool: Pool) {
        RESERVE.set(Some(pool));
    }

    /// `len` bytes, all zeroes, of memory that belongs to no pool of requests: for a task that needs memory while a
    /// device that does not answer holds that of a pool. They come from this thread's reserve, if it has as much; else
    /// from a new mapping, so this is not for the path of a request.
    ///
    /// # Errors
    /// The error of `mmap`.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn apart(len: usize) -> io::Result<Buf> {
        match Buf::at_hand(len) {
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Buf::mapped(len),
            result => result,
        }
    }

    /// The same for a task that can come again: where this thread keeps a reserve that can have as much, nothing is
    /// mapped.
    ///
    /// # Errors
    /// `OutOfMemory` if the reserve has not as much now; the error of `mmap`.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn at_hand(len: usize) -> io::Result<Buf> {
        let reserve = RESERVE.with_borrow(Clone::clone);
        let Some(reserve) = reserve.filter(|reserve| len <= reserve.largest()) else {
            return Buf::mapped(len);
        };
        let mut buf = reserve.get(len).ok_or(io::ErrorKind::OutOfMemory)?;
        buf.fill(0);
        Ok(buf)
    }

    fn mapped(len: usize) -> io::Result<Buf> {
        let pool = Pool::new(len.next_power_of_two())?;
        let mut buf = pool.get(len).ok_or(io::ErrorKind::OutOfMemory)?;
        buf.fill(0);
        Ok(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_apart_comes_from_the_reserve_as_long_as_it_lasts() {
        let reserve = Pool::new(8 << 10).unwrap();
        Buf::keep_reserve(reserve.clone());
        let mut first = Buf::at_hand(4096).unwrap();
        first.fill(7);
        drop(first);
        let two = [Buf::apart(4096).unwrap(), Buf::at_hand(4000).unwrap()];
        assert!(two.iter().all(|buf| buf.iter().all(|byte| *byte == 0)));
        assert!(reserve.get(1).is_none(), "both are of the reserve");
        assert_eq!(Buf::at_hand(1).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(Buf::apart(4096).unwrap().len(), 4096);
        // A reserve that never can have as much is not waited for.
        assert_eq!(Buf::at_hand(16 << 10).unwrap().len(), 16 << 10);
        drop(two);
        assert_eq!(Buf::at_hand(8 << 10).unwrap().len(), 8 << 10);
    }
}
