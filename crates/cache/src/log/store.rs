//! A log on its device: replayed, written.
//!
//! Invariants
//! * Nothing is written before what is there was judged.
//! * A superblock of a new generation is written when the origin has, durably, what the old one's records
//!   said; no record of the new generation is written before that superblock is durable.
//! * Places are given out again when a superblock that does not count on them, and its copy, are durable.
//!
//! A crash is safe at each step of [`Log::open`], and at each step of the next one:
//! * While records are written to the origin, nothing on the log's device changes. The next replay finds the same
//!   records, and writes all of them again, in the same order. Of each sector the last record decides, so what the
//!   crash left of the first replay does not matter, even where it is older than what the origin had.
//! * The origin is flushed before the first superblock of the new generation is written. Where that one is torn, the
//!   old one, whose place it does not take, counts: the same replay again.
//! * From the first sound superblock of the new generation on, no record counts: all there are have an older
//!   generation. The origin has, durably, what they said. The copy of it may be torn or old: of two that are sound
//!   the higher number counts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Errno, Flags, Io};
use braid_engine::{Dev, Pending, join_all};
use braid_mem::{Buf, Pool};

use super::error::{LogError, Replayed};
use super::format::{
    BLOCK, Extent, Header, Kind, Life, MAX_DATA, OriginId, RING_START, Superblock, record_len,
};
use super::found::{Scanned, Superblocks, scan};
use super::ring::Ring;
use crate::canary::Canary;

/// One time that a log was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId {
    /// Of the log.
    pub uuid: [u8; 16],
    /// How many times it was opened.
    pub generation: u64,
}

/// What knows, durably and elsewhere than on their devices, which logs must never be replayed: for those whose
/// device does not take a superblock any more that says so.
pub trait GivenUp {
    /// Nothing counts any more of what `log` holds.
    ///
    /// # Errors
    /// It is not durable: it may be replayed.
    fn remember(&self, log: LogId) -> std::io::Result<()>;

    /// Whether that was said of `log`.
    ///
    /// # Errors
    /// That is not known.
    fn has(&self, log: LogId) -> std::io::Result<bool>;
}

/// What a log is opened with.
pub struct LogSetup {
    /// Where it lies.
    pub dev: Dev,
    /// What proves the origin.
    pub origin: OriginId,
    /// The origin as a stack, for people.
    pub text: String,
    /// Of the log if it is made anew.
    pub uuid: [u8; 16],
    /// What it holds of another cache, or damaged, is given up.
    pub is_forced: bool,
    /// The origin is in use already: nothing of what the log holds may be written to it.
    pub is_live: bool,
    /// Which logs were given up, if anybody remembers.
    pub given_up: Option<Rc<dyn GivenUp>>,
}

/// A log that is open.
pub(crate) struct Log {
    dev: Dev,
    pool: Pool,
    life: Life,
    text: String,
    area: u64,
    written: Cell<u64>,
    /// Where the next superblock goes: not over the last one that is durable.
    place: Cell<u64>,
    pub(crate) ring: RefCell<Ring>,
    /// Records before this position, and before this sequence, are durable.
    durable: Cell<(u64, u64)>,
    pub(crate) writes: Cell<u64>,
    pub(crate) bytes: Cell<u64>,
}

/// The least that a log of a cache with blocks of `block` bytes takes.
pub fn least_log(block: u64) -> u64 {
    RING_START + 16 * (block + BLOCK)
}

fn id_of(life: &Life) -> LogId {
    LogId { uuid: life.uuid, generation: life.generation }
}

/// Writes what a record says to the origin: its parts do not overlap, but for what makes zeroes or
/// nothing of data, which comes last.
async fn replay(origin: &Dev, pool: &Pool, header: &Header, data: &[u8]) -> Result<(), LogError> {
    let Ok(parts) = header.prove(data) else { return Ok(()) };
    let mut writes = Vec::new();
    let mut waiting = 0;
    for (Extent { span, kind }, bytes) in parts {
        if kind != Kind::Data || waiting + span.len > MAX_DATA / 2 {
            all_well(std::mem::take(&mut writes)).await.map_err(LogError::Origin)?;
            waiting = 0;
        }
        writes.push(match kind {
            Kind::Data => {
                let mut buf = pool.get_wait(bytes.len()).await;
                buf.copy_from_slice(bytes);
                waiting += span.len;
                origin.start(Io::write(span.offset, buf, Flags::NONE))
            }
            Kind::Zeroes => origin.start(Io::write_zeroes(span, Flags::NONE)),
            Kind::Discard => origin.start(Io::discard(span, Flags::NONE)),
        });
    }
    all_well(writes).await.map_err(LogError::Origin)
}

/// Waits for all of `writes`; the first error.
pub(crate) async fn all_well(writes: Vec<Pending>) -> Result<(), Errno> {
    join_all(writes).await.into_iter().try_for_each(|done| done.result)
}

impl Log {
    /// Opens the log of a cache with blocks of `block` bytes: what it holds is written to `origin`. With
    /// `read_only` nothing is written, and there is no log then.
    ///
    /// # Errors
    /// [`LogError`]: then nothing was written, but for parts of what it holds, to the origin.
    pub(crate) async fn open(
        setup: &LogSetup,
        origin: &Dev,
        pool: &Pool,
        block: u64,
    ) -> Result<(Option<Log>, Replayed), LogError> {
        let (dev, size) = (&setup.dev, setup.dev.limits().size);
        if size < least_log(block) {
            return Err(LogError::TooSmall { got: size, least: least_log(block) });
        }
        let read_only = origin.limits().read_only || dev.limits().read_only;
        let superblocks = Superblocks::read(dev, pool).await?;
        let is_doubtful = superblocks.doubt().is_some();
        if let Some(why) = superblocks.doubt().filter(|_| !setup.is_forced) {
            return Err(LogError::Damaged(why.clone()));
        }
        let damaged = superblocks.damaged();
        let found = superblocks.newest;
        let mut was_given_up = false;
        if let (Some(given_up), Some((found, _))) = (&setup.given_up, &found) {
            was_given_up = given_up
                .has(id_of(&found.life))
                .map_err(|error| LogError::Unknown(error.into()))?;
        }
        let is_others = |found: &Superblock| found.life.origin != setup.origin;
        let counts = |found: &Superblock| {
            !(was_given_up || setup.is_forced && (is_others(found) || is_doubtful))
        };
        let mut replayed = Replayed { is_new: true, was_given_up, ..Replayed::default() };
        let mut life = Life { uuid: setup.uuid, generation: 0, origin: setup.origin };
        // What is there is overwritten last: a crash before that leaves what says that it does not count.
        let (written, place) =
            found.as_ref().map_or((0, 0), |(found, at)| (found.written + 1, BLOCK - at));
        if let Some((found, _)) = found.filter(|(found, _)| counts(found)) {
            let mut scanned = Scanned { replayed: Replayed::default(), rot: None };
            if found.is_open {
                scanned = scan(dev, pool, &found, async |_, _| Ok(())).await?;
            }
            if is_others(&found) {
                let (text, size, bytes) = (found.text, found.life.origin.size, scanned.bytes());
                return Err(LogError::OtherOrigin { text, size, bytes });
            }
            match scanned.rot {
                Some(rot) if !setup.is_forced => return Err(LogError::Rotten(rot)),
                Some(_) => {}
                None => {
                    if scanned.replayed.records > 0 && (read_only || setup.is_live) {
                        let why = if read_only { LogError::NotReplayed } else { LogError::InUse };
                        return Err(why(scanned.bytes()));
                    }
                    if found.is_open && !(read_only || setup.is_live) {
                        scan(dev, pool, &found, async |header, data| {
                            replay(origin, pool, header, data).await
                        })
                        .await?;
                        origin.start(Io::flush()).await.result.map_err(LogError::Origin)?;
                    }
                    (replayed, life) = (Replayed { damaged, ..scanned.replayed }, found.life);
                }
            }
        }
        if read_only {
            return Ok((None, replayed));
        }
        life.generation += 1;
        let area = size / BLOCK * BLOCK;
        let log = Log {
            dev: dev.clone(),
            pool: pool.clone(),
            life,
            text: setup.text.clone(),
            area,
            written: Cell::new(written),
            place: Cell::new(place),
            ring: RefCell::new(Ring::new(area - RING_START)),
            durable: Cell::new((0, 1)),
            writes: Cell::new(0),
            bytes: Cell::new(0),
        };
        log.write_superblock(0, true).await.map_err(LogError::Device)?;
        Ok((Some(log), replayed))
    }

    /// Which it is.
    pub(crate) fn id(&self) -> LogId {
        id_of(&self.life)
    }

    /// Says, durably and twice, where the first record that counts lies, or that there is none.
    pub(crate) async fn write_superblock(&self, tail: u64, is_open: bool) -> Result<(), Errno> {
        let superblock = Superblock {
            life: self.life,
            written: self.written.get(),
            area: self.area,
            tail,
            tail_sequence: self.ring.borrow().sequence_at(tail),
            durable: Some(self.durable.get().1),
            is_open,
            text: self.text.clone(),
        };
        // Also one that failed may be there.
        self.written.set(self.written.get() + 1);
        for _ in 0..2 {
            let mut block = self.pool.get_wait(BLOCK as usize).await;
            superblock.encode_into(&mut block);
            let place = self.place.get();
            self.dev.start(Io::write(place, block, Flags::FUA)).await.result?;
            self.place.set(BLOCK - place);
        }
        Ok(())
    }

    /// Records before `tail` do not count any more.
    pub(crate) async fn retire(&self, tail: u64) -> Result<(), Errno> {
        if tail == self.ring.borrow().tail().0 {
            return Ok(());
        }
        if Canary::RoomBeforeTail.is_planted() {
            self.ring.borrow_mut().advance(tail);
            return Ok(());
        }
        self.write_superblock(tail, true).await?;
        self.ring.borrow_mut().advance(tail);
        Ok(())
    }

    /// Bytes that a record takes at most.
    pub(crate) fn most(&self) -> u64 {
        let share = self.ring.borrow().capacity() / 8 / BLOCK * BLOCK;
        share.min(MAX_DATA + BLOCK)
    }

    /// Memory for a record: a header's, and as many bytes behind it as a record has at most.
    pub(crate) async fn buffer(&self) -> Buf {
        self.pool.get_wait(self.most() as usize).await
    }

    /// Starts to write a record, whose data lie behind the first [`BLOCK`] of `buf`; answers its position.
    ///
    /// # Errors
    /// `ENOSPC`.
    pub(crate) fn append(
        &self,
        mut buf: Buf,
        extents: Vec<Extent>,
    ) -> Result<(u64, Pending), Errno> {
        let data_len: u64 = extents.iter().map(Extent::data_len).sum();
        let len = record_len(data_len);
        let (position, sequence) = self.ring.borrow_mut().place(len).ok_or(Errno::NOSPC)?;
        buf.truncate(len as usize);
        let (block, data) = buf.split_at_mut(BLOCK as usize);
        let (data, rest) = data.split_at_mut(data_len as usize);
        rest.fill(0);
        let durable = self.durable.get().1;
        Header::new(self.life, sequence, durable, extents, data).encode_into(block);
        self.writes.set(self.writes.get() + 1);
        self.bytes.set(self.bytes.get() + len);
        let offset = RING_START + self.ring.borrow().offset(position);
        Ok((position, self.dev.start(Io::write(offset, buf, Flags::NONE))))
    }

    /// Returns the position before which records are durable.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.get().0
    }

    /// Makes durable what was appended and written.
    pub(crate) async fn flush(&self) -> Result<(), Errno> {
        let durable = (self.ring.borrow().head(), self.ring.borrow().next_sequence());
        if !Canary::LogNotFlushed.is_planted() {
            self.dev.start(Io::flush()).await.result?;
        }
        self.durable.set(durable);
        Ok(())
    }
}
