//! The output of `braid examine` for one member.
//!
//! ```text
//!               ┌─ text      as `mdadm --examine`
//!               ├─ bitmap    as `mdadm --examine-bitmap`
//! bytes ─Written┼─ export    as `mdadm --examine --export`
//!               ├─ facts     for `--json`
//!               └─ explain   byte by byte, and the programs that would refuse it: `rules`
//! ```
//!
//! Invariants: every function works on [`Written`], the bytes as they are, so that a damaged superblock can be
//! examined too; no bytes cause a panic, and the length of the text is bounded; names are escaped if they could
//! control a terminal, which is the only intended difference from mdadm 4.2. Deliberately absent: I/O, the
//! clock, the time zone and the names of devices (see [`Surroundings`]), and any decision: the text shows bytes
//! without trusting them.

mod badblocks;
mod bitmap;
mod brief;
mod explain;
mod explain_values;
mod export;
mod facts;
mod fields;
mod rules;
mod rules_checks;
mod space;
mod text;
mod text_lines;
mod text_old;
mod words;
mod written;

pub use badblocks::bad_blocks_text;
pub use bitmap::{BitmapError, bitmap_text};
pub use brief::{brief, counts_as_spare};
pub use explain::explain;
pub use export::export;
pub use facts::{
    BadBlockLogFacts, BitmapFacts, DiskFacts, Facts, PplFacts, RefusalFacts, ReshapeFacts, facts,
};
pub use rules::{Refusal, Who, refusals};
pub use text::text;
pub use words::ctime;
pub use written::Written;

/// Facts that the text depends on, but that are not in a superblock.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The member's size in bytes.
    pub device_size: u64,
    /// The bytes at the place of the bitmap (at least its header), if there is one.
    pub bitmap: Option<&'a [u8]>,
    /// This machine's name: an array that was made on this machine is marked as local.
    pub host: Option<&'a str>,
    /// The offset of local time in seconds, at a time given in seconds since 1970.
    pub utc_offset: &'a dyn Fn(u64) -> i64,
    /// The path of the block device with a major and a minor number (for the table of 0.90).
    pub device_name: &'a dyn Fn(u32, u32) -> Option<String>,
}

impl Surroundings<'_> {
    /// The surroundings of a member of `device_size` bytes about which nothing else is known, in UTC.
    #[must_use]
    pub fn unknown(device_size: u64) -> Surroundings<'static> {
        Surroundings {
            device_size,
            bitmap: None,
            host: None,
            utc_offset: &|_| 0,
            device_name: &|_, _| None,
        }
    }

    fn time(&self, seconds: u64) -> String {
        words::ctime(seconds, (self.utc_offset)(seconds))
    }
}
