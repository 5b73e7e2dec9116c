//! Going over an array, or a member, in windows.
//!
//! ```text
//!   |■■■■■■■■■■■■■■■|▒▒|▒▒|▒▒|▒▒|                    |
//!                   frontier    cursor            total
//!                   windows under way: locked, read, compared or copied
//! ```
//!
//! A pass can be interrupted at any window: what it records is its frontier, below which
//! everything is done.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_array::coordinates::{Coordinate, Offset, Stretch};

use super::background::Later;
use super::keeping::Inner;
use super::kind::JobKind;
use super::work::Current;

/// What may be under way at once, in bytes.
const UNDER_WAY: u64 = 2 << 20;
/// How often the frontier is recorded.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// What a pass goes over, in which bytes, and what it does there: a recovery goes over members, the
/// others over sync bytes, and each has its frontier in its own.
pub(super) trait Walk<C: Coordinate> {
    /// What it is for.
    fn kind(&self) -> JobKind;

    /// The member that it fills.
    fn member(&self) -> Option<String>;

    /// Where it ends.
    fn total(&self) -> Offset<C>;

    /// Whether to go on.
    fn is_wanted(&self) -> bool;

    /// How many bytes come next at `offset`, at most `most` if there is anything to do, and
    /// whether there is.
    fn next(&self, offset: Offset<C>, most: u64) -> (u64, bool);

    /// Does it, for the window `part` of what is gone over, which [`Walk::next`] answered.
    fn work(&self, part: Stretch<C>) -> Later<'static, Result<(), String>>;

    /// Everything below `frontier` is done.
    fn reached(&self, frontier: Offset<C>);
}

/// How a pass ended.
#[derive(PartialEq, Eq)]
pub(super) enum End {
    Done,
    Interrupted,
    Failed(String),
}

/// A pass under way.
struct Pass<'a, C> {
    inner: &'a Rc<Inner>,
    walk: &'a dyn Walk<C>,
    started: Duration,
    cursor: Offset<C>,
    windows: VecDeque<Window<C>>,
    /// The next window waits for its time, or has waited.
    pause: Option<Later<'static, ()>>,
    is_paid: bool,
}

impl Inner {
    /// Goes over `walk` from `from` to its end.
    pub(super) async fn pass<C: Coordinate>(
        self: &Rc<Self>,
        walk: &dyn Walk<C>,
        from: Offset<C>,
    ) -> End {
        let started = self.core.clock.now();
        let (done, total) = (from.get(), walk.total().get());
        let current = Current::new(walk.kind(), walk.member(), done, total, started);
        self.core.work.begin(current, self.core.clock.unix_time());
        self.core.reopen();
        let mut recorded = started;
        let windows = VecDeque::new();
        let mut pass =
            Pass { inner: self, walk, started, cursor: from, windows, pause: None, is_paid: false };
        loop {
            let changes = self.core.work.changes();
            let goes_on =
                !self.core.work.is_held() && !self.core.gate.is_stopped() && walk.is_wanted();
            if goes_on {
                pass.begin_windows();
            }
            let frontier = pass.frontier();
            walk.reached(frontier);
            let now = self.core.clock.now();
            self.core.work.progress(now, frontier.get());
            if pass.windows.is_empty() && (!goes_on || pass.cursor >= walk.total()) {
                break;
            }
            if now.saturating_sub(recorded) >= CHECKPOINT && frontier > from {
                recorded = now;
                let inner = Rc::clone(self);
                self.core.background.spawn(async move { drop(inner.core.publish().await) });
            }
            pass.wait(changes).await;
            if let Err(why) = pass.take_done() {
                pass.see_through().await;
                return End::Failed(why);
            }
        }
        if pass.cursor >= walk.total() { End::Done } else { End::Interrupted }
    }

    /// No pass runs any more: the last one did what it was for, or was interrupted (`false`), or why it could not.
    pub(super) fn end_pass(&self, end: Result<bool, String>) {
        self.core.work.end(end, self.core.clock.unix_time());
        self.core.reopen();
        self.core.work.tell();
    }
}

impl<C: Coordinate> Pass<'_, C> {
    fn frontier(&self) -> Offset<C> {
        self.windows.front().map_or(self.cursor, |window| window.start)
    }

    /// Begins as many windows as there may be.
    fn begin_windows(&mut self) {
        let work = &self.inner.core.work;
        let (most, windows_at_once) = work.pace(self.inner.core.clock.now(), self.started);
        while self.pause.is_none()
            && self.cursor < self.walk.total()
            && self.windows.len() < windows_at_once
            && self.windows.iter().map(|window| window.len).sum::<u64>() < UNDER_WAY
        {
            let (len, is_needed) = self.walk.next(self.cursor, most);
            if is_needed && !self.is_paid {
                let wait = work.wait(self.inner.core.clock.now(), len);
                self.is_paid = true;
                if !wait.is_zero() {
                    self.pause = Some(self.inner.core.clock.sleep(wait));
                    break;
                }
            }
            let start = self.cursor;
            let work = is_needed.then(|| self.walk.work(Stretch::new(start, len)));
            let in_memory = if work.is_some() { len } else { 0 };
            self.is_paid &= work.is_none();
            self.windows.push_back(Window { start, len: in_memory, work, result: None });
            self.cursor += len;
        }
    }

    /// Waits until a window or the pause is over, or somebody changed something.
    async fn wait(&mut self, changes: u64) {
        let work = &self.inner.core.work;
        let mut told = pin!(work.until_changed(changes));
        poll_fn(|cx| {
            let mut moved = false;
            if told.as_mut().poll(cx).is_ready() {
                // Perhaps to stop, or to hurry.
                self.pause = None;
                moved = true;
            }
            for window in &mut self.windows {
                moved |= window.poll(cx);
            }
            if let Some(pause) = &mut self.pause
                && pause.as_mut().poll(cx).is_ready()
            {
                self.pause = None;
                moved = true;
            }
            if moved { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Lets go of the windows that are done, from the first on.
    fn take_done(&mut self) -> Result<(), String> {
        while let Some(Some(result)) = self.windows.front().map(|window| window.result.clone()) {
            let start = self.frontier();
            self.windows.pop_front();
            result.map_err(|why| format!("at {start}: {why}"))?;
        }
        Ok(())
    }

    /// Waits for what is under way: it holds locks and memory.
    async fn see_through(&mut self) {
        poll_fn(|cx| {
            self.windows.retain_mut(|window| !window.poll(cx) && window.result.is_none());
            if self.windows.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A part of a pass.
struct Window<C> {
    start: Offset<C>,
    len: u64,
    work: Option<Later<'static, Result<(), String>>>,
    result: Option<Result<(), String>>,
}

impl<C> Window<C> {
    /// Answers whether it came to its end now.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
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
