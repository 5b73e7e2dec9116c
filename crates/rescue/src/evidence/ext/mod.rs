//! ext2, ext3 and ext4.
//!
//! * A copy of the superblock has the number of its group.
//! * With checksums of metadata, that of an inode is a CRC over the file system's seed, the number of the inode, its
//!   generation and its bytes. A CRC of 32 bits leads back to the number, and several neighbours in one block whose
//!   numbers follow each other are no accident. The group descriptors say where the table of their group lies.
//! * Descriptors have the checksums of the bitmaps of their group, too.
//! * An inode of a directory says where its block lies, and the block which inode it belongs to.
//! * Without checksums of metadata: a descriptor in the journal has the numbers of the blocks whose copies follow it
//!   ([`journal`]).
//!
//! Parity of an odd number of inodes has a right checksum, too, and a number; its times are in no order.
//!
//! The journal has copies of such blocks. Its own blocks begin with a magic number, at the latest after each 510 copies,
//! so what lies near one of them is in doubt.

mod bitmaps;
mod folders;
mod journal;

use std::collections::BTreeMap;
use std::ops::Range;

use bitmaps::Bitmaps;
use braid_files::ExtSuperblock;
use folders::Folders;
use journal::{Copies, Journal};

use super::bytes::{array, le16, le32};
use super::crc::{Undo, advance};
use super::{MOST_LANDMARKS, SECTOR, UNIT, sectors};
use crate::clue::{Anchor, Structure};

const RO_METADATA_CHECKSUMS: u32 = 0x400;
const INCOMPAT_SEED: u32 = 0x2000;
/// `EXT4_BG_INODE_UNINIT`.
const GROUP_WITHOUT_INODES: u64 = 1;
/// Inodes in one unit whose numbers have to follow each other.
const NEIGHBOURS: usize = 3;
/// Groups that may have their tables together, of those that are tried.
const MOST_FLEX: u64 = 4096;

/// A file system of the ext family.
#[derive(Clone, Debug)]
pub struct Ext {
    superblock: ExtSuperblock,
    uuid: [u8; 16],
    /// State of checksums behind the file system's own part; `None` without checksums of metadata.
    seed: Option<u32>,
    /// Groups whose tables lie together.
    flex: u64,
    /// The group of the superblock that was read.
    group: u64,
    /// Blocks at which the inode tables of groups begin; `None` if descriptors differ.
    tables: BTreeMap<u64, Option<u64>>,
    /// Inodes in use at the start of the tables of groups that have any.
    used: BTreeMap<u64, u64>,
    bitmaps: Bitmaps,
    folders: Folders,
    copies: Copies,
}

/// Reads a superblock, and the number of its group.
pub(super) fn recognise(bytes: &[u8]) -> Option<(Ext, u64)> {
    let bytes = bytes.get(..1024)?;
    if bytes[0x38..0x3a] != [0x53, 0xef] {
        return None;
    }
    let superblock = ExtSuperblock::parse(bytes).ok()??;
    let (incompat, ro_compat) = (le32(bytes, 0x60)?, le32(bytes, 0x64)?);
    let uuid = array(bytes, 0x68)?;
    let free_inodes = u64::from(le32(bytes, 0x10)?);
    if uuid == [0; 16] || le32(bytes, 0x4c)? > 1 || free_inodes > superblock.inodes {
        return None;
    }
    let mut seed = None;
    if ro_compat & RO_METADATA_CHECKSUMS != 0 {
        if advance(u32::MAX, &bytes[..0x3fc]) != le32(bytes, 0x3fc)? {
            return None;
        }
        let has_own = incompat & INCOMPAT_SEED != 0;
        seed = Some(if has_own { le32(bytes, 0x270)? } else { advance(u32::MAX, &uuid) });
    }
    let flex = 1_u64.checked_shl(bytes[0x174].into()).unwrap_or(MOST_FLEX).min(MOST_FLEX);
    let group = u64::from(le16(bytes, 0x5a)?);
    Some((
        Ext {
            superblock,
            uuid,
            seed,
            flex,
            group,
            tables: BTreeMap::new(),
            used: BTreeMap::new(),
            bitmaps: Bitmaps::default(),
            folders: Folders::default(),
            copies: Copies::default(),
        },
        group,
    ))
}

impl Ext {
    pub(super) fn anchor(&self) -> Anchor {
        let size = Some(self.size());
        Anchor { structure: Structure::Ext, uuid: self.uuid, size }
    }

    fn size(&self) -> u64 {
        self.superblock.blocks * self.superblock.block
    }

    /// Returns the numbers that stay when the file system is resized.
    fn shape(&self) -> [u64; 6] {
        let of = &self.superblock;
        let first = of.group_start(0);
        let per_group = of.group_start(1) - first;
        [of.block, first, per_group, of.inodes_per_group, of.inode_size, of.descriptor]
    }

    fn is_same(&self, other: &Ext) -> bool {
        self.uuid == other.uuid && self.seed == other.seed && self.shape() == other.shape()
    }

    pub(super) fn absorb(&mut self, other: &Ext) -> bool {
        let is_same = self.is_same(other);
        if is_same && other.superblock.blocks > self.superblock.blocks {
            self.superblock = other.superblock.clone();
        }
        is_same
    }

    /// Bytes of a group's bitmap of blocks, and of inodes.
    fn bitmap_bytes(&self) -> [usize; 2] {
        let of = &self.superblock;
        let blocks = of.group_start(1) - of.group_start(0);
        [blocks / of.blocks_per_cluster, of.inodes_per_group].map(|bits| (bits / 8) as usize)
    }

    /// Learns from group descriptors where inode tables lie, and the checksums of bitmaps, and from inodes where blocks of
    /// directories lie. Without checksums of metadata, and if it is the only one of its kind, from a journal.
    pub(super) fn learn(&mut self, window: &[u8], is_alone: bool) {
        if is_alone && self.seed.is_none() {
            let (block, blocks) = (self.superblock.block as usize, self.superblock.blocks);
            self.copies.learn(window, block, blocks);
        }
        let Some(seed) = self.seed else { return };
        let size = self.superblock.descriptor as usize;
        if size > SECTOR / 2 {
            return;
        }
        let journal = Journal::new(window, self.superblock.block);
        for (index, sector) in window.chunks_exact(SECTOR).enumerate() {
            let Some((first, tables)) = self.descriptors(seed, sector, size) else { continue };
            // Those in the journal are of bitmaps in the journal.
            if size >= 64 && !journal.is_near(index * SECTOR) {
                let bytes = self.bitmap_bytes();
                let descriptors = sector.chunks_exact(size).take(tables.len());
                descriptors.for_each(|one| _ = self.bitmaps.enter(one, bytes));
            }
            let descriptors = sector.chunks_exact(size);
            for ((group, table), descriptor) in (first..).zip(tables).zip(descriptors) {
                let used = self.used_inodes(descriptor);
                if used > 0 {
                    self.used.insert(group, used);
                }
                let held = self.tables.entry(group).or_insert(Some(table));
                if *held != Some(table) {
                    *held = None;
                }
            }
        }
        let of = &self.superblock;
        let (size, block) = (of.inode_size as usize, of.block);
        let undo = Undo::new(8 + size);
        for unit in window.chunks_exact(UNIT) {
            let Some((slots, base)) = self.numbers(seed, &undo, unit) else { continue };
            let inodes = slots.clone().zip(unit.chunks_exact(size).skip(slots.start));
            for (number, inode) in inodes
                .filter_map(|(slot, inode)| Some((u32::try_from(base + slot as u64).ok()?, inode)))
            {
                if solve(seed, &undo, inode) == Some(number) {
                    self.folders.enter(seed, number, inode, block);
                }
            }
        }
    }

    /// Reads a sector of descriptors: the first group, and the block of each one's inode table.
    fn descriptors(&self, seed: u32, sector: &[u8], size: usize) -> Option<(u64, Vec<u64>)> {
        let of = &self.superblock;
        let (lowest, _) = self.places(sector, size)?;
        let home = self.group_of(lowest)?;
        let count = (SECTOR / size) as u64;
        let candidates = home.next_multiple_of(count)..(home + self.flex).min(of.groups);
        let aligned = home / count * count;
        let candidates = candidates.step_by(count as usize).chain([aligned]);
        candidates.into_iter().find_map(|first| {
            let tables = (first..of.groups).zip(sector.chunks_exact(size)).map(|(group, bytes)| {
                let number = u32::try_from(group).ok()?.to_le_bytes();
                let start = advance(advance(seed, &number), &bytes[..0x1e]);
                let behind = bytes.get(0x20..).unwrap_or_default();
                let sum = advance(advance(start, &[0; 2]), behind).to_le_bytes();
                (sum[..2] == bytes[0x1e..0x20]).then_some(())?;
                Some(self.places(bytes, size)?.1)
            });
            let tables = tables.collect::<Option<Vec<u64>>>()?;
            let rest = sector.get(tables.len() * size..)?;
            let is_all = rest.iter().all(|byte| *byte == 0);
            (is_all && tables.len() as u64 >= of.groups.min(2)).then_some((first, tables))
        })
    }

    /// Inodes of a group before those that were never used.
    fn used_inodes(&self, descriptor: &[u8]) -> u64 {
        let number = |at: usize| le16(descriptor, at).map_or(0, u64::from);
        let high = if descriptor.len() >= 64 { number(0x32) } else { 0 };
        let unused = number(0x1c) | high << 16;
        match number(0x12) & GROUP_WITHOUT_INODES {
            0 => self.superblock.inodes_per_group.saturating_sub(unused),
            _ => 0,
        }
    }

    /// The place of the superblock that was read, as its number of the group says.
    pub(super) fn place_of_copy(&self) -> u64 {
        match self.group {
            0 => 1024,
            group => self.superblock.group_start(group) * self.superblock.block,
        }
    }

    /// Inodes in use, as far as descriptors are known; otherwise the starts of groups, which begin with metadata.
    pub(super) fn landmarks(&self) -> Vec<Range<u64>> {
        let of = &self.superblock;
        let used = self.used.iter().filter_map(|(group, inodes)| {
            let start = (*self.tables.get(group)?)? * of.block;
            Some(start..start + inodes * of.inode_size)
        });
        let used: Vec<Range<u64>> = used.collect();
        if !used.is_empty() {
            return used;
        }
        let step = of.groups.div_ceil(MOST_LANDMARKS).next_multiple_of(self.flex);
        let length = of.inodes_per_group * of.inode_size * self.flex;
        let groups =
            (0..MOST_LANDMARKS).map(|index| index * step).take_while(|group| *group < of.groups);
        let starts = groups.map(|group| of.group_start(group) * of.block);
        starts.map(|start| start..start.saturating_add(length)).collect()
    }

    /// True if the descriptor of a group may begin here: its blocks lie near each other.
    fn is_of_descriptors(&self, bytes: &[u8]) -> bool {
        let groups = [0, 4, 8].map(|at| self.group_of(le32(bytes, at)?.into()));
        let [Some(one), Some(two), Some(three)] = groups else { return false };
        one.max(two).max(three) - one.min(two).min(three) <= self.flex
    }

    /// The group of a block.
    fn group_of(&self, block: u64) -> Option<u64> {
        let first = self.superblock.group_start(0);
        Some(block.checked_sub(first)? / (self.superblock.group_start(1) - first))
    }

    /// The lowest block that a descriptor names, and that of its inode table, if all can be.
    fn places(&self, bytes: &[u8], size: usize) -> Option<(u64, u64)> {
        let of = &self.superblock;
        let number = |at: usize| {
            let high = if size >= 64 { le32(bytes, at + 0x20)? } else { 0 };
            let block = u64::from(le32(bytes, at)?) | u64::from(high) << 32;
            (1..of.blocks).contains(&block).then_some(block)
        };
        let (blocks, inodes, table) = (number(0)?, number(4)?, number(8)?);
        let len = (of.inodes_per_group * of.inode_size).div_ceil(of.block);
        (len <= of.blocks - table).then_some((blocks.min(inodes).min(table), table))
    }

    pub(super) fn clues(&self, window: &[u8], mut give: impl FnMut(usize, u64, usize, bool)) {
        let journal = Journal::new(window, self.superblock.block);
        for (from, bytes) in sectors(window) {
            let Some((copy, group)) = recognise(bytes) else { continue };
            let place = copy.superblock_place(group, bytes);
            if let Some((place, is_sure)) = place.filter(|_| self.is_same(&copy)) {
                give(from, place, 1024, !is_sure || journal.is_near(from));
            }
        }
        let (block, blocks) = (self.superblock.block, self.superblock.blocks);
        for (from, number) in self.copies.find(window, block as usize, blocks) {
            // All copies of the descriptors are alike.
            if !self.is_of_descriptors(&window[from..]) {
                give(from, number * block, block as usize, journal.is_near(from));
            }
        }
        let (Some(seed), size) = (self.seed, self.superblock.inode_size as usize) else { return };
        let undo = Undo::new(8 + size);
        for (index, unit) in window.chunks_exact(UNIT).enumerate() {
            let from = index * UNIT;
            let Some((slots, place)) = self.inodes(seed, &undo, unit) else { continue };
            give(from + slots.start * size, place, slots.len() * size, journal.is_near(from));
        }
        let (block, bytes) = (self.superblock.block, self.bitmap_bytes());
        for (index, bits) in window.chunks_exact(block as usize).enumerate() {
            let from = index * block as usize;
            if let Some(number) =
                self.folders.find(bits).filter(|number| *number < self.superblock.blocks)
            {
                give(from, number * block, bits.len(), journal.is_near(from));
            }
            let Some((number, length)) = self.bitmaps.find(seed, bits, bytes) else { continue };
            if length >= SECTOR {
                give(from, number * block, length, journal.is_near(from));
            }
        }
    }

    /// The place of a superblock, and whether it is sure. The first one is journalled, and old kernels wrote it over the others
    /// when they resized the file system: only it has the descriptors of the first groups right behind it, unless these
    /// lie in another chunk.
    fn superblock_place(&self, group: u64, bytes: &[u8]) -> Option<(u64, bool)> {
        let of = &self.superblock;
        if group == 0 {
            let behind = (1024 / of.block + 1) * of.block - 1024;
            let sector = bytes.get(behind as usize..)?.get(..SECTOR)?;
            let size = of.descriptor as usize;
            let first = match self.seed.filter(|_| size <= SECTOR / 2) {
                Some(seed) => self.descriptors(seed, sector, size).map(|(first, _)| first),
                None => self.places(sector, size).and_then(|(bitmap, _)| self.group_of(bitmap)),
            };
            return Some((1024, first == Some(0)));
        }
        // The number has 16 bits.
        let mut groups = (group..of.groups).step_by(1 << 16).filter(|group| of.has_copy(*group));
        let group = groups.next()?;
        groups.next().is_none().then(|| (of.group_start(group) * of.block, true))
    }

    /// Finds inodes in a unit whose numbers follow each other: their slots, and the place of the first one.
    fn inodes(&self, seed: u32, undo: &Undo, unit: &[u8]) -> Option<(std::ops::Range<usize>, u64)> {
        let of = &self.superblock;
        let (slots, base) = self.numbers(seed, undo, unit)?;
        let place = |slot: usize| {
            let index = base + slot as u64 - 1;
            let table = (*self.tables.get(&(index / of.inodes_per_group))?)?;
            Some(table * of.block + index % of.inodes_per_group * of.inode_size)
        };
        let (start, last) = (place(slots.start)?, slots.end - 1);
        let length = ((last - slots.start) * of.inode_size as usize) as u64;
        (place(last)? == start + length).then_some((slots, start))
    }

    /// Finds inodes in a unit whose numbers follow each other: their slots, and the number that the first slot has.
    fn numbers(
        &self,
        seed: u32,
        undo: &Undo,
        unit: &[u8],
    ) -> Option<(std::ops::Range<usize>, u64)> {
        let of = &self.superblock;
        let size = of.inode_size as usize;
        if size > UNIT / NEIGHBOURS {
            return None;
        }
        // The number that the first slot would have.
        let number = |(slot, inode): (usize, &[u8])| {
            let number = u64::from(solve(seed, undo, inode)?);
            let is_number = (1..=of.inodes).contains(&number) && number > slot as u64;
            is_number.then(|| (slot, number - slot as u64))
        };
        let bases: Vec<_> = unit.chunks_exact(size).enumerate().filter_map(number).collect();
        let with = |base: u64| bases.iter().filter(move |(_, other)| *other == base);
        let (_, base) = bases.iter().max_by_key(|(_, base)| with(*base).count())?;
        if with(*base).count() < NEIGHBOURS {
            return None;
        }
        let inode = |slot: usize| &unit[slot * size..][..size];
        if with(*base).any(|(slot, _)| has_odd_times(inode(*slot))) {
            return None;
        }
        let (first, last) = (with(*base).next()?.0, with(*base).next_back()?.0);
        Some((first..last + 1, *base))
    }
}

/// Returns the number of an inode by its checksum; any number if the bytes are no inode.
fn solve(seed: u32, undo: &Undo, inode: &[u8]) -> Option<u32> {
    let extra = usize::from(le16(inode, 0x80)?);
    // The checksum has its upper half in the part beyond 128 bytes.
    if !(4..=inode.len() - 128).contains(&extra) || extra % 4 != 0 {
        return None;
    }
    let parts: [&[u8]; 6] =
        [&inode[0x64..0x68], &inode[..0x7c], &[0; 2], &inode[0x7e..0x82], &[0; 2], &inode[0x84..]];
    let own = parts.into_iter().fold(0, advance);
    let sum = u32::from(le16(inode, 0x7c)?) | u32::from(le16(inode, 0x82)?) << 16;
    Some(undo.before(sum ^ own) ^ seed)
}

/// Returns whether the contents of an inode were changed after its last change, or its times have more nanoseconds than
/// a second. The time of creation is not compared: mke2fs copies the others from the files that it puts in.
fn has_odd_times(inode: &[u8]) -> bool {
    let time = |at: usize, extra: usize| {
        let (seconds, extra) = (le32(inode, at)?, le32(inode, extra)?);
        let seconds = i64::from(seconds.cast_signed()) + (i64::from(extra & 3) << 32);
        Some((seconds, extra >> 2))
    };
    let (changed, modified) = (time(0x0c, 0x84), time(0x10, 0x88));
    let is_odd = |time: Option<(i64, u32)>| time.is_some_and(|(_, ns)| ns >= 1_000_000_000);
    modified > changed || is_odd(changed) || is_odd(modified)
}
