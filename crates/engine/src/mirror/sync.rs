//! Passes over the array: what is to be done next, and doing it, window by window.
//!
//! ```text
//!   a member to fill ──▶ recovery    in the order of its bytes; it says how far it got
//!   copies may differ ──▶ resync     in the order of the array's bytes
//!   somebody asked ──▶ check or repair
//!
//!   |■■■■■■■■■■■■■■■|▒▒|▒▒|▒▒|▒▒|                    |
//!                   frontier     windows under way: locked, read, compared or copied
//! ```
//!
//! A pass can be interrupted at any window: what it records is its frontier, below which
//! everything is done.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use braid_block::Span;
use braid_md::Resync;
use braid_mem::Pool;

use super::control::{JobKind, JobStatus};
use super::member::{Member, MemberState};
use super::throttle::{Speed, Throttle};
use super::window::Found;
use super::{Inner, Later, MemberState as State};
use crate::signal::Signal;

/// A window when nobody else is about, and when clients are, in bytes.
const WINDOW: u64 = 512 << 10;
const SMALL_WINDOW: u64 = 64 << 10;
/// How many small ones may be under way when the pass is slower than it may be.
const SMALL_WINDOWS: usize = 4;
/// What may be under way at once, in bytes, and in windows.
const UNDER_WAY: u64 = 2 << 20;
const MOST_WINDOWS: usize = 32;
/// Memory for the windows: a buffer for each of up to four copies, and rewriting.
const POOL: usize = 16 << 20;
/// How long a pass goes as if clients were about, until it would know of them.
const GENTLE: Duration = Duration::from_millis(250);
/// How often the frontier is recorded.
const CHECKPOINT: Duration = Duration::from_secs(5);
/// Places of mismatches that are kept for the report.
const MOST_PLACES: usize = 64;

/// What the passes share.
pub(super) struct Work {
    pool: Pool,
    throttle: RefCell<Throttle>,
    timing: Cell<bool>,
    stop: Cell<bool>,
    requested: Cell<Option<JobKind>>,
    current: RefCell<Option<Current>>,
    found: RefCell<Found>,
    last: RefCell<Option<(JobKind, Duration, u64)>>,
    changed: Signal,
    /// How often something changed.
    changes: Cell<u64>,
}

/// A pass under way.
struct Current {
    kind: JobKind,
    member: Option<String>,
    done: u64,
    total: u64,
    /// When, and how far, a second apart.
    samples: VecDeque<(Duration, u64)>,
}

/// What is to be done.
enum Job {
    /// Give a spare the role of a member that is missing.
    TakeOver(Rc<Member>, u16),
    Recover(Rc<Member>),
    Compare(JobKind),
}

/// How a pass ended.
#[derive(PartialEq, Eq)]
enum End {
    Done,
    Interrupted,
    Failed(String),
}

impl Work {
    pub(super) fn new(speed: Speed) -> std::io::Result<Work> {
        Ok(Work {
            pool: Pool::new(POOL)?,
            throttle: RefCell::new(Throttle::new(speed)),
            timing: Cell::new(false),
            stop: Cell::new(false),
            requested: Cell::new(None),
            current: RefCell::default(),
            found: RefCell::default(),
            last: RefCell::default(),
            changed: Signal::default(),
            changes: Cell::new(0),
        })
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Whether the latencies of requests are wanted.
    #[inline]
    pub(super) fn is_timing(&self) -> bool {
        self.timing.get()
    }

    pub(super) fn record_latency(&self, now: Duration, latency: Duration) {
        self.throttle.borrow_mut().record(now, latency);
    }

    pub(super) fn stop(&self) {
        self.stop.set(true);
        self.tell();
    }

    /// What is to be done may be another thing now.
    pub(super) fn tell(&self) {
        self.changes.set(self.changes.get() + 1);
        self.changed.notify();
    }

    /// Waits until no pass is under way.
    pub(super) async fn until_idle(&self) {
        self.changed.until(|| self.current.borrow().is_none()).await;
    }

    /// How large the windows are at `now`, in bytes, and how many may be under way, of a pass
    /// that began at `start`.
    fn pace(&self, now: Duration, start: Duration) -> (u64, usize) {
        let throttle = self.throttle.borrow();
        let gently = now.saturating_sub(start) < GENTLE || throttle.is_shared(now);
        match (gently, throttle.is_behind(now)) {
            (false, _) => (WINDOW, MOST_WINDOWS),
            (true, false) => (SMALL_WINDOW, 1),
            (true, true) => (SMALL_WINDOW, SMALL_WINDOWS),
        }
    }

    pub(super) fn speed(&self) -> Speed {
        self.throttle.borrow().speed()
    }

    pub(super) fn set_speed(&self, speed: Speed) {
        self.throttle.borrow_mut().set(speed);
        self.tell();
    }

    pub(super) fn request(&self, kind: Option<JobKind>) {
        self.requested.set(kind);
        self.tell();
    }

    pub(super) fn requested(&self) -> Option<JobKind> {
        self.requested.get()
    }

    pub(super) fn found(&self) -> Found {
        self.found.borrow().clone()
    }

    /// The last check or repair that ran to its end: when, in unix time, and what it found.
    pub(super) fn last(&self) -> Option<(JobKind, Duration, u64)> {
        *self.last.borrow()
    }

    pub(super) fn status(&self, now: Duration) -> Option<JobStatus> {
        self.current.borrow().as_ref().map(|current| current.status(now))
    }
}

impl Current {
    fn progress(&mut self, now: Duration, done: u64) {
        self.done = done;
        let due = |(last, _): &(Duration, u64)| now.saturating_sub(*last) >= Duration::from_secs(1);
        if self.samples.back().is_none_or(due) {
            self.samples.push_back((now, done));
            if self.samples.len() > 60 {
                self.samples.pop_front();
            }
        }
    }

    /// The rate of the last half minute, and from the slowest and the fastest five seconds of
    /// the last minute how long the rest may take.
    fn status(&self, now: Duration) -> JobStatus {
        let rate = |from: (Duration, u64), to: (Duration, u64)| {
            let seconds = to.0.saturating_sub(from.0).as_secs_f64();
            if seconds > 0.0 { to.1.saturating_sub(from.1) as f64 / seconds } else { 0.0 }
        };
        let latest = (now, self.done);
        let recent = self.samples.iter().rev().nth(30).or(self.samples.front());
        let mean = recent.map_or(0.0, |from| rate(*from, latest));
        let samples: Vec<_> = self.samples.iter().copied().chain([latest]).collect();
        let rates = samples.windows(6).map(|six| rate(six[0], six[5]));
        let (slow, fast) =
            rates.fold((mean, mean), |(low, high), one| (low.min(one), high.max(one)));
        let left = self.total.saturating_sub(self.done) as f64;
        let eta = |rate: f64| (rate > 0.0).then(|| Duration::from_secs_f64((left / rate).min(1e9)));
        JobStatus {
            kind: self.kind,
            member: self.member.clone(),
            done: self.done,
            total: self.total,
            rate: mean as u64,
            eta: eta(fast).zip(eta(slow)),
        }
    }
}

impl Inner {
    pub(super) async fn work_without_end(self: Rc<Self>) {
        if self.read_only {
            return;
        }
        loop {
            self.work.changed.until(|| self.next_job().is_some()).await;
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
        if self.work.stop.get() || self.broken.get() {
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
        self.work.requested.get().map(Job::Compare)
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
        let geometry = self.geometry();
        let total = geometry.member_size();
        let by_bitmap = member.by_bitmap.get();
        // After a crash what was filled is as doubtful as any copy, where the bitmap says so.
        let doubtful = self.resync.get() != Resync::Clean;
        let from = if doubtful { 0 } else { filled };
        let next = |offset: u64, most: u64| {
            let by_bitmap = by_bitmap || offset < filled;
            let end = if offset < filled { filled } else { total };
            let left = end - offset;
            match geometry.owner(role.into(), offset) {
                Some(owner) => {
                    self.stretch(Span::new(owner.offset, owner.len.min(left)), most, by_bitmap)
                }
                // The last chunks of a layout may hold nothing.
                None => (left.min(4096), None),
            }
        };
        let unit = |array: Span, offset: u64| -> Later<'static, Result<(), String>> {
            let (inner, member) = (Rc::clone(self), Rc::clone(member));
            Box::pin(async move { inner.fill_window(&member, offset, array).await })
        };
        let still = || matches!(member.state.get(), MemberState::Recovering(_));
        let checkpoint = |frontier: u64| {
            if still() {
                member.state.set(MemberState::Recovering(frontier));
            }
        };
        let kind = if member.replacement.get() { JobKind::Replace } else { JobKind::Recovery };
        let end =
            self.pass(kind, Some(member.label.clone()), from, total, next, unit, still, checkpoint);
        match end.await {
            End::Done if still() => self.finish_recovery(member).await,
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
        let geometry = self.geometry();
        let total = geometry.size();
        let resync = kind == JobKind::Resync;
        let from = match self.resync.get() {
            Resync::From(from) if resync => from.min(total),
            _ => 0,
        };
        if resync {
            self.doubt.set(None);
        }
        // A bitmap says where copies can differ; a scrub looks everywhere.
        let by_bitmap = resync && self.intent.borrow().is_some();
        self.work.found.replace(Found::default());
        // All copies of a window are in memory at once, and of several windows.
        let fits = (POOL / 4 / geometry.copies()) as u64 & !4095;
        let next = |offset: u64, most: u64| {
            let run = geometry.locate(offset, 0);
            let span = Span::new(offset, run.len.min(total - offset));
            self.stretch(span, most.min(fits), by_bitmap)
        };
        let unit = |array: Span, _| -> Later<'static, Result<(), String>> {
            let inner = Rc::clone(self);
            Box::pin(async move {
                let found = Rc::clone(&inner).compare_window(array, kind).await;
                inner.work.found.borrow_mut().add(found, MOST_PLACES);
                Ok(())
            })
        };
        // Filling a member comes first: it gives back redundancy.
        let still = || {
            let wanted =
                if resync { self.needs_resync() } else { self.work.requested.get() == Some(kind) };
            wanted && !self.is_recovering() && !self.has_takeover()
        };
        let checkpoint = |frontier: u64| {
            if let (true, Resync::From(_)) = (resync, self.resync.get()) {
                self.agree_up_to(frontier);
            }
        };
        let end = self.pass(kind, None, from, total, next, unit, still, checkpoint).await;
        if end == End::Done {
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
                self.work.requested.set(None);
                let found = self.work.found().mismatches;
                self.work.last.replace(Some((kind, self.clock.unix_time(), found)));
                self.note(format!("{kind}: {found} bytes differ"));
            }
        }
    }

    fn has_takeover(&self) -> bool {
        let spare = |member: &Rc<Member>| member.state.get() == State::Spare;
        self.slots.borrow().iter().any(|slot| slot.primary.is_none())
            && self.members.borrow().iter().any(spare)
    }

    fn end_pass(&self) {
        self.work.current.replace(None);
        self.work.timing.set(false);
        self.reopen();
        self.work.tell();
    }

    /// Goes from `from` to `total` in windows. `next` says, for an offset, how many bytes come
    /// next (at most so many) and which part of the array that is, if there is anything to do;
    /// `unit` does it; `still` says whether to go on; `checkpoint` takes the frontier.
    #[allow(clippy::too_many_arguments)]
    async fn pass(
        self: &Rc<Self>,
        kind: JobKind,
        member: Option<String>,
        from: u64,
        total: u64,
        next: impl Fn(u64, u64) -> (u64, Option<Span>),
        unit: impl Fn(Span, u64) -> Later<'static, Result<(), String>>,
        still: impl Fn() -> bool,
        checkpoint: impl Fn(u64),
    ) -> End {
        let now = self.clock.now();
        let samples = VecDeque::from([(now, from)]);
        self.work.current.replace(Some(Current { kind, member, done: from, total, samples }));
        self.work.timing.set(true);
        self.reopen();
        let mut windows: VecDeque<Window> = VecDeque::new();
        let mut cursor = from;
        let mut recorded = now;
        let mut pause: Option<Later<'static, ()>> = None;
        let mut paid = false;
        loop {
            let changes = self.work.changes.get();
            let go_on = !self.work.stop.get() && !self.broken.get() && still();
            let (most, windows_at_once) = self.work.pace(self.clock.now(), now);
            while go_on
                && pause.is_none()
                && cursor < total
                && windows.len() < windows_at_once
                && windows.iter().map(|window| window.len).sum::<u64>() < UNDER_WAY
            {
                let (len, array) = next(cursor, most);
                if array.is_some() && !paid {
                    let wait = self.work.throttle.borrow_mut().wait(self.clock.now(), len);
                    paid = true;
                    if !wait.is_zero() {
                        pause = Some(self.clock.sleep(wait));
                        break;
                    }
                }
                let work = array.map(|array| unit(array, cursor));
                let in_memory = if work.is_some() { len } else { 0 };
                paid &= work.is_none();
                windows.push_back(Window { start: cursor, len: in_memory, work, result: None });
                cursor += len;
            }
            let frontier = windows.front().map_or(cursor, |window| window.start);
            checkpoint(frontier);
            let now = self.clock.now();
            if let Some(current) = &mut *self.work.current.borrow_mut() {
                current.progress(now, frontier);
            }
            if windows.is_empty() && (!go_on || cursor >= total) {
                break;
            }
            if now.saturating_sub(recorded) >= CHECKPOINT && frontier > from {
                recorded = now;
                let inner = Rc::clone(self);
                self.background.spawn(async move { inner.publish().await });
            }
            let mut told = pin!(self.work.changed.until(|| self.work.changes.get() != changes));
            poll_fn(|cx| {
                let mut moved = false;
                if told.as_mut().poll(cx).is_ready() {
                    // Perhaps to stop, or to hurry.
                    pause = None;
                    moved = true;
                }
                for window in &mut windows {
                    moved |= window.poll(cx);
                }
                if let Some(sleep) = &mut pause
                    && sleep.as_mut().poll(cx).is_ready()
                {
                    pause = None;
                    moved = true;
                }
                if moved { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            while let Some(Some(result)) = windows.front().map(|window| window.result.clone()) {
                let window = windows.pop_front().expect("it was there just now");
                if let Err(why) = result {
                    // What is under way is seen through: it holds locks and memory.
                    while !windows.is_empty() {
                        poll_fn(|cx| {
                            windows
                                .retain_mut(|window| !window.poll(cx) && window.result.is_none());
                            if windows.is_empty() { Poll::Ready(()) } else { Poll::Pending }
                        })
                        .await;
                    }
                    return End::Failed(format!("at {}: {why}", window.start));
                }
            }
        }
        if cursor >= total { End::Done } else { End::Interrupted }
    }
}

/// A part of a pass.
struct Window {
    start: u64,
    len: u64,
    work: Option<Later<'static, Result<(), String>>>,
    result: Option<Result<(), String>>,
}

impl Window {
    /// Answers whether it came to its end now.
    fn poll(&mut self, cx: &mut std::task::Context<'_>) -> bool {
        if self.result.is_some() {
            return false;
        }
        let result = match &mut self.work {
            None => Poll::Ready(Ok(())),
            Some(work) => work.as_mut().poll(cx),
        };
        match result {
            Poll::Ready(result) => {
                self.work = None;
                self.result = Some(result);
                true
            }
            Poll::Pending => false,
        }
    }
}
