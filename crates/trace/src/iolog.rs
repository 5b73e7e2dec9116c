//! Lines of fio's iolog, version 3.
//!
//! ```text
//!   fio version 3 iolog
//!   0 NAME add
//!   0 NAME open
//!   1503 NAME write 1011712 4096 fua
//!   1731 NAME sync 0 0
//!   2210 NAME close
//! ```
//!
//! Times are microseconds since the beginning (measured with fio 3.33; its manual has no unit). The word
//! `fua` is braid's: fio reads five words of a line and passes over others.

use std::io::Write;

use crate::{Kind, Request};

/// The first line of a version 2 iolog.
pub const VERSION_2: &str = "fio version 2 iolog";
/// The first line of a version 3 iolog.
pub const VERSION_3: &str = "fio version 3 iolog";

/// The longest that [`line()`] makes, in bytes, beside the name.
pub const LONGEST_LINE: usize = 80;

/// The lines before the requests to `name`, which has no blanks.
pub fn head(name: &str) -> String {
    format!("{VERSION_3}\n0 {name} add\n0 {name} open\n")
}

/// The lines after them.
pub fn tail(name: &str, at_ns: u64) -> String {
    format!("{} {name} close\n", at_ns / 1000)
}

/// Puts the line of `request` to `name` behind what is in `out`.
pub fn line(out: &mut Vec<u8>, name: &str, request: &Request) {
    let Request { at_ns, offset, length, kind, fua } = request;
    let (action, fua) = (action(*kind), if *fua { " fua" } else { "" });
    writeln!(out, "{} {name} {action} {offset} {length}{fua}", at_ns / 1000)
        .expect("memory takes all that is written");
}

fn action(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Discard => "trim",
        // Which fio's nbd engine knows, too; it refuses `datasync`.
        Kind::Flush => "sync",
    }
}
