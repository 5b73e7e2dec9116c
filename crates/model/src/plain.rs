//! A device of a rate and a latency, and memory.

use crate::bus::Bus;
use crate::constants::{Constants, ProfileError};
use crate::nanoseconds;
use crate::place::Place;

/// A device of a rate and a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Rate of long reads, in bytes per second; at least 1.
    pub read_rate: u64,
    /// Rate of long writes, in bytes per second; at least 1.
    pub write_rate: u64,
    /// Time from a request to its first byte, unless it continues the one before, in
    /// nanoseconds.
    pub latency_ns: u64,
    /// Rate of the bus it hangs on, in bytes per second; 0 for a bus that is never the limit.
    pub bus_rate: u64,
}

impl Plain {
    /// Medium and bus at the same time, after the latency.
    pub(crate) fn serve(&self, bus: &mut Bus, at: &Place) -> u64 {
        let rate = if at.write { self.write_rate } else { self.read_rate };
        let ready = at.begin_ns + if at.continues { 0 } else { self.latency_ns };
        let medium_done = ready + nanoseconds(at.bytes, rate);
        medium_done.max(bus.reserve(at.now_ns, ready, at.bytes, at.direction()))
    }

    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Plain, ProfileError> {
        Ok(Plain {
            read_rate: constants.positive("read_rate")? as u64,
            write_rate: constants.positive("write_rate")? as u64,
            latency_ns: (constants.at_least_zero("latency_us")? * 1e3) as u64,
            bus_rate: constants.at_least_zero("bus_rate")? as u64,
        })
    }
}

/// Memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ram {
    /// Bytes per second that are copied, reading.
    pub read_rate: u64,
    /// Bytes per second that are copied, writing.
    pub write_rate: u64,
    /// Overhead of a request without its bytes, in nanoseconds.
    pub call_ns: u64,
    /// Extra time of a non-sequential request, in nanoseconds.
    pub random_ns: u64,
}

impl Ram {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Ram, ProfileError> {
        Ok(Ram {
            read_rate: constants.positive("read_rate")? as u64,
            write_rate: constants.positive("write_rate")? as u64,
            call_ns: constants.at_least_zero("call_ns")? as u64,
            random_ns: constants.at_least_zero("random_ns")? as u64,
        })
    }
}

impl Ram {
    /// Returns the time of a request, in nanoseconds.
    pub fn request_ns(&self, write: bool, bytes: u64, continues: bool) -> u64 {
        let rate = if write { self.write_rate } else { self.read_rate };
        let jump_ns = if continues { 0 } else { self.random_ns };
        self.call_ns + jump_ns + nanoseconds(bytes, rate)
    }
}
