//! What goes on beside the requests: the array's own tasks.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use braid_md::Resync;

use super::{Inner, Redundant};

/// How long nothing was written when an array is marked clean: md's `safe_mode_delay`.
const SAFE_MODE_DELAY: Duration = Duration::from_millis(200);

/// How often quiet bits are looked for, if the bitmap does not say: md's default.
const SWEEP: Duration = Duration::from_secs(5);

impl Redundant {
    /// The array's own work, without end: to be polled as long as the array is there.
    pub fn run(&self) -> impl Future<Output = ()> + use<> {
        let inner = Rc::clone(&self.inner);
        let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = vec![
            Box::pin({
                let inner = Rc::clone(&inner);
                async move { inner.background.run().await }
            }),
            Box::pin(Rc::clone(&inner).work_without_end()),
            Box::pin(Rc::clone(&inner).mark_clean_without_end()),
            Box::pin(inner.sweep_without_end()),
        ];
        poll_fn(move |cx| {
            tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
            Poll::Pending
        })
    }

    /// Ends the array's own work and records what there is to record: writes under way are
    /// waited for, everything is flushed, bits are cleared, the superblocks say "clean".
    ///
    /// [`Redundant::run`] must be polled meanwhile.
    pub async fn shut_down(&self) {
        let inner = &self.inner;
        inner.work.stop();
        inner.work.until_idle().await;
        while inner.writers.get() > 0 || !inner.background.is_idle() {
            inner.clock.sleep(Duration::from_millis(1)).await;
        }
        if inner.read_only || inner.broken.get() {
            return;
        }
        if inner.intent.borrow().is_some() {
            // Twice: what is quiet is only known at the second time.
            inner.sweep_bits().await;
            inner.sweep_bits().await;
        }
        // How far a pass got is recorded as well, or it would begin anew.
        let is_unfinished = inner.resync.get() != Resync::Clean || inner.is_recovering();
        if inner.set_active(false) || is_unfinished || !inner.publisher.is_settled() {
            inner.publish().await;
        }
    }
}

impl Inner {
    /// Marks the array clean when nothing was written for a while.
    async fn mark_clean_without_end(self: Rc<Self>) {
        if self.read_only {
            return;
        }
        loop {
            self.activated.until(|| self.active.get()).await;
            self.clock.sleep(SAFE_MODE_DELAY).await;
            let quiet = !self.touched.replace(false) && self.writers.get() == 0;
            if quiet && self.active.get() && self.resync.get() == Resync::Clean {
                self.set_active(false);
                self.publish().await;
            }
        }
    }

    /// Clears bits that nobody needs any more.
    async fn sweep_without_end(self: Rc<Self>) {
        if self.read_only || self.intent.borrow().is_none() {
            return;
        }
        let daemon_sleep =
            self.intent.borrow().as_ref().map(|one| one.bitmap().header.daemon_sleep);
        let pause = daemon_sleep.map_or(SWEEP, |seconds| Duration::from_secs(seconds.into()));
        loop {
            self.clock.sleep(pause.max(Duration::from_secs(1))).await;
            let any = self.intent.borrow().as_ref().is_some_and(|intent| intent.has_set());
            if any && !self.degraded.get() && !self.broken.get() {
                self.sweep_bits().await;
            }
        }
    }
}
