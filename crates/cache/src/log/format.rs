//! Encoding of the log of a write-back cache: the superblock, and the headers of records. Pure.
//!
//! ```text
//!   0        4 KiB     8 KiB                                                          area
//!   | superblock | its copy | ring:  header data… | header data… | (free) …            |
//! ```
//!
//! Blocks of version 2 state which records were durable when they were written. Version 1, without this, is only read.
//!
//! Invariants
//! * Bytes are untrusted until checksum, log, origin, generation and sequence match, and every extent lies on the
//!   origin. The data of a [`Header`] are untrusted until [`Header::prove`].
//!
//! Deliberately absent: the positions of records (`ring`), and I/O.

use std::fmt;

use braid_block::Span;

use super::bytes::{checksum, get_u32, get_u64, put_u32, put_u64};

/// Size of a superblock and of a header, and unit of records and their data, in bytes.
pub const BLOCK: u64 = 4096;
/// Offset of the ring: after the superblock and its copy.
pub const RING_START: u64 = 2 * BLOCK;
/// Maximum number of extents of a record.
pub const MAX_EXTENTS: usize = 166;
/// Maximum bytes of data of a record: with its header, it has at most 1 MiB.
pub const MAX_DATA: u64 = (1 << 20) - BLOCK;
/// Maximum bytes of the text that describes the origin; longer texts are truncated.
pub const MAX_TEXT: usize = 1024;

const SUPERBLOCK: &[u8; 8] = b"braidwbl";
const RECORD: &[u8; 8] = b"braidwbr";
/// The version without the sequence of durable records.
const SILENT: u32 = 1;
const VERSION: u32 = 2;
const SECTOR: u64 = 512;

mod at {
    pub(super) const VERSION: usize = 8;
    pub(super) const CHECKSUM: usize = 12;
    pub(super) const UUID: usize = 16;
    pub(super) const GENERATION: usize = 32;
    pub(super) const ORIGIN_SIZE: usize = 40;
    pub(super) const ORIGIN: usize = 48;
    // Fields of superblocks.
    pub(super) const WRITTEN: usize = 64;
    pub(super) const AREA: usize = 72;
    pub(super) const TAIL: usize = 80;
    pub(super) const TAIL_SEQUENCE: usize = 88;
    pub(super) const IS_OPEN: usize = 96;
    pub(super) const TEXT_LEN: usize = 100;
    /// Version 1 has the text here.
    pub(super) const SUPERBLOCK_DURABLE: usize = 104;
    pub(super) const TEXT: usize = 112;
    // Fields of records.
    pub(super) const SEQUENCE: usize = 64;
    pub(super) const DATA_LEN: usize = 72;
    pub(super) const DATA_SUM: usize = 80;
    pub(super) const COUNT: usize = 84;
    /// Version 1 has the extents here.
    pub(super) const RECORD_DURABLE: usize = 88;
    pub(super) const EXTENTS: usize = 96;
}

/// Reason to reject a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Too few bytes.
    #[error("{0} bytes are too few")]
    Truncated(usize),
    /// Another magic number.
    #[error("it does not start as one")]
    Magic,
    /// An unknown version.
    #[error("its format has the number {0}, and only {SILENT} and {VERSION} are known")]
    Version(u32),
    /// A wrong checksum.
    #[error("its checksum is wrong")]
    Checksum,
    /// A block of another log, origin, generation or sequence.
    #[error("it belongs to another {0}")]
    Other(&'static str),
    /// A field with an invalid value.
    #[error("{what}: {value} cannot be")]
    Field {
        /// Name of the field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Identity of the device behind a cache. A log is only replayed if it matches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OriginId {
    /// Size in bytes.
    pub size: u64,
    /// Digest of the evidence: serial numbers, UUIDs.
    pub digest: [u8; 16],
}

impl fmt::Debug for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {:032x}", self.size, u128::from_be_bytes(self.digest))
    }
}

/// Identity of valid records: the log, its generation, and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInstance {
    /// Identity of the log, from its creation.
    pub uuid: [u8; 16],
    /// Number of times that the log was opened for writing.
    pub generation: u64,
    /// Identity of the origin.
    pub origin: OriginId,
}

/// State of a log on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of valid records.
    pub life: LogInstance,
    /// Number of superblocks written before; of two valid ones, the higher is used.
    pub written: u64,
    /// Size of the log in bytes.
    pub area: u64,
    /// Position (see `ring`) of the first valid record.
    pub tail: u64,
    /// Sequence number of that record, even if it was not written yet.
    pub tail_sequence: u64,
    /// All records before this sequence number are durable; `None` in version 1.
    pub durable: Option<u64>,
    /// The log may have records. If not, the origin is complete.
    pub is_open: bool,
    /// The origin as a stack expression, for messages.
    pub text: String,
}

impl Superblock {
    /// Encodes the superblock into `block`.
    ///
    /// # Panics
    /// If `block` does not have [`BLOCK`] bytes.
    pub fn encode_into(&self, block: &mut [u8]) {
        start(block, SUPERBLOCK, &self.life, self.durable, at::SUPERBLOCK_DURABLE);
        put_u64(block, at::WRITTEN, self.written);
        put_u64(block, at::AREA, self.area);
        put_u64(block, at::TAIL, self.tail);
        put_u64(block, at::TAIL_SEQUENCE, self.tail_sequence);
        put_u32(block, at::IS_OPEN, self.is_open.into());
        let text = &self.text[..self.text.floor_char_boundary(MAX_TEXT)];
        put_u32(block, at::TEXT_LEN, u32::try_from(text.len()).unwrap_or(0));
        let start = place(at::TEXT, self.durable);
        block[start..start + text.len()].copy_from_slice(text.as_bytes());
        seal(block);
    }

    /// Parses a superblock of a log on a device of `room` bytes.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn parse(bytes: &[u8], room: u64) -> Result<Superblock, Rejection> {
        let block = check(bytes, SUPERBLOCK)?;
        let area = get_u64(block, at::AREA);
        if !area.is_multiple_of(BLOCK) || area <= RING_START || area > room {
            return Err(Rejection::Field { what: "area", value: area });
        }
        let (tail, tail_sequence) = (get_u64(block, at::TAIL), get_u64(block, at::TAIL_SEQUENCE));
        if !tail.is_multiple_of(BLOCK) || tail > 1 << 62 {
            return Err(Rejection::Field { what: "tail", value: tail });
        }
        let written = get_u64(block, at::WRITTEN);
        let life = life_of(block);
        let durable = durable_of(block, at::SUPERBLOCK_DURABLE);
        for (what, value) in [
            ("sequence", tail_sequence),
            ("written", written),
            ("generation", life.generation),
            ("durable", durable.unwrap_or(0)),
        ] {
            if value > 1 << 62 {
                return Err(Rejection::Field { what, value });
            }
        }
        let len = get_u32(block, at::TEXT_LEN);
        let text = block[place(at::TEXT, durable)..][..MAX_TEXT].get(..len as usize);
        let Some(text) = text.and_then(|text| str::from_utf8(text).ok()) else {
            return Err(Rejection::Field { what: "text", value: len.into() });
        };
        let is_open = match get_u32(block, at::IS_OPEN) {
            value @ 0..=1 => value == 1,
            value => return Err(Rejection::Field { what: "state", value: value.into() }),
        };
        let text = text.to_owned();
        Ok(Superblock { life, written, area, tail, tail_sequence, durable, is_open, text })
    }

    /// Returns whether `bytes` have the magic number of a superblock, valid or not.
    pub fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(SUPERBLOCK)
    }
}

/// Effect of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Writes the next bytes of the record's data.
    Data,
    /// Writes zeroes.
    Zeroes,
    /// Discards the content.
    Discard,
}

impl Effect {
    const fn number(self) -> u32 {
        match self {
            Effect::Data => 0,
            Effect::Zeroes => 1,
            Effect::Discard => 2,
        }
    }

    fn of_number(number: u32) -> Option<Effect> {
        [Effect::Data, Effect::Zeroes, Effect::Discard]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

/// Part of the origin, in whole sectors of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The sectors.
    pub span: Span,
    /// The effect on them.
    pub kind: Effect,
}

impl Extent {
    /// Returns the number of bytes of the record's data that belong to the extent.
    pub fn data_len(&self) -> u64 {
        if self.kind == Effect::Data { self.span.len } else { 0 }
    }
}

/// Header of a record, whose data are not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Identity of the log.
    pub life: LogInstance,
    /// Sequence number, from 1 in each generation.
    pub sequence: u64,
    /// All records before this sequence number are durable; `None` in version 1.
    pub durable: Option<u64>,
    /// Extents in the order of their application and of their data.
    pub extents: Vec<Extent>,
    data_sum: u32,
}

impl Header {
    /// Returns the header of a record: all records before the sequence `durable` are durable.
    pub fn new(
        life: LogInstance,
        sequence: u64,
        durable: u64,
        extents: Vec<Extent>,
        data: &[u8],
    ) -> Header {
        debug_assert!(!extents.is_empty() && extents.len() <= MAX_EXTENTS, "{extents:?}");
        let durable = Some(durable);
        let header = Header { life, sequence, durable, extents, data_sum: crc32c::crc32c(data) };
        debug_assert_eq!(header.data_len(), data.len() as u64, "the data of a record");
        header
    }

    /// Returns the length of the data in bytes.
    pub fn data_len(&self) -> u64 {
        self.extents.iter().map(Extent::data_len).sum()
    }

    /// Returns the length of the record in the log, in bytes.
    pub fn record_len(&self) -> u64 {
        record_len(self.data_len())
    }

    /// Encodes the header into `block`.
    ///
    /// # Panics
    /// If `block` does not have [`BLOCK`] bytes, or there are too many extents.
    pub fn encode_into(&self, block: &mut [u8]) {
        start(block, RECORD, &self.life, self.durable, at::RECORD_DURABLE);
        put_u64(block, at::SEQUENCE, self.sequence);
        put_u64(block, at::DATA_LEN, self.data_len());
        put_u32(block, at::DATA_SUM, self.data_sum);
        put_u32(block, at::COUNT, u32::try_from(self.extents.len()).unwrap_or(u32::MAX));
        let fields = block[place(at::EXTENTS, self.durable)..].chunks_exact_mut(24);
        assert!(self.extents.len() <= fields.len(), "{} extents", self.extents.len());
        for (field, extent) in fields.zip(&self.extents) {
            put_u64(field, 0, extent.span.offset);
            put_u64(field, 8, extent.span.len);
            put_u32(field, 16, extent.kind.number());
        }
        seal(block);
    }

    /// Parses the header of record `sequence` of this log instance.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn parse(bytes: &[u8], life: &LogInstance, sequence: u64) -> Result<Header, Rejection> {
        let header = Header::parse_any(bytes, life)?;
        if header.sequence == sequence { Ok(header) } else { Err(Rejection::Other("sequence")) }
    }

    /// Parses the header of any record of this log instance.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn parse_any(bytes: &[u8], life: &LogInstance) -> Result<Header, Rejection> {
        let block = check(bytes, RECORD)?;
        let found = life_of(block);
        if found.uuid != life.uuid {
            return Err(Rejection::Other("log"));
        }
        if found.origin != life.origin {
            return Err(Rejection::Other("origin"));
        }
        let is_old = found.generation != life.generation;
        if is_old && !crate::canary::Canary::OlderGenerationReplayed.is_planted() {
            return Err(Rejection::Other("generation"));
        }
        let durable = durable_of(block, at::RECORD_DURABLE);
        let count = get_u32(block, at::COUNT);
        let fields = block[place(at::EXTENTS, durable)..].chunks_exact(24);
        if count == 0 || count as usize > fields.len() {
            return Err(Rejection::Field { what: "extents", value: count.into() });
        }
        let fields = fields.take(count as usize);
        let mut extents = Vec::with_capacity(count as usize);
        let mut data_len = 0;
        for field in fields {
            let extent = extent_of(field, life.origin.size)?;
            data_len += extent.data_len();
            if data_len > MAX_DATA {
                return Err(Rejection::Field { what: "data", value: data_len });
            }
            extents.push(extent);
        }
        let (sequence, data_sum) = (get_u64(block, at::SEQUENCE), get_u32(block, at::DATA_SUM));
        if let Some(value) = durable.filter(|durable| *durable > sequence) {
            return Err(Rejection::Field { what: "durable", value });
        }
        let stored = get_u64(block, at::DATA_LEN);
        if stored != data_len {
            return Err(Rejection::Field { what: "data", value: stored });
        }
        Ok(Header { life: found, sequence, durable, extents, data_sum })
    }

    /// Verifies `data`, the bytes after the header, and returns the extents with their data.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn prove<'a>(&'a self, data: &'a [u8]) -> Result<Vec<(Extent, &'a [u8])>, Rejection> {
        let data = usize::try_from(self.data_len()).ok().and_then(|len| data.get(..len));
        let Some(mut data) = data else { return Err(Rejection::Truncated(0)) };
        let is_wrong = crc32c::crc32c(data) != self.data_sum;
        if is_wrong && !crate::canary::Canary::HeaderBeforeData.is_planted() {
            return Err(Rejection::Checksum);
        }
        let parts = self.extents.iter().map(|extent| {
            let (part, rest) = data.split_at(usize::try_from(extent.data_len()).unwrap_or(0));
            data = rest;
            (*extent, part)
        });
        Ok(parts.collect())
    }
}

/// Returns the length in the log of a record with this much data, in bytes.
pub fn record_len(data_len: u64) -> u64 {
    BLOCK + data_len.next_multiple_of(BLOCK)
}

fn extent_of(field: &[u8], size: u64) -> Result<Extent, Rejection> {
    let span = Span::new(get_u64(field, 0), get_u64(field, 8));
    if span.is_empty() || !span.is_within(size) {
        return Err(Rejection::Field { what: "an extent's length", value: span.len });
    }
    if !span.offset.is_multiple_of(SECTOR) || !span.len.is_multiple_of(SECTOR) {
        return Err(Rejection::Field { what: "an extent's place", value: span.offset });
    }
    let kind = get_u32(field, 16);
    match Effect::of_number(kind) {
        Some(kind) => Ok(Extent { span, kind }),
        None => Err(Rejection::Field { what: "an extent's kind", value: kind.into() }),
    }
}

fn start(block: &mut [u8], magic: &[u8; 8], life: &LogInstance, durable: Option<u64>, at: usize) {
    assert_eq!(block.len() as u64, BLOCK, "bytes of a block");
    block.fill(0);
    block[..8].copy_from_slice(magic);
    put_u32(block, at::VERSION, if durable.is_some() { VERSION } else { SILENT });
    put_u64(block, at, durable.unwrap_or(0));
    block[at::UUID..at::UUID + 16].copy_from_slice(&life.uuid);
    put_u64(block, at::GENERATION, life.generation);
    put_u64(block, at::ORIGIN_SIZE, life.origin.size);
    block[at::ORIGIN..at::ORIGIN + 16].copy_from_slice(&life.origin.digest);
}

/// Returns the offset of a field that is at `at` in version 2, and 8 bytes before in version 1.
fn place(at: usize, durable: Option<u64>) -> usize {
    if durable.is_some() { at } else { at - 8 }
}

fn durable_of(block: &[u8], at: usize) -> Option<u64> {
    (get_u32(block, at::VERSION) != SILENT).then(|| get_u64(block, at))
}

fn life_of(block: &[u8]) -> LogInstance {
    let bytes = |from: usize| std::array::from_fn(|index| block[from + index]);
    let origin = OriginId { size: get_u64(block, at::ORIGIN_SIZE), digest: bytes(at::ORIGIN) };
    LogInstance { uuid: bytes(at::UUID), generation: get_u64(block, at::GENERATION), origin }
}

/// Checks magic number, version and checksum.
fn check<'a>(bytes: &'a [u8], magic: &[u8; 8]) -> Result<&'a [u8], Rejection> {
    let block = bytes.get(..BLOCK as usize).ok_or(Rejection::Truncated(bytes.len()))?;
    if !block.starts_with(magic) {
        return Err(Rejection::Magic);
    }
    match get_u32(block, at::VERSION) {
        SILENT | VERSION if get_u32(block, at::CHECKSUM) == checksum(block, at::CHECKSUM) => {
            Ok(block)
        }
        SILENT | VERSION => Err(Rejection::Checksum),
        other => Err(Rejection::Version(other)),
    }
}

/// Writes the checksum of a block.
pub(crate) fn seal(block: &mut [u8]) {
    let sum = checksum(block, at::CHECKSUM);
    put_u32(block, at::CHECKSUM, sum);
}
