//! Stripes with parity, by hand: what an array with parity must do at least, and nothing else.
//!
//! ```text
//!   write     3 chunks ─▶ copied to their members;  XOR of the 3 ─▶ a buffer ─▶ its member
//!   update    old data, old parity ─▶ 2 buffers ─▶ XOR with the new ─▶ new data, new parity
//!   read      3 chunks ◀─ copied from their members
//!   recover   as read; of the chunk whose member is missing: the parity ─▶ a buffer, XOR of it
//!             and the other two ─▶ where the chunk belongs
//! ```
//!
//! Memory, layout, places, buffers, copies (`Region::read` and `write`, which stream what is long)
//! and XOR are those of the array that is measured beside, so what these leave is its array.

use std::sync::Arc;

use braid_bench::Result;
use braid_bench::parity::DATA_OFFSET;
use braid_mem::{Buf, Pool, Region};

use crate::memory::{buffers, take};
use crate::{BLOCK, CHUNK};

/// The work at each place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Whole stripes are written.
    Write,
    /// Blocks are written: old data and parity are read.
    Update,
    /// Whole stripes are read, but for this member, if any, whose content is recovered.
    Read { missing: Option<usize> },
}

/// A raid5 in md's usual layout, left-symmetric, by hand.
pub(crate) struct BareStripes {
    work: Work,
    members: Vec<Arc<Region>>,
    buffers: Vec<Buf>,
    next: usize,
    /// Room for what is old, and for parity.
    old: Buf,
    parity: Buf,
}

impl BareStripes {
    /// `depth` buffers, taken in turn.
    pub(crate) fn new(
        pool: &Pool,
        members: &[Arc<Region>],
        work: Work,
        depth: usize,
    ) -> Result<BareStripes> {
        let request = request(work, members.len());
        let room = if work == Work::Update { BLOCK } else { CHUNK };
        Ok(BareStripes {
            work,
            members: members.to_vec(),
            buffers: buffers(pool, request, depth)?,
            next: 0,
            old: take(pool, room)?,
            parity: take(pool, room)?,
        })
    }

    /// Bytes of a request.
    pub(crate) fn request(&self) -> u64 {
        request(self.work, self.members.len())
    }

    /// Bytes of data.
    pub(crate) fn size(&self) -> u64 {
        (self.members[0].len() as u64 - DATA_OFFSET) * (self.members.len() as u64 - 1)
    }

    pub(crate) fn run(&mut self, count: u64, place: &mut impl FnMut() -> u64) {
        for _ in 0..count {
            let offset = place();
            match self.work {
                Work::Write => self.write(offset),
                Work::Update => self.update(offset),
                Work::Read { missing } => self.read(offset, missing),
            }
            self.next = (self.next + 1) % self.buffers.len();
        }
    }

    /// Stripe, the member that has its parity, and where it lies on each member.
    fn stripe_at(&self, offset: u64) -> (usize, usize) {
        let members = self.members.len();
        let stripe = offset / (CHUNK * (members as u64 - 1));
        let parity = members - 1 - (stripe % members as u64) as usize;
        (parity, (DATA_OFFSET + stripe * CHUNK) as usize)
    }

    /// The member that has data chunk `index`.
    fn holder(&self, parity: usize, index: usize) -> usize {
        (parity + 1 + index) % self.members.len()
    }

    fn write(&mut self, offset: u64) {
        let (parity, at) = self.stripe_at(offset);
        let chunks: Vec<&[u8]> = self.buffers[self.next].chunks(CHUNK as usize).collect();
        braid_parity::xor(&mut self.parity, &chunks);
        for (index, chunk) in chunks.into_iter().enumerate() {
            self.members[self.holder(parity, index)].write(at, chunk);
        }
        self.members[parity].write(at, &self.parity);
    }

    fn update(&mut self, offset: u64) {
        let (parity, at) = self.stripe_at(offset);
        let index = offset / CHUNK % (self.members.len() as u64 - 1);
        let at = at + (offset % CHUNK) as usize;
        let data = &self.members[self.holder(parity, index as usize)];
        let new = &self.buffers[self.next];
        data.read(at, &mut self.old);
        self.members[parity].read(at, &mut self.parity);
        braid_parity::xor_into(&mut self.old, new);
        braid_parity::xor_into(&mut self.parity, &self.old);
        data.write(at, new);
        self.members[parity].write(at, &self.parity);
    }

    fn read(&mut self, offset: u64, missing: Option<usize>) {
        let (parity, at) = self.stripe_at(offset);
        let mut lost = None;
        for index in 0..self.members.len() - 1 {
            let holder = self.holder(parity, index);
            if Some(holder) == missing {
                lost = Some(index);
                continue;
            }
            let range = index * CHUNK as usize..(index + 1) * CHUNK as usize;
            self.members[holder].read(at, &mut self.buffers[self.next][range]);
        }
        if let Some(lost) = lost {
            self.members[parity].read(at, &mut self.parity);
            let (before, rest) = self.buffers[self.next].split_at_mut(lost * CHUNK as usize);
            let (target, after) = rest.split_at_mut(CHUNK as usize);
            let others = before.chunks(CHUNK as usize).chain(after.chunks(CHUNK as usize));
            let sources: Vec<&[u8]> = others.chain([&self.parity[..]]).collect();
            braid_parity::xor(target, &sources);
        }
    }
}

fn request(work: Work, members: usize) -> u64 {
    match work {
        Work::Update => BLOCK,
        Work::Write | Work::Read { .. } => CHUNK * (members as u64 - 1),
    }
}
