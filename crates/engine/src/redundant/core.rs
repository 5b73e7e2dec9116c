//! The state that all arrays with redundancy share: members, superblocks, bitmap, locks; and the few
//! transitions that change it.
//!
//! ```text
//!            ┌──────────── Core ────────────┐
//!   roster   the members and their roles    │  fail, take_out_failed, stop
//!   publisher  superblocks, in turn         │  publish, fence            (publish)
//!   agreement  what was resynchronised      │  (agreement)
//!   gate     the course of the array        │  reconsider
//!   lane     requests and bits of stripes   │  store_bits, sweep_bits    (bits)
//!   background, work, notes                 │
//!            └──────────────────────────────┘
//! ```
//!
//! * No member is taken out whose loss would make bytes unreadable: the request fails instead. ([`Core::fail`]
//!   returns true if the member is out.)
//! * A stopped array writes nothing, not even superblocks: their statements stay true.
//! * Failing a member requires new superblocks. No request completes before they are written.
//!
//! Deliberately absent: the place of data ([`super::keeping`]), and the log of stripes, which the core knows
//! only as a follower of superblocks ([`Follower`]).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use braid_array::{MemberSpan, Role};
use braid_block::{Completion, Errno, Limits};
use braid_mem::Pool;

use super::agreement::Agreement;
use super::array_id::ArrayId;
use super::behind::Behind;
use super::flush::{Durable, Flushes};
use super::gate::Gate;
use super::lane::{Lane, Told};
use super::layout::Layout;
use super::publish::Publisher;
use super::roster::{Member, MemberState, Roster};
use super::shards::Branches;
use super::work::Work;
use crate::Pending;
use crate::background::Background;
use crate::background::Later;
use crate::canary::Canary;
use crate::clock::Clock;

/// Members that failed, with the reasons.
pub(super) type Failures = Vec<(Rc<Member>, String)>;

/// The facts about the next superblocks that a log needs.
pub(super) struct Before {
    /// Events of the superblocks.
    pub(super) events: u64,
    /// Proof of the durable writes, which the log may forget.
    pub(super) durable: Option<Durable>,
}

/// Metadata that follows the superblocks: the log of stripes.
pub(super) trait Follower {
    /// Returns the number of units that were written in place so far.
    fn units_in_place(&self) -> u64;

    /// Forgets the units that `durable` proves to be durable.
    fn forget(&self, durable: Durable);

    /// Stores the metadata that must be on the members before these superblocks. Returns the members that
    /// failed.
    fn before_superblocks<'a>(&'a self, core: &'a Rc<Core>, before: Before) -> Later<'a, Failures>;
}

/// The parts that all arrays share.
pub(super) struct Core {
    /// The identity that the array's proofs carry.
    pub(super) id: ArrayId,
    pub(super) roster: Roster,
    pub(super) gate: Gate,
    /// The parts that belong to stripes. There is one lane.
    pub(super) lane: Lane,
    pub(super) agreement: Agreement,
    pub(super) publisher: Publisher,
    pub(super) flushes: Flushes,
    /// The writes that members carry out after the answer.
    pub(super) behind: Rc<Behind>,
    /// The shards that read and write by themselves.
    pub(super) branches: Branches,
    pub(super) follower: Option<Rc<dyn Follower>>,
    /// True if the log is md's partial parity log, with which superblocks of an active array may say how far it
    /// is in sync.
    pub(super) has_partial_log: bool,
    pub(super) background: Rc<Background>,
    pub(super) work: Work,
    pub(super) clock: Rc<dyn Clock>,
    pub(super) limits: Limits,
    pub(super) read_only: bool,
    pub(super) metadata_pool: Pool,
    /// The place of data, which decides what can be read without which members.
    pub(super) layout: RefCell<Layout>,
    pub(super) notes: Notes,
}

impl Core {
    /// Adds a line to the notes for the operator.
    pub(super) fn note(&self, text: String) {
        self.notes.add(self.clock.unix_time(), text);
    }

    /// Applies a change of members to the paths of requests.
    pub(super) fn reconsider(&self) {
        let slots = self.roster.slots();
        // A write over a listed place also has to change the bad-block log.
        let immediate =
            |member: &Rc<Member>| member.dev.limits().immediate && !member.has_bad_blocks.get();
        let immediate = slots.values().all(|slot| slot.written().all(immediate));
        let degraded = slots.values().any(|slot| slot.readable().is_none());
        drop(slots);
        self.gate.set_degraded(degraded);
        self.lane.tell(Told::Members { degraded, immediate });
        self.work.put_off(Duration::ZERO);
        self.reopen();
        self.work.tell();
    }

    /// Decides whether writes may go straight to the members, here and on other shards, and tells these which members
    /// requests may use.
    pub(super) fn reopen(&self) {
        self.show();
        let is_settled = self.publisher.is_settled() && self.branches.have_seen();
        let is_open = is_settled && !self.work.is_timing() && self.gate.may_open();
        self.lane.tell(Told::Open(is_open));
        let view = self.branches.writing().filter(|_| is_open);
        self.lane.ranges().let_others_write(view.unwrap_or(0));
    }

    /// Sets the state that the next superblocks record; returns the earlier one. A caller that sets "clean"
    /// publishes the superblocks.
    pub(super) fn set_active(&self, active: bool) -> bool {
        let before = self.gate.set_active(active);
        self.reopen();
        before
    }

    /// Stops all writes, because of `why`.
    pub(super) fn stop(&self, why: &str) {
        if !self.gate.is_stopped() {
            self.note(format!("{why}: nothing is written any more"));
        }
        self.gate.stop();
        self.reopen();
        self.publisher.wake();
        self.work.tell();
    }

    /// Returns [`Errno::IO`] if the array is stopped.
    #[inline]
    pub(super) fn check_running(&self) -> Result<(), Errno> {
        if self.gate.is_stopped() { Err(Errno::IO) } else { Ok(()) }
    }

    /// Takes `member` out because of `why`. Returns false, and keeps the member, if the array could not be read
    /// without it, or is stopped: then superblocks count on the member.
    #[must_use = "a member that is kept may lack what was written"]
    pub(super) fn fail(&self, member: &Rc<Member>, why: &str) -> bool {
        if member.state() == MemberState::Faulty {
            return true;
        }
        if self.gate.is_stopped() || member.is_in_sync() && !self.can_do_without(&[member]) {
            return false;
        }
        self.take_out(member, why);
        true
    }

    /// Takes out `members` that failed to store metadata for superblocks or a log, or stops.
    pub(super) fn fail_or_stop(&self, failed: Failures) {
        for (member, why) in failed {
            if !self.fail(&member, &why) {
                self.stop(&format!("{}: {why}", member.label));
            }
        }
    }

    /// Takes out the members that failed at `what`. Those in sync are kept if some byte cannot be read without
    /// them, and all are kept if the array is stopped. Returns true if all of them are out.
    #[must_use = "members that are kept may not agree"]
    pub(super) fn take_out_failed(&self, failed: &[(Rc<Member>, Errno)], what: &str) -> bool {
        if self.gate.is_stopped() {
            return false;
        }
        if Canary::FailedWriteForgotten.is_planted() {
            return true;
        }
        let in_sync: Vec<&Rc<Member>> =
            failed.iter().map(|(member, _)| member).filter(|member| member.is_in_sync()).collect();
        let bearable = self.can_do_without(&in_sync);
        for (member, errno) in failed {
            if (bearable || !member.is_in_sync()) && member.is_known() {
                self.take_out(member, &format!("{what} failed: {errno}"));
            }
        }
        bearable
    }

    /// Returns true if every byte is on a member in sync other than `members`, or can be reconstructed. Parity
    /// in doubt reconstructs nothing: an array whose resync is not done has no redundancy yet, and starts
    /// without a member only if forced.
    pub(super) fn can_do_without(&self, members: &[&Rc<Member>]) -> bool {
        if !members.is_empty() && self.is_parity_in_doubt() {
            return false;
        }
        let slots = self.roster.slots();
        let alive = |role: Role| {
            slots[role]
                .readable()
                .is_some_and(|one| !members.iter().any(|member| Rc::ptr_eq(one, member)))
        };
        self.layout.borrow().is_readable(&alive)
    }

    fn is_parity_in_doubt(&self) -> bool {
        let has_parity = matches!(&*self.layout.borrow(), Layout::Parity(_));
        // For a complete array the bitmap says where.
        let somewhere = self.lane.needed_chunks().is_none_or(|needed| needed > 0);
        has_parity && !self.agreement.is_clean() && (somewhere || self.gate.is_degraded())
    }

    /// Returns true if `rows` of the data of `role` may be read from a member in sync.
    pub(super) fn is_readable(&self, role: Role, rows: MemberSpan) -> bool {
        let slots = self.roster.slots();
        slots[role].readable().is_some_and(|member| !member.is_bad(rows))
    }

    fn take_out(&self, member: &Rc<Member>, why: &str) {
        if member.is_in_sync() {
            self.lane.tell(Told::MemberLost);
        }
        self.roster.take_out(member, why);
        self.note(format!("{} is faulty: {why}", member.label));
        self.publisher.leave_behind(member.told.get());
        if !Canary::SuperblocksAfterAnswer.is_planted() {
            self.publisher.require();
        }
        self.reconsider();
    }

    /// Requires that the new member gets the bitmap before superblocks count on it.
    pub(super) fn welcome(&self) {
        self.lane.tell(Told::Newcomer);
    }

    /// Waits until all required state is on the members, with `changed` also the present state. Completes even
    /// if the caller stops waiting. Returns true if the state is recorded.
    pub(super) async fn record(self: &Rc<Self>, changed: bool) -> bool {
        if changed {
            self.publisher.require();
        }
        let core = Rc::clone(self);
        self.background.see_through(async move { core.fence().await.is_ok() }).await
    }
}

/// Returns the answer of a member that answers within the call.
///
/// # Panics
/// If it does not.
pub(super) fn answer(pending: Pending) -> Completion {
    match pending {
        Pending::Ready(Some(completion)) => completion,
        _ => panic!("a member that answers within the call did not"),
    }
}

/// Returns those of `members` whose requests failed, each once, with its first error.
pub(super) fn failures(
    members: Vec<Rc<Member>>,
    completions: &[Completion],
) -> Vec<(Rc<Member>, Errno)> {
    let mut failed: Vec<(Rc<Member>, Errno)> = Vec::new();
    for (member, completion) in members.into_iter().zip(completions) {
        if let Err(errno) = completion.result
            && !failed.iter().any(|(one, _)| Rc::ptr_eq(one, &member))
        {
            failed.push((member, errno));
        }
    }
    failed
}

/// The latest notes for the operator, oldest first.
#[derive(Default)]
pub(super) struct Notes {
    lines: RefCell<Vec<(Duration, String)>>,
}

impl Notes {
    fn add(&self, now: Duration, text: String) {
        const MOST: usize = 200;
        let mut lines = self.lines.borrow_mut();
        if lines.len() == MOST {
            lines.remove(0);
        }
        lines.push((now, text));
    }

    pub(super) fn all(&self) -> Vec<(Duration, String)> {
        self.lines.borrow().clone()
    }
}
