//! A leaf of a stack, opened: a file, a block device, memory, a model.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_device::{
    Buses, Counted, Deadline, File, Histogram, Metered, Modelled, Ram, RamError, RamOptions, Tally,
};
use braid_engine::Dev;
use braid_mem::{HUGE_PAGE, Pages, Pool};
use braid_model::Timetable;
use braid_probe::Place;
use braid_stack::{Node, Stack};
use braid_uring::{ExecutorClock, Handle};

use super::admission::locked_by;
use super::options::OpenOptions;
use super::promises;
use crate::control::{ClientIo, ErrorCode, Latencies, MemberIo};
use crate::failure::Failure;
use crate::profile::{self, ModelError};

/// Why a leaf is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LeafError {
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is in use: another program has it locked{by}, and did not let go of it")]
    Locked { path: PathBuf, by: String },
    #[error("no memory for {what}: {source}")]
    Memory { what: String, source: RamError },
    #[error("the memory of {what} cannot be locked: {source}")]
    Lock { what: String, source: RamError },
    #[error(
        "no memory for {what}: the machine's pool has fewer than {pages} huge pages of 2 MiB that are \
         free ({source})"
    )]
    HugePages { what: String, pages: u64, source: RamError },
    #[error("{error}")]
    Model {
        #[from]
        error: ModelError,
    },
}

impl LeafError {
    /// The failure that says so.
    pub(super) fn failure(&self) -> Failure {
        let no_memory = Failure::failed(self).code(ErrorCode::NoMemory);
        match self {
            LeafError::Open { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
                Failure::failed(self).code(ErrorCode::InUse)
            }
            LeafError::Open { .. } => Failure::failed(self),
            LeafError::Locked { .. } => Failure::failed(self)
                .next(
                    "`braid status` shows whether a volume has it; `braid down NAME` ends that one",
                )
                .code(ErrorCode::InUse),
            LeafError::Memory { .. } => no_memory.next("smaller sizes, or files instead of memory"),
            LeafError::Lock { .. } => no_memory.next(
                "`ulimit -l unlimited`, or LimitMEMLOCK=infinity in the service; or without `lock`",
            ),
            LeafError::HugePages { .. } => no_memory.next(
                "`sysctl vm.nr_hugepages=COUNT` makes the pool larger; without `huge` the kernel \
                 gives huge pages where it has them",
            ),
            LeafError::Model { error } => Failure::usage(self).next(error.next()),
        }
    }
}

/// What becomes of a member that nobody will find again.
const GOES: &str = "what it holds goes when the volume goes down";

/// One leaf.
pub struct Leaf {
    /// A number that no other leaf of this process has.
    pub(super) id: u64,
    /// Its path, if it is a whole file or device; else as the stack spells it.
    pub label: String,
    pub medium: Medium,
    /// What it was asked for.
    pub(super) tally: Tally,
    /// How long a request of it may take; none for ever.
    pub(super) deadline: Option<Duration>,
}

#[derive(Clone)]
pub enum Medium {
    Ram(Ram),
    File(File),
    Modelled(Modelled),
}

impl Leaf {
    pub(super) fn new(stack: &Stack, medium: Medium, deadline: Option<Duration>) -> Leaf {
        let label = match &stack.node {
            Node::File(file) => file.name().display().to_string(),
            _ => stack.to_string(),
        };
        Leaf::called(label, medium, deadline)
    }

    pub(super) fn called(label: String, medium: Medium, deadline: Option<Duration>) -> Leaf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Leaf { id, label, medium, tally: Tally::default(), deadline }
    }

    /// Its path, if it is a whole file or device, by which an operator names it.
    pub(super) fn path(&self) -> Option<String> {
        match &self.medium {
            Medium::File(file) => {
                let is_it =
                    Path::new(&self.label) == file.path() || self.label.starts_with("part(");
                is_it.then(|| self.label.clone())
            }
            Medium::Ram(_) | Medium::Modelled(_) => None,
        }
    }

    /// Its memory, if it is a RAM disk.
    pub(super) fn ram(&self) -> Option<&Ram> {
        match &self.medium {
            Medium::Ram(ram) => Some(ram),
            Medium::File(_) | Medium::Modelled(_) => None,
        }
    }

    /// Whether `path` leads to it.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let Medium::File(file) = &self.medium else { return false };
        let leads =
            || Some(braid_probe::leads_to(path, file.identity().ok()?.0).ok()? == Some(true));
        file.path() == path || leads() == Some(true)
    }

    /// What it was asked for, in the words of a status.
    pub(super) fn io(&self) -> MemberIo {
        let Counted {
            read_bytes,
            written_bytes,
            in_flight,
            overdue,
            timeouts,
            reads,
            writes,
            flushes,
        } = self.tally.read();
        MemberIo {
            read_bytes,
            written_bytes,
            in_flight,
            overdue,
            timeouts,
            reads: latencies(&reads),
            writes: latencies(&writes),
            flushes: latencies(&flushes),
        }
    }

    /// Why its block device is not there any more.
    pub(super) fn vanished(&self) -> Option<&'static str> {
        match &self.medium {
            Medium::File(file) => file.vanished(),
            Medium::Ram(_) | Medium::Modelled(_) => None,
        }
    }

    /// Why nobody will find its file again once it is closed, or its device is not there any more.
    pub fn gone(&self) -> Option<String> {
        let Medium::File(file) = &self.medium else { return None };
        if let Some(why) = file.vanished() {
            return Some(why.to_owned());
        }
        // What cannot be found out is not said.
        let (identity, links) = file.identity().ok()?;
        if links == 0 {
            return Some(format!("its file was deleted while the volume is up: {GOES}"));
        }
        let there = braid_probe::leads_to(file.path(), identity).ok()?;
        (there == Some(false))
            .then(|| format!("another file, or none, lies at its path now: {GOES}"))
    }

    pub fn limits(&self) -> Limits {
        match &self.medium {
            Medium::Ram(ram) => braid_engine::Device::limits(&ram.device()),
            Medium::File(file) => file.limits(),
            Medium::Modelled(modelled) => modelled.limits(),
        }
    }

    /// A device on it for the shard of `handle`.
    pub fn device(&self, handle: &Handle, pool: &Pool) -> io::Result<Dev> {
        let (tally, tasks) = (&self.tally, Rc::new(ExecutorClock::new(handle)));
        Ok(match &self.medium {
            Medium::Ram(ram) => Dev::new(Metered::new(ram.device(), tally, tasks, None)),
            Medium::File(file) => {
                let failures = Arc::clone(file.failures());
                let deadline = self.deadline.map(|limit| Deadline { limit, failures });
                Dev::new(Metered::new(file.device(handle, pool)?, tally, tasks, deadline))
            }
            Medium::Modelled(modelled) => {
                Dev::new(Metered::new(modelled.device(handle), tally, tasks, None))
            }
        })
    }
}

/// What an export was asked for, in the words of a status.
pub(super) fn client_io(tally: &Tally) -> ClientIo {
    let Counted { in_flight, reads, writes, flushes, .. } = tally.read();
    let (reads, writes) = (latencies(&reads), latencies(&writes));
    ClientIo { in_flight, reads, writes, flushes: latencies(&flushes) }
}

fn latencies(times: &Histogram) -> Latencies {
    let used = times.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    Latencies {
        count: times.count(),
        sum_us: times.sum_ns / 1000,
        buckets: times.buckets[..used].to_vec(),
    }
}

/// How long a member that is locked is waited for: a process that was killed lets go of its members
/// as one of the last things that it does.
const DYING: Duration = Duration::from_secs(2);
/// How often it is tried.
const RETRY: Duration = Duration::from_millis(20);

/// Opens `length` bytes from `offset` on of the member that is called `path`; the one place where that is
/// done.
///
/// # Errors
/// [`LeafError::Locked`] only for one that stays locked.
pub(super) fn open_file(
    path: &Path,
    options: &OpenOptions,
    offset: u64,
    length: Option<u64>,
) -> Result<File, LeafError> {
    let deadline = Instant::now() + DYING;
    let cannot = |source| LeafError::Open { path: path.to_owned(), source };
    let place = Place::of(path).map_err(|error| cannot(io::Error::other(error.to_string())))?;
    let start = place.start.saturating_add(offset);
    let length = length.or(place.length.map(|length| length.saturating_sub(offset)));
    loop {
        match File::open(&place.path, options.access(), start, length) {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline =>
            {
                std::thread::sleep(RETRY);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(LeafError::Locked { path: path.to_owned(), by: locked_by(path) });
            }
            Err(source) => return Err(cannot(source)),
            Ok(file) => return Ok(file),
        }
    }
}

/// Makes a RAM disk, which can be resized to `most` bytes.
fn open_ram(ram: &braid_stack::Ram, most: u64) -> Result<Ram, LeafError> {
    let size = ram.size.bytes();
    // What is to be there at once must be free now: the kernel would end somebody for it.
    if ram.preallocate && !ram.huge && promises::available_memory() < size {
        let source = RamError::Populate(io::ErrorKind::OutOfMemory.into());
        return Err(LeafError::Memory { what: ram.to_string(), source });
    }
    let options = RamOptions {
        logical_block: u32::try_from(ram.logical_block.bytes()).unwrap_or(512),
        preallocate: ram.preallocate,
        lock: ram.lock,
        pages: if ram.huge { Pages::Pool } else { Pages::Usual },
        most,
    };
    Ram::with(size, options).map_err(|source| match (&source, ram.huge) {
        (RamError::Lock(_), _) => LeafError::Lock { what: ram.to_string(), source },
        (RamError::Map(_), true) => LeafError::HugePages {
            what: ram.to_string(),
            pages: size.div_ceil(HUGE_PAGE as u64),
            source,
        },
        _ => LeafError::Memory { what: ram.to_string(), source },
    })
}

/// Opens, or makes, what a leaf of a stack is; a RAM disk can be resized to `most_ram` bytes.
pub(super) fn open_leaf(
    node: &Node,
    options: &OpenOptions,
    most_ram: u64,
    buses: &mut Buses,
) -> Result<Medium, LeafError> {
    match node {
        Node::Ram(ram) => open_ram(ram, most_ram).map(Medium::Ram),
        Node::File(file) => open_file(&file.name(), options, 0, None).map(Medium::File),
        Node::Model(model) => {
            let profile::Modelled { profile, of_bus } = profile::modelled(model)?;
            let size = model.size.bytes();
            let device =
                Timetable::new(&profile.kind, size).expect("a modelled member is a device");
            Modelled::new(size, device, of_bus, model.bus.as_deref(), buses)
                .map(Medium::Modelled)
                .map_err(RamError::Map)
                .map_err(|source| LeafError::Memory { what: model.to_string(), source })
        }
        _ => unreachable!("a level with members is no leaf"),
    }
}
