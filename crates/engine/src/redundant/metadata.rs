//! Bytes beside the data, written on many members at once: superblocks, bitmaps, logs.
//!
//! Invariants
//! * They lie in memory of the array's own, so that they are written also where requests take all that
//!   there is.
//! * They are durable when the write is answered (FUA).
//!
//! Deliberately absent: what is written when ([`super::publish`], [`super::bits`], [`super::log`]), and
//! what becomes of a member that does not take it.

use std::rc::Rc;

use braid_block::{Flags, Io};
use braid_mem::Buf;

use super::METADATA_POOL;
use super::core::{Core, Failures};
use super::roster::Member;
use crate::join_all;

/// What an area of metadata is written in, in bytes.
pub(super) const PAGE: usize = 4096;

impl Core {
    /// Stores bytes at offsets of members, many at once; `what` is for the message.
    pub(super) async fn store_metadata(&self, what: &str, areas: Vec<Area>) -> Failures {
        let mut failed = Failures::new();
        let mut left = &areas[..];
        while !left.is_empty() {
            let (areas, rest) = left.split_at(at_once(left));
            left = rest;
            // For all of them before the first is written: several tasks store metadata, and each that held some
            // while it waits for more would wait for the others.
            let lens: Vec<usize> = areas.iter().map(len_on_member).collect();
            let memory = self.metadata_pool.get_all_wait(&lens).await;
            let start = |((member, offset, bytes), mut buf): (&Area, Buf)| {
                let (content, fill) = buf.split_at_mut(bytes.len());
                content.copy_from_slice(bytes);
                fill.fill(0);
                member.dev.start(Io::write(*offset, buf, Flags::FUA))
            };
            let started = areas.iter().zip(memory).map(start).collect();
            for ((member, ..), done) in areas.iter().zip(join_all(started).await) {
                if let Err(errno) = done.result {
                    let why = format!("its {what} could not be written: {errno}");
                    failed.push((Rc::clone(member), why));
                }
            }
        }
        failed
    }
}

/// A member, an offset of its device, and what is to lie there.
type Area = (Rc<Member>, u64, Vec<u8>);

/// Bytes that are written of an area: whole blocks of its member.
fn len_on_member((member, _, bytes): &Area) -> usize {
    bytes.len().next_multiple_of(member.dev.limits().logical_block as usize)
}

/// Number of `areas`, at least one, that fit into half of the memory.
fn at_once(areas: &[Area]) -> usize {
    let mut bytes = 0;
    let fits = |area: &&Area| {
        bytes += len_on_member(area).next_multiple_of(PAGE);
        bytes <= METADATA_POOL / 2
    };
    areas.iter().take_while(fits).count().max(1)
}
