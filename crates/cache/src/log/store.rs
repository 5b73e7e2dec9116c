//! A log on its device: found, replayed, written.
//!
//! Invariants
//! * Nothing is written before what is there was judged.
//! * A superblock of a new generation is written when the origin has, durably, what the old one's records
//!   said; no record of the new generation is written before that superblock is durable.
//! * Places are given out again when a superblock that does not count on them is durable.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Completion, Errno, Flags, Io};
use braid_engine::{Dev, Pending, join_all};
use braid_mem::{Buf, Pool};

use super::format::{
    BLOCK, Extent, Header, Kind, Life, MAX_DATA, OriginId, RING_START, Rejection, Superblock,
    record_len,
};
use super::ring::{Cursor, Ring};
use crate::canary::Canary;

/// Why a log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It has no room for a few blocks.
    #[error("it has {got} bytes, and needs at least {least}")]
    TooSmall {
        /// Its size in bytes.
        got: u64,
        /// The least for the cache's blocks.
        least: u64,
    },
    /// It is a log of braid's, and its superblocks cannot be believed.
    #[error("it is a cache's log, and its superblocks are damaged: {0}")]
    Damaged(Rejection),
    /// It is another cache's.
    #[error("it is the log of a cache in front of {text} ({size} bytes){}", not_drained(*bytes))]
    OtherOrigin {
        /// The other cache's origin.
        text: String,
        /// Its size in bytes.
        size: u64,
        /// Of it that were not drained.
        bytes: u64,
    },
    /// It holds what has to be written to the origin, which may not be written.
    #[error("it holds {0} bytes that the origin does not have, and nothing may be written")]
    NotReplayed(u64),
    /// It holds what has to be written to the origin, which is in use.
    #[error("it holds {0} bytes that the origin does not have, and the origin is in use")]
    InUse(u64),
    /// Its device failed.
    #[error("it cannot be read or written: {0}")]
    Device(Errno),
    /// Whether it was given up is not known.
    #[error("whether it was given up cannot be looked up: {0}")]
    Unknown(Errno),
    /// The origin failed while the log was replayed: nothing of the log is lost.
    #[error("what it holds cannot be written to the origin: {0}")]
    Origin(Errno),
}

fn not_drained(bytes: u64) -> String {
    match bytes {
        0 => "; it has nothing that the origin does not have".to_owned(),
        bytes => format!(", and holds {bytes} bytes that the origin does not have"),
    }
}

/// What was found of a log, and done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// It was made anew.
    pub is_new: bool,
    /// What it held was given up before, when the origin had all of it.
    pub was_given_up: bool,
    /// Records that were written to the origin.
    pub records: u64,
    /// Their data in bytes.
    pub bytes: u64,
    /// Whether something follows the last one that started as a record and is not whole: what a crash
    /// cut off.
    pub is_torn: bool,
}

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
    /// Records before this position are durable.
    pub(crate) durable: Cell<u64>,
    pub(crate) writes: Cell<u64>,
    pub(crate) bytes: Cell<u64>,
}

/// The least that a log of a cache with blocks of `block` bytes takes.
pub fn least_log(block: u64) -> u64 {
    RING_START + 16 * (block + BLOCK)
}

fn errno(done: &Completion) -> Result<(), LogError> {
    done.result.map_err(LogError::Device)
}

fn id_of(life: &Life) -> LogId {
    LogId { uuid: life.uuid, generation: life.generation }
}

async fn read(dev: &Dev, pool: &Pool, offset: u64, len: u64) -> Result<Buf, LogError> {
    let done = dev.start(Io::read(offset, pool.get_wait(len as usize).await)).await;
    errno(&done)?;
    done.payload.into_one().ok_or(LogError::Device(Errno::IO))
}

/// The superblock that counts, and where it lies; none if nothing there is one.
async fn newest(dev: &Dev, pool: &Pool) -> Result<Option<(Superblock, u64)>, LogError> {
    let (mut newest, mut damage): (Option<(Superblock, u64)>, _) = (None, None);
    let room = dev.limits().size;
    for offset in [0, BLOCK] {
        let bytes = read(dev, pool, offset, BLOCK).await?;
        match Superblock::parse(&bytes, room) {
            Ok(one) if newest.as_ref().is_none_or(|(other, _)| other.written < one.written) => {
                newest = Some((one, offset));
            }
            Err(why) if Superblock::is_one(&bytes) => damage = Some(why),
            Ok(_) | Err(_) => {}
        }
    }
    match (newest, damage) {
        (None, Some(why)) => Err(LogError::Damaged(why)),
        (newest, _) => Ok(newest),
    }
}

/// Has `each` see the records that count, in order, with the bytes of their data.
async fn scan(
    dev: &Dev,
    pool: &Pool,
    superblock: &Superblock,
    mut each: impl AsyncFnMut(&Header, &[u8]) -> Result<(), LogError>,
) -> Result<Replayed, LogError> {
    let capacity = superblock.area - RING_START;
    let mut cursor = Cursor::new(capacity, superblock.tail, superblock.tail_sequence);
    let mut replayed = Replayed::default();
    'records: loop {
        for offset in cursor.candidates() {
            let bytes = read(dev, pool, RING_START + offset, BLOCK).await?;
            let Ok(header) = Header::parse(&bytes, &superblock.life, cursor.sequence()) else {
                continue;
            };
            drop(bytes);
            replayed.is_torn = true;
            let len = header.data_len().next_multiple_of(BLOCK);
            let mut next = cursor;
            if !next.take(offset, header.record_len()) {
                continue;
            }
            let data = match len {
                0 => None,
                len => Some(read(dev, pool, RING_START + offset + BLOCK, len).await?),
            };
            let data = data.as_deref().unwrap_or_default();
            if header.prove(data).is_err() {
                continue;
            }
            each(&header, data).await?;
            replayed.is_torn = false;
            replayed.records += 1;
            replayed.bytes += header.data_len();
            cursor = next;
            continue 'records;
        }
        return Ok(replayed);
    }
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
        let found = match newest(dev, pool).await {
            Err(LogError::Damaged(_)) if setup.is_forced => None,
            found => found?,
        };
        let mut was_given_up = false;
        if let (Some(given_up), Some((found, _))) = (&setup.given_up, &found) {
            was_given_up = given_up
                .has(id_of(&found.life))
                .map_err(|error| LogError::Unknown(error.into()))?;
        }
        let is_others = |found: &Superblock| found.life.origin != setup.origin;
        let counts =
            |(found, _): &(Superblock, u64)| !(was_given_up || setup.is_forced && is_others(found));
        let mut replayed = Replayed { is_new: true, was_given_up, ..Replayed::default() };
        let mut life = Life { uuid: setup.uuid, generation: 0, origin: setup.origin };
        // What is there is overwritten last: a crash before that leaves what says that it does not count.
        let (written, place) =
            found.as_ref().map_or((0, 0), |(found, at)| (found.written + 1, BLOCK - at));
        if let Some((found, _)) = found.filter(counts) {
            replayed = Replayed::default();
            if is_others(&found) {
                let mut bytes = 0;
                if found.is_open {
                    bytes = scan(dev, pool, &found, async |_, _| Ok(())).await?.bytes;
                }
                let (text, size) = (found.text, found.life.origin.size);
                return Err(LogError::OtherOrigin { text, size, bytes });
            }
            if found.is_open && (read_only || setup.is_live) {
                replayed = scan(dev, pool, &found, async |_, _| Ok(())).await?;
                if replayed.records > 0 {
                    let why = if read_only { LogError::NotReplayed } else { LogError::InUse };
                    return Err(why(replayed.bytes));
                }
            } else if found.is_open {
                replayed = scan(dev, pool, &found, async |header, data| {
                    replay(origin, pool, header, data).await
                })
                .await?;
                origin.start(Io::flush()).await.result.map_err(LogError::Origin)?;
            }
            life = found.life;
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
            durable: Cell::new(0),
            writes: Cell::new(0),
            bytes: Cell::new(0),
        };
        // Of what was there before neither superblock is left.
        for _ in 0..if replayed.is_new { 2 } else { 1 } {
            log.write_superblock(0, true).await.map_err(LogError::Device)?;
        }
        Ok((Some(log), replayed))
    }

    /// Which it is.
    pub(crate) fn id(&self) -> LogId {
        id_of(&self.life)
    }

    /// Says, durably, where the first record that counts lies, or that there is none.
    pub(crate) async fn write_superblock(&self, tail: u64, is_open: bool) -> Result<(), Errno> {
        let superblock = Superblock {
            life: self.life,
            written: self.written.get(),
            area: self.area,
            tail,
            tail_sequence: self.ring.borrow().sequence_at(tail),
            is_open,
            text: self.text.clone(),
        };
        let mut block = self.pool.get_wait(BLOCK as usize).await;
        superblock.encode_into(&mut block);
        // Also one that failed may be there.
        self.written.set(self.written.get() + 1);
        let place = self.place.get();
        self.dev.start(Io::write(place, block, Flags::FUA)).await.result?;
        self.place.set(BLOCK - place);
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
        Header::new(self.life, sequence, extents, data).encode_into(block);
        self.writes.set(self.writes.get() + 1);
        self.bytes.set(self.bytes.get() + len);
        let offset = RING_START + self.ring.borrow().offset(position);
        Ok((position, self.dev.start(Io::write(offset, buf, Flags::NONE))))
    }

    /// Makes what was written durable: that which lies before the position `up_to`.
    pub(crate) async fn flush(&self, up_to: u64) -> Result<(), Errno> {
        if !Canary::LogNotFlushed.is_planted() {
            self.dev.start(Io::flush()).await.result?;
        }
        self.durable.set(up_to);
        Ok(())
    }
}
