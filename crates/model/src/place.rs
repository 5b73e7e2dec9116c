//! A request, as the caller and the parts of a timetable see it.

use crate::bus::Direction;

/// The transfer of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Bytes from the device.
    Read {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// Bytes to the device.
    Write {
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// No bytes: a flush, a discard. It waits for what came before it, and what comes behind it waits for it.
    Command,
}

/// A request and where the device is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// When it came: others may still reserve the bus from here on.
    pub(crate) now_ns: u64,
    /// When the device is free for it.
    pub(crate) begin_ns: u64,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// True if it begins where the previous one ended, in the same direction.
    pub(crate) continues: bool,
}

impl Place {
    pub(crate) fn direction(&self) -> Direction {
        if self.write { Direction::Out } else { Direction::In }
    }
}
