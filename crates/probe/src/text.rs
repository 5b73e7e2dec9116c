//! Files of text that a user names: a device, or an image by mistake, is not read to its end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that a file of text has, in bytes.
const MOST: u64 = 16 << 20;

/// Reads a file of text.
///
/// # Errors
/// It cannot be read, is not UTF-8, or has more than [`MOST`] bytes.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let len = File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)? as u64;
    if len > MOST {
        return Err(io::Error::other(format!("it has more than {} MiB", MOST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
}
