//! The requests in flight of a queue, noted in memory that outlives this process.
//!
//! The front-end keeps the memory, and gives it to the next server. Layout (vhost-user, "Inflight I/O tracking", split
//! virtqueues):
//!
//! ```text
//!   features 8 | version 2 | descriptors 2 | last head 2 | used index 2 |         for each queue
//!   in flight 1 | padding 5 | next 2 | counter 8 |                                for each head
//! ```
//!
//! Invariants
//! * A head is noted before its request starts, and until the used index that tells of its answer is stored.
//! * A server that ends in between leaves the last head: if the used index is not the noted one, that request was
//!   answered, and is not carried out again.
//!
//! A request that was carried out and not answered is carried out again. The guest's memory has the same data then, and
//! the guest knows of no result yet, so that nothing that it has been told is undone.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use rustix::fs::{MemfdFlags, SealFlags};

use crate::canary::Canary;
use crate::memory::{Area, MemoryFault, Unreachable};
use crate::ring::MOST_DESCRIPTORS;

/// Length of the record of a queue, before those of its heads, in bytes.
const HEAD: usize = 16;
/// Length of the record of a head, in bytes.
const ENTRY: usize = 16;
/// Each queue starts at a multiple of this, in bytes.
const ALIGNMENT: usize = 64;

const VERSION: usize = 8;
const DESCRIPTORS: usize = 10;
const LAST: usize = 12;
const INDEX: usize = 14;

/// The layout's version.
const PRESENT: u16 = 1;

/// Length of the notes of one queue, in bytes.
fn stride(size: u16) -> usize {
    (HEAD + ENTRY * usize::from(size)).next_multiple_of(ALIGNMENT)
}

/// Length of the notes of `queues` queues of `size` descriptors, in bytes.
pub(crate) fn length(queues: u16, size: u16) -> u64 {
    u64::from(queues) * stride(size) as u64
}

/// Makes memory for the notes, which only the front-end keeps.
///
/// # Errors
/// The kernel's.
pub(crate) fn make(queues: u16, size: u16) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("braid-inflight", flags)?;
    rustix::fs::ftruncate(&fd, length(queues, size))?;
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// The fault of the notes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InflightFault {
    /// Sizes that do not fit together.
    #[error("notes of {queues} queues of {size} descriptors in {len} bytes")]
    Size {
        /// Queues.
        queues: u16,
        /// Descriptors of each.
        size: u16,
        /// Length in bytes.
        len: u64,
    },
    /// Notes of another kind.
    #[error("notes of version {0} for {1} descriptors")]
    Kind(u16, u16),
    /// The file.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// The memory.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

/// The notes of all queues.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    area: Area,
    queues: u16,
    size: u16,
}

impl Table {
    /// Maps the notes that a front-end has kept.
    ///
    /// # Errors
    /// Sizes that do not fit, or a file that the kernel does not map.
    pub(crate) fn map(
        file: File,
        (offset, len): (u64, u64),
        (queues, size): (u16, u16),
    ) -> Result<Table, InflightFault> {
        if size == 0 || size > MOST_DESCRIPTORS || queues == 0 || len < length(queues, size) {
            return Err(InflightFault::Size { queues, size, len });
        }
        let area = Area::of_file(file, offset, length(queues, size))?;
        Ok(Table { area, queues, size })
    }

    /// The notes of queue number `index`, of `size` descriptors; none if the table has none.
    pub(crate) fn queue(&self, index: u16, size: u16) -> Option<Inflight> {
        let is_there = index < self.queues && size <= self.size;
        is_there.then(|| Inflight {
            area: self.area.from(usize::from(index) * stride(self.size)),
            size: self.size,
            counter: 0,
        })
    }
}

/// The notes of one queue.
#[derive(Debug)]
pub(crate) struct Inflight {
    area: Area,
    size: u16,
    /// The order in which heads were noted.
    counter: u64,
}

impl Inflight {
    fn entry(head: u16) -> usize {
        HEAD + ENTRY * usize::from(head)
    }

    /// Returns the heads that a server has left in flight, in the order in which it took them. `used` is the used index
    /// in the guest's memory.
    ///
    /// # Errors
    /// Notes of another kind.
    pub(crate) fn take_over(&mut self, used: u16) -> Result<Vec<u16>, InflightFault> {
        let version = self.area.load(VERSION, Ordering::Acquire)?;
        if version == 0 {
            self.area.store(DESCRIPTORS, self.size, Ordering::Relaxed)?;
            self.area.store(INDEX, used, Ordering::Relaxed)?;
            self.area.store(VERSION, PRESENT, Ordering::Release)?;
            return Ok(Vec::new());
        }
        let descriptors = self.area.load(DESCRIPTORS, Ordering::Relaxed)?;
        if version != PRESENT || descriptors != self.size {
            return Err(InflightFault::Kind(version, descriptors));
        }
        if self.area.load(INDEX, Ordering::Acquire)? != used {
            let last = self.area.load(LAST, Ordering::Relaxed)?;
            if last < self.size && !Canary::AnsweredIsRepeated.is_planted() {
                self.area.write(Self::entry(last), &[0])?;
            }
            self.area.store(INDEX, used, Ordering::Release)?;
        }
        let mut heads = Vec::new();
        for head in 0..self.size {
            let [flag, ..] = self.area.read::<1>(Self::entry(head))?;
            if flag == 1 {
                heads.push((u64::from_le_bytes(self.area.read(Self::entry(head) + 8)?), head));
            }
        }
        if !Canary::OrderLost.is_planted() {
            heads.sort_unstable();
        }
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        Ok(heads.into_iter().map(|(_, head)| head).collect())
    }

    /// Notes that the request at `head` is taken.
    pub(crate) fn begin(&mut self, head: u16) -> Result<(), Unreachable> {
        self.area.write(Self::entry(head) + 8, &self.counter.to_le_bytes())?;
        self.counter = self.counter.wrapping_add(1);
        self.area.write(Self::entry(head), &[1])
    }

    /// Notes that the request at `head` is about to be answered.
    pub(crate) fn before_answer(&mut self, head: u16) -> Result<(), Unreachable> {
        self.area.store(LAST, head, Ordering::Release)?;
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Notes that the request at `head` was answered: the used index is `used` now.
    pub(crate) fn after_answer(&mut self, head: u16, used: u16) -> Result<(), Unreachable> {
        fence(Ordering::SeqCst);
        self.area.write(Self::entry(head), &[0])?;
        fence(Ordering::SeqCst);
        self.area.store(INDEX, used, Ordering::Release)
    }
}
