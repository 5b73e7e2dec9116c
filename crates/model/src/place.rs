//! A request, as the parts of a timetable see it.

use crate::bus::Direction;

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
    /// Whether it begins where the one before ended, in the same direction.
    pub(crate) continues: bool,
}

impl Place {
    pub(crate) fn direction(&self) -> Direction {
        if self.write { Direction::Out } else { Direction::In }
    }
}
