//! An open log on its device: replay and writing.
//!
//! Invariants
//! * Nothing is written before the existing content was examined.
//! * The superblock of a new generation is written after the records of the old generation are
//!   durable on the origin. No record of the new generation is written before that superblock is
//!   durable.
//! * Space is reused only after a superblock that no longer refers to it, and its copy, are
//!   durable.
//!
//! A crash is safe at each step of [`Log::open`], also repeatedly:
//! * The replay does not change the log's device. The next replay finds the same records and writes
//!   them in the same order. The last record decides the content of each sector, so an interrupted
//!   replay does no harm, even if it left older data than the origin had.
//! * The origin is flushed before the first superblock of the new generation is written. If that
//!   superblock is torn, the old one at its other place is used, and the replay is repeated.
//! * Once a superblock of the new generation is valid, no old record is replayed: they all have an
//!   older generation, and the origin has their data durably. The copy may be torn or old; of two
//!   valid superblocks the higher number is used.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Errno, Flags, Io};
use braid_engine::{Dev, Pending, join_all};
use braid_mem::{Buf, Pool};

use super::error::{LogError, Replayed};
use super::format::{
    BLOCK, Effect, Extent, Header, LogInstance, MAX_DATA, OriginId, RING_START, Superblock,
    record_len,
};
use super::ring::Ring;
use super::scan::{ScanResult, Superblocks, scan};
use crate::canary::Canary;

/// One generation of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId {
    /// Identity of the log.
    pub uuid: [u8; 16],
    /// Number of times that the log was opened.
    pub generation: u64,
}

/// Durable list, outside the logs' devices, of logs that must not be replayed. It is used if the
/// log's device no longer accepts a superblock that says so.
pub trait GivenUp {
    /// Adds `log` to the list.
    ///
    /// # Errors
    /// The entry is not durable: the log may be replayed.
    fn remember(&self, log: LogId) -> std::io::Result<()>;

    /// Returns whether `log` is on the list.
    ///
    /// # Errors
    /// Unknown.
    fn has(&self, log: LogId) -> std::io::Result<bool>;
}

/// Parameters to open a log.
pub struct LogSetup {
    /// The log's device.
    pub dev: Dev,
    /// Identity of the origin.
    pub origin: OriginId,
    /// The origin as a stack expression, for messages.
    pub text: String,
    /// UUID of the log if it is created.
    pub uuid: [u8; 16],
    /// Discards the content of another cache's log, or of a damaged one.
    pub is_forced: bool,
    /// The origin is in use: the log must have nothing to replay.
    pub is_live: bool,
    /// The list of abandoned logs, if there is one.
    pub given_up: Option<Rc<dyn GivenUp>>,
}

/// An open log.
pub(crate) struct Log {
    dev: Dev,
    pool: Pool,
    life: LogInstance,
    text: String,
    area: u64,
    written: Cell<u64>,
    /// Offset of the next superblock: not that of the last durable one.
    place: Cell<u64>,
    pub(crate) ring: RefCell<Ring>,
    /// Records before this position, and before this sequence number, are durable.
    durable: Cell<(u64, u64)>,
    pub(crate) writes: Cell<u64>,
    pub(crate) bytes: Cell<u64>,
}

/// Returns the minimum size of a log for blocks of `block` bytes, in bytes.
pub fn least_log(block: u64) -> u64 {
    RING_START + 16 * (block + BLOCK)
}

fn id_of(life: &LogInstance) -> LogId {
    LogId { uuid: life.uuid, generation: life.generation }
}

/// Writes the content of a record to the origin, from the memory into which the record was read.
/// Extents with data do not overlap; zeroes and discards, which may overlap them, come last.
async fn replay(origin: &Dev, header: &Header, mut data: Option<Buf>) -> Result<(), LogError> {
    let mut writes = Vec::new();
    for &Extent { span, kind } in &header.extents {
        if kind != Effect::Data {
            wait_all(std::mem::take(&mut writes)).await.map_err(LogError::Origin)?;
        }
        writes.push(match kind {
            Effect::Data => {
                let mut part = data.take().ok_or(LogError::Device(Errno::IO))?;
                data = Some(part.split_off(span.len as usize));
                origin.start(Io::write(span.offset, part, Flags::NONE))
            }
            Effect::Zeroes => origin.start(Io::write_zeroes(span, Flags::NONE)),
            Effect::Discard => origin.start(Io::discard(span, Flags::NONE)),
        });
    }
    wait_all(writes).await.map_err(LogError::Origin)
}

/// Waits for all `writes`; returns the first error.
pub(crate) async fn wait_all(writes: Vec<Pending>) -> Result<(), Errno> {
    join_all(writes).await.into_iter().try_for_each(|done| done.result)
}

impl Log {
    /// Opens the log of a cache with blocks of `block` bytes, and replays it to `origin`. With
    /// `read_only` nothing is written, and no log is returned.
    ///
    /// # Errors
    /// [`LogError`]. Nothing was written except parts of the replay to the origin.
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
        let mut life = LogInstance { uuid: setup.uuid, generation: 0, origin: setup.origin };
        // The old superblock is overwritten last: until then, a crash leaves the superblock that
        // invalidates the records.
        let (written, place) =
            found.as_ref().map_or((0, 0), |(found, at)| (found.written + 1, BLOCK - at));
        if let Some((found, _)) = found.filter(|(found, _)| counts(found)) {
            if is_others(&found) {
                let bytes = records(dev, pool, &found).await?.bytes();
                let (text, size) = (found.text, found.life.origin.size);
                return Err(LogError::OtherOrigin { text, size, bytes });
            }
            if let Some(taken) = take_over(setup, origin, pool, &found, read_only).await? {
                (replayed, life) = (Replayed { damaged, ..taken }, found.life);
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

    /// Returns the identity of this generation.
    pub(crate) fn id(&self) -> LogId {
        id_of(&self.life)
    }

    /// Writes the position of the first valid record, or that there is none, durably and to both
    /// places.
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
        // A failed write may have arrived, too.
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

    /// Retires the records before `tail`.
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

    /// Returns the maximum length of a record in bytes.
    pub(crate) fn most(&self) -> u64 {
        let share = self.ring.borrow().capacity() / 8 / BLOCK * BLOCK;
        share.min(MAX_DATA + BLOCK)
    }

    /// Allocates a buffer for a record of maximum length, including its header. If the pool has
    /// none, waits for `writes` first, which hold memory of the pool.
    ///
    /// # Errors
    /// The first error of `writes`.
    pub(crate) async fn buffer(&self, writes: &mut Vec<Pending>) -> Result<Buf, Errno> {
        let len = self.most() as usize;
        if let Some(buf) = self.pool.get(len) {
            return Ok(buf);
        }
        if !Canary::MemoryHeld.is_planted() {
            wait_all(std::mem::take(writes)).await?;
        }
        Ok(self.pool.get_wait(len).await)
    }

    /// Starts to write a record, whose data follow the first [`BLOCK`] bytes of `buf`. Returns its
    /// position.
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

    /// Makes the written records durable.
    pub(crate) async fn flush(&self) -> Result<(), Errno> {
        let durable = (self.ring.borrow().head(), self.ring.borrow().next_sequence());
        if !Canary::LogNotFlushed.is_planted() {
            self.dev.start(Io::flush()).await.result?;
        }
        self.durable.set(durable);
        Ok(())
    }
}

/// Reads the records that `found` says are there, and changes nothing.
async fn records(dev: &Dev, pool: &Pool, found: &Superblock) -> Result<ScanResult, LogError> {
    if found.is_open {
        return scan(dev, pool, found, async |_, _| Ok(())).await;
    }
    Ok(ScanResult { replayed: Replayed::default(), rot: None })
}

/// Replays the records of `found`, which is of this origin, onto it, durably. Nothing if they are
/// given up, since rot is among them and the user insists.
async fn take_over(
    setup: &LogSetup,
    origin: &Dev,
    pool: &Pool,
    found: &Superblock,
    read_only: bool,
) -> Result<Option<Replayed>, LogError> {
    let scanned = records(&setup.dev, pool, found).await?;
    match scanned.rot.filter(|_| !Canary::RotIsTornEnd.is_planted()) {
        Some(rot) if !setup.is_forced => return Err(LogError::Rotten(rot)),
        Some(_) => return Ok(None),
        None => {}
    }
    if read_only || setup.is_live {
        let why = if read_only { LogError::NotReplayed } else { LogError::InUse };
        let is_clean = scanned.replayed.records == 0;
        return if is_clean { Ok(Some(scanned.replayed)) } else { Err(why(scanned.bytes())) };
    }
    if found.is_open {
        scan(&setup.dev, pool, found, async |header, data| replay(origin, header, data).await)
            .await?;
        origin.start(Io::flush()).await.result.map_err(LogError::Origin)?;
    }
    Ok(Some(scanned.replayed))
}
