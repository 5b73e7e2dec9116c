//! A volume's life, from its first check to its last flush.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_export_nbd::{Address, Counts, ListenError, Listener};
use braid_probe::{Reason, Refusal};
use serde::{Deserialize, Serialize};

use super::admission::admit;
use super::attachment::{AttachError, Attached, clear_left, leave_traces};
use super::media::{Media, MediaError, Medium};
use super::name_lock::NameLock;
use super::shard::{self, Shard, ShardError};
use super::{Spec, would_attach};
use super::{arrays, memory, orders};
use crate::control::{
    self, DeviceStatus, Event, ExportStatus, MemberStatus, OUTPUT_VERSION, Status, StopAnswer,
};
use crate::process::Process;

/// So long after a signal that was refused, another one means it. Sooner it is the same wish:
/// `timeout` signals the process and then its group.
const INSISTS: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(10);

/// How long a status waits for the shards: a turn of theirs takes milliseconds.
const SHARD_LIMIT: Duration = Duration::from_secs(2);

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

/// Why a volume did not come up, or did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("{0}")]
    Refused(#[from] Box<Refusal>),
    #[error("{0}")]
    Media(#[from] MediaError),
    #[error("{0}")]
    Address(#[from] braid_export_nbd::AddressError),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("{0}")]
    Attach(#[from] AttachError),
    #[error("io_uring is not to be had here ({0}): --io threads does without it")]
    NoUring(io::Error),
    #[error(
        "{name} is up already, or being brought up by another command\n  next: `braid status {name}`"
    )]
    NameTaken { name: String },
    #[error(
        "the volume's memory cannot be locked ({0}), and a block device that is served without that can stall the machine when memory is short"
    )]
    Unlocked(io::Error),
    #[error(
        "{limit} files may be open at once, and the volume has {open} of them open already: clients could not connect"
    )]
    TooFewFiles { limit: u64, open: u64 },
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("{0}")]
    Restart(ShardError),
    #[error("what was written last may be lost: {0}")]
    LastFlush(ShardError),
}

impl RunError {
    /// Whether somebody else has a member.
    fn is_in_use(&self) -> bool {
        match self {
            RunError::Refused(refusal) => matches!(refusal.reason, Reason::InUse { .. }),
            RunError::Media(MediaError::Locked { .. }) => true,
            RunError::Media(MediaError::Open { source, .. }) => {
                source.kind() == io::ErrorKind::ResourceBusy
            }
            _ => false,
        }
    }

    /// Whether a safety rule said no.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            RunError::Refused(_)
                | RunError::NameTaken { .. }
                | RunError::Unlocked(_)
                | RunError::Media(MediaError::Md(_))
                | RunError::Listen(ListenError::NotLoopback { .. })
        )
    }

    /// What to do about it, where the message does not say.
    fn next(&self) -> Option<&'static str> {
        match self {
            RunError::Media(MediaError::Geometry { .. }) => {
                Some("another chunk, or the stack without that member")
            }
            RunError::Media(MediaError::TooMuchMemory { .. } | MediaError::Memory { .. }) => {
                Some("smaller sizes, or files instead of memory")
            }
            RunError::Media(MediaError::Locked { .. }) => Some(
                "`braid status` shows whether a volume has it; `braid down NAME` ends that one",
            ),
            RunError::Listen(ListenError::Failed { .. }) => Some("another address for --nbd"),
            RunError::Unlocked(_) => Some(
                "LimitMEMLOCK=infinity in the service, or `ulimit -l unlimited`; `--attach none` \
                 serves it over NBD; `--attach fuse` attaches it all the same",
            ),
            RunError::TooFewFiles { .. } => {
                Some("`ulimit -n 4096`, or LimitNOFILE=4096 in the service")
            }
            RunError::LastFlush(_) => Some("look at the members: `dmesg` says what failed"),
            _ => None,
        }
    }

    /// The message, with what to do about it.
    pub(crate) fn text(&self) -> String {
        match self.next() {
            Some(next) => format!("{self}\n  next: {next}"),
            None => self.to_string(),
        }
    }

    /// Whether what was typed makes no sense, whatever the members are.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, RunError::Address(_) | RunError::Media(MediaError::UnknownModel { .. }))
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::System { what, source }
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
    /// Held for the life of the process.
    _name: Option<NameLock>,
}

/// What a status is made of.
struct Shared {
    spec: Spec,
    media: Arc<Media>,
    /// All shards; arrays that keep copies live on the first.
    remotes: Vec<braid_uring::Remote>,
    limits: Limits,
    nbd: Vec<Arc<braid_export_nbd::Counters>>,
    uris: Vec<String>,
    attached: Option<super::attachment::Facts>,
    warnings: Vec<String>,
    driver: &'static str,
    /// The shards' threads, and the page faults that they had taken when they began to serve.
    threads: Vec<u32>,
    faults: u64,
    started: Instant,
}

impl Volume {
    fn bring_up(spec: &Spec) -> Result<Volume, RunError> {
        let attaches = would_attach(spec.attach);
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
        let media = Arc::new(open_members(spec, is_dying)?);
        warnings.extend(media.warnings());
        let listeners = spec
            .nbd
            .iter()
            .map(|text| Ok(text.parse::<Address>()?.listen(spec.insecure)?))
            .collect::<Result<Vec<Listener>, RunError>>()?;
        let (send, events) = channel();
        watch_signals(send.clone()).map_err(system("cannot watch for signals"))?;
        let shards = start_shards(spec, &media, &send)?;
        warnings.extend(memory::pool_warning(&shards));
        accept_on(&listeners, &shards).map_err(system("cannot accept connections"))?;
        let limits = shards[0].facts.limits;
        let attached = match attaches {
            false => None,
            true => {
                warnings.extend(memory::hold(spec.attach)?);
                Some(Attached::attach(spec, &shards[0], limits, send.clone())?)
            }
        };
        check_open_files()?;
        // From here on serving takes no page fault, but for what RAM disks hold.
        let threads: Vec<u32> = shards.iter().map(|shard| shard.facts.thread).collect();
        let faults = threads.iter().map(|thread| memory::faults(*thread)).sum();
        let shared = Arc::new(Shared {
            spec: spec.clone(),
            media,
            remotes: shards.iter().map(|shard| shard.facts.remote.clone()).collect(),
            limits,
            nbd: shards.iter().map(|shard| Arc::clone(&shard.facts.counters)).collect(),
            uris: listeners.iter().map(|listener| listener.address().uri()).collect(),
            attached: attached.as_ref().map(|attached| attached.facts().clone()),
            warnings,
            driver: shards[0].facts.driver,
            threads,
            faults,
            started: Instant::now(),
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
        Ok(Volume { shards, listeners, attached, shared, events, control, server, _name: name })
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
                    match self.detach(force) {
                        Ok(()) => return self.end(),
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
                Ok(Event::Stop { force, answer, .. }) => match self.detach(force) {
                    Ok(()) => {
                        let ended = self.end();
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
                    return self.end();
                }
                Ok(Event::ShardEnded) => return self.end(),
                Err(_) => return self.end(),
            }
        }
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
    fn end(&mut self) -> Result<(), RunError> {
        self.listeners.clear();
        let shards = std::mem::take(&mut self.shards);
        shards.iter().for_each(Shard::stop);
        let mut result = Ok(());
        for shard in shards {
            if let Err(error) = shard.join() {
                result = Err(RunError::LastFlush(error));
            }
        }
        if let Some(path) = self.control.take() {
            // The process ends now; a socket that stays is recognised as stale.
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_file(self.shared.spec.traces());
        }
        result
    }
}

impl control::Volume for Shared {
    fn carry_out(&self, order: control::Order, giver: control::Giver) -> control::OrderAnswer {
        orders::carry_out(&self.media, &shard::Orders::new(self.remotes[0].clone(), giver), order)
    }

    fn status(&self) -> Status {
        let members = self.members();
        let silent = shard::silent(&self.remotes, SHARD_LIMIT);
        let remote = Some(&self.remotes[0]).filter(|_| !silent.contains(&0));
        let arrays = arrays::all(&self.media, remote, self.limits.read_only);
        let judged = arrays::judge(&self.spec.name, &arrays);
        let failing = members.iter().find(|member| member.failures > 0);
        let why = failing.map(|member| {
            format!(
                "{} failed {} times, last with: {}",
                member.member,
                member.failures,
                member.last_failure.as_deref().unwrap_or("unknown")
            )
        });
        let lost = members.iter().find_map(|member| Some((member, member.lost.as_ref()?)));
        let next = failing.map(|_| {
            "this level has no redundancy: copy what can still be read, then replace the member"
                .to_owned()
        });
        // What was lost is more than what failed.
        let (why, next) = match lost {
            None => (why, next),
            Some((member, error)) => (
                Some(format!(
                    "a flush of {} failed ({error}): what was written before may not be on it, and \
                     every flush fails until the volume is brought up anew",
                    member.member
                )),
                Some(format!(
                    "check what was written since the last flush that was answered well; then \
                     `braid down {0}` and `braid up {0}`",
                    self.spec.name
                )),
            ),
        };
        // Where there are copies, they say what a failure means.
        let (state, why, next) = match (judged, failing) {
            (Some((state, why, next)), _) => (state, Some(why), next),
            (None, Some(_)) if !self.media.is_redundant() => ("failing".to_owned(), why, next),
            (None, _) => ("online".to_owned(), None, None),
        };
        let gone = arrays::gone(&self.spec.name, &members, &arrays);
        let mut warnings = self.warnings.clone();
        warnings.extend(gone.iter().flat_map(|gone| gone.warnings.iter().cloned()));
        let (state, why, next) = match gone {
            Some(gone) if state == "online" => (gone.state, Some(gone.why), Some(gone.next)),
            _ => (state, why, next),
        };
        let (state, why, next) = match silent.first() {
            None => (state, why, next),
            Some(shard) => (
                "stalled".to_owned(),
                Some(format!(
                    "its shard {shard} has not answered for {} s: it waits for a member, or for \
                     memory",
                    SHARD_LIMIT.as_secs()
                )),
                Some(format!(
                    "look at its members (`dmesg`) and at the machine's memory; `braid down {} \
                     --force` ends its process and gets the device back",
                    self.spec.name
                )),
            ),
        };
        Status {
            output_version: OUTPUT_VERSION,
            name: self.spec.name.clone(),
            state,
            why,
            next,
            stack: arrays::stack_now(&self.spec.stack, &self.media, &arrays).to_string(),
            device: DeviceStatus {
                size_bytes: self.limits.size,
                logical_block_bytes: self.limits.logical_block,
                physical_block_bytes: self.limits.physical_block,
                optimal_io_bytes: self.limits.optimal_io,
                read_only: self.limits.read_only,
                volatile: self.limits.volatile,
            },
            attached: self.attached.as_ref().map(|facts| facts.status()),
            nbd: (!self.uris.is_empty()).then(|| self.nbd_status()),
            members,
            arrays,
            warnings,
            pid: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs(),
            io: self.driver.to_owned(),
            shards: self.nbd.len(),
            page_faults: self.page_faults(),
            cpu_ns: braid_sys::process::cpu_time_ns().unwrap_or(0),
        }
    }
}

impl Shared {
    /// Page faults of the shards since they began to serve.
    fn page_faults(&self) -> u64 {
        let now: u64 = self.threads.iter().map(|thread| memory::faults(*thread)).sum();
        now.saturating_sub(self.faults)
    }

    fn members(&self) -> Vec<MemberStatus> {
        let member = |leaf: &Arc<super::media::Leaf>| {
            let (direct, failures) = match &leaf.medium {
                Medium::File(file) => (Some(file.is_direct()), Some(file.failures())),
                Medium::Ram(_) | Medium::Modelled(_) => (None, None),
            };
            MemberStatus {
                member: leaf.label.clone(),
                size_bytes: leaf.limits().size,
                direct,
                failures: failures.map_or(0, |failures| failures.count()),
                last_failure: failures
                    .and_then(|failures| failures.last())
                    .map(|errno| errno.to_string()),
                gone: leaf.gone(),
                lost: failures.and_then(|failures| failures.lost()).map(|errno| errno.to_string()),
            }
        };
        self.media.leaves().iter().map(member).collect()
    }

    fn nbd_status(&self) -> ExportStatus {
        let mut counts = Counts::default();
        for counters in &self.nbd {
            counts += counters.read();
        }
        let ratio = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        ExportStatus {
            uris: self.uris.clone(),
            connections: counts.connections.saturating_sub(counts.disconnections),
            connections_accepted: counts.connections,
            connections_refused: counts.connections_refused,
            protocol_errors: counts.protocol_errors,
            requests: counts.requests,
            replies: counts.replies,
            errors: counts.errors,
            receives: counts.receives,
            sends: counts.sends,
            requests_per_receive: ratio(counts.requests, counts.receives),
            replies_per_send: ratio(counts.replies, counts.sends),
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
        }
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

fn start_shards(
    spec: &Spec,
    media: &Arc<Media>,
    events: &Sender<Event>,
) -> Result<Vec<Shard>, RunError> {
    let mode = spec.io.executor_mode();
    let start = |index| {
        let events = events.clone();
        let ended = move || {
            // Nobody listens any more when the volume is ending: then it is no news.
            let _ = events.send(Event::ShardEnded);
        };
        Shard::start(index, spec, media, mode, ended)
    };
    // What keeps copies is one thread's, which is why it needs no locks.
    let count = if media.is_redundant() { 1 } else { spec.shard_count() };
    (0..count).map(start).collect::<Result<_, ShardError>>().map_err(|error| match error {
        ShardError::Io(error) if mode == braid_uring::Mode::Uring => RunError::NoUring(error),
        ShardError::Io(source) => RunError::System { what: "cannot start a shard", source },
        error @ ShardError::Restart { .. } => RunError::Restart(error),
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
