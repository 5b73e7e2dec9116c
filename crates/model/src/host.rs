//! The computer: its page cache, its calls, and what is between it and all its devices.

use crate::constants::{Constants, ProfileError};

/// The constants of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// A page of the page cache, in bytes.
    pub page_bytes: u64,
    /// The read-ahead window that a block device has unless told otherwise, in bytes.
    pub readahead_bytes: u64,
    /// Bytes per second that a call copies between the page cache and a process.
    pub copy_rate: f64,
    /// What a call costs without its bytes, in nanoseconds.
    pub call_ns: f64,
    /// What the processor takes for a small file that is made or read, without its disk, in nanoseconds.
    pub file_ns: f64,
    /// What it takes for a byte that a program reads or writes by character, in nanoseconds.
    pub stdio_ns: f64,
    /// Memory that the page cache may have, in bytes.
    pub cache_bytes: u64,
    /// How much of it may wait to be written before writers wait, in bytes.
    pub dirty_bytes: u64,
}

impl Host {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Host, ProfileError> {
        Ok(Host {
            page_bytes: constants.positive("page_bytes")? as u64,
            readahead_bytes: constants.positive("readahead_bytes")? as u64,
            copy_rate: constants.positive("copy_rate")?,
            call_ns: constants.at_least_zero("call_ns")?,
            file_ns: constants.at_least_zero("file_us")? * 1e3,
            stdio_ns: constants.at_least_zero("stdio_ns")?,
            cache_bytes: constants.positive("cache_bytes")? as u64,
            dirty_bytes: constants.at_least_zero("dirty_bytes")? as u64,
        })
    }
}

/// Calls that copy a buffer of theirs to memory: a call, and bytes that come from the caches as far
/// as the buffer is in them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copies {
    /// To a block device: nanoseconds a call, and a byte of a buffer that the third cache holds.
    pub node: (f64, f64),
    /// To a file, likewise.
    pub file: (f64, f64),
    /// What a byte saves of a buffer of at most so many bytes.
    near: (f64, f64),
    /// What a byte costs in addition of a buffer of more than so many bytes.
    far: (f64, f64),
}

impl Copies {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Copies, ProfileError> {
        let mut pair = |call, byte| Ok((constants.at_least_zero(call)?, constants.positive(byte)?));
        Ok(Copies {
            node: pair("node_call_ns", "node_byte_ns")?,
            file: pair("file_call_ns", "file_byte_ns")?,
            near: pair("near_ns", "near_bytes")?,
            far: pair("far_ns", "far_bytes")?,
        })
    }

    /// Bytes per second of calls of `bytes` each.
    pub fn rate(&self, (call_ns, byte_ns): (f64, f64), bytes: f64) -> f64 {
        let near = if bytes <= self.near.1 { self.near.0 } else { 0.0 };
        let far = if bytes > self.far.1 { self.far.0 } else { 0.0 };
        bytes / (call_ns + bytes * (byte_ns - near + far)) * 1e9
    }
}
