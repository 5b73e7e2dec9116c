//! The possible answers of a volume.
//!
//! ```text
//! time ───────────────────────────────────────────────────────▶
//! write A  |---------|
//! write B                |------|            B began after A was done: A is gone for
//! write C                            |----   reads that begin after B is done
//! read                               |---|   may show B or C
//! crash                                  ✕   A, B or C, unless a flush that began after B was
//!                                            done is itself done: then B or C
//! ```
//!
//! One rule serves for both: a version is gone when another began after it was done and is itself settled (for
//! a read: acknowledged before the read began; for a crash: durable). A failed write may be there in part; it
//! settles nothing. A discarded range may have any content.
//!
//! The same volume lives through several crashes: the possible results of the last crash are possible from then
//! on ([`Oracle::crash`]), until a volume at rest is read ([`Oracle::settle`]).
//!
//! And reads are stable: once no request is in flight on a block, every later read shows the content that one
//! read showed.
//!
//! A block of which one version alone is left, a durable one, is a part of an [`Image`]; only the others have lists.
//! A copy of an oracle therefore costs little, and there is one for each crash that is tried. The times of such a
//! version do not matter: no comparison with a later version depends on them.
//!
//! Deliberately absent: the volume. The caller reports the start and the end of requests.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use braid_block::Span;

use crate::Image;

/// The possible contents of a volume, block by block.
#[derive(Clone)]
pub struct Oracle {
    block: usize,
    /// The contents of all blocks that are not in `open`.
    settled: Image,
    /// The versions of blocks that may have several, or one that is not durable or not known, by number.
    open: BTreeMap<usize, Vec<Version>>,
    now: u64,
    /// Reads under way: when each began.
    reads: BTreeMap<u64, Span>,
    /// True if a read need not show the content that an earlier one showed.
    wavers: bool,
}

/// A modifying request in flight.
#[derive(Clone, Copy, Debug)]
pub struct WriteToken {
    began: u64,
    span: Span,
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
pub struct ReadToken {
    began: u64,
    span: Span,
}

/// A block that holds what it must not.
#[derive(Debug)]
pub struct Mismatch {
    /// The place, in bytes of the volume.
    pub offset: u64,
    /// The first bytes that were found.
    pub found: Vec<u8>,
    /// The first bytes of each possible version; `None` for one that may have any content.
    pub allowed: Vec<Option<Vec<u8>>>,
}

#[derive(Clone)]
struct Version {
    began: u64,
    done: Option<u64>,
    acknowledged: bool,
    durable: bool,
    /// When a read had shown that another one came out on top.
    lost: Option<u64>,
    /// `None`: anything.
    data: Option<Rc<[u8]>>,
}

impl Oracle {
    /// A volume that holds `contents` durably, in blocks of `block` bytes.
    ///
    /// # Panics
    /// If `contents` are not whole blocks.
    pub fn new(contents: &[u8], block: u32) -> Oracle {
        let block = block as usize;
        assert!(contents.len().is_multiple_of(block), "whole blocks");
        Oracle {
            block,
            settled: contents.into(),
            open: BTreeMap::new(),
            now: 0,
            reads: BTreeMap::new(),
            wavers: false,
        }
    }

    /// A write of `data` begins; `None` for a discard.
    pub fn begin_write(&mut self, span: Span, data: Option<&[u8]>) -> WriteToken {
        let began = self.tick();
        for (index, block) in self.blocks(span).enumerate() {
            let data = data.map(|data| data[index * self.block..][..self.block].into());
            let version = Version {
                began,
                done: None,
                acknowledged: false,
                durable: false,
                lost: None,
                data,
            };
            let settled = &self.settled;
            let before = || {
                vec![Version::settled(
                    0,
                    Some(part(settled, block * self.block, self.block).into()),
                )]
            };
            self.open.entry(block).or_insert_with(before).push(version);
        }
        WriteToken { began, span }
    }

    /// It is done: acknowledged, or failed. `durable` if it was forced (FUA).
    pub fn end_write(&mut self, write: WriteToken, acknowledged: bool, durable: bool) {
        let now = self.tick();
        for block in self.blocks(write.span) {
            let versions = self.open.get_mut(&block).into_iter().flatten();
            for version in versions.filter(|version| version.began == write.began) {
                version.done = Some(now);
                version.acknowledged = acknowledged;
                // Of what was discarded nothing is there that could be forced.
                version.durable = acknowledged && durable && version.data.is_some();
            }
        }
    }

    /// A read begins.
    pub fn begin_read(&mut self, span: Span) -> ReadToken {
        let began = self.tick();
        self.reads.insert(began, span);
        ReadToken { began, span }
    }

    /// It is done: with these bytes, or failed.
    ///
    /// # Errors
    /// A block that it must not have shown.
    pub fn end_read(&mut self, read: ReadToken, shown: Option<&[u8]>) -> Result<(), Mismatch> {
        self.reads.remove(&read.began);
        let Some(shown) = shown else { return Ok(()) };
        let now = self.tick();
        let before = |version: &Version| version.done.is_some_and(|done| done < read.began);
        for (block, found) in self.blocks(read.span).zip(shown.chunks_exact(self.block)) {
            let Some(versions) = self.open.get_mut(&block) else {
                check_settled(&self.settled, block * self.block, found)?;
                continue;
            };
            let barrier = barrier(versions, |one| one.acknowledged && before(one));
            let possible = possible(versions, barrier)
                .filter(|version| version.lost.is_none_or(|lost| lost > read.began));
            check((block * self.block) as u64, found, possible)?;
            if !self.wavers && versions.iter().all(before) {
                let others = versions.iter_mut().filter(|version| !version.matches(found));
                others.for_each(|version| version.lost = version.lost.or(Some(now)));
            }
        }
        Ok(())
    }

    /// A flush begins; the answer is for [`Oracle::end_flush`].
    pub fn begin_flush(&mut self) -> u64 {
        self.tick()
    }

    /// It was acknowledged: what was acknowledged before it `began` is durable.
    pub fn end_flush(&mut self, began: u64) {
        let oldest_read = self.reads.keys().next().copied().unwrap_or(self.now);
        for versions in self.open.values_mut() {
            for version in versions.iter_mut() {
                let before = version.done.is_some_and(|done| done < began);
                version.durable |= version.acknowledged && before;
            }
            // What is gone for crashes and for all reads under way is gone for good.
            let barrier = barrier(versions, |one| one.durable && one.done < Some(oldest_read));
            versions.retain(|version| version.done.is_none_or(|done| done >= barrier));
        }
        self.close();
    }

    /// Checks whether a crash now may leave `contents`.
    ///
    /// # Errors
    /// A block with content that a crash must not leave.
    pub fn check_crash(&self, contents: &[u8]) -> Result<(), Mismatch> {
        self.check_crash_but(contents, |_| false)
    }

    /// The same, where the blocks whose offset `may_be_anything` may hold anything.
    ///
    /// # Errors
    /// A block that it must not have left.
    pub fn check_crash_but(
        &self,
        contents: &[u8],
        may_be_anything: impl Fn(u64) -> bool,
    ) -> Result<(), Mismatch> {
        for (block, found) in contents.chunks_exact(self.block).enumerate() {
            let offset = (block * self.block) as u64;
            if !may_be_anything(offset) {
                self.check_block(offset, found)?;
            }
        }
        Ok(())
    }

    /// The same for the block at `offset` alone.
    ///
    /// # Errors
    /// It must not be there.
    pub fn check_block(&self, offset: u64, found: &[u8]) -> Result<(), Mismatch> {
        match self.open.get(&(offset as usize / self.block)) {
            Some(versions) => check(offset, found, survivors(versions)),
            None => check_settled(&self.settled, offset as usize, found),
        }
    }

    /// The power failed: from now on each block has one of the possible contents after the crash, and it is
    /// unknown which; at blocks whose offset `may_be_anything`, it may have any content. All requests in flight
    /// are over.
    pub fn crash(&mut self, may_be_anything: impl Fn(u64) -> bool) {
        let now = self.tick();
        self.reads.clear();
        for versions in self.open.values_mut() {
            let barrier = barrier(versions, |version| version.durable);
            versions.retain(|version| version.done.is_none_or(|done| done >= barrier));
            if versions.len() > 1 {
                for version in versions.iter_mut() {
                    (version.done, version.lost) = (Some(now), None);
                    (version.acknowledged, version.durable) = (false, false);
                }
            }
        }
        self.spoil(may_be_anything);
    }

    /// The process was killed: what was under way may or may not have arrived.
    pub fn kill(&mut self) {
        let now = self.tick();
        self.reads.clear();
        for version in self.open.values_mut().flatten() {
            version.done = version.done.or(Some(now));
        }
    }

    /// At blocks whose offset `may_be_anything`, anything is from now on.
    pub fn spoil(&mut self, may_be_anything: impl Fn(u64) -> bool) {
        let now = self.tick();
        for block in 0..self.settled.len() / self.block {
            if may_be_anything((block * self.block) as u64) {
                self.open.insert(block, vec![Version::settled(now, None)]);
            }
        }
        self.close();
    }

    /// The volume is at rest, and holds `contents`: nothing else can come back.
    pub fn settle(&mut self, contents: &[u8]) {
        let now = self.tick();
        for (block, versions) in &mut self.open {
            let at_rest = versions.iter().all(|version| version.done.is_some());
            let data = contents.get(block * self.block..).and_then(|rest| rest.get(..self.block));
            if let Some(data) = data
                && at_rest
                && versions.len() > 1
            {
                *versions = vec![Version::settled(now, Some(data.into()))];
            }
        }
        self.close();
    }

    /// Sets whether members may be lost of which the others are not known to be copies: then the content that
    /// reads have shown may change once more, for as long as that lasts.
    pub fn waver(&mut self, wavers: bool) {
        if wavers {
            self.open.values_mut().flatten().for_each(|version| version.lost = None);
        }
        self.wavers = wavers;
    }

    /// True if a crash now leaves only one content of the block at `offset`: no request is in flight there, and
    /// the last write is durable.
    pub fn is_settled(&self, offset: u64) -> bool {
        let versions = self.open.get(&(offset as usize / self.block));
        versions.is_none_or(|versions| survivors(versions).count() == 1)
    }

    /// The number of changes so far.
    pub fn changes(&self) -> u64 {
        self.now
    }

    /// Capacity in bytes.
    pub fn size(&self) -> u64 {
        self.settled.len() as u64
    }

    /// Moves blocks with one durable version into the image.
    fn close(&mut self) {
        let (block_size, image) = (self.block, &mut self.settled);
        self.open.retain(|block, versions| match &versions[..] {
            [
                Version {
                    done: Some(_),
                    acknowledged: true,
                    durable: true,
                    lost: None,
                    data: Some(data),
                    ..
                },
            ] => {
                image.write(block * block_size, data);
                false
            }
            _ => true,
        });
    }

    fn blocks(&self, span: Span) -> std::ops::Range<usize> {
        span.offset as usize / self.block..span.end() as usize / self.block
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }
}

/// The moment when the last of the `settled` versions began.
fn barrier(versions: &[Version], settled: impl Fn(&Version) -> bool) -> u64 {
    let settled = versions.iter().filter(|version| settled(version));
    settled.map(|version| version.began).max().unwrap_or(0)
}

/// The versions that a crash may leave.
fn survivors(versions: &[Version]) -> impl Iterator<Item = &Version> + Clone {
    possible(versions, barrier(versions, |version| version.durable))
}

/// The versions that were not done when the one at `barrier` began: those that are not gone.
fn possible(versions: &[Version], barrier: u64) -> impl Iterator<Item = &Version> + Clone {
    versions.iter().filter(move |version| version.done.is_none_or(|done| done >= barrier))
}

fn check<'a>(
    offset: u64,
    found: &[u8],
    possible: impl Iterator<Item = &'a Version> + Clone,
) -> Result<(), Mismatch> {
    if possible.clone().any(|version| version.matches(found)) {
        return Ok(());
    }
    let head = |data: &[u8]| data[..data.len().min(8)].to_vec();
    let allowed = possible.map(|version| version.data.as_deref().map(head)).collect();
    Err(Mismatch { offset, found: head(found), allowed })
}

/// Checks a block at `offset` with the contents of `image`.
fn check_settled(image: &Image, offset: usize, found: &[u8]) -> Result<(), Mismatch> {
    if image.holds(offset, found) {
        return Ok(());
    }
    let head = |data: &[u8]| data[..data.len().min(8)].to_vec();
    let allowed = vec![Some(part(image, offset, found.len().min(8)))];
    Err(Mismatch { offset: offset as u64, found: head(found), allowed })
}

/// The `len` bytes of `image` from `offset` on.
fn part(image: &Image, offset: usize, len: usize) -> Vec<u8> {
    let mut part = vec![0; len];
    image.read(offset, &mut part);
    part
}

impl Version {
    /// A version that is known to be there, since `now`.
    fn settled(now: u64, data: Option<Rc<[u8]>>) -> Version {
        Version { began: now, done: Some(now), acknowledged: true, durable: true, lost: None, data }
    }

    fn matches(&self, found: &[u8]) -> bool {
        self.data.as_deref().is_none_or(|data| data == found)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { offset, found, allowed } = self;
        write!(f, "the block at {offset} holds {found:02x?}…, allowed are {allowed:02x?}")
    }
}

impl std::error::Error for Mismatch {}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Span = Span::new(0, 2);

    fn write(oracle: &mut Oracle, byte: u8) {
        let token = oracle.begin_write(ALL, Some(&[byte; 2]));
        oracle.end_write(token, true, false);
    }

    /// Which bytes a read of both blocks may show at this moment.
    fn readable(oracle: &Oracle) -> Vec<u8> {
        let shows = |byte: &u8| {
            let mut oracle = oracle.clone();
            let read = oracle.begin_read(ALL);
            oracle.end_read(read, Some(&[*byte; 2])).is_ok()
        };
        (0..10).filter(shows).collect()
    }

    /// Which bytes a crash may leave in both blocks.
    fn survivors(oracle: &Oracle) -> Vec<u8> {
        (0..10).filter(|byte| oracle.check_crash(&[*byte; 2]).is_ok()).collect()
    }

    #[test]
    fn an_acknowledged_write_replaces_what_was_done_before_it_began() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        write(&mut oracle, 1);
        assert_eq!(readable(&oracle), [1]);
        let (a, b) =
            (oracle.begin_write(ALL, Some(&[2; 2])), oracle.begin_write(ALL, Some(&[3; 2])));
        assert_eq!(readable(&oracle), [1, 2, 3]);
        oracle.end_write(a, true, false);
        assert_eq!(readable(&oracle), [2, 3]);
        oracle.end_write(b, true, false);
        assert_eq!(readable(&oracle), [2, 3], "either came last");
        let read = oracle.begin_read(ALL);
        oracle.end_read(read, Some(&[2, 3])).unwrap();
        let read = oracle.begin_read(ALL);
        assert!(oracle.end_read(read, Some(&[3, 3])).is_err(), "what was read stays");
    }

    #[test]
    fn a_read_may_show_what_was_there_while_it_ran() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        let read = oracle.begin_read(ALL);
        write(&mut oracle, 1);
        write(&mut oracle, 2);
        let flush = oracle.begin_flush();
        oracle.end_flush(flush);
        for byte in 0..3 {
            oracle.clone().end_read(read, Some(&[byte; 2])).unwrap();
        }
        assert!(oracle.end_read(read, Some(&[3; 2])).is_err());
    }

    #[test]
    fn a_failed_write_may_be_there_and_settles_nothing() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        let token = oracle.begin_write(ALL, Some(&[1; 2]));
        oracle.end_write(token, false, false);
        assert_eq!(readable(&oracle), [0, 1]);
        write(&mut oracle, 2);
        assert_eq!(readable(&oracle), [2]);
    }

    #[test]
    fn what_was_discarded_reads_as_anything() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        let token = oracle.begin_write(ALL, None);
        oracle.end_write(token, true, false);
        assert_eq!(readable(&oracle).len(), 10);
        write(&mut oracle, 4);
        assert_eq!(readable(&oracle), [4]);
    }

    #[test]
    fn what_a_crash_may_have_left_may_be_read_and_come_back_until_it_is_settled() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        write(&mut oracle, 1);
        write(&mut oracle, 2);
        oracle.begin_write(ALL, Some(&[3; 2]));
        oracle.crash(|offset| offset == 1);
        let read = oracle.begin_read(ALL);
        assert!(oracle.clone().end_read(read, Some(&[4, 9])).is_err());
        oracle.end_read(read, Some(&[2, 9])).unwrap();
        let read = oracle.begin_read(ALL);
        assert!(oracle.clone().end_read(read, Some(&[1, 9])).is_err(), "reads do not waver");
        oracle.waver(true);
        oracle.clone().end_read(read, Some(&[1, 8])).unwrap();
        assert!(oracle.check_crash(&[0, 0]).is_ok(), "nothing was made durable since");
        oracle.settle(&[1, 9]);
        assert!(oracle.check_crash(&[2, 9]).is_err());
        assert!(oracle.check_crash(&[1, 9]).is_ok());
    }

    #[test]
    fn what_a_killed_process_had_acknowledged_is_there() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        write(&mut oracle, 1);
        oracle.begin_write(ALL, Some(&[2; 2]));
        oracle.kill();
        assert_eq!(readable(&oracle), [1, 2]);
        assert_eq!(survivors(&oracle), [0, 1, 2]);
    }

    #[test]
    fn a_crash_takes_what_no_flush_covered() {
        let mut oracle = Oracle::new(&[0; 2], 1);
        write(&mut oracle, 1);
        let flush = oracle.begin_flush();
        write(&mut oracle, 2);
        assert_eq!(survivors(&oracle), [0, 1, 2]);
        oracle.end_flush(flush);
        assert_eq!(survivors(&oracle), [1, 2]);
        let forced = oracle.begin_write(ALL, Some(&[3; 2]));
        assert_eq!(survivors(&oracle), [1, 2, 3]);
        oracle.end_write(forced, true, true);
        assert_eq!(survivors(&oracle), [3]);
        assert_eq!(readable(&oracle), [3]);
    }
}
