//! The blocks of a write-back cache's log, as bytes: the superblock, and what stands in front of a record's
//! data. Pure.
//!
//! ```text
//!   0        4 KiB     8 KiB                                                          area
//!   | superblock | its copy | ring:  header data… | header data… | (room) …            |
//! ```
//!
//! Version 2 says which records were durable when a block was written; version 1 does not, and is only read.
//!
//! Invariants
//! * What is read is nothing but bytes until its checksum, its log, its origin, its generation and its
//!   sequence are right and every extent lies on the origin; the data of a [`Header`] is nothing but
//!   bytes until [`Header::prove`].
//!
//! Deliberately absent: where records lie (`ring`), and any input or output.

use std::fmt;

use braid_block::Span;

use super::bytes::{checksum, get_u32, get_u64, put_u32, put_u64};

/// Bytes of a superblock, of a header, and what records and their data are rounded up to.
pub const BLOCK: u64 = 4096;
/// Where the ring starts: behind the superblock and its copy.
pub const RING_START: u64 = 2 * BLOCK;
/// Extents that a record has at most.
pub const MAX_EXTENTS: usize = 166;
/// Bytes of data that a record has at most: with its header it takes no more than 1 MiB.
pub const MAX_DATA: u64 = (1 << 20) - BLOCK;
/// Bytes of the text that says what the origin is, at most; what is longer is cut.
pub const MAX_TEXT: usize = 1024;

const SUPERBLOCK: &[u8; 8] = b"braidwbl";
const RECORD: &[u8; 8] = b"braidwbr";
/// The version that does not say what was durable.
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
    // Of superblocks.
    pub(super) const WRITTEN: usize = 64;
    pub(super) const AREA: usize = 72;
    pub(super) const TAIL: usize = 80;
    pub(super) const TAIL_SEQUENCE: usize = 88;
    pub(super) const IS_OPEN: usize = 96;
    pub(super) const TEXT_LEN: usize = 100;
    /// In version 1 the text lies here.
    pub(super) const SUPERBLOCK_DURABLE: usize = 104;
    pub(super) const TEXT: usize = 112;
    // Of records.
    pub(super) const SEQUENCE: usize = 64;
    pub(super) const DATA_LEN: usize = 72;
    pub(super) const DATA_SUM: usize = 80;
    pub(super) const COUNT: usize = 84;
    /// In version 1 the extents lie here.
    pub(super) const RECORD_DURABLE: usize = 88;
    pub(super) const EXTENTS: usize = 96;
}

/// Why bytes are not what they were taken for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Fewer bytes than there have to be.
    #[error("{0} bytes are too few")]
    Truncated(usize),
    /// Something else, or nothing.
    #[error("it does not start as one")]
    Magic,
    /// Of a format that is not known.
    #[error("its format has the number {0}, and only {SILENT} and {VERSION} are known")]
    Version(u32),
    /// Bits are wrong.
    #[error("its checksum is wrong")]
    Checksum,
    /// Of another log, another origin, another time.
    #[error("it belongs to another {0}")]
    Other(&'static str),
    /// A field has a value that cannot be.
    #[error("{what}: {value} cannot be")]
    Field {
        /// Which.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Which device is behind a cache: what must be the same for a log to be replayed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OriginId {
    /// In bytes.
    pub size: u64,
    /// A digest of what proves it: serial numbers, UUIDs.
    pub digest: [u8; 16],
}

impl fmt::Debug for OriginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {:032x}", self.size, u128::from_be_bytes(self.digest))
    }
}

/// Which records of a log count: those of this log, this origin, this time that it was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Of the log, made when it was formatted.
    pub uuid: [u8; 16],
    /// How many times it was opened for writing.
    pub generation: u64,
    /// What it is the log of.
    pub origin: OriginId,
}

/// What a log says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Whose records count.
    pub life: Life,
    /// How many superblocks of this log were written before: of two that are sound the higher counts.
    pub written: u64,
    /// Bytes of the log in all.
    pub area: u64,
    /// The position (see `ring`) of the first record that counts.
    pub tail: u64,
    /// Its sequence, also if there is none yet.
    pub tail_sequence: u64,
    /// The sequence before which all records were durable; none in version 1, which does not say it.
    pub durable: Option<u64>,
    /// Whether there may be records; else the origin has everything.
    pub is_open: bool,
    /// The origin as a stack, for people.
    pub text: String,
}

impl Superblock {
    /// Writes it over all of `block`.
    ///
    /// # Panics
    /// If `block` has not [`BLOCK`] bytes.
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

    /// Reads one, of a log that lies on `room` bytes.
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

    /// Whether `bytes` start as one, sound or not.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(SUPERBLOCK)
    }
}

/// What a record does to a part of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It holds the record's next bytes.
    Data,
    /// It holds zeroes.
    Zeroes,
    /// It may hold anything.
    Discard,
}

impl Kind {
    const fn number(self) -> u32 {
        match self {
            Kind::Data => 0,
            Kind::Zeroes => 1,
            Kind::Discard => 2,
        }
    }

    fn of_number(number: u32) -> Option<Kind> {
        [Kind::Data, Kind::Zeroes, Kind::Discard].into_iter().find(|kind| kind.number() == number)
    }
}

/// A part of the origin, in whole sectors of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where.
    pub span: Span,
    /// What becomes of it.
    pub kind: Kind,
}

impl Extent {
    /// Bytes of the record's data that are its.
    pub fn data_len(&self) -> u64 {
        if self.kind == Kind::Data { self.span.len } else { 0 }
    }
}

/// What stands in front of a record's data, which is yet to be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose.
    pub life: Life,
    /// Counted from 1 in each generation.
    pub sequence: u64,
    /// The sequence before which all records were durable; none in version 1, which does not say it.
    pub durable: Option<u64>,
    /// What it does, in this order; the data lies in the same.
    pub extents: Vec<Extent>,
    data_sum: u32,
}

impl Header {
    /// Returns the header of a record: all records before the sequence `durable` are durable.
    pub fn new(
        life: Life,
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

    /// Bytes of its data.
    pub fn data_len(&self) -> u64 {
        self.extents.iter().map(Extent::data_len).sum()
    }

    /// Bytes of the log that the record takes.
    pub fn record_len(&self) -> u64 {
        record_len(self.data_len())
    }

    /// Writes it over all of `block`.
    ///
    /// # Panics
    /// If `block` has not [`BLOCK`] bytes, or there are more extents than fit.
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

    /// Reads the header of record number `sequence` of `life`.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn parse(bytes: &[u8], life: &Life, sequence: u64) -> Result<Header, Rejection> {
        let header = Header::parse_any(bytes, life)?;
        if header.sequence == sequence { Ok(header) } else { Err(Rejection::Other("sequence")) }
    }

    /// Reads the header of any record of `life`.
    ///
    /// # Errors
    /// [`Rejection`].
    pub fn parse_any(bytes: &[u8], life: &Life) -> Result<Header, Rejection> {
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

    /// What the record does, if `data`, the bytes behind its header, are its own.
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

/// Bytes of the log that a record with so much data takes.
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
    match Kind::of_number(kind) {
        Some(kind) => Ok(Extent { span, kind }),
        None => Err(Rejection::Field { what: "an extent's kind", value: kind.into() }),
    }
}

fn start(block: &mut [u8], magic: &[u8; 8], life: &Life, durable: Option<u64>, at: usize) {
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

/// Returns where a field lies that is at `at` in version 2, and 8 bytes before in version 1.
fn place(at: usize, durable: Option<u64>) -> usize {
    if durable.is_some() { at } else { at - 8 }
}

fn durable_of(block: &[u8], at: usize) -> Option<u64> {
    (get_u32(block, at::VERSION) != SILENT).then(|| get_u64(block, at))
}

fn life_of(block: &[u8]) -> Life {
    let bytes = |from: usize| std::array::from_fn(|index| block[from + index]);
    let origin = OriginId { size: get_u64(block, at::ORIGIN_SIZE), digest: bytes(at::ORIGIN) };
    Life { uuid: bytes(at::UUID), generation: get_u64(block, at::GENERATION), origin }
}

/// Checks what all blocks have.
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

/// Puts the checksum over a block.
pub(crate) fn seal(block: &mut [u8]) {
    let sum = checksum(block, at::CHECKSUM);
    put_u32(block, at::CHECKSUM, sum);
}
