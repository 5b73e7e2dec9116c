//! Passes over an array, or a member, in windows.
//!
//! ```text
//!   |■■■■■■■■■■■■■■■|▒▒|▒▒|▒▒|▒▒|                    |
//!                   frontier    cursor            total
//!                   windows in flight: locked, read, compared or copied
//! ```
//!
//! A pass can be interrupted at any window. It records its frontier, below which everything is done.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_array::coordinates::{Coordinate, Offset, Stretch};

use super::keeping::Inner;
use super::kind::JobKind;
use super::work::Current;
use crate::background::Later;

/// Largest size of the windows in flight, in bytes.
const UNDER_WAY: u64 = 2 << 20;
/// Interval at which the frontier is recorded.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// The next part of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is to be done.
    Skip,
    /// It is a hole, most likely: it costs neither time nor memory.
    Hole,
    /// It is to be read.
    Read,
}

/// The range of a pass, its coordinate, and its work: a recovery goes over members, the others over sync bytes,
/// and each counts its frontier in its coordinate.
pub(super) trait Walk<C: Coordinate> {
    /// Returns the purpose of the pass.
    fn kind(&self) -> JobKind;

    /// Returns the member that the pass fills.
    fn member(&self) -> Option<String>;

    /// Returns the end of the range.
    fn total(&self) -> Offset<C>;

    /// Returns true if the pass should go on.
    fn is_wanted(&self) -> bool;

    /// Returns the number of bytes that come next at `offset` (at most `most` if they are to be read), and what is to
    /// be done with them.
    fn next(&self, offset: Offset<C>, most: u64) -> (u64, Step);

    /// Starts the work of the window `part`, which [`Walk::next`] returned.
    fn work(&self, part: Stretch<C>) -> Later<'static, Result<(), String>>;

    /// Notes that everything below `frontier` is done.
    fn reached(&self, frontier: Offset<C>);
}

/// The end of a pass.
#[derive(PartialEq, Eq)]
pub(super) enum End {
    Done,
    Interrupted,
    Failed(String),
}

/// A running pass.
struct Pass<'a, C> {
    inner: &'a Rc<Inner>,
    walk: &'a dyn Walk<C>,
    started: Duration,
    cursor: Offset<C>,
    windows: VecDeque<Window<C>>,
    /// The pause before the next window, and true once that pause is over.
    pause: Option<Later<'static, ()>>,
    is_paid: bool,
}

impl Inner {
    /// Runs the pass `walk` from `from` to its end.
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

    /// Notes that no pass runs any more. `end`: the last one reached its aim, was interrupted (`false`), or the reason of
    /// its failure.
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

    /// Begins as many windows as the limits allow.
    fn begin_windows(&mut self) {
        let work = &self.inner.core.work;
        let (most, windows_at_once) = work.pace(self.inner.core.clock.now(), self.started);
        while self.pause.is_none()
            && self.cursor < self.walk.total()
            && self.windows.len() < windows_at_once
            && self.windows.iter().map(|window| window.len).sum::<u64>() < UNDER_WAY
        {
            let (len, step) = self.walk.next(self.cursor, most);
            let is_read = step == Step::Read;
            if is_read && !self.is_paid {
                let wait = work.wait(self.inner.core.clock.now(), len);
                self.is_paid = true;
                if !wait.is_zero() {
                    self.pause = Some(self.inner.core.clock.sleep(wait));
                    break;
                }
            }
            let start = self.cursor;
            let work = (step != Step::Skip).then(|| self.walk.work(Stretch::new(start, len)));
            let in_memory = if is_read { len } else { 0 };
            self.is_paid &= !is_read;
            self.windows.push_back(Window { start, len: in_memory, work, result: None });
            self.cursor += len;
        }
    }

    /// Waits until a window or the pause is over, or the work changes.
    async fn wait(&mut self, changes: u64) {
        let work = &self.inner.core.work;
        let mut told = pin!(work.until_changed(changes));
        poll_fn(|cx| {
            let mut moved = false;
            if told.as_mut().poll(cx).is_ready() {
                // The change may ask to stop, or to go faster.
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

    /// Removes the windows that are done, from the first on.
    fn take_done(&mut self) -> Result<(), String> {
        while let Some(Some(result)) = self.windows.front().map(|window| window.result.clone()) {
            let start = self.frontier();
            self.windows.pop_front();
            result.map_err(|why| format!("at {start}: {why}"))?;
        }
        Ok(())
    }

    /// Waits for the windows in flight, which hold locks and memory.
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
    /// Returns true if the window ended in this poll.
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
