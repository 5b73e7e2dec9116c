//! A volume's life, from its first check to its last flush.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use braid_uring::Remote;

use super::arrays;
use super::budget::Budget;
use super::caching::Caching;
use super::error::{RunError, StopError, system};
use super::exports::{Exports, Start, clear_left};
use super::health::Health;
use super::held::Held;
use super::image::ImageError;
use super::keeper::Keeper;
use super::left::leave_traces;
use super::live::Live;
use super::media::Media;
use super::memory::{self, NotHeld};
use super::name_lock::NameLock;
use super::new_root;
use super::notify::{Notify, feed_watchdog};
use super::own::Own;
use super::prepare::{
    check_open_files, claim_name, open_members, refuse_nested_images, start_shards, start_trace,
    written_files,
};
use super::ready::Ready;
use super::recorded::Recorded;
use super::restart::ShardError;
use super::scrubs::Scrubs;
use super::shard::{self, Shard};
use super::shared::Shared;
use super::spec::Spec;
use super::trace::Recorder;
use super::warnings::{Warning, Warnings};
use super::watcher::{self, Watcher};
use crate::control::{self, Event, StopAnswer, StopSender};
use crate::failure::Failure;
use braid_control::Process;

/// So long after a signal that was refused, another one means it. Sooner it is the same wish:
/// `timeout` signals the process and then its group.
const INSISTS: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(10);

/// Brings the volume up, calls `ready`, and serves until it is told to end; `manager` hears of all that. A `ready` that
/// fails ends the volume.
///
/// # Errors
/// Before `ready`: nothing was changed. After: how it ended.
pub fn run(
    spec: &Spec,
    manager: Option<Notify>,
    ready: impl FnOnce(&Ready) -> Result<(), Failure>,
) -> Result<(), RunError> {
    // A member that may not grow answers with an error, which is the member's matter.
    braid_sys::process::ignore_file_size_signal().map_err(system("cannot ignore a signal"))?;
    let mut volume = Volume::bring_up(spec)?;
    if let Err(failure) = ready(&volume.ready()) {
        let lost = volume.let_go(true).unwrap_or_else(|error| {
            eprintln!("{}", error.text());
            None
        });
        volume.end(lost)?;
        return Err(RunError::NotReady(failure));
    }
    if let Some(manager) = manager.map(Arc::new) {
        manager.say(&format!("READY=1\nSTATUS={}", spec.stack));
        feed_watchdog(&manager, &volume.shared.remotes).map_err(system("cannot start a thread"))?;
        volume.manager = Some(manager);
    }
    volume.serve()
}

struct Volume {
    shards: Vec<Shard>,
    shared: Arc<Shared>,
    events: Receiver<Event>,
    control: Option<PathBuf>,
    server: Option<control::Server>,
    /// Ends when no client is served any more.
    trace: Option<Recorder>,
    /// Messages of the start.
    told: Vec<String>,
    manager: Option<Arc<Notify>>,
    /// Held for the life of the process.
    _name: Option<NameLock>,
}

/// Returns `shards` if the exports `started`; if one of the shards panicked, that is the error.
fn or_panic(
    started: Result<(), RunError>,
    shards: Vec<Shard>,
    panicked: &AtomicBool,
) -> Result<Vec<Shard>, RunError> {
    let Err(error) = started else { return Ok(shards) };
    if !panicked.load(Ordering::SeqCst) {
        return Err(error);
    }
    shards.iter().for_each(Shard::stop);
    shards.iter().for_each(Shard::end);
    let panic = shards.into_iter().find_map(|shard| match shard.join() {
        Err(ShardError::Panicked(what)) => Some(RunError::Panicked(what)),
        _ => None,
    });
    Err(panic.unwrap_or(error))
}

/// Prepares the process for the memory that it will hold. Returns the sizes of that.
fn prepare_memory(spec: &Spec) -> Result<Budget, RunError> {
    let budget = Budget::of(spec).map_err(NotHeld::TooLittle)?;
    memory::prepare(spec.attach, &spec.stack);
    Ok(budget)
}

/// Moves into the root file system that init will have, for a volume that holds it.
fn follow_root(spec: &Spec) -> Result<(), RunError> {
    match spec.root_storage {
        true => new_root::follow().map_err(system("cannot follow init into its root file system")),
        false => Ok(()),
    }
}

/// The name, the members and the addresses of a volume, all held, and the memory that it may take.
struct Opened {
    name: Option<NameLock>,
    own: Own,
    budget: Budget,
    media: Arc<Media>,
    exports: Arc<Exports>,
    warnings: Vec<Warning>,
    /// Actions of the start, and faults of the machine: reported once.
    told: Vec<String>,
}

impl Opened {
    fn of(spec: &Spec) -> Result<Opened, RunError> {
        let budget = prepare_memory(spec)?;
        let name = claim_name(spec)?;
        let (mut told, mut is_dying) = (Vec::new(), false);
        if name.is_some() {
            let left = clear_left(spec)?;
            told.extend(left.told);
            is_dying = left.is_dying;
        }
        refuse_nested_images(&spec.stack)?;
        let own = Own::new(spec);
        own.check_start(spec)?;
        let media = Arc::new(open_members(spec, is_dying)?);
        let mut warnings: Vec<Warning> = spec.notes.iter().cloned().map(Warning::lasting).collect();
        warnings.extend(media.warnings());
        if spec.attach.attaches() {
            told.extend(memory::check_limit(spec.attach, &written_files(&media))?);
        }
        let exports = Arc::new(Exports::prepare(spec, &mut warnings)?);
        Ok(Opened { name, own, budget, media, exports, warnings, told })
    }
}

impl Volume {
    fn bring_up(spec: &Spec) -> Result<Volume, RunError> {
        let attaches = spec.attach.attaches();
        let Opened { name, own, budget, media, exports, mut warnings, mut told } =
            Opened::of(spec)?;
        let (send, events) = channel();
        watch_signals(send.clone()).map_err(system("cannot watch for signals"))?;
        let count = media.shard_count(spec);
        let (mut trace, lanes) = start_trace(spec, count)?;
        let panicked = Arc::default();
        let shards = start_shards(spec, budget, &media, lanes, &send, &panicked)?;
        told.extend(shard::pool_warning(&shards));
        let mut limits = shards[0].facts.limits;
        let remotes: Vec<Remote> = shards.iter().map(|shard| shard.facts.remote.clone()).collect();
        let health =
            Health::start(&media, remotes[0].clone()).map_err(system("cannot watch members"))?;
        let live = Live::new(spec, &media, &exports, remotes.clone(), limits);
        // Before a client is served.
        live.restore_image_if_any().map_err(RunError::Restore)?;
        if attaches {
            leave_traces(spec).map_err(system("cannot note the process"))?;
        }
        let arrays = arrays::all(&media, Some(&remotes[0]), limits.read_only);
        let budget = budget.for_arrays(&arrays);
        // What is in memory is read-only at the exports alone.
        limits.read_only |= spec.read_only;
        let on = Start { spec, shards: &shards, budget, limits, events: &send };
        let started = exports.start(&on, &mut told, &mut warnings);
        let shards = or_panic(started, shards, &panicked)?;
        follow_root(spec)?;
        check_open_files()?;
        // From here on serving takes no page fault, but for what RAM disks hold.
        let threads: Vec<u32> = shards.iter().map(|shard| shard.facts.thread).collect();
        let faults = threads.iter().map(|thread| memory::faults(*thread)).sum();
        told.extend(warnings.iter().map(|one| one.text.clone()));
        let shared = Arc::new(Shared {
            watcher: Watcher::new(spec, &media, remotes[0].clone()),
            keeper: Keeper::start(spec, &media, &remotes[0])
                .map_err(system("cannot keep superblocks"))?,
            spec: spec.clone(),
            budget,
            own,
            media,
            caching: Caching::new(spec, &remotes),
            scrubs: Arc::new(Scrubs::open(spec.scrubs.clone())),
            remotes,
            live,
            exports,
            warnings: Warnings::new(warnings, &arrays),
            panicked,
            driver: shards[0].facts.driver,
            threads,
            faults,
            started: Instant::now(),
            trace: trace.as_ref().map(Recorder::recording),
            health,
            held: Held::default(),
            recorded: Recorded::new(spec),
        });
        watch_members(&shared).map_err(system("cannot watch for members"))?;
        let server = serve_control(spec, &shared, attaches, send)?;
        let control = spec.control.clone();
        trace.iter_mut().for_each(Recorder::keep);
        Ok(Volume {
            shards,
            shared,
            events,
            control,
            server,
            trace,
            told,
            manager: None,
            _name: name,
        })
    }

    fn ready(&self) -> Ready {
        let exports = self.shared.exports.statuses();
        Ready { name: self.shared.spec.name.clone(), exports, warnings: self.told.clone() }
    }

    /// Serves until the end, and tells those that asked for it how that went.
    fn serve(mut self) -> Result<(), RunError> {
        let mut asked = Vec::new();
        let lost = self.wait_for_end(&mut asked);
        if let Some(server) = &self.server {
            server.is_ending();
        }
        let ended = self.end(lost);
        // Those that asked meanwhile have their wish, too.
        asked.extend(self.events.try_iter().filter_map(|event| match event {
            Event::Stop { answer, .. } => Some(answer),
            _ => None,
        }));
        let failure = ended.as_ref().err().map(RunError::failure);
        let (error, next) =
            failure.map_or((None, None), |failure| (Some(failure.why), failure.next));
        let (process, holders) = (Process::this(), Vec::new());
        let stopped = StopAnswer { stopped: true, process, holders, error, next };
        // A client that is gone already needs no answer.
        asked.into_iter().for_each(|answer| drop(answer.send(stopped.clone())));
        // One that asks only now is answered by the server itself, which sees that nothing receives its request.
        drop(self.events);
        // The answers must be out before the process ends.
        if let Some(server) = self.server.take() {
            server.end();
        }
        ended
    }

    /// Waits for the end of the volume, and lets go of its resources. Returns an error if an image was lost. The
    /// clients that wait for the outcome are added to `asked`.
    fn wait_for_end(&mut self, asked: &mut Vec<StopSender>) -> Option<ImageError> {
        let mut warned: Option<Instant> = None;
        loop {
            match self.events.recv() {
                Ok(Event::Signal) => {
                    let force = warned.is_some_and(|at| INSISTS.contains(&at.elapsed()));
                    match self.let_go(force) {
                        Ok(lost) => return lost,
                        Err(error) => {
                            eprintln!(
                                "{}; once more within 10 s ends the volume anyway",
                                error.text()
                            );
                            warned = Some(Instant::now());
                        }
                    }
                }
                // The client has gone, and may not want it any more.
                Ok(Event::Stop { giver, .. }) if !giver.begin() => {}
                Ok(Event::Stop { force, answer, .. }) => match self.let_go(force) {
                    Ok(lost) => {
                        asked.push(answer);
                        return lost;
                    }
                    Err(error) => {
                        let (holders, next) = (error.holders(), error.next());
                        let error = Some(error.to_string());
                        // The client may have gone; the volume continues in any case.
                        let process = Process::this();
                        let stopped = false;
                        let _ = answer.send(StopAnswer { stopped, process, holders, error, next });
                    }
                },
                Ok(Event::Unmounted) => {
                    // A shard that panicked lets go of it, too: that is the next event.
                    if self.shared.panicked.load(Ordering::SeqCst) {
                        continue;
                    }
                    eprintln!(
                        "the block device, or the file system below it, was taken away from outside"
                    );
                    // It is never refused by force.
                    let _ = self.shared.exports.take_down(true);
                    return save_to_the_end(&self.shared.live).err();
                }
                Ok(Event::ShardEnded) => {
                    // Programs that use the device get errors instead of waiting for good.
                    return self.let_go(true).unwrap_or_else(|error| {
                        eprintln!("{}", error.text());
                        None
                    });
                }
                Err(_) => return None,
            }
        }
    }

    /// Takes the exports down and saves what is to be saved; answers what was lost, which is
    /// something by force only.
    fn let_go(&mut self, force: bool) -> Result<Option<ImageError>, StopError> {
        // An order that is being carried out is waited for, and none begins.
        let shared = Arc::clone(&self.shared);
        let _none = shared.live.hold();
        if force {
            shared.exports.take_down(true)?;
            return Ok(save_to_the_end(&shared.live).err());
        }
        // What cannot be saved goes on being served: so first it is saved.
        shared.exports.check_unused()?;
        let name = shared.spec.name.clone();
        let sealed = shared.live.save_image();
        let sealed = sealed.map_err(|source| StopError::NotSaved { name, source })?;
        shared.exports.take_down(false)?;
        if let Some(sealed) = sealed {
            sealed.keep();
        }
        Ok(None)
    }

    /// Takes no more requests, answers those under way, flushes.
    fn end(&mut self, lost: Option<ImageError>) -> Result<(), RunError> {
        if let Some(manager) = &self.manager {
            // From here on its watchdog is not fed.
            manager.say("STOPPING=1");
        }
        let shards = std::mem::take(&mut self.shards);
        shards.iter().for_each(Shard::stop);
        let mut result = lost.map_or(Ok(()), |error| Err(RunError::Lost(error)));
        // The first last: others may have it serve.
        for shard in shards.into_iter().rev() {
            shard.end();
            match (shard.join(), &result) {
                // Whatever else is lost is lost by that.
                (Ok(()), _) | (Err(_), Err(RunError::Panicked(_))) => {}
                (Err(ShardError::Panicked(what)), Ok(())) => result = Err(RunError::Panicked(what)),
                (Err(ShardError::Panicked(what)), Err(lost)) => {
                    result = Err(RunError::Panicked(format!("{what}; {lost}")));
                }
                (Err(error), _) => result = Err(RunError::LastFlush(error)),
            }
        }
        if result.is_ok() {
            self.shared.keeper.end();
        }
        // Threads keep the members open until the process has ended, which closes none of them.
        self.shared.media.leaves().iter().for_each(|leaf| leaf.release());
        drop(self.trace.take());
        if let Some(path) = self.control.take() {
            // The process ends now; a socket that stays is recognised as stale.
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_file(self.shared.spec.traces());
        }
        result
    }
}

/// Serves the control socket, if the volume has one.
fn serve_control(
    spec: &Spec,
    shared: &Arc<Shared>,
    attaches: bool,
    events: Sender<Event>,
) -> Result<Option<control::Server>, RunError> {
    let Some(path) = &spec.control else { return Ok(None) };
    if !attaches {
        leave_traces(spec).map_err(system("cannot note the process"))?;
    }
    let volume: Arc<Shared> = Arc::clone(shared);
    let served = control::serve(path, volume, events);
    served.map(Some).map_err(system("cannot make the control socket"))
}

/// Looks for members that went away, for as long as there is a volume.
fn watch_members(shared: &Arc<Shared>) -> io::Result<()> {
    if shared.watcher.policy().is_none() {
        return Ok(());
    }
    let shared = Arc::downgrade(shared);
    let watch = move || {
        while let Some(shared) = shared.upgrade() {
            shared.watcher.look(&shared.media, None);
            drop(shared);
            std::thread::sleep(watcher::PERIOD);
        }
    };
    std::thread::Builder::new().name("returning".to_owned()).spawn(watch).map(drop)
}

/// Saves the content of a volume that ends, if it has an image, whatever comes of it.
fn save_to_the_end(live: &Live) -> Result<(), ImageError> {
    if let Some(sealed) = live.save_image()? {
        sealed.keep();
    }
    Ok(())
}

fn watch_signals(events: Sender<Event>) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if events.send(Event::Signal).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
