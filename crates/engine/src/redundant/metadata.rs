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

use braid_block::{Flags, Io, Payload};

use super::METADATA_POOL;
use super::core::{Core, Failures};
use super::roster::Member;
use crate::join_all;

/// What an area of metadata is written in, in bytes.
pub(super) const PAGE: usize = 4096;

impl Core {
    /// Stores bytes at offsets of members, many at once; `what` is for the message.
    pub(super) async fn store_metadata(
        &self,
        what: &str,
        areas: Vec<(Rc<Member>, u64, Vec<u8>)>,
    ) -> Failures {
        let mut failed = Failures::new();
        // No more at once than there is memory for.
        for areas in areas.chunks(METADATA_POOL / PAGE / 2) {
            let mut started = Vec::with_capacity(areas.len());
            for (member, offset, bytes) in areas {
                let payload = self.metadata(member, bytes).await;
                started.push(member.dev.start(Io::write(*offset, payload, Flags::FUA)));
            }
            for ((member, ..), done) in areas.iter().zip(join_all(started).await) {
                if let Err(errno) = done.result {
                    let why = format!("its {what} could not be written: {errno}");
                    failed.push((Rc::clone(member), why));
                }
            }
        }
        failed
    }

    /// `bytes` in memory of the array's own, filled up with zeroes to whole blocks of `member`.
    async fn metadata(&self, member: &Member, bytes: &[u8]) -> Payload {
        let block = member.dev.limits().logical_block as usize;
        let mut buf = self.metadata_pool.get_wait(bytes.len().next_multiple_of(block)).await;
        buf[..bytes.len()].copy_from_slice(bytes);
        buf[bytes.len()..].fill(0);
        buf.into()
    }
}
