//! A volume as a block device of this machine: a FUSE file system of one file, served by shard
//! 0, and a loop device on that file, set up from the main thread.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use braid_block::Limits;
use braid_device::{Stopwatch, Tally};
use braid_export_fuse::{AttachedDevice, Attachment, Counters, DetachError, Mount, MountError};
use serde::{Deserialize, Serialize};

use super::counts::client_io;
use super::link::{self, Link};
use super::shard::Shard;
use super::spec::Spec;
use crate::beside::Beside;
use crate::control::{AttachedStatus, Event};
use braid_control::Process;

/// Why a volume is not attached, or stays so.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("only root can attach a volume as a block device: --attach none serves it over NBD")]
    NotRoot,
    #[error("{0}")]
    Mount(#[from] MountError),
    #[error("{0}")]
    Loop(#[from] braid_export_fuse::AttachError),
    #[error("{0}")]
    Detach(#[from] DetachError),
    #[error("cannot note the process in {path}: {source}")]
    Traces { path: PathBuf, source: io::Error },
}

impl AttachError {
    /// Who uses the device, if that is why it stays.
    pub fn holders(&self) -> Vec<String> {
        match self {
            AttachError::Detach(DetachError::Busy { holders, .. }) => {
                holders.iter().map(ToString::to_string).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What is needed to clear away what a process left that does not answer any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Traces {
    process: Process,
    mount: PathBuf,
    #[serde(default)]
    link: Option<PathBuf>,
}

/// An attached volume.
pub(super) struct Attached {
    attachment: Attachment,
    facts: Facts,
    /// Goes after the attachment.
    _link: Option<Link>,
}

/// What a status says of it.
#[derive(Clone)]
pub(super) struct Facts {
    pub path: PathBuf,
    /// A name of it that stays.
    pub link: Option<PathBuf>,
    mount: PathBuf,
    counters: Arc<Counters>,
    /// How long its requests take.
    asked: Tally,
}

impl Facts {
    pub(super) fn status(&self) -> AttachedStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        AttachedStatus {
            by: "fuse".to_owned(),
            path: self.path.display().to_string(),
            link: self.link.as_ref().map(|link| link.display().to_string()),
            mount: self.mount.display().to_string(),
            reads: read(&counters.reads),
            writes: read(&counters.writes),
            flushes: read(&counters.flushes),
            errors: read(&counters.failures),
            read_bytes: read(&counters.read_bytes),
            written_bytes: read(&counters.written_bytes),
            io: client_io(&self.asked),
        }
    }
}

impl Attached {
    /// Attaches the volume that `shard` serves. `events` hears when the mount goes from outside;
    /// `warnings`, when the device has no name that stays.
    pub(super) fn attach(
        spec: &Spec,
        shard: &Shard,
        limits: Limits,
        events: Sender<Event>,
        warnings: &mut Vec<String>,
    ) -> Result<Attached, AttachError> {
        if !rustix::process::geteuid().is_root() {
            return Err(AttachError::NotRoot);
        }
        leave_traces(spec)?;
        let (mount, fd) = Mount::new(&spec.mount, &spec.name, limits.read_only)?;
        let counters = Arc::new(Counters::default());
        let served = Arc::clone(&counters);
        let asked = Tally::default();
        let told = asked.clone();
        let aborter = mount.aborter();
        shard.call(move |handle, local| {
            let fd = braid_uring::Fd::new(fd);
            let (offered, pool) = (local.front.offered(), local.pool.clone());
            let watch = Stopwatch::new(&told, Rc::new(braid_uring::ExecutorClock::new(handle)));
            let offered = offered.seen_through(move |dev| watch.in_front_of(dev));
            let serve = braid_export_fuse::serve(handle.clone(), fd, offered, pool, served);
            handle.spawn(async move {
                if let Err(error) = serve.await {
                    eprintln!("fuse: {error}");
                    // Whoever waits for an answer gets an error instead.
                    aborter.abort();
                }
                // The volume may be ending, and then nobody listens.
                let _ = events.send(Event::Unmounted);
            });
        });
        let attachment = Attachment::attach(mount, &spec.name, &limits)?;
        let path = attachment.device().unwrap_or_default();
        let link = spec.link.as_ref().and_then(|link| {
            let made = Link::make(link, &path, &spec.mount);
            let warning =
                |why| format!("{} does not lead to {}: {why}", link.display(), path.display());
            made.map_err(|why| warnings.push(warning(why))).ok()
        });
        let named = link.as_ref().map(|link| link.path().to_owned());
        let facts = Facts { path, link: named, mount: spec.mount.clone(), counters, asked };
        Ok(Attached { attachment, facts, _link: link })
    }

    /// The block device, for who has to do with it while it is attached.
    pub(super) fn device(&self) -> Option<AttachedDevice> {
        self.attachment.attached()
    }

    /// Refuses if anybody uses the device.
    pub(super) fn check_unused(&self) -> Result<(), AttachError> {
        Ok(self.attachment.check_unused()?)
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Takes device and mount away: if nobody uses them, or with `force` whoever does.
    pub(super) fn detach(&mut self, force: bool) -> Result<(), AttachError> {
        if !force {
            return Ok(self.attachment.detach()?);
        }
        let forced = self.attachment.detach_force();
        if !forced.saved {
            eprintln!("detached by force: what the kernel had not written yet is lost");
        }
        Ok(())
    }
}

/// What a process that was killed left of the volume.
pub(super) struct Left {
    /// It may still be on its way out, with members open.
    pub is_dying: bool,
    /// What was done about it, for people.
    pub told: Vec<String>,
}

/// Takes away what a process of this volume left that has ended without doing so. Nobody serves that
/// device any more, so whatever is mounted on it answers with errors, and goes with it. The caller
/// has the volume's name locked: there is no such process that lives.
pub(super) fn clear_left(spec: &Spec) -> Result<Left, AttachError> {
    let mut told = Vec::new();
    if let Some(mut left) = Attachment::find(&spec.mount)? {
        let device =
            left.device().map_or("its device".to_owned(), |path| path.display().to_string());
        let path = left.device();
        let forced = left.detach_force();
        if let (Some(link), Some(path)) = (&spec.link, path) {
            link::remove(link, &path);
        }
        let on_it: Vec<String> =
            forced.unmounted.iter().map(|point| point.display().to_string()).collect();
        told.push(match on_it.is_empty() {
            true => format!("{device}, which a process that was killed had left, was taken away"),
            false => format!(
                "{device}, which a process that was killed had left, was taken away, and what was \
                 mounted on it: {}; check that file system before it is mounted again",
                on_it.join(", ")
            ),
        });
    }
    Ok(Left { is_dying: spec.traces().exists(), told })
}

/// Notes this process, for a `down` that gets no answer from it.
pub(super) fn leave_traces(spec: &Spec) -> Result<(), AttachError> {
    Traces::of_this_process(&spec.mount, spec.link.as_deref()).write(&spec.traces())
}

impl Traces {
    fn of_this_process(mount: &Path, link: Option<&Path>) -> Traces {
        let link = link.map(Path::to_owned);
        Traces { process: Process::this(), mount: mount.to_owned(), link }
    }

    fn write(&self, path: &Path) -> Result<(), AttachError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        Beside::replace(path, 0o600, text.as_bytes())
            .map_err(|source| AttachError::Traces { path: path.to_owned(), source })
    }
}

/// The process that serves a volume in the folder `mount`, if it said so.
pub(super) fn process_of(mount: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(mount.with_extension("json")).ok()?;
    let traces: Traces = serde_json::from_str(&text).ok()?;
    traces.process.id()
}

/// Ends the process that left `traces`, if it is still there, and gets its device back. Without
/// traces there was none.
pub fn clean_up_after(traces: &Path) -> Result<(), String> {
    let text = match std::fs::read_to_string(traces) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot read {}: {error}", traces.display())),
    };
    let traces: Traces =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", traces.display()))?;
    if !traces.process.kill() {
        return Err("its process does not end, though it was killed".to_owned());
    }
    let found = Attachment::find(&traces.mount).map_err(|error| error.to_string())?;
    if let Some(mut attachment) = found {
        let path = attachment.device();
        attachment.detach_force();
        if let (Some(link), Some(path)) = (&traces.link, path) {
            link::remove(link, &path);
        }
    }
    Ok(())
}
