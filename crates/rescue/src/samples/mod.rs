//! Files that carry their own checksums, checked: the only proof that the bytes of files, and not metadata alone, are
//! where they belong.
//!
//! ```text
//!   first bytes ──▶ Format ──▶ check(bytes) ──▶ Good, or faults: ranges of the file, and why
//!                                                   │
//!   stack expression ──▶ Places: bytes of the volume ┴──▶ members ──▶ the member that all bad ranges share
//! ```
//!
//! Invariants
//! * All bytes are untrusted. No check panics; its time and memory are bounded by the length of the file and by
//!   [`MOST_UNPACKED`].
//! * A file is bad only if bytes contradict each other. What is merely unknown is [`Finding::Unknown`].
//!
//! Deliberately absent: I/O, and decoding of pictures and pages. Formats without checksums are checked for their structure
//! alone ([`Format::has_checksums`]).

mod bytes;
mod documents;
mod fuzz_target;
mod packed;
mod pictures;
mod places;
mod sqlite;
mod walked;
mod zip;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use braid_seed::Rng;

pub use fuzz_target::fuzz_samples;
pub use places::Places;
pub use walked::{HOLE, Witnesses, witnesses};

/// The most bytes that one file is unpacked to.
pub const MOST_UNPACKED: u64 = 256 << 20;
/// Bytes at the start of a file by which its format is recognised.
pub const HEAD: usize = 512;

/// A format whose files can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PNG: a CRC-32 of each chunk.
    Png,
    /// JPEG: markers up to the end of the picture.
    Jpeg,
    /// ZIP, also of office documents and Java archives: a CRC-32 of each member.
    Zip,
    /// gzip: a CRC-32 of the content.
    Gzip,
    /// xz: CRC-32 of its headers, index and footer.
    Xz,
    /// tar: a sum in each header.
    Tar,
    /// PDF: the table of objects where its end says.
    Pdf,
    /// SQLite: pages of trees, and their cells.
    Sqlite,
}

/// Bytes of a file that do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The bytes of the file among which something is wrong.
    pub range: Range<usize>,
    /// In words.
    pub why: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All that was compared fits.
    Good,
    /// Some does not.
    Bad(Vec<Fault>),
    /// There was nothing that could be compared.
    Unknown,
}

impl Format {
    /// Recognises the format of a file by its first bytes, [`HEAD`] of them if it has as many.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Format> {
        let has =
            |at: usize, magic: &[u8]| head.get(at..).is_some_and(|one| one.starts_with(magic));
        let formats: [(usize, &[u8], Format); 8] = [
            (0, b"\x89PNG\r\n\x1a\n", Format::Png),
            (0, b"\xff\xd8\xff", Format::Jpeg),
            (0, b"PK\x03\x04", Format::Zip),
            (0, b"\x1f\x8b\x08", Format::Gzip),
            (0, b"\xfd7zXZ\0", Format::Xz),
            (257, b"ustar", Format::Tar),
            (0, b"%PDF-", Format::Pdf),
            (0, b"SQLite format 3\0", Format::Sqlite),
        ];
        formats.into_iter().find(|(at, magic, _)| has(*at, magic)).map(|(_, _, format)| format)
    }

    /// The name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "PNG",
            Format::Jpeg => "JPEG",
            Format::Zip => "ZIP",
            Format::Gzip => "gzip",
            Format::Xz => "xz",
            Format::Tar => "tar",
            Format::Pdf => "PDF",
            Format::Sqlite => "SQLite",
        }
    }

    /// True if checksums cover the content, so that any change is noticed.
    #[must_use]
    pub fn has_checksums(self) -> bool {
        matches!(self, Format::Png | Format::Zip | Format::Gzip)
    }

    /// True for a file that is whole beyond doubt, of a format without checksums: a picture that ends with its last byte, a
    /// database of which all pages are what they must be. Others of them say nothing.
    pub(crate) fn is_whole_without(self, bytes: &[u8]) -> bool {
        match self {
            Format::Jpeg => pictures::end_of_jpeg(bytes) == Ok(bytes.len()),
            Format::Sqlite => sqlite::sqlite(bytes) == Finding::Good,
            _ => false,
        }
    }

    /// True if the start of a file says where it ends, so that a file can be followed without its length.
    #[must_use]
    pub fn ends_by_itself(self) -> bool {
        matches!(self, Format::Png | Format::Jpeg | Format::Gzip)
    }

    /// Checks a file: its bytes, which may be followed by others.
    #[must_use]
    pub fn check(self, bytes: &[u8]) -> Finding {
        match self {
            Format::Png => pictures::png(bytes),
            Format::Jpeg => pictures::jpeg(bytes),
            Format::Zip => zip::zip(bytes),
            Format::Gzip => packed::gzip(bytes),
            Format::Xz => packed::xz(bytes),
            Format::Tar => documents::tar(bytes),
            Format::Pdf => documents::pdf(bytes),
            Format::Sqlite => sqlite::sqlite(bytes),
        }
    }
}

impl Finding {
    fn of(faults: Vec<Fault>) -> Finding {
        if faults.is_empty() { Finding::Good } else { Finding::Bad(faults) }
    }

    fn bad(range: Range<usize>, why: impl Into<String>) -> Finding {
        Finding::Bad(vec![Fault { range, why: why.into() }])
    }
}

/// Returns the numbers below `count` in an order that a seed draws: each beginning of it is a sample.
#[must_use]
pub fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    Rng::new(seed).shuffle(&mut order);
    order
}

/// Returns Wilson's bounds of a share of which `good` of `good + bad` were drawn, with a confidence of 95 %; `None` without
/// a draw.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "samples are few")]
pub fn wilson(good: u64, bad: u64) -> Option<(f64, f64)> {
    const Z: f64 = 1.96;
    let count = (good + bad) as f64;
    (count > 0.0).then(|| {
        let share = good as f64 / count;
        let middle = share + Z * Z / (2.0 * count);
        let half = Z * (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt();
        let scale = 1.0 + Z * Z / count;
        (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
    })
}

/// Returns the member that all bad files share and no other does; of several, the only one that no good file needs.
/// `bad` and `good` are the members of each file.
#[must_use]
pub fn suspect(bad: &[BTreeSet<String>], good: &[BTreeSet<String>]) -> Option<String> {
    if bad.len() < 2 {
        return None;
    }
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    bad.iter().flatten().for_each(|member| *counts.entry(member).or_default() += 1);
    let shared: Vec<&String> = counts
        .into_iter()
        .filter(|(_, count)| *count == bad.len())
        .map(|(member, _)| member)
        .collect();
    let unused = |member: &&&String| !good.iter().any(|file| file.contains(**member));
    let spare: Vec<&&String> = shared.iter().filter(unused).collect();
    match (shared.as_slice(), spare.as_slice()) {
        ([one], _) => Some((*one).clone()),
        (_, [one]) => Some((**one).clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
