//! Writing superblocks to the members, in their order.
//!
//! ```text
//!   bitmap's first page (it counts events, too) ──▶ flush ──▶ logs ──▶ superblocks, durable
//! ```
//!
//! The flush makes "clean" true: the data of all members is durable before any superblock says that they agree.
//!
//! Invariants
//! * One publication at a time; changes that are required meanwhile are in the next one.
//! * [`Core::fence`] returns when every change that was required before it is on the remaining members.
//!   Completions and writes in place rely on its [`Published`].
//! * Before the absence of a member counts, or a member announces itself, the others are two events ahead of
//!   the absent member: kernels before 6.8 accept a member that is one event behind. A member that was to
//!   announce a change, and is out before the others followed, has one event more than they do
//!   ([`Member::told`]).
//! * A member that takes a role says so in its superblock before the others do: roles are read from the
//!   freshest superblock, the filled part of a member from its own.
//! * A member is in sync when its contents are durable and its own superblock says so ([`Core::promote`]);
//!   until then the member that it replaces keeps the role.
//! * Two members that were one event apart at the start never become two events apart: a second crash in a row
//!   would then leave good members out.
//! * A log forgets only units that superblocks make up for: a flush counts for it only when superblocks name
//!   the members that are out, and its heads record the resync as it was before the flush began.
//! * An array without superblocks has the same order of events, and writes nothing.

use std::rc::Rc;

use braid_array::MemberByte;
use braid_block::Errno;
use braid_md::{Resync, Role, Superblock};

use super::{Announced, CountedOn, Published, RecordedFrontier};
use crate::redundant::core::{Before, Core, Failures};
use crate::redundant::roster::{Member, MemberState};
use crate::redundant::superblocks::{Next, said_of};

impl Core {
    /// Records the state as it is now.
    ///
    /// # Errors
    /// Nothing is written any more.
    pub(in crate::redundant) async fn publish(self: &Rc<Self>) -> Result<Published, Errno> {
        self.publisher.require();
        self.fence().await
    }

    /// Gets the other members two events ahead of every absent member, before another member announces itself:
    /// that member could be as fresh.
    ///
    /// # Errors
    /// Nothing is written any more.
    pub(in crate::redundant) async fn leave_behind(self: &Rc<Self>) -> Result<(), Errno> {
        while self.publisher.events() < self.publisher.goal.get() {
            let _published = self.publish().await?;
        }
        Ok(())
    }

    /// Returns when all changes that were required up to now are recorded, and the shards that read from the
    /// members by themselves know of all changes up to now.
    ///
    /// # Errors
    /// Nothing is written any more.
    pub(in crate::redundant) async fn fence(self: &Rc<Self>) -> Result<Published, Errno> {
        let (required, shown) = (self.publisher.required.get(), self.branches.shown());
        while self.publisher.done.get() < required {
            self.check_running()?;
            let _turn = self.publisher.turn().await;
            self.check_running()?;
            if self.publisher.done.get() < required {
                self.write_superblocks().await;
            }
        }
        self.branches.until_seen(shown).await;
        self.check_running()?;
        Ok(Published { of: self.id, upto: self.publisher.done.get() })
    }

    /// Returns the result of [`Core::fence`] if it would return at once.
    #[inline]
    pub(in crate::redundant) fn published(&self) -> Option<Published> {
        let upto = self.publisher.done.get();
        let is_settled = upto == self.publisher.required.get() && self.branches.have_seen();
        (is_settled && !self.gate.is_stopped()).then_some(Published { of: self.id, upto })
    }

    /// Returns [`CountedOn`], if the superblocks on the members have the membership `generation`, and it has
    /// not changed since.
    pub(in crate::redundant) fn counted_on(&self, generation: u64) -> Option<CountedOn> {
        let recorded = self.publisher.recorded_generation.get();
        (recorded == generation && self.roster.generation() == generation)
            .then_some(CountedOn { of: self.id, generation })
    }

    /// Returns [`CountedOn`] of the present membership, once superblocks have it.
    ///
    /// # Errors
    /// Nothing is written any more.
    pub(in crate::redundant) async fn counted_on_now(self: &Rc<Self>) -> Result<CountedOn, Errno> {
        loop {
            self.check_running()?;
            if let Some(counted_on) = self.counted_on(self.roster.generation()) {
                return Ok(counted_on);
            }
            let _published = self.publish().await?;
        }
    }

    /// Returns [`RecordedFrontier`], once superblocks say that a resync got beyond the array's first bytes, or
    /// that none is needed; `None` as long as they cannot say so.
    pub(in crate::redundant) async fn recorded_frontier(
        self: &Rc<Self>,
    ) -> Result<Option<RecordedFrontier>, Errno> {
        if self.publisher.recorded.get() == Resync::From(0) {
            let _published = self.publish().await?;
        }
        Ok(self.recorded_frontier_now())
    }

    /// Returns [`RecordedFrontier`], if superblocks say now that a resync got beyond the array's first bytes, or
    /// that none is needed.
    pub(in crate::redundant) fn recorded_frontier_now(&self) -> Option<RecordedFrontier> {
        let recorded = self.publisher.recorded.get();
        (recorded != Resync::From(0)).then_some(RecordedFrontier { of: self.id, recorded })
    }

    /// Writes superblocks until all remaining members have them.
    async fn write_superblocks(self: &Rc<Self>) {
        loop {
            let required = self.publisher.required.get();
            if self.publisher.array.borrow().is_none() || self.read_only {
                self.publisher.recorded.set(self.agreement.resync());
                self.publisher.recorded_generation.set(self.roster.generation());
                self.publisher.done.set(required);
                self.refuse_to_forget();
                break;
            }
            let is_last = self.publisher.is_last();
            match self.write_superblocks_once(is_last).await {
                Round::Done if is_last => {
                    self.publisher.done.set(required);
                    break;
                }
                Round::Done | Round::Again => {}
                Round::Failed(failed) => self.fail_or_stop(failed),
            }
            if self.gate.is_stopped() {
                return;
            }
        }
        self.reopen();
    }

    /// Stops an array without superblocks after a member failed: at the next start nothing tells that the
    /// member has old data. Later writes would make the members differ. Members in memory are gone by then, and
    /// do not count.
    fn refuse_to_forget(&self) {
        let members = self.roster.members();
        let faulty = members
            .iter()
            .find(|member| member.state() == MemberState::Faulty && !member.dev.limits().volatile);
        let faulty = faulty.map(|member| member.label.clone());
        drop(members);
        if let Some(label) = faulty.filter(|_| !self.read_only) {
            self.stop(&format!("{label} failed, and without superblocks that would be forgotten"));
        }
    }

    /// Writes superblocks to all members. Each step sees the failures of the previous one: no superblock counts
    /// on a member that could not be flushed. Of several publications that leave a member behind, those before
    /// the last have as many events as that member may have, or one more, and the member is believed beside
    /// them. So they repeat the earlier resync state ([`Core::prepare_superblocks`]) and assign no role: it
    /// would have two members.
    async fn write_superblocks_once(self: &Rc<Self>, is_last: bool) -> Round {
        let failed = self.catch_up().await;
        if !failed.is_empty() {
            return Round::Failed(failed);
        }
        let mut next = match self.lead_up(None).await {
            Ok(next) => next,
            Err(round) => return round,
        };
        if !is_last {
            next.put_off_changes();
        }
        let Next { superblocks, generation, resync } = next;
        let failed = self.announce(&superblocks).await;
        if !failed.is_empty() {
            return Round::Failed(failed);
        }
        if self.roster.generation() != generation {
            // The member that was to announce itself may be out before it did.
            return Round::Again;
        }
        // Counted only now: otherwise a member could miss two events by no fault of its own, and be left out.
        let said = self.publisher.array.borrow_mut().as_mut().map(|array| {
            array.count_event();
            array.resync
        });
        let failed = self.write_to(superblocks).await;
        if !failed.is_empty() {
            return Round::Failed(failed);
        }
        self.publisher.said.set(said.unwrap_or(resync));
        self.publisher.recorded.set(resync);
        if is_last {
            self.publisher.recorded_generation.set(generation);
        }
        Round::Done
    }

    /// Stores the metadata that must be on the members before superblocks: the bitmap's events, flushed data,
    /// the log's heads. Returns the superblocks, which were prepared first.
    async fn lead_up(self: &Rc<Self>, promoted: Option<&Rc<Member>>) -> Result<Next, Round> {
        let next = self.prepare_superblocks(promoted).ok_or(Round::Done)?;
        self.publisher.prepared.set(next.resync);
        let failed = self.store_events().await;
        if !failed.is_empty() {
            return Err(Round::Failed(failed));
        }
        let flushed = self.flush().await.map_err(|_| Round::Again)?;
        if self.roster.generation() != next.generation {
            // The prepared superblocks count on a member that is out, or has another role.
            return Err(Round::Again);
        }
        if let Some(log) = self.follower.clone() {
            let events = self.publisher.events() + 1;
            let before = Before { events, durable: flushed.durable(self) };
            let failed = log.before_superblocks(self, before).await;
            if !failed.is_empty() {
                return Err(Round::Failed(failed));
            }
        }
        Ok(next)
    }

    /// Updates members that a crash left one event behind, before any member gets another event ahead. (A
    /// member that comes back is further behind: it is announced when it has the bitmap.) A member whose
    /// superblock says that it is being filled keeps that state: its later contents count only once they are
    /// durable.
    async fn catch_up(&self) -> Failures {
        let behind = {
            let array = self.publisher.array.borrow();
            let Some(array) = array.as_ref() else { return Failures::new() };
            let members = self.roster.members();
            let next = |member: &Rc<Member>| {
                let own = member.superblock.borrow();
                let own = own.as_ref().filter(|own| {
                    own.events + 1 == array.events && matches!(own.role(), Role::Active(_))
                })?;
                let next = array.of_member(own, said_of(member));
                let says_more = own.recovery_offset.is_some() || own.is_replacement();
                let next = if says_more && matches!(next.role(), Role::Active(_)) {
                    next.filled_as(own)
                } else {
                    next
                };
                Some((Rc::clone(member), next))
            };
            members.iter().filter(|member| member.is_written()).filter_map(next).collect()
        };
        self.write_to(behind).await
    }

    /// Lowers the recovery offset of members that are being filled to `first`, in bytes of their data, before a
    /// log forgets the rows beyond.
    pub(in crate::redundant) async fn fill_again_from(&self, first: MemberByte) {
        self.roster.fill_again_from(first);
        let lowered = |member: Rc<Member>| {
            let own = member.superblock.borrow().clone()?;
            let is_beyond = own.recovery_offset.is_some_and(|filled| filled > first.get());
            is_beyond.then(|| (member, own.filled_to(first.get())))
        };
        let failed =
            self.write_to(self.roster.recovering().into_iter().filter_map(lowered).collect());
        self.fail_or_stop(failed.await);
    }

    /// Stores the bitmap's first page, which has the events, and all pages if a member or the bitmap is new.
    async fn store_events(self: &Rc<Self>) -> Failures {
        let Some(pages) = self.lane.take_publication() else { return Failures::new() };
        let failed = self.store_pages(&pages.pages).await;
        self.lane.stored(&pages, failed.is_empty());
        failed
    }

    /// Writes the superblocks of members that take a role before those of the others: one after the other,
    /// since they would count on each other.
    async fn announce(&self, superblocks: &[(Rc<Member>, Superblock)]) -> Failures {
        let mut changed: Vec<_> =
            superblocks.iter().filter(|(member, next)| member.is_changed_by(next)).collect();
        changed.sort_by_key(|(member, _)| !member.is_in_sync());
        for (index, (member, next)) in changed.iter().enumerate() {
            let mut next = next.clone();
            for (later, _) in &changed[index + 1..] {
                let role = later.superblock.borrow().as_ref().map(|own| own.role());
                next.set_role(later.number, role.unwrap_or(Role::Spare));
            }
            let failed = self.write_to(vec![(Rc::clone(member), next)]).await;
            if !failed.is_empty() {
                return failed;
            }
        }
        Failures::new()
    }

    /// Makes `member`, which a recovery has filled, a member in sync: its contents are flushed, then its own
    /// superblock says so, then the others' do. If its superblock cannot be written, the member is out, and the
    /// member that it was to replace stays.
    ///
    /// The log forgets all earlier units with it. The member lacks their records: in sync, it would make them look as
    /// if they had never begun, while older ones are replayed over them.
    ///
    /// # Errors
    /// The array is stopped.
    pub(in crate::redundant) async fn promote(
        self: &Rc<Self>,
        member: &Rc<Member>,
    ) -> Result<(), Errno> {
        while member.recovering().is_some() {
            self.leave_behind().await?;
            // A flush proves nothing to the log before superblocks have the membership.
            let _counted_on = self.counted_on_now().await?;
            let turn = self.publisher.turn().await;
            self.check_running()?;
            let is_recorded = self.counted_on(self.roster.generation()).is_some();
            if !self.publisher.is_last() || !is_recorded {
                continue;
            }
            let mut failed = self.catch_up().await;
            if !failed.is_empty() {
                self.fail_or_stop(failed);
                continue;
            }
            match self.lead_up(Some(member)).await {
                Ok(next) => {
                    let own = next.superblocks.into_iter();
                    let own = own.filter(|(one, _)| Rc::ptr_eq(one, member));
                    failed = self.write_to(own.collect()).await;
                }
                // The members of an array without superblocks are only flushed.
                Err(Round::Done) => drop(self.flush().await?),
                Err(Round::Again) => continue,
                Err(Round::Failed(others)) => failed = others,
            }
            if failed.is_empty() && member.recovering().is_some() {
                let generation = self.roster.generation();
                let announced = Announced { of: self.id, number: member.number, generation };
                if let Some(replaced) = self.roster.promote(member, &announced) {
                    self.publisher.leave_behind(replaced.told.get());
                }
                self.note(format!("{} is in sync", member.label));
            }
            self.fail_or_stop(failed);
            self.publisher.require();
            drop(turn);
        }
        self.reconsider();
        let _published = self.fence().await?;
        Ok(())
    }

    /// Writes `superblocks`, all at once. Members that are out by now are skipped.
    async fn write_to(&self, mut superblocks: Vec<(Rc<Member>, Superblock)>) -> Failures {
        superblocks.retain(|(member, _)| member.is_known());
        let area = |(member, superblock): &(Rc<Member>, Superblock)| {
            (Rc::clone(member), superblock.super_offset, superblock.encode())
        };
        for (member, superblock) in &superblocks {
            member.told.set(member.told.get().max(superblock.events));
        }
        let failed =
            self.store_metadata("superblock", superblocks.iter().map(area).collect()).await;
        for (member, superblock) in superblocks {
            if !failed.iter().any(|(one, _)| Rc::ptr_eq(one, &member)) {
                *member.superblock.borrow_mut() = Some(superblock);
            }
        }
        failed
    }
}

/// Result of writing all superblocks once.
enum Round {
    Done,
    /// The membership changed meanwhile: superblocks must be prepared again.
    Again,
    Failed(Failures),
}

#[cfg(test)]
mod tests {
    use braid_array::Role;

    use super::*;
    use crate::redundant::misuse::{array, assert_refused, member};

    #[test]
    fn announced() {
        let (one, other) = (array(), array());
        let first = Rc::clone(&one.roster.members()[0]);
        assert!(one.fail(&first, "a test"), "two others have all of it");
        let member = Rc::new(Member::new(member(3, None)));
        one.roster.admit(Rc::clone(&member));
        let before = one.roster.generation();
        one.roster.take_over(&member, Role::nth(0));
        let (of, generation) = (one.id, one.roster.generation());
        let promote = |of, number, generation| {
            drop(one.roster.promote(&member, &Announced { of, number, generation }));
        };
        assert_refused("a proof of another array", || promote(other.id, 3, generation));
        assert_refused("a proof of the member 1, not 3", || promote(of, 1, generation));
        assert_refused("a proof of the membership", || promote(of, 3, before));
        promote(of, 3, generation);
        assert!(member.is_in_sync());
    }
}
