//! What is to be done next: filling members, making copies agree, comparing them.
//!
//! ```text
//!   a spare and a role without a member ──▶ it takes over
//!   a member to fill ──▶ recovery    in the order of its bytes; it says how far it got
//!   members may not agree ──▶ resync in the order of the sync bytes
//!   somebody asked ──▶ check or repair
//! ```
//!
//! One thing at a time, in this order: redundancy first.

use std::rc::Rc;

use braid_block::Span;
use braid_md::Resync;

use super::control::JobKind;
use super::data::{Data, Layout};
use super::member::{Member, MemberState};
use super::pass::{End, Walk};
use super::work::POOL;
use super::{Inner, Later, MemberState as State};

/// What is to be done.
enum Job {
    /// Give a spare the role of a member that is missing.
    TakeOver(Rc<Member>, u16),
    Recover(Rc<Member>),
    Compare(JobKind),
}

impl Inner {
    pub(super) async fn work_without_end(self: Rc<Self>) {
        if self.read_only {
            return;
        }
        loop {
            self.work.until(|| self.next_job().is_some()).await;
            match self.next_job() {
                Some(Job::TakeOver(spare, role)) => self.take_over(&spare, role).await,
                Some(Job::Recover(member)) => self.recover(&member).await,
                Some(Job::Compare(kind)) => self.compare(kind).await,
                None => {}
            }
        }
    }

    /// What is to be done next: the same answer until something changes.
    fn next_job(&self) -> Option<Job> {
        if self.work.is_stopped() || self.broken.get() {
            return None;
        }
        let slots = self.slots.borrow();
        let members = self.members.borrow();
        let vacant = slots.iter().position(|slot| slot.primary.is_none());
        let spare = members.iter().find(|member| member.state.get() == State::Spare);
        if let (Some(role), Some(spare)) = (vacant, spare) {
            return Some(Job::TakeOver(Rc::clone(spare), role as u16));
        }
        let recovering =
            members.iter().find(|member| matches!(member.state.get(), State::Recovering(_)));
        if let Some(member) = recovering {
            return Some(Job::Recover(Rc::clone(member)));
        }
        if self.needs_resync() {
            return Some(Job::Compare(JobKind::Resync));
        }
        self.work.requested().map(Job::Compare)
    }

    fn needs_resync(&self) -> bool {
        match self.resync.get() {
            Resync::Clean => {
                // What a bitmap said when the array was put together.
                let intent = self.intent.borrow();
                !self.degraded.get() && intent.as_ref().is_some_and(|intent| intent.needed() > 0)
            }
            Resync::From(_) => true,
        }
    }

    async fn take_over(self: &Rc<Self>, spare: &Rc<Member>, role: u16) {
        spare.role.set(Some(role));
        spare.by_bitmap.set(false);
        spare.state.set(MemberState::Recovering(0));
        self.put_in(spare, role, false);
        self.note(format!("{} takes over role {role}", spare.label));
        self.reconsider();
        self.publish().await;
    }

    /// Fills `member`.
    async fn recover(self: &Rc<Self>, member: &Rc<Member>) {
        let MemberState::Recovering(filled) = member.state.get() else { return };
        let Some(role) = member.role.get() else { return };
        let filling = Filling {
            inner: Rc::clone(self),
            member: Rc::clone(member),
            role,
            layout: self.data.layout(),
            filled,
            by_bitmap: member.by_bitmap.get(),
        };
        // After a crash what was filled is as doubtful as any copy, where the bitmap says so.
        let from = if self.resync.get() == Resync::Clean { filled } else { 0 };
        match self.pass(&filling, from).await {
            End::Done if filling.is_wanted() => self.finish_recovery(member).await,
            End::Failed(why) => {
                self.fail(member, &format!("it could not be filled: {why}"));
                self.fence().await;
            }
            _ => {}
        }
        self.end_pass();
    }

    async fn finish_recovery(self: &Rc<Self>, member: &Rc<Member>) {
        member.state.set(MemberState::InSync);
        member.by_bitmap.set(false);
        if member.replacement.replace(false)
            && let Some(role) = member.role.get()
        {
            let slot = &mut self.slots.borrow_mut()[usize::from(role)];
            slot.replacement = None;
            if let Some(old) = slot.primary.replace(Rc::clone(member)) {
                old.state.set(MemberState::Faulty);
                old.remark.replace(format!("replaced by {}", member.label));
            }
        }
        self.note(format!("{} is in sync", member.label));
        self.reconsider();
        self.forget_needs();
        self.publish().await;
    }

    /// What a pass does next of `span`, which lies in one piece: how many bytes that is, at most
    /// `most` if there is anything to do, and which part of the array.
    fn stretch(&self, span: Span, most: u64, by_bitmap: bool) -> (u64, Option<Span>) {
        let (len, needed) = match &*self.intent.borrow() {
            Some(intent) if by_bitmap => intent.stretch(span, most),
            _ => (span.len.min(most), true),
        };
        (len, needed.then(|| Span::new(span.offset, len)))
    }

    /// When every copy is there and they agree, no bit is needed any more.
    fn forget_needs(&self) {
        if !self.degraded.get()
            && !self.is_recovering()
            && self.resync.get() == Resync::Clean
            && let Some(intent) = &mut *self.intent.borrow_mut()
        {
            intent.need_nothing();
        }
    }

    /// Compares the copies, and but for a check makes them the same.
    async fn compare(self: &Rc<Self>, kind: JobKind) {
        let resync = kind == JobKind::Resync;
        let comparing = Comparing {
            inner: Rc::clone(self),
            kind,
            layout: self.data.layout(),
            // A bitmap says where copies can differ; a scrub looks everywhere.
            by_bitmap: resync && self.intent.borrow().is_some(),
        };
        let from = match self.resync.get() {
            Resync::From(from) if resync => from.min(comparing.total()),
            _ => 0,
        };
        if resync {
            self.forget_compared();
            self.doubt.set(None);
        }
        self.work.find_nothing();
        if self.pass(&comparing, from).await == End::Done {
            self.finish_comparison(kind);
            self.publish().await;
        }
        self.end_pass();
    }

    fn finish_comparison(&self, kind: JobKind) {
        match kind {
            // They came to differ behind the pass: once more from there.
            JobKind::Resync if self.doubt.get().is_some() => {}
            JobKind::Resync => {
                self.resync.set(Resync::Clean);
                self.note("the copies agree: resync done".to_owned());
                self.forget_needs();
            }
            _ => {
                let found = self.work.found().mismatches;
                self.work.finish_request(kind, self.clock.unix_time());
                self.note(format!("{kind}: {found} bytes differ"));
            }
        }
    }

    fn has_takeover(&self) -> bool {
        let spare = |member: &Rc<Member>| member.state.get() == State::Spare;
        self.slots.borrow().iter().any(|slot| slot.primary.is_none())
            && self.members.borrow().iter().any(spare)
    }
}

/// How long a window may be that needs as many buffers for each byte, in bytes: all of it is in
/// memory at once, and of several windows.
fn fitting(buffers: usize) -> u64 {
    ((POOL / 4 / buffers) as u64 & !4095).max(4096)
}

/// A member that is filled: over its bytes.
struct Filling {
    inner: Rc<Inner>,
    member: Rc<Member>,
    role: u16,
    layout: Layout,
    /// How far it was filled before.
    filled: u64,
    by_bitmap: bool,
}

impl Walk for Filling {
    fn kind(&self) -> JobKind {
        if self.member.replacement.get() { JobKind::Replace } else { JobKind::Recovery }
    }

    fn member(&self) -> Option<String> {
        Some(self.member.label.clone())
    }

    fn total(&self) -> u64 {
        self.layout.member_size()
    }

    fn is_wanted(&self) -> bool {
        matches!(self.member.state.get(), MemberState::Recovering(_))
    }

    fn next(&self, offset: u64, most: u64) -> (u64, Option<Span>) {
        let is_filled = offset < self.filled;
        let left = if is_filled { self.filled - offset } else { self.total() - offset };
        match self.layout.piece_of_member(self.role.into(), offset) {
            Some(piece) => {
                let span = Span::new(piece.offset, piece.len.min(left));
                let most = most.min(fitting(self.layout.read_to_fill()));
                self.inner.stretch(span, most, self.by_bitmap || is_filled)
            }
            // The last chunks of a layout may hold nothing.
            None => (left.min(4096), None),
        }
    }

    fn work(&self, array: Span, offset: u64) -> Later<'static, Result<(), String>> {
        let (inner, member) = (Rc::clone(&self.inner), Rc::clone(&self.member));
        Box::pin(async move {
            match &inner.data {
                Data::Copies(_) => Rc::clone(&inner).fill_copy(&member, offset, array).await,
                Data::Parity(_) => Rc::clone(&inner).fill_column(&member, array).await,
            }
        })
    }

    fn reached(&self, frontier: u64) {
        if self.is_wanted() {
            self.member.state.set(MemberState::Recovering(frontier));
        }
    }
}

/// Members that are compared: over the sync bytes.
struct Comparing {
    inner: Rc<Inner>,
    kind: JobKind,
    layout: Layout,
    by_bitmap: bool,
}

impl Walk for Comparing {
    fn kind(&self) -> JobKind {
        self.kind
    }

    fn member(&self) -> Option<String> {
        None
    }

    fn total(&self) -> u64 {
        self.layout.sync_size()
    }

    /// Filling a member comes first: it gives back redundancy.
    fn is_wanted(&self) -> bool {
        let inner = &self.inner;
        let wanted = match self.kind {
            JobKind::Resync => inner.needs_resync(),
            kind => inner.work.requested() == Some(kind),
        };
        wanted && !inner.is_recovering() && !inner.has_takeover()
    }

    fn next(&self, offset: u64, most: u64) -> (u64, Option<Span>) {
        let piece = self.layout.piece_to_compare(offset);
        let most = most.min(fitting(self.layout.compared()));
        self.inner.stretch(piece, most, self.by_bitmap)
    }

    fn work(&self, array: Span, _: u64) -> Later<'static, Result<(), String>> {
        let (inner, kind) = (Rc::clone(&self.inner), self.kind);
        Box::pin(async move {
            let found = match &inner.data {
                Data::Copies(_) => Rc::clone(&inner).compare_copies(array, kind).await,
                Data::Parity(_) => Rc::clone(&inner).compare_rows(array, kind).await,
            };
            inner.work.find(found);
            Ok(())
        })
    }

    fn reached(&self, frontier: u64) {
        if let (JobKind::Resync, Resync::From(_)) = (self.kind, self.inner.resync.get()) {
            self.inner.agree_up_to(frontier);
        }
    }
}
