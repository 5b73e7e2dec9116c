//! A split virtqueue (Virtual I/O Device 1.2, section 2.7), from the side of the device.
//!
//! ```text
//!   descriptors   | address 8 | length 4 | flags 2 | next 2 |  for each
//!   available     | flags 2 | index 2 | head 2 …  | used event 2 |       written by the guest
//!   used          | flags 2 | index 2 | head 4, length 4 … | available event 2 |    written here
//! ```
//!
//! Invariants
//! * A chain has at most as many descriptors as its table, so that every walk ends.
//! * A descriptor is copied out once: the guest cannot change what was checked.
//! * Bytes of an answer are in the memory before the used index that tells of them.
//!
//! Deliberately absent: packed virtqueues, and the meaning of requests.

use std::sync::atomic::{Ordering, fence};

use crate::canary::Canary;
use crate::memory::{Area, Memory, MemoryFault, Unreachable};

/// Most descriptors of a queue.
pub(crate) const MOST_DESCRIPTORS: u16 = 1024;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Length of a descriptor, in bytes.
const DESCRIPTOR: usize = 16;
/// The same, of the length of a table.
const DESCRIPTOR_BYTES: u32 = 16;
/// Bytes before the first entry of either ring.
const HEAD: usize = 4;
/// Length of an entry of the used ring, in bytes.
const USED: usize = 8;

/// Addresses of a ring in the front-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
}

/// The fault of a queue. Nothing that comes after it in the queue can be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingFault {
    /// A size that is no power of two, or too large.
    #[error("a queue of {0} descriptors")]
    Size(u32),
    /// The index of the available ring is more than a queue ahead.
    #[error("{0} requests at once in a queue of {1} descriptors")]
    Ahead(u16, u16),
    /// A descriptor that the table does not have.
    #[error("descriptor {0} of a table of {1}")]
    Index(u32, u32),
    /// More descriptors in a chain than its table has: it is a loop.
    #[error("the descriptors of a request are a loop")]
    Loop,
    /// A table of descriptors in one that is indirect already, or with further descriptors behind it.
    #[error("a table of descriptors inside a table of descriptors")]
    Nested,
    /// The length of an indirect table.
    #[error("a table of descriptors of {0} bytes")]
    Table(u32),
    /// A descriptor to be read behind one to be written.
    #[error("a buffer to be read behind one to be written")]
    Order,
    /// A head that is in flight.
    #[error("descriptor {0} is in flight already")]
    Twice(u16),
    /// A request without room for its header or its status.
    #[error("a request without a header or room for its status")]
    Short,
    /// An address that the guest does not have.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// The memory of the ring.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

/// Bytes in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) len: u32,
}

/// The buffers of a request.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// To be read here.
    pub(crate) readable: Vec<Piece>,
    /// To be written here.
    pub(crate) writable: Vec<Piece>,
}

impl Chain {
    fn clear(&mut self) {
        self.readable.clear();
        self.writable.clear();
    }
}

/// Length of pieces together, in bytes.
pub(crate) fn total(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.len)).sum()
}

/// A queue.
#[derive(Debug)]
pub(crate) struct Ring {
    size: u16,
    descriptors: Area,
    available: Area,
    used: Area,
    has_events: bool,
    next_available: u16,
    next_used: u16,
    /// The used index when the guest was last told; none before the first time: a server that has ended may have left
    /// answers that it did not tell of.
    told: Option<u16>,
}

impl Ring {
    /// The queue at `addresses`, whose next request is number `next`.
    ///
    /// # Errors
    /// A size that no queue has, or addresses outside the memory.
    pub(crate) fn new(
        memory: &Memory,
        size: u32,
        addresses: Addresses,
        next: u16,
        has_events: bool,
    ) -> Result<Ring, RingFault> {
        let count = u16::try_from(size)
            .ok()
            .filter(|size| size.is_power_of_two() && *size <= MOST_DESCRIPTORS);
        let count = count.ok_or(RingFault::Size(size))?;
        let entries = u64::from(count);
        let area = |address, len| memory.area_of_user(address, len);
        // Two bytes behind either ring are the other side's event.
        let descriptors = area(addresses.descriptors, entries * DESCRIPTOR as u64)?;
        let available = area(addresses.available, HEAD as u64 + entries * 2 + 2)?;
        let used = area(addresses.used, HEAD as u64 + entries * USED as u64 + 2)?;
        let next_used = used.load(2, Ordering::Acquire)?;
        Ok(Ring {
            size: count,
            descriptors,
            available,
            used,
            has_events,
            next_available: next,
            next_used,
            told: None,
        })
    }

    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Number of the next request.
    pub(crate) fn next_available(&self) -> u16 {
        self.next_available
    }

    /// Number of the next answer.
    pub(crate) fn next_used(&self) -> u16 {
        self.next_used
    }

    /// Goes on with the request of that number.
    pub(crate) fn go_on_at(&mut self, next: u16) {
        self.next_available = next;
    }

    /// Requests that were not taken yet.
    ///
    /// # Errors
    /// More than the queue has descriptors.
    pub(crate) fn waiting(&self) -> Result<u16, RingFault> {
        let ahead = self.available.load(2, Ordering::Acquire)?.wrapping_sub(self.next_available);
        if ahead > self.size { Err(RingFault::Ahead(ahead, self.size)) } else { Ok(ahead) }
    }

    /// Takes the head of the next request, of which there is one.
    ///
    /// # Errors
    /// A descriptor that the table does not have.
    pub(crate) fn take(&mut self) -> Result<u16, RingFault> {
        let slot = usize::from(self.next_available & (self.size - 1));
        let head = self.available.load(HEAD + 2 * slot, Ordering::Relaxed)?;
        if head >= self.size {
            return Err(RingFault::Index(head.into(), self.size.into()));
        }
        self.next_available = self.next_available.wrapping_add(1);
        Ok(head)
    }

    /// Collects the buffers of the request at `head`.
    ///
    /// # Errors
    /// A malformed chain.
    pub(crate) fn collect(
        &self,
        memory: &Memory,
        head: u16,
        chain: &mut Chain,
    ) -> Result<(), RingFault> {
        chain.clear();
        // Of an indirect table: its address.
        let mut table = None;
        let (mut index, mut count) = (u32::from(head), u32::from(self.size));
        let mut left = count;
        loop {
            if index >= count {
                return Err(RingFault::Index(index, count));
            }
            left = left.checked_sub(1).ok_or(RingFault::Loop)?;
            let descriptor = self.descriptor(memory, table, index)?;
            if descriptor.flags & INDIRECT != 0 {
                if table.is_some() || descriptor.flags & NEXT != 0 {
                    return Err(RingFault::Nested);
                }
                let len = descriptor.piece.len;
                count = len / DESCRIPTOR_BYTES;
                if !len.is_multiple_of(DESCRIPTOR_BYTES)
                    || count == 0
                    || count > MOST_DESCRIPTORS.into()
                {
                    return Err(RingFault::Table(len));
                }
                table = Some(descriptor.piece.address);
                (index, left) = (0, count);
                continue;
            }
            if descriptor.flags & WRITE != 0 {
                chain.writable.push(descriptor.piece);
            } else if chain.writable.is_empty() || Canary::AnyOrderOfBuffers.is_planted() {
                chain.readable.push(descriptor.piece);
            } else {
                return Err(RingFault::Order);
            }
            if descriptor.flags & NEXT == 0 {
                return Ok(());
            }
            index = descriptor.next.into();
        }
    }

    fn descriptor(
        &self,
        memory: &Memory,
        table: Option<u64>,
        index: u32,
    ) -> Result<Descriptor, RingFault> {
        let offset = index as usize * DESCRIPTOR;
        let Some(table) = table else {
            return Ok(Descriptor::parse(self.descriptors.read(offset)?));
        };
        let outside = MemoryFault::Outside { address: table, len: DESCRIPTOR as u64 };
        let address = table.checked_add(offset as u64).ok_or(outside)?;
        let mut bytes = [0; DESCRIPTOR];
        memory.read(address, &mut bytes)?;
        Ok(Descriptor::parse(bytes))
    }

    /// Writes the answer to the request at `head`, of which `len` bytes were written; it is not told of yet.
    pub(crate) fn answer(&mut self, head: u16, len: u32) -> Result<(), RingFault> {
        let slot = usize::from(self.next_used & (self.size - 1));
        let mut entry = [0; USED];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&len.to_le_bytes());
        self.used.write(HEAD + USED * slot, &entry)?;
        let next = self.next_used.wrapping_add(1);
        self.used.store(2, next, Ordering::Release)?;
        self.next_used = next;
        Ok(())
    }

    /// Returns true if the guest is to be interrupted for the answers since the last call.
    pub(crate) fn must_tell(&mut self) -> Result<bool, RingFault> {
        let new = self.next_used;
        let Some(old) = self.told.replace(new) else { return Ok(true) };
        if old == new {
            return Ok(false);
        }
        // The guest reads the index after it has written what it wants to hear of.
        fence(Ordering::SeqCst);
        if !self.has_events {
            return Ok(self.available.load(0, Ordering::Relaxed)? & 1 == 0);
        }
        let event = self.available.load(HEAD + 2 * usize::from(self.size), Ordering::Relaxed)?;
        Ok(new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old))
    }

    /// Has the guest tell of its next request. Returns true if one has come since.
    ///
    /// # Errors
    /// As [`Ring::waiting`].
    pub(crate) fn listen(&self) -> Result<bool, RingFault> {
        if self.has_events {
            let event = HEAD + USED * usize::from(self.size);
            self.used.store(event, self.next_available, Ordering::Relaxed)?;
        } else {
            self.used.store(0, 0, Ordering::Relaxed)?;
        }
        fence(Ordering::SeqCst);
        Ok(self.waiting()? > 0)
    }

    /// Lets the guest save its kicks: requests are looked for anyway.
    pub(crate) fn be_busy(&self) -> Result<(), RingFault> {
        if !self.has_events {
            self.used.store(0, 1, Ordering::Relaxed)?;
        }
        Ok(())
    }
}

struct Descriptor {
    piece: Piece,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn parse(bytes: [u8; DESCRIPTOR]) -> Descriptor {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Descriptor {
            piece: Piece {
                address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                len: u32::from_le_bytes([i, j, k, l]),
            },
            flags: u16::from_le_bytes([m, n]),
            next: u16::from_le_bytes([o, p]),
        }
    }
}
