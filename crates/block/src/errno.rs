//! Failures, in the numbers that Linux system calls, NBD and FUSE share.

/// A positive Linux error number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Not permitted: a write to a read-only device.
    pub const PERM: Errno = Errno(1);
    /// Interrupted before anything was done.
    pub const INTR: Errno = Errno(4);
    /// The device failed.
    pub const IO: Errno = Errno(5);
    /// It would have to wait.
    pub const AGAIN: Errno = Errno(11);
    /// No memory.
    pub const NOMEM: Errno = Errno(12);
    /// The request makes no sense: out of range, unaligned.
    pub const INVAL: Errno = Errno(22);
    /// No space left, e.g. under a sparse file.
    pub const NOSPC: Errno = Errno(28);
    /// The operation is not supported.
    pub const OPNOTSUPP: Errno = Errno(95);
    /// The device did not answer in time.
    pub const TIMEDOUT: Errno = Errno(110);
    /// The device is being shut down.
    pub const SHUTDOWN: Errno = Errno(108);

    /// From a number as the kernel gives it; anything that is not a positive number of at most
    /// 4095 becomes [`Errno::IO`].
    pub const fn from_raw(number: i32) -> Errno {
        match number {
            1..=4095 => Errno(number),
            _ => Errno::IO,
        }
    }

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno::from_raw(error.raw_os_error().unwrap_or(Errno::IO.0))
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> std::io::Error {
        std::io::Error::from_raw_os_error(errno.0)
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::fmt::Debug for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Errno({self})")
    }
}

impl std::error::Error for Errno {}
