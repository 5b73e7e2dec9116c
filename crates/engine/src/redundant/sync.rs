//! The choice of the next job: filling members, making copies agree, comparing them.
//!
//! ```text
//!   a spare and a role without a member ──▶ the spare takes over
//!   members to fill ──▶ recovery     in the order of their bytes; superblocks record the progress
//!   members may not agree ──▶ resync in the order of the sync bytes
//!   an order exists ──▶ check or repair
//! ```
//!
//! One job at a time, in this order: redundancy first. One pass fills all members that are to be filled, and
//! starts anew if another member is added.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use braid_array::coordinates::OfMember;
use braid_array::{MemberByte, MemberSpan, Role};

use super::keeping::{Inner, Lost};
use super::kind::JobKind;
use super::lane::Told;
use super::layout::SyncSpan;
use super::pass::{End, Step, Walk};
use super::roster::Member;
use super::work::POOL;
use crate::background::Later;
use crate::canary::Canary;

/// A job.
enum Job {
    /// Give a spare the role of a member that is missing.
    TakeOver(Rc<Member>, Role),
    Recover(Vec<Rc<Member>>),
    Compare(JobKind),
}

impl Inner {
    pub(super) async fn work_without_end(self: Rc<Self>) {
        if self.core.read_only {
            return;
        }
        loop {
            self.until_next_job().await;
            match self.next_job() {
                Some(Job::TakeOver(spare, role)) => self.take_over(&spare, role).await,
                Some(Job::Recover(members)) => self.recover(members).await,
                Some(Job::Compare(kind)) => self.compare(kind).await,
                None => {}
            }
        }
    }

    /// Returns when there is a next job, or when the delay of a resync is over.
    async fn until_next_job(&self) {
        let core = &self.core;
        let mut told = pin!(core.work.until(|| self.next_job().is_some()));
        let left = core.work.put_off_for(core.clock.now());
        let mut wait = left.map(|left| core.clock.sleep(left));
        poll_fn(|cx| {
            let is_over = wait.as_mut().is_some_and(|wait| wait.as_mut().poll(cx).is_ready());
            if is_over { Poll::Ready(()) } else { told.as_mut().poll(cx) }
        })
        .await;
    }

    /// Returns the next job: the same one until something changes.
    fn next_job(&self) -> Option<Job> {
        let core = &self.core;
        if core.work.is_held() || core.gate.is_stopped() {
            return None;
        }
        if let Some((spare, role)) = core.roster.vacancy() {
            return Some(Job::TakeOver(spare, role));
        }
        let recovering = core.roster.recovering();
        if !recovering.is_empty() {
            return Some(Job::Recover(recovering));
        }
        if self.needs_resync() && !core.work.is_put_off(core.clock.now()) {
            return Some(Job::Compare(JobKind::Resync));
        }
        core.work.requested(core.clock.unix_time()).map(Job::Compare)
    }

    pub(super) fn needs_resync(&self) -> bool {
        let core = &self.core;
        if core.agreement.is_clean() {
            // The set bits of the bitmap with which the array was assembled.
            let needed = || core.lane.needed_chunks().is_some_and(|needed| needed > 0);
            !core.gate.is_degraded() && needed()
        } else {
            // Without a member to compare with, no comparison can make members agree.
            self.keeping.may_agree(core)
        }
    }

    /// Returns true if no member is to be filled.
    pub(super) fn members_are_settled(&self) -> bool {
        let roster = &self.core.roster;
        roster.recovering().is_empty() && roster.vacancy().is_none()
    }

    async fn take_over(self: &Rc<Self>, spare: &Rc<Member>, role: Role) {
        let is_left_behind = self.core.leave_behind().await.is_ok();
        let is_that = |(one, vacant): (Rc<Member>, Role)| Rc::ptr_eq(&one, spare) && vacant == role;
        if !is_left_behind || !self.core.roster.vacancy().is_some_and(is_that) {
            return;
        }
        self.core.roster.take_over(spare, role);
        self.core.welcome();
        self.core.note(format!("{} takes over role {role}", spare.label));
        self.core.reconsider();
        // A stopped array has no next job.
        let _ = self.core.publish().await;
    }

    /// Runs a recovery of `members`.
    async fn recover(self: &Rc<Self>, members: Vec<Rc<Member>>) {
        let core = &self.core;
        // After a crash the filled part is as doubtful as any copy, in the chunks of the bitmap.
        let is_trusted =
            core.agreement.is_clean() || Canary::RecoveryTrustsOffsetAfterCrash.is_planted();
        let target = |member: &Rc<Member>| {
            let filled = member.recovering()?;
            let role = member.role()?;
            Some(Target { member: Rc::clone(member), role, filled })
        };
        let targets: Vec<Target> = members.iter().filter_map(target).collect();
        let first = targets.iter().map(|one| one.filled).min().unwrap_or_default();
        let from = if is_trusted { first } else { MemberByte::START };
        if !is_trusted {
            core.roster.fill_again_from(MemberByte::START);
        }
        let filling = Filling { inner: Rc::clone(self), targets, is_trusted };
        let outcome = match self.pass(&filling, from).await {
            End::Done if filling.is_wanted() => {
                self.finish_recovery(&members).await;
                Ok(true)
            }
            End::Failed(cause) => {
                let why = format!("it could not be filled: {cause}");
                let failed = members.iter().map(|member| (Rc::clone(member), why.clone()));
                core.fail_or_stop(failed.collect());
                let _ = core.fence().await;
                Err(cause)
            }
            _ => Ok(false),
        };
        self.end_pass(outcome);
    }

    async fn finish_recovery(self: &Rc<Self>, members: &[Rc<Member>]) {
        for member in members {
            // A stopped array has no next job.
            if self.core.promote(member).await.is_err() {
                return;
            }
        }
        self.forget_needs();
    }

    /// Clears the need for bits if every copy is there and they agree.
    pub(super) fn forget_needs(&self) {
        let core = &self.core;
        if !core.gate.is_degraded()
            && core.roster.recovering().is_empty()
            && core.agreement.is_clean()
        {
            core.lane.tell(Told::Agreed);
        }
    }
}

/// Returns the largest window, in bytes, with so many `buffers` per byte: all of it is in memory at once, and
/// of several windows.
pub(super) fn fitting(buffers: usize) -> u64 {
    ((POOL / 4 / buffers) as u64 & !4095).max(4096)
}

/// A member that is being filled.
#[derive(Clone)]
struct Target {
    member: Rc<Member>,
    role: Role,
    /// The part that was filled before.
    filled: MemberByte,
}

/// A recovery, over the bytes of members.
struct Filling {
    inner: Rc<Inner>,
    targets: Vec<Target>,
    /// True if the part that was filled before is skipped.
    is_trusted: bool,
}

impl Filling {
    /// Returns the number of bytes that come next at `offset` for `target`, and the part of the array if there
    /// is work.
    fn next_for(&self, target: &Target, offset: MemberByte, most: u64) -> (u64, Option<SyncSpan>) {
        let is_filled = offset < target.filled;
        let end = if is_filled { target.filled } else { self.total() };
        let left = end - offset;
        let Some(piece) = self.inner.keeping.piece_of_member(target.role, offset) else {
            return (left.min(4096), None); // The last chunks of a layout may be unused.
        };
        let span = SyncSpan::new(piece.offset, piece.len.min(left));
        if is_filled && self.is_trusted {
            return (span.len, None);
        }
        let most = most.min(fitting(self.inner.keeping.read_to_fill()));
        let by_bitmap = target.member.is_by_bitmap() || is_filled;
        self.inner.stretch(span, most, by_bitmap)
    }
}

impl Walk<OfMember> for Filling {
    fn kind(&self) -> JobKind {
        let all = self.targets.iter().all(|target| target.member.is_replacement());
        if all { JobKind::Replace } else { JobKind::Recovery }
    }

    fn member(&self) -> Option<String> {
        let labels = self.targets.iter().map(|target| target.member.label.as_str());
        Some(labels.collect::<Vec<_>>().join(", "))
    }

    fn total(&self) -> MemberByte {
        let total = self.inner.core.layout.borrow().member_size();
        let is_early = Canary::ReplacementPromotedEarly.is_planted();
        let is_early = is_early && self.kind() == JobKind::Replace;
        MemberByte::new(if is_early { total / 2 } else { total })
    }

    /// Returns true while these members, and no others, are to be filled.
    fn is_wanted(&self) -> bool {
        let roster = &self.inner.core.roster;
        let recovering = roster.recovering();
        roster.vacancy().is_none()
            && recovering.len() == self.targets.len()
            && self
                .targets
                .iter()
                .all(|target| recovering.iter().any(|member| Rc::ptr_eq(member, &target.member)))
    }

    fn next(&self, offset: MemberByte, most: u64) -> (u64, Step) {
        let next = |target| self.next_for(target, offset, most);
        let all: Vec<(u64, Option<SyncSpan>)> = self.targets.iter().map(next).collect();
        let len = all.iter().map(|(len, _)| *len).min().unwrap_or(most);
        let is_read = all.iter().any(|(_, place)| place.is_some());
        (len, if is_read { Step::Read } else { Step::Skip })
    }

    fn work(&self, part: MemberSpan) -> Later<'static, Result<(), String>> {
        let mut places: Vec<(SyncSpan, Vec<Rc<Member>>)> = Vec::new();
        for target in &self.targets {
            let (_, place) = self.next_for(target, part.offset, part.len);
            let Some(SyncSpan { offset, .. }) = place else { continue };
            let place = SyncSpan::new(offset, part.len);
            let member = Rc::clone(&target.member);
            match places.iter_mut().find(|(one, _)| *one == place) {
                Some((_, members)) => members.push(member),
                None => places.push((place, vec![member])),
            }
        }
        let inner = Rc::clone(&self.inner);
        Box::pin(async move {
            for (place, members) in places {
                let filled = inner.keeping.fill(&inner, members.clone(), place, part.offset);
                for lost in filled.await {
                    inner.enter_lost(&members, lost).await?;
                }
            }
            Ok(())
        })
    }

    fn reached(&self, frontier: MemberByte) {
        for Target { member, filled, .. } in &self.targets {
            let frontier = if self.is_trusted { frontier.max(*filled) } else { frontier };
            self.inner.core.roster.is_filled_below(member, frontier);
        }
    }
}

impl Inner {
    /// Returns the number of bytes of `span` (which lies in one piece) that a pass covers next, at most `most`
    /// if there is work, and the part of the array in that case.
    pub(super) fn stretch(
        &self,
        span: SyncSpan,
        most: u64,
        by_bitmap: bool,
    ) -> (u64, Option<SyncSpan>) {
        let by_bits = by_bitmap.then(|| self.core.lane.stretch(span, most)).flatten();
        let (len, needed) = by_bits.unwrap_or((span.len.min(most), true));
        (len, needed.then(|| SyncSpan::new(span.offset, len)))
    }

    /// Enters a place that no member can provide in the bad-block logs of `members`, and of the members that
    /// could not be read there.
    async fn enter_lost(
        &self,
        members: &[Rc<Member>],
        Lost { place, unreadable }: Lost,
    ) -> Result<(), String> {
        let core = &self.core;
        for member in members.iter().filter(|member| member.recovering().is_some()) {
            if !core.is_bad_from_now_on(member, place).await {
                let labels: Vec<&str> = unreadable.iter().map(|one| one.label.as_str()).collect();
                return Err(format!(
                    "{} cannot be read at {place} of their data, and {} has no bad-block log, or \
                     no room in it, to note that",
                    labels.join(", "),
                    member.label
                ));
            }
        }
        for member in &unreadable {
            // If the entry fails, the next read of the member fails again.
            core.is_bad_from_now_on(member, place).await;
            core.note(format!(
                "{}: {place} cannot be read, and no other member has it",
                member.label
            ));
        }
        Ok(())
    }
}
