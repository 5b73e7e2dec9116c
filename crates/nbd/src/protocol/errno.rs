//! Error values (section "Error values").
//!
//! The protocol has its own closed set of eight; they equal Linux's numbers
//! for historical reasons only. An operating system's `errno` enters through
//! [`NbdErrno::from_os`] and never goes onto the wire unmapped.
//!
//! Absent on purpose: success. A reply without an error is another function.

/// An error value that may be put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum NbdErrno {
    /// `NBD_EPERM`: the export is read-only, or policy forbids it.
    Perm = 1,
    /// `NBD_EIO`: the medium failed.
    Io = 5,
    /// `NBD_ENOMEM`: SHOULD NOT be returned if at all possible.
    NoMem = 12,
    /// `NBD_EINVAL`: the request makes no sense.
    Inval = 22,
    /// `NBD_ENOSPC`: beyond the end of the export, or out of space.
    NoSpc = 28,
    /// `NBD_EOVERFLOW`: a read with `NBD_CMD_FLAG_DF` is too long.
    Overflow = 75,
    /// `NBD_ENOTSUP`: a fast zero would not be fast.
    NotSup = 95,
    /// `NBD_ESHUTDOWN`: the server is going away.
    Shutdown = 108,
}

impl NbdErrno {
    /// Every value, in ascending order.
    pub const ALL: [Self; 8] = [
        Self::Perm,
        Self::Io,
        Self::NoMem,
        Self::Inval,
        Self::NoSpc,
        Self::Overflow,
        Self::NotSup,
        Self::Shutdown,
    ];

    /// The value of the 32-bit *error* field. Never 0.
    #[must_use]
    pub const fn to_wire(self) -> u32 {
        self as u32
    }

    /// Reads an *error* field as a client does: `None` for 0 (success); an
    /// unexpected value counts as `NBD_EINVAL`, as the section asks.
    #[must_use]
    pub fn from_wire(value: u32) -> Option<Self> {
        if value == 0 {
            return None;
        }
        Some(Self::ALL.into_iter().find(|errno| errno.to_wire() == value).unwrap_or(Self::Inval))
    }

    /// Maps a Linux `errno` (positive) to the closest value of the protocol.
    ///
    /// `EDQUOT` and `EFBIG` become `NBD_ENOSPC` as the section asks; `EROFS`
    /// and `EACCES` become `NBD_EPERM`. Whatever else a device can say
    /// (`ENODEV`, `ETIMEDOUT`, `EREMOTEIO`, ...) is a failure of the medium
    /// and not of the request: `NBD_EIO`.
    #[must_use]
    pub const fn from_os(errno: i32) -> Self {
        match errno {
            1 | 13 | 30 => Self::Perm,    // EPERM, EACCES, EROFS
            12 => Self::NoMem,            // ENOMEM
            22 => Self::Inval,            // EINVAL
            27 | 28 | 122 => Self::NoSpc, // EFBIG, ENOSPC, EDQUOT
            75 => Self::Overflow,         // EOVERFLOW
            95 => Self::NotSup,           // EOPNOTSUPP, ENOTSUP
            108 => Self::Shutdown,        // ESHUTDOWN
            _ => Self::Io,
        }
    }

    /// Maps a [`std::io::Error`] by its raw number, or `NBD_EIO` if it has none.
    #[must_use]
    pub fn from_io(error: &std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::Io, Self::from_os)
    }
}

impl std::fmt::Display for NbdErrno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Perm => "NBD_EPERM",
            Self::Io => "NBD_EIO",
            Self::NoMem => "NBD_ENOMEM",
            Self::Inval => "NBD_EINVAL",
            Self::NoSpc => "NBD_ENOSPC",
            Self::Overflow => "NBD_EOVERFLOW",
            Self::NotSup => "NBD_ENOTSUP",
            Self::Shutdown => "NBD_ESHUTDOWN",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_values_are_the_specification_s() {
        let wire: Vec<u32> = NbdErrno::ALL.iter().map(|e| e.to_wire()).collect();
        assert_eq!(wire, [1, 5, 12, 22, 28, 75, 95, 108]);
        for errno in NbdErrno::ALL {
            assert_eq!(NbdErrno::from_wire(errno.to_wire()), Some(errno));
            // They happen to be Linux's own numbers.
            assert_eq!(NbdErrno::from_os(errno.to_wire() as i32), errno);
        }
        assert_eq!(NbdErrno::from_wire(0), None);
        assert_eq!(NbdErrno::from_wire(2), Some(NbdErrno::Inval));
    }

    #[test]
    fn os_errors_map_to_the_closed_set() {
        for (os, expected) in [
            (30, NbdErrno::Perm),
            (27, NbdErrno::NoSpc),
            (122, NbdErrno::NoSpc),
            (19, NbdErrno::Io),
            (110, NbdErrno::Io),
            (-5, NbdErrno::Io),
        ] {
            assert_eq!(NbdErrno::from_os(os), expected, "errno {os}");
        }
        assert_eq!(NbdErrno::from_io(&std::io::Error::other("x")), NbdErrno::Io);
    }
}
