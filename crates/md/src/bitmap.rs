//! The write-intent bitmap: which chunks may differ between members.
//!
//! ```text
//!   0        256                                                4096               8192
//!   | header | bits: chunk n is bit n%8 of byte 256 + n/8 …      | bits …            | …
//!   |<---------------- page 0 ---------------------------------->|<---- page 1 ----->|
//! ```
//!
//! A bit is set, and its page is durable, before a write to its chunk starts on any member; it is
//! cleared lazily once every member has the data, or when a resync has made them equal.
//!
//! What `events_cleared` means: the array's events when a bit was last cleared while every member
//! was there. A member that comes back with at least so many events has seen everything that is
//! no longer in the bitmap, so that copying the chunks whose bits are set is enough; one with
//! fewer needs a whole recovery. While a member is missing no bit is cleared and the number
//! stays. A bitmap whose own `events` are behind its array's is stale: all is to be taken as set.
//!
//! Invariants: there are bits for all chunks and they lie in the area that was given; bits behind
//! the last chunk are kept as they were (mdadm fills its area with ones). Deliberately absent:
//! counters of writes under way, which are the engine's; clustered and lockless bitmaps.
//!
//! Source: Linux `drivers/md/md-bitmap.h` (`bitmap_super_t`), `drivers/md/md-bitmap.c`
//! (`md_bitmap_read_sb`, `md_bitmap_storage_alloc`, `md_bitmap_endwrite`, `write_sb_page`).

mod copies;
mod of_array;

use crate::rejection::BitmapRejection;
use crate::{SECTOR, Uuid};

/// The first bytes of a bitmap: "bitm".
pub const BITMAP_MAGIC: u32 = 0x6d74_6962;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 256;
/// Bytes of a page, in which bitmaps are read and written.
pub const PAGE_BYTES: usize = 4096;

/// The most chunks of a bitmap that is kept up to date. mdadm leaves room for a million; each costs
/// a writer memory, and a damaged or hostile header may name any number.
pub const MOST_CHUNKS: u64 = 1 << 23;

/// The version whose bits are little-endian.
const LITTLE_ENDIAN: u32 = 4;
/// The version whose bits lie as the host had them.
const HOST_ENDIAN: u32 = 3;
const CLUSTERED: u32 = 5;
const LOCKLESS: u32 = 6;
/// Writes that may be behind, at most: what md's counters can hold.
pub const MOST_WRITE_BEHIND: u32 = 16_383;

const STATE_STALE: u32 = 1 << 1;
const STATE_WRITE_ERROR: u32 = 1 << 2;
const STATE_HOST_ENDIAN: u32 = 1 << 15;

/// The place of each field, in bytes.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION: usize = 4;
    pub(super) const UUID: usize = 8;
    pub(super) const EVENTS: usize = 24;
    pub(super) const EVENTS_CLEARED: usize = 32;
    pub(super) const SYNC_SIZE: usize = 40;
    pub(super) const STATE: usize = 48;
    pub(super) const CHUNKSIZE: usize = 52;
    pub(super) const DAEMON_SLEEP: usize = 56;
    pub(super) const WRITE_BEHIND: usize = 60;
    pub(super) const SECTORS_RESERVED: usize = 64;
    pub(super) const NODES: usize = 68;
    pub(super) const CLUSTER_NAME: usize = 72;
    pub(super) const PAD: usize = 136;
}

/// The header of a bitmap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitmapHeader {
    /// 4, or 3 if the order of the bits is that of an unknown host.
    pub version: u32,
    /// The array's identifier, as its bytes lie on disk
    /// ([`uuid_on_disk`](crate::superblock::Contents::uuid_on_disk)).
    pub uuid: Uuid,
    /// The array's events when the bitmap was last written.
    pub events: u64,
    /// See the module's head.
    pub events_cleared: u64,
    /// Number of bytes that the bitmap covers: of each member, for raid10 of the array.
    pub sync_size: u64,
    /// Out of date: all bits are to be taken as set.
    pub stale: bool,
    /// Writing it failed.
    pub write_error: bool,
    /// The bits lie in the order of the host that wrote them.
    pub host_endian: bool,
    /// Bytes that a bit stands for: a power of two, at least 512.
    pub chunk_size: u64,
    /// Seconds after which bits are cleared.
    pub daemon_sleep: u32,
    /// Number of writes to write-mostly members that may be in flight after the write completed.
    pub write_behind: u32,
    /// Bytes reserved for the bitmap; 0 if that is not recorded.
    pub reserved: u64,
    /// Nodes of a cluster; 0 for the versions that are read here.
    pub nodes: u32,
    /// The cluster's name, with zeroes behind it.
    pub cluster_name: [u8; 64],
    /// The bits of the state that have no meaning here, and the padding, as they were read.
    pub unknown: Unknown,
}

/// Fields of a header that are only preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Bits of the state.
    pub state: u32,
    /// The bytes behind the cluster's name.
    pub padding: [u8; HEADER_BYTES - at::PAD],
}

impl Default for Unknown {
    fn default() -> Unknown {
        Unknown { state: 0, padding: [0; HEADER_BYTES - at::PAD] }
    }
}

impl BitmapHeader {
    /// Reads the first [`HEADER_BYTES`] of `bytes`.
    ///
    /// # Errors
    /// [`BitmapRejection`]: as the kernel refuses, and clustered and lockless ones.
    pub fn parse(bytes: &[u8]) -> Result<BitmapHeader, BitmapRejection> {
        let bytes =
            bytes.get(..HEADER_BYTES).ok_or(BitmapRejection::Truncated { got: bytes.len() })?;
        if u32_at(bytes, at::MAGIC) != BITMAP_MAGIC {
            return Err(BitmapRejection::Magic(u32_at(bytes, at::MAGIC)));
        }
        let version = u32_at(bytes, at::VERSION);
        match version {
            HOST_ENDIAN | LITTLE_ENDIAN => {}
            CLUSTERED => {
                let nodes = u32_at(bytes, at::NODES);
                return Err(BitmapRejection::Clustered { nodes });
            }
            LOCKLESS => return Err(BitmapRejection::Lockless),
            _ => return Err(BitmapRejection::Version(version)),
        }
        let sectors = u64_at(bytes, at::SYNC_SIZE);
        if sectors >= 1 << 54 {
            return Err(BitmapRejection::SyncSize(sectors));
        }
        let state = u32_at(bytes, at::STATE);
        let header = BitmapHeader {
            version,
            uuid: Uuid(array_at(bytes, at::UUID)),
            events: u64_at(bytes, at::EVENTS),
            events_cleared: u64_at(bytes, at::EVENTS_CLEARED),
            sync_size: sectors * SECTOR,
            stale: state & STATE_STALE != 0,
            write_error: state & STATE_WRITE_ERROR != 0,
            host_endian: state & STATE_HOST_ENDIAN != 0 || version == HOST_ENDIAN,
            chunk_size: u32_at(bytes, at::CHUNKSIZE).into(),
            daemon_sleep: u32_at(bytes, at::DAEMON_SLEEP),
            write_behind: u32_at(bytes, at::WRITE_BEHIND),
            reserved: u64::from(u32_at(bytes, at::SECTORS_RESERVED)) * SECTOR,
            nodes: u32_at(bytes, at::NODES),
            cluster_name: array_at(bytes, at::CLUSTER_NAME),
            unknown: Unknown {
                // Version 3 is of the host's order with the bit and without.
                state: state
                    & !(STATE_STALE | STATE_WRITE_ERROR)
                    & if version == HOST_ENDIAN { u32::MAX } else { !STATE_HOST_ENDIAN },
                padding: array_at(bytes, at::PAD),
            },
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), BitmapRejection> {
        if self.chunk_size < SECTOR || !self.chunk_size.is_power_of_two() {
            return Err(BitmapRejection::ChunkSize(self.chunk_size));
        }
        if self.daemon_sleep == 0 {
            return Err(BitmapRejection::DaemonSleep);
        }
        if self.write_behind > MOST_WRITE_BEHIND {
            return Err(BitmapRejection::WriteBehind(self.write_behind));
        }
        Ok(())
    }

    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let flag = |holds: bool, bit: u32| if holds { bit } else { 0 };
        let mut state = self.unknown.state;
        state |= flag(self.stale, STATE_STALE) | flag(self.write_error, STATE_WRITE_ERROR);
        state |= flag(self.host_endian && self.version != HOST_ENDIAN, STATE_HOST_ENDIAN);
        put(at::MAGIC, &BITMAP_MAGIC.to_le_bytes());
        put(at::VERSION, &self.version.to_le_bytes());
        put(at::UUID, &self.uuid.0);
        put(at::EVENTS, &self.events.to_le_bytes());
        put(at::EVENTS_CLEARED, &self.events_cleared.to_le_bytes());
        put(at::SYNC_SIZE, &(self.sync_size / SECTOR).to_le_bytes());
        put(at::STATE, &state.to_le_bytes());
        put(at::CHUNKSIZE, &(self.chunk_size as u32).to_le_bytes());
        put(at::DAEMON_SLEEP, &self.daemon_sleep.to_le_bytes());
        put(at::WRITE_BEHIND, &self.write_behind.to_le_bytes());
        put(at::SECTORS_RESERVED, &((self.reserved / SECTOR) as u32).to_le_bytes());
        put(at::NODES, &self.nodes.to_le_bytes());
        put(at::CLUSTER_NAME, &self.cluster_name);
        put(at::PAD, &self.unknown.padding);
        bytes
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u64 {
        self.sync_size.div_ceil(self.chunk_size)
    }

    /// Returns the size of the bitmap on disk in bytes, with its header.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        HEADER_BYTES as u64 + self.chunk_count().div_ceil(8)
    }

    /// Returns true if bits can be written so that the next reader sees the same ones. If not, the bits that
    /// were read count as all set.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        !self.host_endian
    }
}

/// A write-intent bitmap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// The header. Its sizes must not be changed.
    pub header: BitmapHeader,
    /// Bit n of word m is chunk 64·m + n.
    bits: Vec<u64>,
}

impl Bitmap {
    /// All clear, for an area of `area` bytes.
    ///
    /// # Errors
    /// [`BitmapRejection`] if a value of the header is out of range, or the area is too small.
    pub fn new(header: BitmapHeader, area: u64) -> Result<Bitmap, BitmapRejection> {
        header.check()?;
        let words = words(&header, area)?;
        Ok(Bitmap { header, bits: vec![0; words] })
    }

    /// Reads a bitmap out of its area, which may be longer than it.
    ///
    /// # Errors
    /// [`BitmapRejection`], also if the area is too small for all chunks.
    pub fn parse(area: &[u8]) -> Result<Bitmap, BitmapRejection> {
        let header = BitmapHeader::parse(area)?;
        let words = words(&header, area.len() as u64)?;
        let bits = area[HEADER_BYTES..]
            .chunks(8)
            .take(words)
            .map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            })
            .collect();
        Ok(Bitmap { header, bits })
    }

    /// Returns the number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u64 {
        self.header.chunk_count()
    }

    /// Returns the size of the bitmap on disk in bytes, with its header.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.header.byte_len()
    }

    /// The chunk in which byte `offset` of what the bitmap covers lies.
    #[must_use]
    pub fn chunk_of(&self, offset: u64) -> u64 {
        offset / self.header.chunk_size
    }

    /// Returns true if `chunk` may differ between members.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn is_set(&self, chunk: u64) -> bool {
        let (word, bit) = self.place(chunk);
        self.bits[word] & bit != 0
    }

    /// Marks `chunk`. Whether that changed anything: then its page must be written.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn set(&mut self, chunk: u64) -> bool {
        let (word, bit) = self.place(chunk);
        let changed = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        changed
    }

    /// Unmarks `chunk`. Whether that changed anything.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn clear(&mut self, chunk: u64) -> bool {
        let (word, bit) = self.place(chunk);
        let changed = self.bits[word] & bit != 0;
        self.bits[word] &= !bit;
        changed
    }

    /// Marks all chunks.
    pub fn set_all(&mut self) {
        let chunks = self.chunk_count();
        for (index, word) in (0..).zip(&mut self.bits) {
            *word |= mask(index, chunks);
        }
    }

    /// Returns the number of set chunks.
    #[must_use]
    pub fn count_set(&self) -> u64 {
        let chunks = self.chunk_count();
        let ones =
            |(index, word): (u64, &u64)| u64::from((word & mask(index, chunks)).count_ones());
        (0..).zip(&self.bits).map(ones).sum()
    }

    /// The first marked chunk that is not below `from`.
    #[must_use]
    pub fn next_set(&self, from: u64) -> Option<u64> {
        let chunks = self.chunk_count();
        let first = usize::try_from(from / 64).ok()?;
        let mut below = (1 << (from % 64)) - 1;
        for (index, word) in (from / 64..).zip(self.bits.get(first..)?) {
            let word = word & mask(index, chunks) & !below;
            below = 0;
            if word != 0 {
                return Some(64 * index + u64::from(word.trailing_zeros()));
            }
        }
        None
    }

    /// Returns the number of pages.
    #[must_use]
    pub fn page_count(&self) -> u64 {
        self.byte_len().div_ceil(PAGE_BYTES as u64)
    }

    /// The page in which the bit of `chunk` lies.
    #[must_use]
    pub fn page_of(&self, chunk: u64) -> u64 {
        (HEADER_BYTES as u64 + chunk / 8) / PAGE_BYTES as u64
    }

    /// Returns the bytes of page `index` that belong to the bitmap, in whole sectors: no more may be written,
    /// because other data may follow on the last page.
    #[must_use]
    pub fn page_len(&self, index: u64) -> usize {
        let page = PAGE_BYTES as u64;
        let rest = self.byte_len().saturating_sub(index.saturating_mul(page));
        rest.next_multiple_of(SECTOR).min(page) as usize
    }

    /// Page `index` as it is on disk.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn page(&self, index: u64) -> [u8; PAGE_BYTES] {
        assert!(index < self.page_count(), "page {index} of {}", self.page_count());
        let mut page = [0; PAGE_BYTES];
        let (header, bits) = page.split_at_mut(if index == 0 { HEADER_BYTES } else { 0 });
        if index == 0 {
            header.copy_from_slice(&self.header.encode());
        }
        let skipped = if index == 0 { 0 } else { index as usize * PAGE_BYTES - HEADER_BYTES };
        for (bytes, word) in bits.chunks_exact_mut(8).zip(&self.bits[skipped / 8..]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    fn place(&self, chunk: u64) -> (usize, u64) {
        assert!(chunk < self.chunk_count(), "chunk {chunk} of {}", self.chunk_count());
        ((chunk / 64) as usize, 1 << (chunk % 64))
    }
}

/// The bits of word `index` that stand for one of `chunks` chunks.
fn mask(index: u64, chunks: u64) -> u64 {
    match chunks.saturating_sub(64 * index) {
        here if here >= 64 => u64::MAX,
        here => (1 << here) - 1,
    }
}

/// Returns the number of words of bits, with the rest of the last page; an error if they do not fit the area,
/// which bounds the allocation.
fn words(header: &BitmapHeader, area: u64) -> Result<usize, BitmapRejection> {
    let (needed, chunks) = (header.byte_len(), header.chunk_count());
    if chunks > MOST_CHUNKS {
        return Err(BitmapRejection::TooFine { chunks, most: MOST_CHUNKS });
    }
    if needed > area {
        return Err(BitmapRejection::AreaTooSmall { chunks, needed, area });
    }
    let kept = needed.next_multiple_of(PAGE_BYTES as u64).min(area);
    Ok(((kept - HEADER_BYTES as u64).div_ceil(8)) as usize)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
