//! Threads that deliver messages, one for each receiver: while one of them waits, neither the others nor the
//! watching thread do.
//!
//! ```text
//!   tell ──▶ Outbox ──take──▶ deliver ──┬─ delivered ─────────────────▶ done
//!            (shared)    ▲              ├─ never, or the last attempt ─▶ done, counted, logged
//!                        └── backoff ◀──┴─ later
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::config::{Config, Retry};
use crate::deliver::{Courier, Outcome};
use crate::event::{Event, Severity};
use crate::message::Message;
use crate::outbox::{Limit, Outbox};

/// Stacks of threads that hand a message on: TLS is what needs most.
const STACK: usize = 256 << 10;

/// The reason to end the wait for the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The monitor is to end.
    Stop,
    /// Something was delivered, or given up.
    Changed,
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Waits until `is_over`, until `deadline` at the latest.
pub(crate) fn wait_until(deadline: Instant, is_over: impl Fn() -> bool) {
    while !is_over() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All receivers.
pub(crate) struct Receivers {
    all: Vec<Receiver>,
    ending: Arc<AtomicBool>,
}

struct Receiver {
    name: String,
    least: Severity,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// The state that the watching thread and the receiver's thread share.
#[derive(Default)]
struct Shared {
    outbox: Mutex<Outbox>,
    changed: Condvar,
}

impl Shared {
    /// Nothing is done under the lock that can panic half way.
    fn lock(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a thread changes the outbox, but not longer than `limit`.
    fn wait(&self, outbox: MutexGuard<'_, Outbox>, limit: Duration) {
        let waited = self.changed.wait_timeout(outbox, limit);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Receivers {
    /// Starts them with the messages that waited for them before; `wake` is called after each delivery.
    ///
    /// # Errors
    /// A receiver that cannot be reached as it is configured, or a thread that cannot be had.
    pub(crate) fn start(
        config: &Config,
        host: &str,
        mut waiting: BTreeMap<String, Outbox>,
        wake: &Sender<Wake>,
    ) -> Result<Receivers, String> {
        let ending = Arc::new(AtomicBool::new(false));
        let mut all = Vec::new();
        for (name, least, target) in config.targets() {
            let outbox = Mutex::new(waiting.remove(&name).unwrap_or_default());
            let shared = Arc::new(Shared { outbox, changed: Condvar::new() });
            let work = Work {
                name: name.clone(),
                courier: Courier::new(config, &target, host)?,
                limit: config.limit(),
                retry: config.retry.clone(),
                shared: Arc::clone(&shared),
                ending: Arc::clone(&ending),
                wake: wake.clone(),
            };
            let thread = std::thread::Builder::new()
                .name("receiver".to_owned())
                .stack_size(STACK)
                .spawn(move || work.run())
                .map_err(|error| format!("cannot start a thread: {error}"))?;
            all.push(Receiver { name, least, shared, thread });
        }
        Ok(Receivers { all, ending })
    }

    /// Passes the events to all receivers that want them. It never waits for one.
    pub(crate) fn tell(&self, events: &[Event]) {
        for receiver in &self.all {
            let wanted: Vec<&Event> =
                events.iter().filter(|event| event.severity >= receiver.least).collect();
            if !wanted.is_empty() {
                let mut outbox = receiver.shared.lock();
                wanted.into_iter().for_each(|event| outbox.offer(event.clone()));
                receiver.shared.changed.notify_all();
            }
        }
    }

    /// The waiting messages of each receiver.
    pub(crate) fn waiting(&self) -> BTreeMap<String, Outbox> {
        let of = |receiver: &Receiver| (receiver.name.clone(), receiver.shared.lock().clone());
        self.all.iter().map(of).collect()
    }

    /// True if every message that may go by now has gone.
    pub(crate) fn is_quiet(&self, limit: Limit) -> bool {
        self.all.iter().all(|receiver| {
            let outbox = receiver.shared.lock();
            let now = now();
            outbox.under_way().is_none() && outbox.next_at(limit, now).is_none_or(|at| at > now)
        })
    }

    /// Ends them: what is under way is given `grace`, and what is not delivered then waits for the next start.
    pub(crate) fn end(self, grace: Duration) -> BTreeMap<String, Outbox> {
        let is_idle = |receiver: &Receiver| receiver.shared.lock().under_way().is_none();
        wait_until(Instant::now() + grace, || self.all.iter().all(is_idle));
        self.ending.store(true, Ordering::Relaxed);
        self.all.iter().for_each(|receiver| receiver.shared.changed.notify_all());
        // A program that is at it is ended; a server that hangs ends with this process.
        wait_until(Instant::now() + Duration::from_secs(1), || {
            self.all.iter().all(|receiver| receiver.thread.is_finished())
        });
        self.waiting()
    }
}

/// The data of a thread.
struct Work {
    name: String,
    courier: Courier,
    limit: Limit,
    retry: Retry,
    shared: Arc<Shared>,
    ending: Arc<AtomicBool>,
    wake: Sender<Wake>,
}

impl Work {
    fn run(self) {
        while !self.ending.load(Ordering::Relaxed) {
            let mut outbox = self.shared.lock();
            let under_way = outbox.under_way().cloned();
            let Some(message) = under_way.or_else(|| outbox.take(self.limit, now())) else {
                let until = outbox.next_at(self.limit, now());
                let seconds = until.map_or(3600, |until| until.saturating_sub(now()).max(1));
                self.shared.wait(outbox, Duration::from_secs(seconds));
                continue;
            };
            drop(outbox);
            if let Some(is_delivered) = self.bring(&message) {
                self.shared.lock().done(is_delivered);
                // When the monitor ends, the other end is gone.
                let _ = self.wake.send(Wake::Changed);
            }
        }
    }

    /// True if it arrived; `None` if the monitor ends before that is known.
    fn bring(&self, message: &Message) -> Option<bool> {
        for attempt in 1..=self.retry.attempts {
            let outcome = self.courier.deliver(message, &self.ending);
            let (why, is_last) = match outcome {
                Outcome::Delivered => return Some(true),
                Outcome::Never(why) => (why, true),
                Outcome::Later(why) => (why, attempt == self.retry.attempts),
            };
            if self.ending.load(Ordering::Relaxed) {
                return None;
            }
            let Work { name, .. } = self;
            if is_last {
                eprintln!(
                    "braid monitor: {name}: {why}; {} events are not told there (attempt {attempt})",
                    message.count()
                );
                return Some(false);
            }
            let pause = self.retry.first.0.saturating_mul(1 << (attempt - 1).min(20)).min(3_600);
            eprintln!("braid monitor: {name}: {why}; attempt {attempt}, again in {pause} s");
            let deadline = Instant::now() + Duration::from_secs(pause);
            while let Some(left) = deadline.checked_duration_since(Instant::now())
                && !self.ending.load(Ordering::Relaxed)
                && !left.is_zero()
            {
                self.shared.wait(self.shared.lock(), left);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
