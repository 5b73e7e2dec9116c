//! The steps of a copy.

use std::io::{self, IsTerminal};

use super::words;

/// Bytes of a read.
pub(super) const STEP: u64 = 1 << 20;
/// Bytes after which a copy is made durable and its state is written.
pub(super) const SAVED: u64 = 256 << 20;

/// Shows on a terminal how far the copy is.
pub(super) fn progress(done: u64, of: &str) {
    if io::stderr().is_terminal() {
        eprintln!("braid: {} of {of}", words::size(done));
    }
}
