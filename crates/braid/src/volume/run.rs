//! A volume's life, from its first check to its last flush.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use braid_export_nbd::{Address, Listener};
use braid_stack::{Node, Stack};
use braid_uring::Remote;
use serde::{Deserialize, Serialize};

use super::admission::admit;
use super::attachment::{AttachError, Attached, clear_left, leave_traces};
use super::caching::Caching;
use super::error::{RunError, system};
use super::image::ImageError;
use super::leaf::{Leaf, Medium};
use super::live::Live;
use super::media::Media;
use super::memory;
use super::name_lock::NameLock;
use super::scrubs::Scrubs;
use super::shard::{self, Shard, ShardError};
use super::shared::Shared;
use super::spec::Spec;
use super::trace::{Lane, Recorder};
use crate::control::{self, Event, StopAnswer};
use braid_control::Process;

/// So long after a signal that was refused, another one means it. Sooner it is the same wish:
/// `timeout` signals the process and then its group.
const INSISTS: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(10);

/// How long a process that was killed may take to let go of its members.
const DYING: Duration = Duration::from_secs(10);
/// Descriptors that must be left when all is open: for clients, for questions, for a member more.
const SPARE_FILES: u64 = 24;

/// What a volume that is ready offers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) name: String,
    /// The block device, if it is attached.
    pub(crate) device: Option<PathBuf>,
    /// Where NBD clients connect.
    pub(crate) uris: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// Brings the volume up, calls `ready`, and serves until it is told to end.
///
/// # Errors
/// Before `ready`: nothing was changed. After: how it ended.
pub(crate) fn run(spec: &Spec, ready: impl FnOnce(&Ready)) -> Result<(), RunError> {
    // A member that may not grow answers with an error, which is the member's matter.
    braid_sys::process::ignore_file_size_signal().map_err(system("cannot ignore a signal"))?;
    let volume = Volume::bring_up(spec)?;
    ready(&volume.ready());
    volume.serve()
}

struct Volume {
    shards: Vec<Shard>,
    listeners: Vec<Listener>,
    attached: Option<Attached>,
    shared: Arc<Shared>,
    events: Receiver<Event>,
    control: Option<PathBuf>,
    server: Option<control::Server>,
    /// Ends when nobody is served any more.
    trace: Option<Recorder>,
    /// Held for the life of the process.
    _name: Option<NameLock>,
}

impl Volume {
    fn bring_up(spec: &Spec) -> Result<Volume, RunError> {
        let attaches = spec.attach.attaches();
        if attaches {
            memory::prepare();
        }
        let name = claim_name(spec)?;
        let mut warnings = spec.notes.clone();
        let mut is_dying = false;
        if name.is_some() {
            let left = clear_left(spec)?;
            warnings.extend(left.told);
            is_dying = left.is_dying;
        }
        refuse_nested_images(&spec.stack)?;
        let media = Arc::new(open_members(spec, is_dying)?);
        warnings.extend(media.warnings());
        if attaches {
            warnings.extend(memory::check_limit(spec.attach, &written_files(&media))?);
        }
        let listeners = spec
            .nbd
            .iter()
            .map(|text| Ok(text.parse::<Address>()?.listen(spec.insecure)?))
            .collect::<Result<Vec<Listener>, RunError>>()?;
        let (send, events) = channel();
        watch_signals(send.clone()).map_err(system("cannot watch for signals"))?;
        // What keeps copies is one thread's, which is why it needs no locks.
        let count = if media.has_state() { 1 } else { spec.shard_count() };
        let (mut trace, lanes) = start_trace(spec, count)?;
        let shards = start_shards(spec, &media, lanes, &send)?;
        warnings.extend(shard::pool_warning(&shards));
        let limits = shards[0].facts.limits;
        let remotes: Vec<Remote> = shards.iter().map(|shard| shard.facts.remote.clone()).collect();
        let live = Live::new(spec, &media, remotes.clone(), limits);
        if let Some(image) = live.image().filter(|image| image.symlink_metadata().is_ok()) {
            // Before anybody is served.
            live.restore_from(image).map_err(RunError::Restore)?;
        }
        accept_on(&listeners, &shards).map_err(system("cannot accept connections"))?;
        let attached = match attaches {
            false => None,
            true => {
                warnings.extend(memory::hold(spec.attach)?);
                Some(Attached::attach(spec, &shards[0], limits, send.clone())?)
            }
        };
        live.set_attached(attached.as_ref().and_then(Attached::device));
        check_open_files()?;
        // From here on serving takes no page fault, but for what RAM disks hold.
        let threads: Vec<u32> = shards.iter().map(|shard| shard.facts.thread).collect();
        let faults = threads.iter().map(|thread| memory::faults(*thread)).sum();
        let shared = Arc::new(Shared {
            spec: spec.clone(),
            media,
            caching: Caching::new(spec, remotes.len()),
            scrubs: Arc::new(Scrubs::open(spec.scrubs.clone())),
            remotes,
            live,
            nbd: shards.iter().map(|shard| Arc::clone(&shard.facts.counters)).collect(),
            uris: listeners.iter().map(|listener| listener.address().uri()).collect(),
            attached: attached.as_ref().map(|attached| attached.facts().clone()),
            warnings,
            driver: shards[0].facts.driver,
            threads,
            faults,
            started: Instant::now(),
            trace: trace.as_ref().map(Recorder::recording),
        });
        let mut server = None;
        if let Some(path) = &spec.control {
            if attached.is_none() {
                leave_traces(spec)?;
            }
            let status = Arc::clone(&shared);
            let served = control::serve(path, status, send);
            server = Some(served.map_err(system("cannot make the control socket"))?);
        }
        let control = spec.control.clone();
        trace.iter_mut().for_each(Recorder::keep);
        Ok(Volume {
            shards,
            listeners,
            attached,
            shared,
            events,
            control,
            server,
            trace,
            _name: name,
        })
    }

    fn ready(&self) -> Ready {
        Ready {
            name: self.shared.spec.name.clone(),
            device: self.attached.as_ref().map(|attached| attached.facts().path.clone()),
            uris: self.shared.uris.clone(),
            warnings: self.shared.warnings.clone(),
        }
    }

    /// Waits for the end.
    fn serve(mut self) -> Result<(), RunError> {
        let mut warned: Option<Instant> = None;
        loop {
            match self.events.recv() {
                Ok(Event::Signal) => {
                    let force = warned.is_some_and(|at| INSISTS.contains(&at.elapsed()));
                    match self.let_go(force) {
                        Ok(lost) => return self.end(lost),
                        Err(error) => {
                            eprintln!(
                                "{error}; once more within 10 s ends the volume all the same"
                            );
                            warned = Some(Instant::now());
                        }
                    }
                }
                // Whoever asked has gone, and may not want it any more.
                Ok(Event::Stop { giver, .. }) if !giver.begin() => {}
                Ok(Event::Stop { force, answer, .. }) => match self.let_go(force) {
                    Ok(lost) => {
                        let ended = self.end(lost);
                        let error = ended.as_ref().err().map(ToString::to_string);
                        let process = Process::this();
                        let holders = Vec::new();
                        let stopped = StopAnswer { stopped: true, process, holders, error };
                        // The answer must be out before the process ends.
                        if answer.send(stopped).is_ok()
                            && let Some(server) = self.server.take()
                        {
                            server.end();
                        }
                        return ended;
                    }
                    Err(error) => {
                        let holders = error.holders();
                        let error = Some(error.to_string());
                        // Whoever asked may have gone; the volume goes on all the same.
                        let process = Process::this();
                        let _ = answer.send(StopAnswer { stopped: false, process, holders, error });
                    }
                },
                Ok(Event::Unmounted) => {
                    if self.attached.is_none() {
                        continue;
                    }
                    eprintln!("the file system below the device was unmounted from outside");
                    self.attached = None;
                    let lost = save_to_the_end(&self.shared.live).err();
                    return self.end(lost);
                }
                Ok(Event::ShardEnded) => return self.end(None),
                Err(_) => return self.end(None),
            }
        }
    }

    /// Takes the block device away and saves what is to be saved; answers what was lost, which is
    /// something by force only.
    fn let_go(&mut self, force: bool) -> Result<Option<ImageError>, StopError> {
        // An order that is being carried out is waited for, and none begins.
        let shared = Arc::clone(&self.shared);
        let _none = shared.live.hold();
        if force {
            self.detach(true)?;
            return Ok(save_to_the_end(&shared.live).err());
        }
        // What cannot be saved goes on being served: so first it is saved.
        if let Some(attached) = &self.attached {
            attached.check_unused()?;
        }
        let name = shared.spec.name.clone();
        let sealed = shared.live.save_image();
        let sealed = sealed.map_err(|source| StopError::NotSaved { name, source })?;
        self.detach(false)?;
        if let Some(sealed) = sealed {
            sealed.keep();
        }
        Ok(None)
    }

    fn detach(&mut self, force: bool) -> Result<(), AttachError> {
        match &mut self.attached {
            None => Ok(()),
            Some(attached) => {
                attached.detach(force)?;
                self.attached = None;
                Ok(())
            }
        }
    }

    /// Takes no more requests, answers those under way, flushes.
    fn end(&mut self, lost: Option<ImageError>) -> Result<(), RunError> {
        self.listeners.clear();
        let shards = std::mem::take(&mut self.shards);
        shards.iter().for_each(Shard::stop);
        let mut result = lost.map_or(Ok(()), |error| Err(RunError::Lost(error)));
        for shard in shards {
            if let Err(error) = shard.join() {
                result = Err(RunError::LastFlush(error));
            }
        }
        drop(self.trace.take());
        if let Some(path) = self.control.take() {
            // The process ends now; a socket that stays is recognised as stale.
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_file(self.shared.spec.traces());
        }
        result
    }
}

/// Saves the content of a volume that ends, if it has an image, whatever comes of it.
fn save_to_the_end(live: &Live) -> Result<(), ImageError> {
    if let Some(sealed) = live.save_image()? {
        sealed.keep();
    }
    Ok(())
}

/// Why a volume goes on though it was told to end.
#[derive(Debug, thiserror::Error)]
enum StopError {
    #[error("{0}")]
    Attached(#[from] AttachError),
    #[error(
        "what it holds would be lost: {source}\n  next: make room; or `braid save {name} FILE` elsewhere; \
         `braid down {name} --force` loses it"
    )]
    NotSaved { name: String, source: ImageError },
}

impl StopError {
    /// Who uses the device, if that is why.
    fn holders(&self) -> Vec<String> {
        match self {
            StopError::Attached(error) => error.holders(),
            StopError::NotSaved { .. } => Vec::new(),
        }
    }
}

/// An image is of a volume: what a part of a stack holds is no content by itself.
fn refuse_nested_images(stack: &Stack) -> Result<(), RunError> {
    let is_one = |leaf: &&Stack| matches!(&leaf.node, Node::Ram(ram) if ram.image.is_some());
    match stack.leaves().into_iter().find(is_one) {
        Some(ram) if !stack.members().is_empty() => {
            Err(RunError::NestedImage { ram: ram.to_string() })
        }
        _ => Ok(()),
    }
}

/// Refuses to serve with so few descriptors that nobody could connect.
fn check_open_files() -> Result<(), RunError> {
    let limit = braid_sys::process::raise_open_files().map_err(system("cannot raise a limit"))?;
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    match open + SPARE_FILES <= limit {
        true => Ok(()),
        false => Err(RunError::TooFewFiles { limit, open }),
    }
}

/// The members that lie in file systems, and are written.
fn written_files(media: &Media) -> Vec<String> {
    let is_one = |leaf: &Arc<Leaf>| match &leaf.medium {
        Medium::File(file) => !file.is_block_device() && !file.limits().read_only,
        Medium::Ram(_) | Medium::Modelled(_) => false,
    };
    media.leaves().into_iter().filter(is_one).map(|leaf| leaf.label.clone()).collect()
}

/// Locks the name of a volume that is known by one.
fn claim_name(spec: &Spec) -> Result<Option<NameLock>, RunError> {
    let Some(control) = &spec.control else { return Ok(None) };
    match NameLock::claim(&control.with_extension("lock")) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(RunError::NameTaken { name: spec.name.clone() }),
        Err(error) => Err(system("cannot lock the volume's name")(error)),
    }
}

/// Checks the members and opens them. A process that was killed may still have them for a moment:
/// that is waited for.
fn open_members(spec: &Spec, is_dying: bool) -> Result<Media, RunError> {
    let deadline = Instant::now() + if is_dying { DYING } else { Duration::ZERO };
    let open = || {
        let mut options = spec.open_options();
        options.most_ram = memory::most_ram(spec.attach);
        options.unusable = admit(&spec.stack, &spec.accepted, &options)?;
        Ok::<Media, RunError>(Media::open(&spec.stack, &options)?)
    };
    loop {
        match open() {
            Err(error) if error.is_in_use() && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            opened => return opened,
        }
    }
}

/// Begins the trace that is asked for; answers what each of `shards` shards is given.
fn start_trace(
    spec: &Spec,
    shards: usize,
) -> Result<(Option<Recorder>, Vec<Option<Lane>>), RunError> {
    let Some(to) = &spec.trace else { return Ok((None, (0..shards).map(|_| None).collect())) };
    let path = to.path.clone();
    match Recorder::create(to, &spec.name, shards) {
        Ok((recorder, lanes)) => Ok((Some(recorder), lanes.into_iter().map(Some).collect())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(RunError::TraceExists { path })
        }
        Err(source) => Err(RunError::Trace { path, source }),
    }
}

fn start_shards(
    spec: &Spec,
    media: &Arc<Media>,
    lanes: Vec<Option<Lane>>,
    events: &Sender<Event>,
) -> Result<Vec<Shard>, RunError> {
    let mode = spec.io.executor_mode();
    let start = |(index, lane)| {
        let events = events.clone();
        let ended = move || {
            // Nobody listens any more when the volume is ending: then it is no news.
            let _ = events.send(Event::ShardEnded);
        };
        Shard::start(index, spec, media, mode, lane, ended)
    };
    let started = lanes.into_iter().enumerate().map(start);
    started.collect::<Result<_, ShardError>>().map_err(|error| match error {
        ShardError::Io(error) if mode == braid_uring::Mode::Uring => RunError::NoUring(error),
        ShardError::Io(source) => RunError::System { what: "cannot start a shard", source },
        error @ (ShardError::Restart { .. } | ShardError::Log { .. }) => RunError::Restart(error),
    })
}

fn accept_on(listeners: &[Listener], shards: &[Shard]) -> io::Result<()> {
    for listener in listeners {
        let fd = listener.try_clone_fd()?;
        let remotes = shards.iter().map(|shard| shard.facts.remote.clone()).collect();
        shards[0].call(move |handle, local| shard::accept(handle, local, fd, remotes));
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
