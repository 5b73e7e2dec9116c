//! The superblock of xfs, versions 4 and 5: which numbers are believed, and which features are understood.

use crate::bytes::{be16, be32, be64, byte};
use crate::error::{FilesError, Tried, Trouble, check};
use crate::source::Reader;

const KIND: &str = "xfs";
const MAGIC: u32 = u32::from_be_bytes(*b"XFSB");

/// ftype, sparse inodes, meta_uuid, bigtime, needsrepair, nrext64, exchange, parent pointers.
const INCOMPAT_KNOWN: u32 = 0xff;
const NEEDS_REPAIR: u32 = 0x10;
/// Free inode tree, reverse map, reflink, counts of inode tree blocks.
const RO_KNOWN: u32 = 0xf;
const RO_REFLINK: u32 = 0x4;
const FEATURES2_TYPES: u32 = 0x200;
const DIRECTORIES_2: u16 = 0x2000;

/// The fields of a superblock of xfs that are used; all of them checked.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// Version 5: metadata have checksums and addresses.
    pub is_v5: bool,
    /// Bytes of a block.
    pub block: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes of a sector.
    pub sector: u64,
    /// Blocks of an allocation group.
    pub group_blocks: u64,
    /// Number of allocation groups.
    pub groups: u64,
    /// Bits of a block's number in its group.
    pub(super) block_bits: u32,
    /// Bits of an inode's number in its block.
    pub(super) inode_bits: u32,
    /// Bytes of an inode.
    pub inode_size: u64,
    pub(super) root: u64,
    /// Blocks of a directory block.
    pub directory_blocks: u64,
    pub(super) has_types: bool,
    pub(super) has_sparse_inodes: bool,
    /// Files may share blocks.
    pub(super) has_shared: bool,
    /// First block and blocks of the internal log.
    pub(super) log: Option<(u64, u64)>,
    /// Inodes of the file system itself, in words.
    pub(super) special: Vec<(u64, &'static str)>,
    pub(super) notes: Vec<&'static str>,
}

/// Reads the superblock, if there is one.
pub(crate) fn recognise(reader: &mut Reader<'_>) -> Result<Option<Superblock>, FilesError> {
    if reader.size() < 512 {
        return Ok(None);
    }
    let bytes = reader.read(0, 512)?;
    judge(&bytes, reader.size())
}

fn judge(bytes: &[u8], volume: u64) -> Result<Option<Superblock>, FilesError> {
    let wrong = |trouble| FilesError::Superblock { kind: KIND, trouble };
    if be32(bytes, 0).map_err(wrong)? != MAGIC {
        return Ok(None);
    }
    let refused = |features: String| Err(FilesError::Features { kind: KIND, features });
    let version = be16(bytes, 100).map_err(wrong)?;
    let incompat = be32(bytes, 216).map_err(wrong)? & !INCOMPAT_KNOWN;
    match version & 0xf {
        4 if version & DIRECTORIES_2 == 0 => refused("directories of version 1".to_owned()),
        5 if incompat & 0x100 != 0 => refused(format!("metadir (incompat bits {incompat:#x})")),
        5 if incompat != 0 => refused(format!("incompat bits {incompat:#x}")),
        4 | 5 => parse(bytes, volume).map(Some).map_err(wrong),
        other => refused(format!("version {other}")),
    }
}

fn parse(bytes: &[u8], volume: u64) -> Tried<Superblock> {
    let version = be16(bytes, 100)?;
    let is_v5 = version & 0xf == 5;
    let incompat = be32(bytes, 216)?;
    let log = |at: usize| byte(bytes, at).map(u32::from);
    let block = u64::from(be32(bytes, 4)?);
    check(
        (9..=16).contains(&log(120)?) && block == 1 << log(120)?,
        "a block has no size that can be",
    )?;
    let sector = u64::from(be16(bytes, 102)?);
    let is_size = sector.is_power_of_two() && (512..=32_768).contains(&sector);
    check(is_size && sector <= block, "a sector has no size that can be")?;
    let inode_size = u64::from(be16(bytes, 104)?);
    let is_size = inode_size.is_power_of_two() && (256..=2048).contains(&inode_size);
    check(is_size && inode_size <= block, "an inode has no size that can be")?;
    let inode_bits = log(123)?;
    check(
        inode_bits <= 8 && block / inode_size == 1 << inode_bits,
        "inodes of a block do not agree",
    )?;
    let blocks = be64(bytes, 8)?;
    let group_blocks = u64::from(be32(bytes, 84)?);
    let groups = u64::from(be32(bytes, 88)?);
    let block_bits = log(124)?;
    check(
        (1..=31).contains(&block_bits)
            && (4 * sector.div_ceil(block)..=1 << block_bits).contains(&group_blocks),
        "an allocation group has no size that can be",
    )?;
    check(
        groups > 0 && blocks > (groups - 1) * group_blocks && blocks <= groups * group_blocks,
        "the allocation groups are not as large as the file system",
    )?;
    check(groups << block_bits <= u64::MAX >> 17, "there are more blocks than can be counted")?;
    let directory_bits = log(192)?;
    check(
        directory_bits <= 7 && block << directory_bits <= 1 << 16,
        "a directory block is too large",
    )?;

    let log = (be64(bytes, 48)?, u64::from(be32(bytes, 96)?));

    Ok(Superblock {
        is_v5,
        block,
        blocks,
        sector,
        group_blocks,
        groups,
        block_bits,
        inode_bits,
        inode_size,
        root: be64(bytes, 56)?,
        directory_blocks: 1 << directory_bits,
        has_types: if is_v5 { incompat & 1 != 0 } else { be32(bytes, 200)? & FEATURES2_TYPES != 0 },
        has_sparse_inodes: is_v5 && incompat & 2 != 0,
        has_shared: is_v5 && be32(bytes, 212)? & RO_REFLINK != 0,
        log: (log.0 != 0).then_some(log),
        special: special(bytes, is_v5)?,
        notes: notes(bytes, is_v5, blocks > volume / block)?,
    })
}

/// Inodes of the file system itself.
fn special(bytes: &[u8], is_v5: bool) -> Tried<Vec<(u64, &'static str)>> {
    let mut special = Vec::new();
    let inodes =
        [(64, "realtime bitmap"), (72, "realtime summary"), (160, "quota"), (168, "quota")];
    for (at, what) in inodes {
        special.push((be64(bytes, at)?, what));
    }
    if is_v5 {
        special.push((be64(bytes, 232)?, "quota"));
    }
    special.retain(|(inode, _)| *inode != 0 && *inode != u64::MAX);
    Ok(special)
}

/// Limits of the listing, in words.
fn notes(bytes: &[u8], is_v5: bool, is_cut: bool) -> Tried<Vec<&'static str>> {
    let (incompat, ro_compat) = (be32(bytes, 216)?, be32(bytes, 212)?);
    let mut notes = Vec::new();
    if is_v5 && ro_compat & !RO_KNOWN != 0 {
        notes.push("the file system has features that are not known, which do not hinder reading");
    }
    if is_v5 && incompat & NEEDS_REPAIR != 0 {
        notes.push("the file system is marked as needing repair");
    }
    if is_cut {
        notes.push("the file system is larger than the volume: files behind its end are not told");
    }
    if be64(bytes, 16)? > 0 {
        notes.push("contents of files on the realtime device are not told");
    }
    Ok(notes)
}

impl Superblock {
    /// Reads the 512 bytes of a superblock of any allocation group. Returns `None` if they are none.
    ///
    /// # Errors
    /// Features that are not understood, or numbers that contradict each other.
    pub fn parse(bytes: &[u8]) -> Result<Option<Superblock>, FilesError> {
        judge(bytes, u64::MAX)
    }

    /// Blocks of an allocation group: the last one may be shorter.
    pub fn group_len(&self, group: u64) -> u64 {
        self.group_blocks.min(self.blocks - group * self.group_blocks)
    }

    /// The bytes of `count` blocks from the `block`th of a group on.
    pub(super) fn in_group(
        &self,
        group: u64,
        block: u64,
        count: u64,
    ) -> Tried<std::ops::Range<u64>> {
        check(group < self.groups, "there are fewer allocation groups")?;
        let len = self.group_len(group);
        check(block < len && count <= len - block, "blocks lie outside of their allocation group")?;
        let first = (group * self.group_blocks + block) * self.block;
        Ok(first..first + count * self.block)
    }

    /// The bytes of blocks, by the number that has the group in its high bits.
    pub(super) fn bytes(&self, block: u64, count: u64) -> Tried<std::ops::Range<u64>> {
        self.in_group(block >> self.block_bits, block & ((1 << self.block_bits) - 1), count)
    }

    /// Returns the place of an inode in bytes from the start of the volume.
    ///
    /// # Errors
    /// The file system has no room for such an inode.
    pub fn inode_offset(&self, inode: u64) -> Result<u64, Trouble> {
        let index = inode & ((1 << self.inode_bits) - 1);
        Ok(self.bytes(inode >> self.inode_bits, 1)?.start + index * self.inode_size)
    }
}
