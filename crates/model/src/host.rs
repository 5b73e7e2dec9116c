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
    /// Overhead of a call without its bytes, in nanoseconds.
    pub call_ns: f64,
    /// Processor time of making or reading a small file, without its disk, in nanoseconds.
    pub file_ns: f64,
    /// Processor time of a byte that a program reads or writes by character, in nanoseconds.
    pub stdio_ns: f64,
    /// Memory that the page cache may have, in bytes.
    pub cache_bytes: u64,
    /// Part of the page cache that may be dirty before writers wait, in bytes.
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
