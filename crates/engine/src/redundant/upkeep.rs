//! The array's own tasks, beside the requests.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use super::Redundant;
use super::core::Core;

/// Time without writes after which an array is marked clean: md's `safe_mode_delay`.
const SAFE_MODE_DELAY: Duration = Duration::from_millis(200);

/// Interval of sweeps, if the bitmap has none: md's default.
const SWEEP: Duration = Duration::from_secs(5);

impl Redundant {
    /// Runs the array's own tasks, without end: to be polled as long as the array is up.
    pub fn run(&self) -> impl Future<Output = ()> + use<> {
        let core = Rc::clone(&self.inner.core);
        let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = vec![
            Box::pin({
                let core = Rc::clone(&core);
                async move { core.background.run().await }
            }),
            Box::pin(Rc::clone(&self.inner).work_without_end()),
            Box::pin(Rc::clone(&core).mark_clean_without_end()),
            Box::pin(core.sweep_without_end()),
        ];
        poll_fn(move |cx| {
            tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
            Poll::Pending
        })
    }

    /// Ends the array's own tasks and records the final state: waits for writes in flight, flushes, clears
    /// bits, and marks the superblocks "clean".
    ///
    /// [`Redundant::run`] must be polled meanwhile.
    pub async fn shut_down(&self) {
        let core = &self.inner.core;
        core.work.stop();
        core.work.until_idle().await;
        let _others = core.lane.ranges().keep_others_out().await;
        while core.lane.has_writers() || !core.background.is_idle() {
            core.clock.sleep(Duration::from_millis(1)).await;
        }
        if core.read_only || core.gate.is_stopped() {
            return;
        }
        if core.lane.has_bitmap() {
            // Twice: the second sweep finds the quiet chunks. A failure stops the array, or is in the
            // superblocks below.
            let _ = core.sweep_bits().await;
            let _ = core.sweep_bits().await;
        }
        // The progress of a pass is recorded as well, or the pass would start anew.
        let is_unfinished = !core.agreement.is_clean() || !core.roster.recovering().is_empty();
        if core.set_active(false) || is_unfinished || !core.publisher.is_settled() {
            let _ = core.publish().await;
        }
    }
}

impl Core {
    /// Marks the array clean after a time without writes.
    async fn mark_clean_without_end(self: Rc<Self>) {
        if self.read_only {
            return;
        }
        loop {
            self.gate.until_active().await;
            self.clock.sleep(SAFE_MODE_DELAY).await;
            if !self.lane.was_quiet() || !self.gate.is_active() || !self.agreement.is_clean() {
                continue;
            }
            // From here on no other shard writes; one may have begun before.
            let _others = self.lane.ranges().keep_others_out().await;
            if self.lane.was_quiet() && self.gate.is_active() && self.agreement.is_clean() {
                self.set_active(false);
                // A stopped array keeps its state.
                let _ = self.publish().await;
            }
        }
    }

    /// Clears bits that are no longer needed.
    async fn sweep_without_end(self: Rc<Self>) {
        if self.read_only {
            return;
        }
        loop {
            self.work.until(|| self.lane.has_bitmap()).await;
            let daemon_sleep = self.lane.bitmap().map(|bitmap| bitmap.header.daemon_sleep);
            let pause = daemon_sleep.map_or(SWEEP, |seconds| Duration::from_secs(seconds.into()));
            self.clock.sleep(pause.max(Duration::from_secs(1))).await;
            if self.lane.may_sweep() && !self.gate.is_degraded() && !self.gate.is_stopped() {
                // A failure stops the array, or takes a member out, and is noted there.
                let _ = self.sweep_bits().await;
            }
        }
    }
}
