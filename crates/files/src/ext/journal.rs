//! The journal of ext3 and ext4 (jbd2): which blocks have a newer copy there.
//!
//! ```text
//!   superblock │ descriptor: tags │ copies of blocks.. │ revoke │ .. │ commit │ descriptor ..      it is a ring
//!                  block number, checksum of the copy     blocks whose older copies do not count
//! ```
//!
//! A transaction counts if its commit block is there. The first one that does not ends the journal.
//!
//! Source: Linux 6.12, `fs/jbd2/recovery.c` and `include/linux/jbd2.h`.

use std::collections::BTreeMap;

use super::{Ext, map};
use crate::Replayed;
use crate::bytes::{be16, be32, byte, halves, slice};
use crate::error::{Tried, Trouble, check};
use crate::overlay::Copy;

const MAGIC: u32 = 0xc03b_3998;
const WIDE: u32 = 0x2;
const CHECKSUMS_2: u32 = 0x8;
const CHECKSUMS_3: u32 = 0x10;
const FAST: u32 = 0x20;
/// Revokes, 64 bits, asynchronous commits, checksums of versions 2 and 3, fast commits.
const KNOWN: u32 = 0x3f;
/// Flags of a tag: the copy begins with other bytes; the identifier does not follow; the last one.
const ESCAPED: u32 = 1;
const SAME_IDENTIFIER: u32 = 2;
const LAST: u32 = 8;

#[derive(Clone, Copy)]
struct Format {
    block: u64,
    /// The block at which the ring begins, and that behind its end.
    ring: (u64, u64),
    features: u32,
    /// The state of the checksums behind the identifier.
    seed: u32,
}

/// A copy that is not committed yet, and blocks whose older copies are revoked.
#[derive(Default)]
struct Transaction {
    copies: Vec<(u64, Copy)>,
    revoked: Vec<u64>,
}

impl Format {
    fn has_checksums(&self) -> bool {
        self.features & (CHECKSUMS_2 | CHECKSUMS_3) != 0
    }

    /// True if a block has the checksum that stands at `at` of it.
    fn is_right(&self, bytes: &[u8], at: usize) -> bool {
        let (Some(before), Some(behind)) = (bytes.get(..at), bytes.get(at + 4..)) else {
            return false;
        };
        let crc = [before, &[0; 4], behind].iter().fold(self.seed, |crc, part| extend(crc, part));
        be32(bytes, at).is_ok_and(|there| there == crc)
    }

    fn tag(&self) -> usize {
        match (self.features & CHECKSUMS_3 != 0, self.features & CHECKSUMS_2 != 0) {
            (true, _) => 16,
            (_, is_v2) => {
                8 + if self.features & WIDE != 0 { 4 } else { 0 } + if is_v2 { 2 } else { 0 }
            }
        }
    }
}

/// The state of a CRC-32C register, which the journal does not invert, behind `bytes`.
fn extend(state: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!state, bytes)
}

impl Ext<'_> {
    /// Reads the journal, if there is something in it.
    pub(super) fn read_journal(&mut self) -> Replayed {
        if !self.superblock.needs_replay {
            return Replayed::default();
        }
        self.journal().unwrap_or_else(|why| {
            let text = format!(
                "the journal was not replayed: files and names are those of the last checkpoint: {why}"
            );
            Replayed { unreplayed: Some(text), ..Replayed::default() }
        })
    }

    fn journal(&mut self) -> Tried<Replayed> {
        let number = self.superblock.journal;
        check(number != 0, "it lies on another device")?;
        let places = self.journal_places(number)?;
        let block = self.superblock.block;
        let bytes = self.read_block(*places.first().ok_or(Trouble::Damaged("it is empty"))?)?;
        check(be32(&bytes, 0)? == MAGIC, "its superblock is none")?;
        check(
            u64::from(be32(&bytes, 12)?) == block,
            "its blocks are not those of the file system",
        )?;
        let features = if be32(&bytes, 4)? == 4 { be32(&bytes, 0x28)? } else { 0 };
        check(features & !KNOWN == 0, "it has features that are not known")?;
        let start = u64::from(be32(&bytes, 0x1c)?);
        let mut end = u64::from(be32(&bytes, 0x10)?).min(places.len() as u64);
        let fast = match (features & FAST != 0, be32(&bytes, 0x54)?) {
            (false, _) => 0,
            (true, 0) => 256,
            (true, blocks) => u64::from(blocks),
        };
        end = end.saturating_sub(fast);
        let first = u64::from(be32(&bytes, 0x14)?);
        check(first > 0 && first < end, "it has no room")?;
        let format = Format {
            block,
            ring: (first, end),
            features,
            seed: extend(u32::MAX, slice(&bytes, 0x30, 16)?),
        };
        // The superblock has 1024 bytes, and its checksum begins without the identifier.
        let plain = Format { seed: u32::MAX, ..format };
        let has_checksum = !format.has_checksums() || plain.is_right(slice(&bytes, 0, 1024)?, 0xfc);
        check(has_checksum, "its superblock has another checksum")?;
        let sequence = be32(&bytes, 0x18)?;
        if start == 0 {
            return Ok(Replayed::default());
        }
        check((first..end).contains(&start), "it begins outside of itself")?;
        let (mut journal, next) = self.replay(&format, &places, start, sequence);
        if fast > 0 && self.has_fast_commit(&places, end, next) {
            let text = "changes that only the fast commits of the journal hold are not told";
            journal.unreplayed.get_or_insert(text.to_owned());
        }
        Ok(journal)
    }

    /// The blocks of the journal, in order.
    fn journal_places(&mut self, number: u64) -> Tried<Vec<u64>> {
        let inode = self.inode(number)?;
        let most = self.superblock.blocks.min(inode.size / self.superblock.block);
        let mut places = Vec::new();
        let mut is_whole = true;
        map::walk(self, &inode, 0, &mut |mapped| {
            if let Some(at) = mapped.at {
                is_whole &= at == places.len() as u64;
                let count = mapped.count.min(most.saturating_sub(places.len() as u64));
                places.extend(mapped.block..mapped.block + count);
            }
            is_whole
        })?;
        check(is_whole, "a part of it is missing")?;
        Ok(places)
    }

    /// Goes through the transactions from block `at` of the ring on. Returns the sequence that follows the last one.
    fn replay(
        &mut self,
        format: &Format,
        places: &[u64],
        start: u64,
        first: u32,
    ) -> (Replayed, u32) {
        let mut journal = Replayed::default();
        let mut committed: Vec<Transaction> = Vec::new();
        let mut open = Transaction::default();
        let (mut at, mut sequence) = (start, first);
        let mut left = format.ring.1 - format.ring.0;
        let result: Tried<()> = loop {
            let Some(rest) = left.checked_sub(1) else { break Ok(()) };
            left = rest;
            let bytes = match self.read_block(places[at as usize]) {
                Ok(bytes) => bytes,
                Err(why) => break Err(why),
            };
            let kind = (be32(&bytes, 0).ok(), be32(&bytes, 8).ok(), be32(&bytes, 4).unwrap_or(0));
            let (Some(MAGIC), Some(number), kind) = kind else { break Ok(()) };
            if number != sequence {
                break Ok(());
            }
            let behind = format.next(at);
            let tail = bytes.len() - 4;
            match kind {
                1 | 5 if format.has_checksums() && !format.is_right(&bytes, tail) => {
                    break Err(Trouble::Damaged("a block has another checksum"));
                }
                1 => match self.tags(format, places, &bytes, behind, sequence, &mut open) {
                    Ok((next, used)) => {
                        at = next;
                        left = left.saturating_sub(used);
                    }
                    Err(why) => break Err(why),
                },
                5 => {
                    if let Err(why) = revokes(format, &bytes, &mut open) {
                        break Err(why);
                    }
                    at = behind;
                }
                2 => {
                    if format.has_checksums() && !format.is_right(&bytes, 16) {
                        // The transaction was under way.
                        break Ok(());
                    }
                    committed.push(std::mem::take(&mut open));
                    sequence = sequence.wrapping_add(1);
                    at = behind;
                }
                _ => break Ok(()),
            }
        };
        // The last transaction that revokes older copies of a block.
        let mut revoked: BTreeMap<u64, usize> = BTreeMap::new();
        for (index, transaction) in committed.iter().enumerate() {
            revoked.extend(transaction.revoked.iter().map(|block| (*block, index)));
        }
        for (index, transaction) in committed.iter().enumerate() {
            for (block, copy) in &transaction.copies {
                // A block that this transaction, or a later one, revokes is not replayed.
                if revoked.get(block).is_none_or(|last| *last < index) {
                    journal.copies.insert(*block, *copy);
                }
            }
        }
        journal.unreplayed = result.err().map(|why| {
            format!(
                "the journal is replayed up to its transaction {sequence}, which is damaged: {why}"
            )
        });
        (journal, sequence)
    }

    /// The tags of a descriptor block, each with a copy behind it. Returns the place of the block behind them, and how
    /// many there are.
    fn tags(
        &mut self,
        format: &Format,
        places: &[u64],
        bytes: &[u8],
        mut at: u64,
        sequence: u32,
        open: &mut Transaction,
    ) -> Tried<(u64, u64)> {
        let size = format.tag();
        let end = bytes.len() - if format.has_checksums() { 4 } else { 0 };
        let is_v3 = format.features & CHECKSUMS_3 != 0;
        let (mut tag, mut used) = (12, 0);
        while tag + size <= end {
            let flags = if is_v3 { be32(bytes, tag + 4)? } else { be16(bytes, tag + 6)?.into() };
            let high = if format.features & WIDE != 0 { be32(bytes, tag + 8)? } else { 0 };
            let block = halves(be32(bytes, tag)?, high);
            let place = places[at as usize];
            if format.has_checksums() {
                let copy = self.read_block(place)?;
                let crc = extend(extend(format.seed, &sequence.to_be_bytes()), &copy);
                let is_right = match is_v3 {
                    true => be32(bytes, tag + 12)? == crc,
                    false => u32::from(be16(bytes, tag + 4)?) == crc & 0xffff,
                };
                check(is_right, "a copy of a block has another checksum")?;
            }
            check(
                block < self.superblock.blocks,
                "a block lies behind the end of the file system",
            )?;
            let start = (flags & ESCAPED != 0).then_some(MAGIC.to_be_bytes());
            open.copies.push((block, Copy { at: place * format.block, start }));
            at = format.next(at);
            used += 1;
            tag += size + if flags & SAME_IDENTIFIER != 0 { 0 } else { 16 };
            if flags & LAST != 0 {
                break;
            }
        }
        Ok((at, used))
    }

    /// True if the area of fast commits begins with one that follows the transactions.
    fn has_fast_commit(&mut self, places: &[u64], first: u64, sequence: u32) -> bool {
        let Some(place) = places.get(first as usize) else { return false };
        let Ok(bytes) = self.read_block(*place) else { return true };
        // A head has tag 9, 8 bytes long: features, and the sequence of its transaction; little-endian.
        byte(&bytes, 0).is_ok_and(|tag| tag == 9)
            && crate::bytes::le32(&bytes, 8).is_ok_and(|number| number == sequence)
    }
}

impl Format {
    fn next(&self, at: u64) -> u64 {
        if at + 1 < self.ring.1 { at + 1 } else { self.ring.0 }
    }
}

/// The blocks of a revoke block.
fn revokes(format: &Format, bytes: &[u8], open: &mut Transaction) -> Tried<()> {
    let end = be32(bytes, 12)? as usize;
    let size = if format.features & WIDE != 0 { 8 } else { 4 };
    let list = slice(bytes, 16, end.saturating_sub(16))?;
    for entry in list.chunks_exact(size) {
        open.revoked.push(match size {
            8 => halves(be32(entry, 4)?, be32(entry, 0)?),
            _ => be32(entry, 0)?.into(),
        });
    }
    Ok(())
}
