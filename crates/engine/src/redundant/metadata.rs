//! Metadata of many members, written at once: superblocks, bitmaps, logs.
//!
//! Invariants
//! * The buffers come from a pool of the array's own, so that metadata is written even if requests use up all
//!   other memory.
//! * The metadata is durable when the write completes (FUA).
//!
//! Deliberately absent: the time at which metadata is written ([`super::publish`], [`super::bits`],
//! [`super::log`]), and the fate of a member whose write fails.

use std::rc::Rc;

use braid_block::{Flags, Io};
use braid_mem::Buf;

use super::METADATA_POOL;
use super::core::{Core, Failures};
use super::roster::Member;
use crate::join_all;

/// Unit in which an area of metadata is written, in bytes.
pub(super) const PAGE: usize = 4096;

impl Core {
    /// Stores `areas`, many at once. Returns the members that failed, with a message that names `what`.
    pub(super) async fn store_metadata(&self, what: &str, areas: Vec<Area>) -> Failures {
        let mut failed = Failures::new();
        let mut left = &areas[..];
        while !left.is_empty() {
            let (areas, rest) = left.split_at(at_once(left));
            left = rest;
            // Memory for all areas is taken before the first is written: tasks that hold some memory while they
            // wait for more would wait for each other.
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

/// A member, an offset of its device, and the bytes to store there.
type Area = (Rc<Member>, u64, Vec<u8>);

/// Returns the bytes that are written for an area: whole blocks of its member.
fn len_on_member((member, _, bytes): &Area) -> usize {
    bytes.len().next_multiple_of(member.dev.limits().logical_block as usize)
}

/// Returns the number of `areas`, at least one, that fit into half of the memory.
fn at_once(areas: &[Area]) -> usize {
    let mut bytes = 0;
    let fits = |area: &&Area| {
        bytes += len_on_member(area).next_multiple_of(PAGE);
        bytes <= METADATA_POOL / 2
    };
    areas.iter().take_while(fits).count().max(1)
}
