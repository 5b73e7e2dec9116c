//! Cost of the log of an array with parity.

use crate::counters;

counters! {
    /// Cost of a log since the array was brought up. A logged write is a unit of rows of one stripe.
    pub struct LogCost {
        /// Writes that were logged, of one stripe's rows each.
        writes = "braid_log_writes_total",
        /// Bytes of data and parity that logged writes stored in place.
        stored_bytes = "braid_log_stored_bytes_total",
        /// Bytes that the log stored.
        log_bytes = "braid_log_written_bytes_total",
        /// Time of logged writes, added up.
        time_us = "braid_log_write_seconds_total",
        /// Time for which logged writes waited for the log.
        log_time_us = "braid_log_wait_seconds_total",
    }
}
