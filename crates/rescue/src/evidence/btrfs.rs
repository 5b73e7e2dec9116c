//! btrfs.
//!
//! Superblocks and nodes of trees have their own address and a CRC-32C. The address of a node is a logical one:
//!
//! ```text
//!   logical ──chunk──▶ stripes on devices       one stripe: one place; two on this device (DUP): one of two places
//!              ▲
//!              └── chunks of the system in each superblock, all in leaves of the chunk tree
//! ```
//!
//! Logical addresses are not used again, so that an old node lies where it says, too. Parity of an odd number of nodes has
//! a right checksum, but no order of keys.

use std::collections::BTreeMap;
use std::ops::Range;

use super::bytes::{array, le16, le32, le64};
use super::sectors;
use crate::clue::{Anchor, Structure};

const SUPERBLOCK: usize = 4096;
const SUPERBLOCKS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
const INCOMPAT_METADATA_UUID: u64 = 1 << 10;
const NODE_HEADER: usize = 101;
const CHUNK_TREE: u64 = 3;
const CHUNK_ITEM: u8 = 228;
/// The kind of a chunk with data of files.
const DATA: u64 = 1;
/// RAID0, RAID10, RAID5, RAID6: a chunk's bytes are spread over devices.
const SPREAD: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;

/// A device of a file system of btrfs.
#[derive(Clone, Debug)]
pub struct Btrfs {
    uuid: [u8; 16],
    /// The UUID that nodes have.
    metadata: [u8; 16],
    device: u64,
    size: u64,
    node: u64,
    /// The place of the superblock that was read.
    place: u64,
    /// By their logical addresses; `None` if two chunks have one address.
    chunks: BTreeMap<u64, Option<Chunk>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    length: u64,
    /// Nodes of trees, and no data.
    has_nodes: bool,
    /// Places on this device; none if the chunk is spread.
    places: Vec<u64>,
}

/// Reads a superblock, and its place.
pub(super) fn recognise(bytes: &[u8]) -> Option<(Btrfs, u64)> {
    if bytes.get(0x40..0x48)? != b"_BHRfS_M" {
        return None;
    }
    let bytes = bytes.get(..SUPERBLOCK)?;
    let place = le64(bytes, 0x30)?;
    let node = u64::from(le32(bytes, 0x94)?);
    let is_size = node.is_power_of_two() && (4096..=65_536).contains(&node);
    // Other checksums than CRC-32C are not computed.
    if le16(bytes, 0xc4)? != 0 || !is_right(bytes) || !is_size || !SUPERBLOCKS.contains(&place) {
        return None;
    }
    let uuid = array(bytes, 0x20)?;
    let has_other = le64(bytes, 0xbc)? & INCOMPAT_METADATA_UUID != 0;
    let metadata = if has_other { array(bytes, 0x23b)? } else { uuid };
    let (device, size) = (le64(bytes, 0xc9)?, le64(bytes, 0xd1)?);
    let mut btrfs = Btrfs { uuid, metadata, device, size, node, place, chunks: BTreeMap::new() };
    let system = bytes.get(0x32b..)?.get(..(le32(bytes, 0xa0)? as usize).min(2048))?;
    let mut at = 0;
    while system.get(at + 8) == Some(&CHUNK_ITEM) {
        let item = system.get(at + 17..)?;
        btrfs.insert(le64(system, at + 9)?, item);
        at += 17 + 48 + 32 * usize::from(le16(item, 44)?);
    }
    Some((btrfs, place))
}

fn is_right(bytes: &[u8]) -> bool {
    le32(bytes, 0) == Some(crc32c::crc32c(&bytes[32..]))
}

/// Returns whether the keys of a node ascend.
fn is_ordered(node: &[u8]) -> bool {
    let each = if node[0x64] == 0 { 25 } else { 33 };
    let items = node[NODE_HEADER..].chunks_exact(each);
    let count = le32(node, 0x60).unwrap_or(0) as usize;
    let key = |item: &[u8]| Some((le64(item, 0)?, item[8], le64(item, 9)?));
    count <= items.len() && items.take(count).is_sorted_by(|one, next| key(one) < key(next))
}

impl Btrfs {
    pub(super) fn anchor(&self) -> Anchor {
        Anchor { structure: Structure::Btrfs, uuid: self.uuid, size: Some(self.size) }
    }

    pub(super) fn absorb(&mut self, other: &Btrfs) -> bool {
        let of = |one: &Btrfs| (one.uuid, one.metadata, one.device, one.node);
        if of(self) != of(other) {
            return false;
        }
        self.size = self.size.max(other.size);
        for (logical, chunk) in &other.chunks {
            self.enter(*logical, chunk.clone());
        }
        true
    }

    pub(super) fn place_of_copy(&self) -> u64 {
        self.place
    }

    /// Chunks of nodes that lie on this device.
    pub(super) fn landmarks(&self) -> Vec<Range<u64>> {
        let chunks = self.chunks.values().flatten().filter(|chunk| chunk.has_nodes);
        let places =
            chunks.flat_map(|chunk| chunk.places.iter().map(|place| (*place, chunk.length)));
        places.filter_map(|(place, length)| Some(place..place.checked_add(length)?)).collect()
    }

    fn insert(&mut self, logical: u64, item: &[u8]) {
        self.enter(logical, self.chunk(item));
    }

    fn enter(&mut self, logical: u64, chunk: Option<Chunk>) {
        let held = self.chunks.entry(logical).or_insert_with(|| chunk.clone());
        if *held != chunk {
            *held = None;
        }
    }

    fn chunk(&self, item: &[u8]) -> Option<Chunk> {
        let (length, kind) = (le64(item, 0)?, le64(item, 24)?);
        let stripes = item.get(48..)?.get(..32 * usize::from(le16(item, 44)?))?;
        let mut places = Vec::new();
        for stripe in stripes.chunks_exact(32).filter(|_| kind & SPREAD == 0) {
            let place = le64(stripe, 8)?;
            if le64(stripe, 0)? == self.device {
                places.push(place);
            }
        }
        places.sort_unstable();
        let is_inside = |place: &u64| length <= self.size.saturating_sub(*place);
        let has_nodes = kind & DATA == 0;
        places.iter().all(is_inside).then_some(Chunk { length, has_nodes, places })
    }

    /// The node that begins `bytes`, if it is one of this file system.
    fn node<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        if bytes.get(0x20..0x30)? != self.metadata {
            return None;
        }
        bytes.get(..self.node as usize).filter(|node| is_right(node) && is_ordered(node))
    }

    /// Learns from leaves of the chunk tree where chunks lie.
    pub(super) fn learn(&mut self, window: &[u8]) {
        for (_, bytes) in sectors(window) {
            let is_leaf = bytes.get(0x64) == Some(&0) && le64(bytes, 0x58) == Some(CHUNK_TREE);
            let Some(node) = is_leaf.then(|| self.node(bytes)).flatten() else { continue };
            let items = node[NODE_HEADER..].chunks_exact(25);
            let count = le32(node, 0x60).unwrap_or(0) as usize;
            for item in items.take(count).filter(|item| item[8] == CHUNK_ITEM) {
                let at = NODE_HEADER + le32(item, 17).unwrap_or(0) as usize;
                if let (Some(logical), Some(chunk)) = (le64(item, 9), node.get(at..)) {
                    self.insert(logical, chunk);
                }
            }
        }
    }

    /// Returns whether nodes of this device cannot be told from those of `other`, which may be this one.
    pub(super) fn has_nodes_of(&self, other: &Btrfs) -> bool {
        self.metadata == other.metadata
    }

    /// Gives each block's offset, one or two places, and length.
    pub(super) fn clues(
        &self,
        window: &[u8],
        is_alone: bool,
        mut give: impl FnMut(usize, &[u64], usize),
    ) {
        for (from, bytes) in sectors(window) {
            if let Some(node) = self.node(bytes).filter(|_| is_alone) {
                let places = le64(node, 0x30).and_then(|logical| self.places(logical));
                give(from, &places.unwrap_or_default(), node.len());
            } else if let Some((copy, place)) = recognise(bytes)
                && self.clone().absorb(&copy)
            {
                give(from, &[place], SUPERBLOCK);
            }
        }
    }

    /// The places of the node at a logical address.
    fn places(&self, logical: u64) -> Option<Vec<u64>> {
        let (start, chunk) = self.chunks.range(..=logical).next_back()?;
        let (chunk, offset) = (chunk.as_ref()?, logical - start);
        let is_inside = offset.checked_add(self.node)? <= chunk.length;
        is_inside.then(|| chunk.places.iter().map(|place| place + offset).collect())
    }
}
