//! Records of several units: those that arrive while earlier ones are being written share the next.
//!
//! ```text
//!   unit ─┐                   ┌─▶ member: | header: parts of all | contents of each, one behind the other |
//!   unit ─┼─▶ queue ─▶ group ─┼─▶ member: | header …
//!   unit ─┘   while MOST_UNDER_WAY groups are being written
//! ```
//!
//! Invariants
//! * A group is one write to the reader of a log: all of its units are complete, or none of them began. It is retired
//!   when all of its units are durable in place.
//! * The first unit that waits writes the group, which it is part of. Another unit must be free to go in place: the
//!   group may have to wait until earlier ones are retired.
//! * A unit of a whole stripe is a group of its own: its record has no contents.
//! * A record takes no more of its ring than that of a unit may, so that the ring has room for several.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use braid_array::{MemberSpan, Role};
use braid_block::{Errno, Payload};
use braid_md::stripe_log::MOST_PARTS;
use braid_mem::Buf;

use super::share::Share;
use crate::signal::Signal;

/// Groups whose records are written at once: one on its way to the members, and one behind it.
pub(super) const MOST_UNDER_WAY: usize = 2;

/// Units that wait for their records.
#[derive(Default)]
pub(super) struct Queue {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Groups whose records are being written.
    pub(super) under_way: Cell<usize>,
    pub(super) changed: Signal,
}

/// A unit that waits.
pub(super) struct Waiting {
    pub(super) rows: MemberSpan,
    /// Its record has no contents.
    pub(super) is_short: bool,
    pub(super) shares: Vec<Share>,
    /// The membership for which it was planned.
    pub(super) generation: u64,
    /// Memory of [`Log::memory`](super::Log::memory), which the first unit of a group gives.
    pub(super) memory: Buf,
    pub(super) told: Answer,
}

/// The place for the end of a unit's wait.
pub(super) type Answer = Rc<Cell<Option<Told>>>;

/// The end of a unit's wait.
pub(super) enum Told {
    /// It is in the log under this sequence, unless the array is stopped.
    Logged(u64),
    /// Superblocks count on another membership. Its memory.
    Replan(Buf),
    Failed(Errno),
}

/// A role's record of a group.
pub(super) struct Size {
    pub(super) role: Role,
    parts: usize,
    pub(super) len: u64,
}

impl Waiting {
    pub(super) fn new(
        rows: MemberSpan,
        is_short: bool,
        shares: Vec<Share>,
        generation: u64,
        memory: Buf,
    ) -> Waiting {
        Waiting { rows, is_short, shares, generation, memory, told: Rc::default() }
    }
}

impl Queue {
    /// Adds a unit; returns the place for its answer.
    pub(super) fn add(&self, unit: Waiting) -> Answer {
        let told = Rc::clone(&unit.told);
        self.waiting.borrow_mut().push_back(unit);
        told
    }

    pub(super) fn begins_with(&self, told: &Answer) -> bool {
        self.waiting.borrow().front().is_some_and(|first| Rc::ptr_eq(&first.told, told))
    }

    /// Takes the first unit out, and those behind it as far as their records have at most `most` bytes of contents.
    pub(super) fn take_group(&self, most: u64) -> Vec<Waiting> {
        let mut waiting = self.waiting.borrow_mut();
        let (mut sizes, mut group) = (Vec::new(), Vec::<Waiting>::new());
        while let Some(next) = waiting.front() {
            let is_alone = next.is_short || group.first().is_some_and(|first| first.is_short);
            add_sizes(&mut sizes, &next.shares);
            let fits = |size: &Size| size.len <= most && size.parts <= MOST_PARTS;
            if !group.is_empty() && (is_alone || !sizes.iter().all(fits)) {
                break;
            }
            group.extend(waiting.pop_front());
        }
        group
    }
}

pub(super) fn add_sizes(sizes: &mut Vec<Size>, shares: &[Share]) {
    for Share { role, parts, len, .. } in shares {
        match sizes.iter_mut().find(|size| size.role == *role) {
            Some(size) => (size.parts, size.len) = (size.parts + parts.len(), size.len + len),
            None => sizes.push(Size { role: *role, parts: parts.len(), len: *len }),
        }
    }
}

/// Joins the shares of each role, in the order of `sizes`.
pub(super) fn join_shares(group: &mut [Waiting], sizes: &[Size]) -> Vec<Share> {
    let empty = |size: &Size| Share {
        role: size.role,
        parts: Vec::with_capacity(size.parts),
        payload: Payload::None,
        len: size.len,
    };
    let mut joined: Vec<Share> = sizes.iter().map(empty).collect();
    for share in group.iter_mut().flat_map(|unit| unit.shares.drain(..)) {
        let of_role = joined.iter_mut().find(|one| one.role == share.role);
        let of_role = of_role.expect("sizes are those of all shares");
        of_role.parts.extend(share.parts);
        of_role.payload.append(share.payload);
    }
    joined
}
