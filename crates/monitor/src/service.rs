//! The monitor: looks, tells, remembers; again and again, or once.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use braid_control::{EVENTS, EventLog};

use crate::config::Config;
use crate::deliver::{Courier, Outcome};
use crate::disks::Disks;
use crate::event::{Event, Severity};
use crate::message::{Message, line};
use crate::observe::observe;
use crate::receivers::{Receivers, Wake, now, wait_until};
use crate::spares::Mover;
use crate::state::{Store, StoreError};
use crate::watch::{Known, Observation, Policy};

/// Why the monitor does not watch.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// Another one does, with the same state.
    #[error("another monitor runs already, and tells what there is to tell")]
    Taken,
    /// The folder of its state cannot be used.
    #[error("cannot keep what was told in {0}: {1}")]
    State(String, String),
    /// The configuration cannot be carried out here.
    #[error("{0}")]
    Receiver(String),
    /// Volumes cannot be looked for.
    #[error("cannot look for volumes in {0}: {1}")]
    Run(String, io::Error),
    /// No receiver reads the events.
    #[error("standard output: {0}")]
    Output(io::Error),
}

/// Number of messages that a receiver took, or the reason why it took none.
pub type Tested = Result<usize, String>;

/// Parts of a monitor.
pub struct Monitor<'a> {
    /// Receivers, and the events that each gets.
    pub config: &'a Config,
    /// The folder of control sockets.
    pub run: &'a Path,
    /// The folder of its state.
    pub state: &'a Path,
    /// Name of this machine.
    pub host: &'a str,
    /// Events go to standard output, as a line of JSON each.
    pub json: bool,
    /// `braid`, which moves spares between volumes of one group; none if spares are not moved.
    pub sharing: Option<&'a Path>,
}

impl Monitor<'_> {
    /// Watches until `wake` says to stop. `started` is given the sending end of what it listens to.
    ///
    /// # Errors
    /// See [`MonitorError`].
    pub fn watch(&self, started: impl FnOnce(Sender<Wake>)) -> Result<(), MonitorError> {
        let (sender, wake) = channel();
        let mut session = Session::open(self, &sender)?;
        started(sender);
        eprintln!("braid monitor: watches {}", self.run.display());
        let interval = Duration::from_secs(self.config.interval.0);
        let mut failed = false;
        loop {
            let looked = Instant::now();
            match session.look() {
                Err(error @ MonitorError::Run(..)) if !failed => {
                    eprintln!("braid monitor: {error}");
                    failed = true;
                }
                Err(MonitorError::Run(..)) => {}
                other => {
                    other?;
                    failed = false;
                }
            }
            if session.wait(&wake, looked + interval) {
                eprintln!("braid monitor: ends");
                session.end(Duration::from_secs(5));
                return Ok(());
            }
        }
    }

    /// Looks once, tells what there is to tell, and waits until it is told; answers whether nothing is wrong.
    ///
    /// # Errors
    /// See [`MonitorError`].
    pub fn once(&self) -> Result<bool, MonitorError> {
        let (sender, _wake) = channel();
        let mut session = Session::open(self, &sender)?;
        // A single look moves no spare: it ends before a move does.
        session.mover = None;
        // There is no later look that could tell whether it stays so.
        session.policy.settle = 0;
        session.disks.turn(&mut self.see(&Observation::default())?);
        session.disks.wait();
        session.look()?;
        let limit = self.config.limit();
        let attempt = Duration::from_secs(self.config.timeout.0 + self.config.retry.first.0);
        wait_until(Instant::now() + attempt * 2, || session.receivers.is_quiet(limit));
        let open = session.known.open();
        let is_well = open.iter().all(|event| event.severity < Severity::Warning)
            && session.receivers.is_quiet(limit);
        if !self.json {
            open.iter().for_each(|event| eprintln!("braid monitor: now: {}", line(event)));
        }
        session.end(Duration::ZERO);
        Ok(is_well)
    }

    /// Sends a test message for each array to each receiver, once; answers for each of these what became of them.
    ///
    /// # Errors
    /// See [`MonitorError`].
    pub fn test(&self) -> Result<Vec<(String, Tested)>, MonitorError> {
        let seen = self.see(&Observation::default())?;
        let events = Known::test_messages(&seen, now());
        let couriers: Result<Vec<_>, String> = self
            .config
            .targets()
            .into_iter()
            .map(|(name, _, target)| Ok((name, Courier::new(self.config, &target, self.host)?)))
            .collect();
        let couriers = couriers.map_err(MonitorError::Receiver)?;
        // Side by side, so that one that hangs delays none.
        std::thread::scope(|scope| {
            let bring = |courier: Courier| {
                for event in &events {
                    let message = Message::of(event.clone());
                    match courier.deliver(&message, &std::sync::atomic::AtomicBool::new(false)) {
                        Outcome::Delivered => {}
                        Outcome::Later(why) | Outcome::Never(why) => return Err(why),
                    }
                }
                Ok(events.len())
            };
            let started: Vec<_> = couriers
                .into_iter()
                .map(|(name, courier)| (name, scope.spawn(move || bring(courier))))
                .collect();
            let joined = started.into_iter().map(|(name, thread)| {
                let outcome =
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                (name, outcome)
            });
            Ok(joined.collect())
        })
    }

    fn see(&self, before: &Observation) -> Result<Observation, MonitorError> {
        let run = || self.run.display().to_string();
        observe(self.run, before).map_err(|error| MonitorError::Run(run(), error))
    }
}

/// A monitor at work.
struct Session<'a> {
    monitor: &'a Monitor<'a>,
    policy: Policy,
    store: Store,
    known: Known,
    seen: Observation,
    disks: Disks,
    mover: Option<Mover>,
    receivers: Receivers,
    /// None if it cannot be written.
    log: Option<EventLog>,
}

impl<'a> Session<'a> {
    fn open(monitor: &'a Monitor<'a>, wake: &Sender<Wake>) -> Result<Session<'a>, MonitorError> {
        let (store, state, remark) = Store::open(monitor.state).map_err(|error| match error {
            StoreError::Taken => MonitorError::Taken,
            StoreError::Io(error) => {
                MonitorError::State(monitor.state.display().to_string(), error.to_string())
            }
        })?;
        if let Some(remark) = remark {
            eprintln!("braid monitor: {remark}");
        }
        let receivers = Receivers::start(monitor.config, monitor.host, state.waiting, wake)
            .map_err(MonitorError::Receiver)?;
        let log = EventLog::open(&monitor.state.join(EVENTS)).inspect_err(|error| {
            eprintln!("braid monitor: clients of `braid web` are told of no events: {error}");
        });
        Ok(Session {
            monitor,
            log: log.ok(),
            policy: monitor.config.policy(),
            store,
            known: state.known,
            seen: Observation::default(),
            disks: Disks::open(monitor.state, monitor.config.disks.0),
            mover: monitor.sharing.map(Mover::new),
            receivers,
        })
    }

    /// Looks once, and lets everybody know what there is to tell.
    fn look(&mut self) -> Result<(), MonitorError> {
        if let Some(outcome) = self.mover.as_mut().and_then(Mover::ended) {
            if let Err(why) = &outcome {
                eprintln!("braid monitor: a spare was not moved: {why}");
            }
            self.known.move_ended(outcome, now());
        }
        // What is seen while a spare moves may be of before or after.
        let is_idle = self.mover.as_ref().is_some_and(Mover::is_idle);
        self.seen = self.monitor.see(&self.seen)?;
        self.disks.turn(&mut self.seen);
        let told = self.known.step(&self.seen, &self.policy, now());
        if let Some(log) = self.log.as_mut().filter(|_| !told.is_empty())
            && let Err(error) = log.append(&told, now().saturating_mul(1000))
        {
            eprintln!("braid monitor: events are not logged: {error}");
        }
        let step = if is_idle { self.known.next_move(&self.seen, now()) } else { None };
        let events: Vec<Event> =
            told.into_iter().filter(|event| self.monitor.config.is_told(&event.name)).collect();
        self.receivers.tell(&events);
        // A move is known before it is begun.
        self.save();
        if let (Some((step, spare)), Some(mover)) = (step, &mut self.mover) {
            eprintln!("braid monitor: {}", step.describe(&spare));
            mover.start(step, spare);
        }
        for event in &events {
            if self.monitor.json {
                let text = serde_json::to_string(event).map_err(io::Error::from);
                text.and_then(|text| writeln!(io::stdout(), "{text}"))
                    .map_err(MonitorError::Output)?;
            }
            eprintln!("braid monitor: {}", line(event));
        }
        Ok(())
    }

    /// Waits until `until` and notes deliveries. Returns true if the service has to stop.
    fn wait(&mut self, wake: &Channel<Wake>, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match wake.recv_timeout(left) {
                Ok(Wake::Stop) => return true,
                Ok(Wake::Changed) => self.save(),
                Err(RecvTimeoutError::Timeout) => return false,
                // The threads hold the other end as long as this one lives.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left),
            }
        }
    }

    /// A state that cannot be kept costs messages twice after a restart, not the watch.
    fn save(&mut self) {
        let waiting = self.receivers.waiting();
        if let Err(error) = self.store.save(&self.known, waiting) {
            eprintln!("braid monitor: cannot keep what was told: {error}");
        }
    }

    fn end(mut self, grace: Duration) {
        self.mover.iter().for_each(|mover| mover.wait(grace));
        let waiting = self.receivers.end(grace);
        if let Err(error) = self.store.save(&self.known, waiting) {
            eprintln!("braid monitor: cannot keep what was told: {error}");
        }
    }
}
