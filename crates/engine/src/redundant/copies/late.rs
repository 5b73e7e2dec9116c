//! The writes that write-mostly members may carry out after the answer ([`crate::redundant::behind`]).
//!
//! Deliberately absent: raid10, as in the kernel's md.

use std::rc::Rc;

use braid_array::Mirrored;
use braid_block::{Flags, Io, Op, Payload};

use crate::redundant::behind::Late;
use crate::redundant::core::Core;
use crate::redundant::roster::Member;

/// Begins `io` for write-mostly members, and returns it with a copy of its bytes; `None` if all members have to carry it
/// out at once.
pub(super) fn begin(core: &Rc<Core>, geometry: &dyn Mirrored, io: &Io) -> Option<(Late, Io)> {
    let Io { op, span, flags, ref payload } = *io;
    let most = core.lane.most_behind();
    let is_one = matches!(op, Op::Write | Op::WriteZeroes) && !flags.contains(Flags::FUA);
    // A shard that has not heard of write-behind may read from a late member.
    if most == 0 || !is_one || !has_late_members(core, geometry) || !core.branches.have_seen() {
        return None;
    }
    let late = core.behind.begin(most, payload.len())?;
    Some((late, Io { op, span, flags, payload: copy_of(core, payload)? }))
}

/// Returns a copy in the memory of passes, unless one of them waits for it.
fn copy_of(core: &Core, payload: &Payload) -> Option<Payload> {
    let pool = core.work.pool();
    if payload.is_empty() || pool.is_wanted() {
        return payload.is_empty().then_some(Payload::None);
    }
    let mut copy = pool.get(payload.len() as usize)?;
    let mut at = 0;
    for buf in payload.bufs() {
        copy[at..at + buf.len()].copy_from_slice(buf);
        at += buf.len();
    }
    Some(Payload::One(copy))
}

/// Returns true if a member of a raid1 may be late, and another that is in sync is not. A write over a place that is known to
/// be bad also changes a log.
fn has_late_members(core: &Core, geometry: &dyn Mirrored) -> bool {
    let slots = core.roster.slots();
    let any = |is_one: &dyn Fn(&Member) -> bool| {
        slots.values().flat_map(|slot| slot.written()).any(|member| is_one(member))
    };
    geometry.copies() == geometry.members()
        && any(&|member| member.write_mostly)
        && any(&|one| one.is_in_sync() && !one.write_mostly)
        && !any(&|one| one.has_bad_blocks.get())
}
