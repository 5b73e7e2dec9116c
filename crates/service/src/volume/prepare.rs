//! Preparations before a volume serves: its name, its members, its shards, descriptors.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use braid_stack::{Node, Stack};
use braid_uring::Remote;

use super::admission::admit;
use super::budget::Budget;
use super::elsewhere::ways_to;
use super::error::{RunError, system};
use super::media::Media;
use super::memory;
use super::name_lock::NameLock;
use super::promises;
use super::restart::ShardError;
use super::shard::Shard;
use super::spec::Spec;
use super::trace::{Lane, Recorder};
use crate::control::Event;

/// Time that a killed process may take to release its members.
const DYING: Duration = Duration::from_secs(10);
/// Descriptors that must be left when all is open: for clients, for questions, for a member more.
const SPARE_FILES: u64 = 24;

/// An image is of a volume: what a part of a stack holds is no content by itself.
pub(super) fn refuse_nested_images(stack: &Stack) -> Result<(), RunError> {
    let is_one = |leaf: &&Stack| matches!(&leaf.node, Node::Ram(ram) if ram.image.is_some());
    match stack.leaves().into_iter().find(is_one) {
        Some(ram) if !stack.members().is_empty() => {
            Err(RunError::NestedImage { ram: ram.to_string() })
        }
        _ => Ok(()),
    }
}

/// Refuses to serve with too few descriptors for a single client.
pub(super) fn check_open_files() -> Result<(), RunError> {
    let limit = braid_sys::process::raise_open_files().map_err(system("cannot raise a limit"))?;
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    match open + SPARE_FILES <= limit {
        true => Ok(()),
        false => Err(RunError::TooFewFiles { limit, open }),
    }
}

/// The members that lie in file systems, and are written.
pub(super) fn written_files(media: &Media) -> Vec<String> {
    let leaves = media.leaves().into_iter().filter(|leaf| leaf.is_writable_image());
    leaves.map(|leaf| leaf.label.clone()).collect()
}

/// Locks the name of a volume that is known by one.
pub(super) fn claim_name(spec: &Spec) -> Result<Option<NameLock>, RunError> {
    let Some(control) = &spec.control else { return Ok(None) };
    match NameLock::claim(&control.with_extension("lock")) {
        Ok(Some(lock)) => Ok(Some(lock)),
        Ok(None) => Err(RunError::NameTaken { name: spec.name.clone() }),
        Err(error) => Err(system("cannot lock the volume's name")(error)),
    }
}

/// Checks the members and opens them. A process that was killed may still have them for a moment:
/// that is waited for.
pub(super) fn open_members(spec: &Spec, is_dying: bool) -> Result<Media, RunError> {
    let deadline = Instant::now() + if is_dying { DYING } else { Duration::ZERO };
    let open = || {
        let mut options = spec.open_options();
        options.most_ram = memory::most_ram(spec.attach);
        if spec.stack.memory() > 0 {
            options.promised = promises::of_others(&spec.name);
        }
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
pub(super) fn start_trace(
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

pub(super) fn start_shards(
    spec: &Spec,
    budget: Budget,
    media: &Arc<Media>,
    lanes: Vec<Option<Lane>>,
    events: &Sender<Event>,
    panicked: &Arc<AtomicBool>,
) -> Result<Vec<Shard>, RunError> {
    let mut first: Option<Remote> = None;
    let start = |(index, lane)| {
        let (events, panicked) = (events.clone(), Arc::clone(panicked));
        let ended = move |by_panic: bool| {
            // A status that is made from here on knows it.
            panicked.fetch_or(by_panic, Ordering::SeqCst);
            // There is no receiver when the volume is ending, and then it is no news.
            let _ = events.send(Event::ShardEnded);
        };
        let shard =
            Shard::start(index, spec, budget, media, lane, first.as_ref().map(ways_to), ended)?;
        first.get_or_insert_with(|| shard.facts.remote.clone());
        Ok(shard)
    };
    let started = lanes.into_iter().enumerate().map(start);
    started.collect::<Result<_, ShardError>>().map_err(|error| match error {
        ShardError::Io(error) if spec.io.executor_mode() == braid_uring::Mode::Uring => {
            RunError::NoUring(error)
        }
        ShardError::Panicked(what) => RunError::Panicked(what),
        ShardError::Io(source) => RunError::System { what: "cannot start a shard", source },
        error @ (ShardError::Restart { .. } | ShardError::Log { .. }) => RunError::Restart(error),
    })
}
