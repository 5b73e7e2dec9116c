//! The superblock of ext2, ext3 and ext4: which numbers are believed, and which features are understood.

use crate::bytes::{byte, halves, le16, le32, le64};
use crate::error::{FilesError, Tried, check};
use crate::source::Reader;

const KIND: &str = "ext4";
const OFFSET: u64 = 1024;
/// The place of the superblock's own checksum, over all before it.
const CHECKSUM: usize = 0x3fc;

/// Features that change what numbers mean, and are understood.
mod incompat {
    pub(super) const META_BG: u32 = 0x10;
    pub(super) const JOURNAL_DEVICE: u32 = 0x8;
    pub(super) const RECOVER: u32 = 0x4;
    pub(super) const BIT64: u32 = 0x80;
    pub(super) const MMP: u32 = 0x100;
    /// Types in entries, journal, meta_bg, extents, 64bit, mmp, flex_bg, ea_inode, csum_seed, largedir,
    /// inline_data, encrypt, casefold.
    pub(super) const KNOWN: u32 = 0x2
        | 0x4
        | 0x10
        | 0x40
        | 0x80
        | 0x100
        | 0x200
        | 0x400
        | 0x2000
        | 0x4000
        | 0x8000
        | 0x1_0000
        | 0x2_0000;
    /// Bits and their names in mke2fs, for those that are refused.
    pub(super) const NAMES: [(u32, &str); 3] =
        [(0x1, "compression"), (0x8, "journal_dev"), (0x1000, "dirdata")];
}

const RO_SPARSE_SUPER: u32 = 0x1;
const RO_GROUP_CHECKSUMS: u32 = 0x10 | RO_METADATA_CHECKSUMS;
const RO_BIGALLOC: u32 = 0x200;
const RO_METADATA_CHECKSUMS: u32 = 0x400;
const RO_KNOWN: u32 = 0x1_ffff;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const COMPAT_ORPHAN_FILE: u32 = 0x1000;

/// The fields of a superblock of ext2, ext3 or ext4 that are used; all of them checked.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// ext2, ext3 or ext4, by the features.
    pub(super) kind: &'static str,
    /// Bytes of a block.
    pub block: u64,
    /// Number of blocks.
    pub blocks: u64,
    pub(super) first_block: u64,
    pub(super) blocks_per_group: u64,
    /// Blocks that a bit of a block bitmap stands for.
    pub blocks_per_cluster: u64,
    /// Number of groups.
    pub groups: u64,
    /// Number of inodes, which are numbered from 1.
    pub inodes: u64,
    /// Inodes of each group.
    pub inodes_per_group: u64,
    /// Bytes of an inode.
    pub inode_size: u64,
    pub(super) first_inode: u64,
    /// Bytes of a group descriptor.
    pub descriptor: u64,
    /// Descriptor blocks lie in meta groups from this one on.
    pub(super) first_meta_group: u64,
    pub(super) reserved_descriptors: u64,
    pub(super) has_group_checksums: bool,
    /// Groups with a copy of the superblock.
    pub(super) copies: Copies,
    pub(super) multi_mount: Option<u64>,
    /// The inode of the journal; 0 if there is none here.
    pub(super) journal: u64,
    /// The journal has changes that are not in place.
    pub(super) needs_replay: bool,
    /// When it was made, in seconds since 1970; 0 if it does not say.
    pub(super) made: u64,
    /// False if its checksum is that of other bytes.
    pub(super) is_whole: bool,
    /// Inodes of the file system itself, in words.
    pub(super) special: Vec<(u64, &'static str)>,
    pub(super) notes: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Copies {
    Everywhere,
    Powers,
    Two([u64; 2]),
}

impl Copies {
    pub(super) fn contain(self, group: u64) -> bool {
        let is_power = |of: u64| {
            let mut power = of;
            while power < group {
                power *= of;
            }
            power == group
        };
        match self {
            Copies::Everywhere => true,
            Copies::Two(groups) => group == 0 || groups.contains(&group),
            Copies::Powers => group <= 1 || [3, 5, 7].into_iter().any(is_power),
        }
    }
}

/// Reads the superblock, if there is one.
pub(crate) fn recognise(reader: &mut Reader<'_>) -> Result<Option<Superblock>, FilesError> {
    if reader.size() < 2 * OFFSET {
        return Ok(None);
    }
    let bytes = reader.read(OFFSET, 1024)?;
    judge(&bytes, reader.size())
}

fn judge(bytes: &[u8], volume: u64) -> Result<Option<Superblock>, FilesError> {
    let wrong = |trouble| FilesError::Superblock { kind: KIND, trouble };
    if le16(bytes, 0x38).map_err(wrong)? != 0xef53 {
        return Ok(None);
    }
    refuse_features(le32(bytes, 0x60).map_err(wrong)?)?;
    parse(bytes, volume).map(Some).map_err(wrong)
}

fn refuse_features(incompat: u32) -> Result<(), FilesError> {
    let mut unknown = incompat & !incompat::KNOWN;
    if unknown == 0 {
        return Ok(());
    }
    let mut features = Vec::new();
    for (bit, name) in incompat::NAMES {
        if unknown & bit != 0 {
            features.push(name.to_owned());
            unknown &= !bit;
        }
    }
    if unknown != 0 {
        features.push(format!("incompat bits {unknown:#x}"));
    }
    let external = incompat & incompat::JOURNAL_DEVICE != 0;
    let note = if external { " (this is an external journal, which has no files)" } else { "" };
    Err(FilesError::Features { kind: KIND, features: features.join(", ") + note })
}

fn parse(bytes: &[u8], volume: u64) -> Tried<Superblock> {
    let compat = le32(bytes, 0x5c)?;
    let incompat = le32(bytes, 0x60)?;
    let ro_compat = le32(bytes, 0x64)?;
    let is_dynamic = le32(bytes, 0x4c)? > 0;
    let log_block = le32(bytes, 0x18)?;
    check(log_block <= 6, "a block has more than 64 KiB")?;
    let block = 1024_u64 << log_block;
    let high = if incompat & incompat::BIT64 != 0 { le32(bytes, 0x150)? } else { 0 };
    let blocks = halves(le32(bytes, 4)?, high);
    let first_block = u64::from(le32(bytes, 0x14)?);
    check(blocks <= u64::MAX / block / 2, "there are more blocks than bytes can be counted")?;
    check(first_block <= 1 && first_block < blocks, "the first block is not one of the blocks")?;

    let (blocks_per_group, blocks_per_cluster) = clusters(bytes, ro_compat, log_block)?;
    let groups = (blocks - first_block).div_ceil(blocks_per_group);

    let inodes_per_group = u64::from(le32(bytes, 0x28)?);
    check(
        (1..=8 * block).contains(&inodes_per_group),
        "a group has no inodes, or more than its bitmap",
    )?;
    let inode_size = if is_dynamic { u64::from(le16(bytes, 0x58)?) } else { 128 };
    let is_size = inode_size.is_power_of_two() && (128..=block).contains(&inode_size);
    check(is_size, "an inode is smaller than 128 bytes or larger than a block")?;
    let inodes = u64::from(le32(bytes, 0)?);
    check(inodes == groups * inodes_per_group, "the numbers of inodes do not agree")?;
    // Each table has blocks of its own, those of the groups that the volume has lie in it.
    let there = blocks.min(volume / block);
    let whole_groups = groups.min(there / blocks_per_group);
    let table = (inodes_per_group * inode_size).div_ceil(block);
    check(whole_groups * table <= there, "the inodes are larger than the file system")?;
    let descriptor = match incompat & incompat::BIT64 != 0 {
        true => u64::from(le16(bytes, 0xfe)?),
        false => 32,
    };
    let is_size = descriptor.is_power_of_two() && (32..=block.min(1024)).contains(&descriptor);
    check(is_size, "a group descriptor has no size that can be")?;

    let has_meta = incompat & incompat::META_BG != 0;
    let first_meta_group = if has_meta { u64::from(le32(bytes, 0x104)?) } else { u64::MAX };
    let copies = match (compat & COMPAT_SPARSE_SUPER2 != 0, ro_compat & RO_SPARSE_SUPER != 0) {
        (true, _) => Copies::Two([le32(bytes, 0x24c)?.into(), le32(bytes, 0x250)?.into()]),
        (_, true) => Copies::Powers,
        _ => Copies::Everywhere,
    };
    let first_inode = if is_dynamic { u64::from(le32(bytes, 0x54)?) } else { 11 };
    let multi_mount = (incompat & incompat::MMP != 0).then(|| le64(bytes, 0x168)).transpose()?;

    Ok(Superblock {
        kind: kind(compat, incompat, ro_compat),
        block,
        blocks,
        first_block,
        blocks_per_group,
        blocks_per_cluster,
        groups,
        inodes,
        inodes_per_group,
        inode_size,
        first_inode,
        descriptor,
        first_meta_group,
        reserved_descriptors: u64::from(le16(bytes, 0xce)?),
        has_group_checksums: ro_compat & RO_GROUP_CHECKSUMS != 0,
        copies,
        multi_mount,
        journal: le32(bytes, 0xe0)?.into(),
        needs_replay: incompat & incompat::RECOVER != 0,
        made: u64::from(le32(bytes, 0x108)?) | u64::from(byte(bytes, 0x276)?) << 32,
        is_whole: ro_compat & RO_METADATA_CHECKSUMS == 0
            || le32(bytes, CHECKSUM)? == !crc32c::crc32c(&bytes[..CHECKSUM]),
        special: special(bytes, compat)?,
        notes: notes(bytes, ro_compat, blocks > volume / block)?,
    })
}

/// Blocks of a group, and of a cluster.
fn clusters(bytes: &[u8], ro_compat: u32, log_block: u32) -> Tried<(u64, u64)> {
    let has_clusters = ro_compat & RO_BIGALLOC != 0;
    let log_cluster = if has_clusters { le32(bytes, 0x1c)? } else { log_block };
    check(
        (log_block..=20).contains(&log_cluster),
        "a cluster is smaller than a block, or too large",
    )?;
    let blocks_per_cluster = 1_u64 << (log_cluster - log_block);
    let blocks_per_group = u64::from(le32(bytes, 0x20)?);
    let bits = 8 * (1024_u64 << log_block);
    check(
        blocks_per_group > 0
            && blocks_per_group % blocks_per_cluster == 0
            && blocks_per_group / blocks_per_cluster <= bits,
        "a group has no blocks, or more than its bitmap",
    )?;
    Ok((blocks_per_group, blocks_per_cluster))
}

/// Inodes of the file system itself.
fn special(bytes: &[u8], compat: u32) -> Tried<Vec<(u64, &'static str)>> {
    let journal = u64::from(le32(bytes, 0xe0)?);
    let mut special = vec![(1, "bad blocks"), (7, "reserved group descriptors"), (8, "journal")];
    let quotas = [(0x240, "quota"), (0x244, "quota"), (0x26c, "quota")];
    for (at, what) in quotas {
        special.push((le32(bytes, at)?.into(), what));
    }
    special.push((journal, "journal"));
    if compat & COMPAT_ORPHAN_FILE != 0 {
        special.push((le32(bytes, 0x280)?.into(), "orphan file"));
    }
    special.retain(|(inode, _)| *inode != 0 && *inode != 2);
    Ok(special)
}

/// Limits of the listing, in words.
fn notes(bytes: &[u8], ro_compat: u32, is_cut: bool) -> Tried<Vec<&'static str>> {
    let mut notes = Vec::new();
    if ro_compat & !RO_KNOWN != 0 {
        notes.push("the file system has features that are not known, which do not hinder reading");
    }
    if byte(bytes, 0x3a)? & 2 != 0 {
        notes.push("the file system is marked as having errors");
    }
    if is_cut {
        notes.push("the file system is larger than the volume: files behind its end are not told");
    }
    Ok(notes)
}

fn kind(compat: u32, incompat: u32, ro_compat: u32) -> &'static str {
    // Journal, or the features by which the kernel tells one from the other.
    let is_ext4 = incompat & !(0x2 | 0x4 | 0x10) != 0 || ro_compat & !0x7 != 0;
    match (is_ext4, compat & 4 != 0) {
        (true, _) => "ext4",
        (_, true) => "ext3",
        _ => "ext2",
    }
}

impl Superblock {
    /// Reads the 1024 bytes of a superblock, or of a copy of it, wherever they were found. Returns `None` if they are none.
    ///
    /// # Errors
    /// Features that are not understood, or numbers that contradict each other.
    pub fn parse(bytes: &[u8]) -> Result<Option<Superblock>, FilesError> {
        judge(bytes, u64::MAX)
    }

    /// Returns whether `group` has a copy of the superblock in its first block.
    pub fn has_copy(&self, group: u64) -> bool {
        self.copies.contain(group)
    }

    /// The bytes of blocks.
    pub(super) fn bytes(&self, first: u64, count: u64) -> std::ops::Range<u64> {
        first.saturating_mul(self.block)..first.saturating_add(count).saturating_mul(self.block)
    }

    /// The block of a group's first bytes.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first_block + group * self.blocks_per_group
    }

    /// Blocks of a group: the last one may be shorter.
    pub(super) fn group_len(&self, group: u64) -> u64 {
        self.blocks_per_group.min(self.blocks - self.group_start(group))
    }

    pub(super) fn descriptors_per_block(&self) -> u64 {
        self.block / self.descriptor
    }

    /// Descriptor blocks that follow each copy of the superblock.
    pub(super) fn plain_descriptor_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block()).min(self.first_meta_group)
    }

    /// Blocks that a copy of the superblock takes in a group: that of group 0 lies behind 1024 bytes.
    pub(super) fn superblock_blocks(&self, group: u64) -> u64 {
        match group {
            0 => OFFSET / self.block + 1 - self.first_block,
            _ => u64::from(self.copies.contain(group)),
        }
    }

    /// The groups that have a copy of the descriptor block `index` behind their superblock, if it lies in a
    /// meta group.
    pub(super) fn meta_groups(&self, index: u64) -> impl Iterator<Item = u64> + use<> {
        let per_block = self.descriptors_per_block();
        let first = index.saturating_mul(per_block);
        let groups = self.groups;
        [0, 1, per_block - 1]
            .into_iter()
            .map(move |at| first.saturating_add(at))
            .filter(move |group| *group < groups)
    }

    /// The places of the first copies of a group's descriptor.
    pub(super) fn descriptor_copies(&self, group: u64) -> Vec<u64> {
        const MOST: usize = 4;
        let per_block = self.descriptors_per_block();
        let index = group / per_block;
        let is_meta = index >= self.first_meta_group;
        let place = |home: u64| {
            let before = if is_meta { 0 } else { index };
            let block = self.group_start(home) + self.superblock_blocks(home) + before;
            block * self.block + group % per_block * self.descriptor
        };
        if is_meta {
            return self.meta_groups(index).skip(1).map(place).collect();
        }
        let homes = (1..self.groups.min(50)).filter(|home| self.copies.contain(*home));
        homes.take(MOST).map(place).collect()
    }

    /// Returns the place of the descriptor of `group`.
    pub(super) fn descriptor_offset(&self, group: u64) -> u64 {
        let per_block = self.descriptors_per_block();
        let index = group / per_block;
        let block = match index < self.first_meta_group {
            true => self.first_block + self.superblock_blocks(0) + index,
            false => {
                let home = index * per_block;
                self.group_start(home) + self.superblock_blocks(home)
            }
        };
        block * self.block + group % per_block * self.descriptor
    }
}
