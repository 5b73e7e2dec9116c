//! The text of `mdadm --examine-bitmap`: a write-intent bitmap's header, and how many of its bits
//! are set.
//!
//! ```text
//! 0      4       8     24      32        40         48     52     56          60
//! | bitm | vers. | UUID | events | cleared | sync size | state | chunk | flush | write behind
//! ```
//!
//! Deliberately absent: the slots of a clustered bitmap, each of which has a header of its own.
//!
//! Source: mdadm 4.2 `bitmap.c`, Linux `drivers/md/md-bitmap.h` (`bitmap_super_s`).

use std::fmt::Write as _;

use super::words::{human_size, printable, sectors};
use braid_md::bitmap::{BITMAP_MAGIC, HEADER_BYTES};
use braid_md::{Uuid, Version};

/// Why there is no text for a bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BitmapError {
    /// Fewer bytes than a header has.
    #[error("the bitmap is cut off: {length} bytes, and its header alone has 256")]
    Short {
        /// The number of bytes present.
        length: usize,
    },
    /// The place contains something else.
    #[error("there is no bitmap: it would start with 6d746962, and here is {magic:08x}")]
    Magic {
        /// The number found.
        magic: u32,
    },
    /// An unknown version.
    #[error("the bitmap is of version {version}: known are 3, 4 and 5 (clustered)")]
    Version {
        /// The number found.
        version: u32,
    },
}

/// A bitmap's header, believed or not.
#[derive(Clone, Copy)]
pub(super) struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Header<'a> {
        Header(bytes)
    }

    fn array<const N: usize>(self, offset: usize) -> [u8; N] {
        std::array::from_fn(|index| self.0.get(offset + index).copied().unwrap_or(0))
    }

    fn u32(self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    fn u64(self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    pub(super) fn magic(self) -> u32 {
        self.u32(0)
    }

    pub(super) fn version(self) -> u32 {
        self.u32(4)
    }

    pub(super) fn events(self) -> u64 {
        self.u64(24)
    }

    pub(super) fn events_cleared(self) -> u64 {
        self.u64(32)
    }

    /// In sectors.
    pub(super) fn sync_size(self) -> u64 {
        self.u64(40)
    }

    pub(super) fn state(self) -> u32 {
        self.u32(48)
    }

    /// In bytes.
    pub(super) fn chunk(self) -> u32 {
        self.u32(52)
    }

    pub(super) fn flush_seconds(self) -> u32 {
        self.u32(56)
    }

    pub(super) fn write_behind(self) -> u32 {
        self.u32(60)
    }

    pub(super) fn nodes(self) -> u32 {
        self.u32(68)
    }

    pub(super) fn cluster_name(self) -> String {
        printable(&self.array::<64>(72))
    }

    /// One bit a chunk; 0 where the header makes no sense.
    pub(super) fn bits(self) -> u64 {
        let bytes = self.sync_size().saturating_mul(braid_md::SECTOR);
        if self.chunk() == 0 { 0 } else { bytes.div_ceil(u64::from(self.chunk())) }
    }

    /// Bytes of header and bits.
    pub(super) fn size(self) -> u64 {
        self.bits().div_ceil(8) + HEADER_BYTES as u64
    }

    /// The number of bits, as far as there are bytes for them, and the number of set bits.
    pub(super) fn count(self) -> (u64, u64) {
        let bytes = self.0.get(HEADER_BYTES..).unwrap_or(&[]);
        let bits = self.bits().min(bytes.len() as u64 * 8);
        let (whole, rest) = ((bits / 8) as usize, bits % 8);
        let mut set: u64 = bytes[..whole].iter().map(|byte| u64::from(byte.count_ones())).sum();
        if rest > 0 {
            set += u64::from((bytes[whole] & ((1 << rest) - 1)).count_ones());
        }
        (bits, set)
    }
}

/// The text for the bitmap of a member of `version`, `bytes` being its header and its bits, and
/// `name` what stands for the file's name.
///
/// # Errors
/// If there is no bitmap, or one of an unknown version.
pub fn bitmap_text(name: &str, version: Version, bytes: &[u8]) -> Result<String, BitmapError> {
    let header = Header::new(bytes);
    if bytes.len() < HEADER_BYTES {
        return Err(BitmapError::Short { length: bytes.len() });
    }
    if header.magic() != BITMAP_MAGIC {
        return Err(BitmapError::Magic { magic: header.magic() });
    }
    if !(3..=5).contains(&header.version()) {
        return Err(BitmapError::Version { version: header.version() });
    }
    let mut out = String::new();
    write_text(&mut out, name, version, header).expect("a string takes everything");
    Ok(out)
}

fn write_text(
    out: &mut String,
    name: &str,
    version: Version,
    header: Header<'_>,
) -> std::fmt::Result {
    writeln!(out, "        Filename : {name}")?;
    writeln!(out, "           Magic : {:08x}", header.magic())?;
    writeln!(out, "         Version : {}", header.version())?;
    writeln!(out, "            UUID : {}", uuid(version, header))?;
    let clustered = header.nodes() != 0;
    if !clustered {
        writeln!(out, "          Events : {}", header.events())?;
        writeln!(out, "  Events Cleared : {}", header.events_cleared())?;
        writeln!(out, "           State : {}", state_name(header.state()))?;
    }
    writeln!(out, "       Chunksize : {}", chunk_size(header.chunk()))?;
    writeln!(out, "          Daemon : {}s flush period", header.flush_seconds().cast_signed())?;
    match header.write_behind().cast_signed() {
        0 => writeln!(out, "      Write Mode : Normal")?,
        max => writeln!(out, "      Write Mode : Allow write behind, max {max}")?,
    }
    let size = header.sync_size();
    writeln!(out, "       Sync Size : {}{}", size / 2, human_size(sectors(size)))?;
    if clustered {
        writeln!(out, "   Cluster nodes : {}", header.nodes().cast_signed())?;
        return writeln!(out, "    Cluster name : {:<64}", header.cluster_name());
    }
    let (bits, set) = header.count();
    let percent = 100.0 * set as f64 / bits.max(1) as f64;
    writeln!(out, "          Bitmap : {bits} bits (chunks), {set} dirty ({percent:.1}%)")
}

/// The array's identifier; a bitmap of 0.90 holds it as four little-endian words.
fn uuid(version: Version, header: Header<'_>) -> Uuid {
    let mut bytes = header.array::<16>(8);
    if version == Version::V0_90 {
        bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    }
    Uuid(bytes)
}

fn state_name(state: u32) -> &'static str {
    match state {
        0 => "OK",
        2 => "Out of date",
        _ => "Unknown",
    }
}

/// `64 KB`: whole units, the rest cut off.
fn chunk_size(bytes: u32) -> String {
    let unit = if bytes == 0 { 0 } else { bytes.ilog2() / 10 };
    format!("{} {}", bytes >> (10 * unit), ["B", "KB", "MB", "GB"][unit as usize])
}
