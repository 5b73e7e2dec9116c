//! The superblock of btrfs, and the places of logical addresses.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bytes::{byte, le16, le32, le64, slice};
use crate::error::{FilesError, Tried, Trouble, check};
use crate::source::Reader;

const KIND: &str = "btrfs";
const AT: u64 = 64 << 10;
const SIZE: usize = 4096;
const MAGIC: &[u8] = b"_BHRfS_M";
/// Mixed backrefs, default subvolume, mixed groups, compression by LZO and Zstandard, large metadata, long references,
/// RAID with parity and copies, skinny metadata, no holes, metadata UUID, zones are not.
const INCOMPAT_KNOWN: u64 = 0xfff;
const METADATA_UUID: u64 = 1 << 10;
/// RAID0, RAID10, RAID5, RAID6: the bytes of a chunk are spread over devices.
const SPREAD: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;
/// Copies of a chunk that are kept.
const COPIES: usize = 4;

/// Number, type and offset of an item.
pub(super) type Key = (u64, u8, u64);
/// Address and level of the root of a tree.
pub(super) type Root = (u64, u8);

/// A chunk: bytes of the logical address space.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) length: u64,
    /// The places of its copies on this device.
    pub(super) places: Vec<u64>,
}

/// A file system of one device.
#[derive(Clone, Debug)]
pub(crate) struct Superblock {
    /// The identifier that nodes have.
    pub(super) uuid: [u8; 16],
    device: u64,
    /// Bytes of the device.
    pub(super) size: u64,
    /// Bytes of a sector, and of a node.
    pub(super) sector: u64,
    pub(super) node: u64,
    /// Nodes have a CRC-32C.
    pub(super) has_crc: bool,
    /// Roots of the trees of roots, of chunks and of what was made durable last: address and level.
    pub(super) roots: Root,
    pub(super) chunk_root: Root,
    pub(super) log_root: u64,
    /// By logical address; filled by the chunk tree.
    pub(super) chunks: BTreeMap<u64, Chunk>,
}

/// Reads the superblock; none if there is no btrfs.
pub(crate) fn recognise(reader: &mut Reader<'_>) -> Result<Option<Superblock>, FilesError> {
    if reader.size() < AT + SIZE as u64 {
        return Ok(None);
    }
    let bytes = reader.read(AT, SIZE)?;
    if bytes.get(0x40..0x48) != Some(MAGIC) {
        return Ok(None);
    }
    let wrong = |trouble| FilesError::Superblock { kind: KIND, trouble };
    let incompat = le64(&bytes, 0xbc).map_err(wrong)? & !INCOMPAT_KNOWN;
    let devices = le64(&bytes, 0x88).map_err(wrong)?;
    let refused = |features: String| Err(FilesError::Features { kind: KIND, features });
    if incompat != 0 {
        return refused(format!("incompat bits {incompat:#x}"));
    }
    if devices != 1 {
        return refused(format!("{devices} devices"));
    }
    parse(&bytes, reader.size()).map(Some).map_err(wrong)
}

fn parse(bytes: &[u8], volume: u64) -> Tried<Superblock> {
    let has_crc = le16(bytes, 0xc4)? == 0;
    let is_right = !has_crc || le32(bytes, 0)? == crc32c::crc32c(&bytes[32..]);
    check(is_right, "it has another checksum")?;
    check(le64(bytes, 0x30)? == AT, "it is of another place")?;
    let (sector, node) = (u64::from(le32(bytes, 0x90)?), u64::from(le32(bytes, 0x94)?));
    let is_size = |size: u64| size.is_power_of_two() && (4096..=65_536).contains(&size);
    check(is_size(sector) && is_size(node) && node >= sector, "a node has no size that can be")?;
    let has_other = le64(bytes, 0xbc)? & METADATA_UUID != 0;
    let uuid = slice(bytes, if has_other { 0x23b } else { 0x20 }, 16)?;
    let size = le64(bytes, 0xd1)?;
    check(size >= 1 << 20, "the device is too small")?;
    let mut superblock = Superblock {
        uuid: uuid.try_into().map_err(|_| Trouble::Damaged("it has no identifier"))?,
        device: le64(bytes, 0xc9)?,
        size: size.min(volume),
        sector,
        node,
        has_crc,
        roots: (le64(bytes, 0x50)?, byte(bytes, 0xc6)?),
        chunk_root: (le64(bytes, 0x58)?, byte(bytes, 0xc7)?),
        log_root: le64(bytes, 0x60)?,
        chunks: BTreeMap::new(),
    };
    let system = slice(bytes, 0x32b, (le32(bytes, 0xa0)? as usize).min(2048))?;
    let mut at = 0;
    while at < system.len() {
        let item = system.get(at + 17..).unwrap_or_default();
        superblock.add_chunk(le64(system, at + 9)?, item)?;
        at += 17 + 48 + 32 * usize::from(le16(item, 44)?);
    }
    Ok(superblock)
}

impl Superblock {
    /// Enters a chunk item.
    pub(super) fn add_chunk(&mut self, logical: u64, item: &[u8]) -> Tried<()> {
        let (length, kind) = (le64(item, 0)?, le64(item, 24)?);
        let stripes = slice(item, 48, 32 * usize::from(le16(item, 44)?))?;
        let mut places = Vec::new();
        for stripe in stripes.chunks_exact(32).filter(|_| kind & SPREAD == 0).take(COPIES) {
            let place = le64(stripe, 8)?;
            let end = place.checked_add(length);
            if le64(stripe, 0)? == self.device && end.is_some_and(|end| end <= self.size) {
                places.push(place);
            }
        }
        check(logical.checked_add(length).is_some(), "a chunk has no length that can be")?;
        self.chunks.insert(logical, Chunk { length, places });
        Ok(())
    }

    /// The places of the copies of `length` bytes at a logical address, which lie in one chunk.
    pub(super) fn places(&self, logical: u64, length: u64) -> Tried<Vec<Range<u64>>> {
        let found = self.chunks.range(..=logical).next_back();
        let (start, chunk) = found.ok_or(Trouble::Damaged("its address lies in no chunk"))?;
        let offset = logical - start;
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= chunk.length);
        check(is_inside, "its address lies in no chunk")?;
        check(!chunk.places.is_empty(), "its chunk lies on other devices")?;
        Ok(chunk.places.iter().map(|place| place + offset..place + offset + length).collect())
    }
}
