//! The volume as a block device of this machine: a FUSE file system of one file, and a loop device on that file, set up
//! from the main thread. Requests come through `/dev/fuse` to the first shard, or, where the kernel offers it, through
//! queues of io_uring to all of them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use braid_device::Tally;
use braid_export_fuse::{
    Aborter, AttachedDevice, Attachment, Counters, DetachError, Mount, Transport, queue_count,
    queues_are_offered, serve_beside_queues,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::device::{self, check_root};
use super::link::{self, Link};
use super::{Change, Export, Kind, Prepared, Start};
use crate::control::{Event, ExportStatus};
use crate::volume::error::{ExportError, RunError};
use crate::volume::shard::Shard;
use crate::volume::spec::{Spec, Way};
use crate::volume::warnings::Warning;

pub(super) const KIND: Kind = Kind { prepare, clear_left, takes_over: |_| false };

#[derive(Default)]
struct Fuse {
    counts: Arc<Counters>,
    /// Latencies of its requests.
    asked: Tally,
    /// Set at the start.
    facts: OnceLock<Facts>,
    attached: Mutex<Option<Attached>>,
}

struct Facts {
    device: device::Facts,
    mount: PathBuf,
    transport: Transport,
}

/// While this is there, so is the device.
struct Attached {
    attachment: Attachment,
    /// Goes after the attachment.
    _link: Option<Link>,
}

fn prepare(spec: &Spec, _: &mut Vec<Warning>) -> Prepared {
    Ok((spec.way() == Some(Way::Fuse)).then(|| Box::<Fuse>::default() as Box<dyn Export>))
}

impl Fuse {
    fn attached(&self) -> MutexGuard<'_, Option<Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block device, while it is attached.
    fn device(&self) -> Option<AttachedDevice> {
        self.attached().as_ref()?.attachment.attached()
    }

    /// Mounts the volume, has the shards serve it, and sets the loop device up. Returns the attachment and the way of
    /// its requests; nothing if the kernel refuses the queues that were wanted, and then all is as it was.
    fn attach(
        &self,
        on: &Start<'_>,
        wanted: Transport,
    ) -> Result<Option<(Attachment, Transport)>, RunError> {
        let Start { spec, shards, limits, events, .. } = *on;
        let mount = Mount::new(&spec.mount, &spec.name, limits.read_only);
        let (mount, fd) = mount.map_err(ExportError::failed)?;
        let transport = match wanted {
            Transport::Uring => {
                braid_export_fuse::agree(&fd, limits).map_err(ExportError::failed)?
            }
            Transport::Device => wanted,
        };
        let ending =
            Ending { aborter: mount.aborter(), events: events.clone(), is_refused: Arc::default() };
        if transport == Transport::Uring {
            self.serve_queues(shards, &fd, &ending).map_err(ExportError::failed)?;
        }
        self.serve_device(&shards[0], fd, transport, ending.clone());
        match Attachment::attach(mount, &spec.name, &limits) {
            Err(_) if ending.is_refused.load(Ordering::SeqCst) => Ok(None),
            attachment => Ok(Some((attachment.map_err(ExportError::failed)?, transport))),
        }
    }

    /// Has `shard` take what comes through `/dev/fuse`.
    fn serve_device(&self, shard: &Shard, fd: OwnedFd, transport: Transport, ending: Ending) {
        let (served, asked) = (Arc::clone(&self.counts), self.asked.clone());
        shard.call(move |handle, local| {
            let (fd, offered) = (braid_uring::Fd::new(fd), local.offered(handle, &asked));
            let (handle, pool) = (handle.clone(), local.pool.clone());
            handle.clone().spawn(async move {
                let served = match transport {
                    Transport::Device => {
                        braid_export_fuse::serve(handle, fd, offered, pool, served).await
                    }
                    Transport::Uring => {
                        serve_beside_queues(handle, fd, offered, pool, served).await
                    }
                };
                if let Err(error) = served {
                    eprintln!("fuse: {error}");
                    // A program that waits for an answer gets an error instead.
                    ending.aborter.abort();
                }
                if !ending.is_refused.load(Ordering::SeqCst) {
                    // The volume may be ending, and then there is no receiver.
                    let _ = ending.events.send(Event::Unmounted);
                }
            });
        });
    }

    /// Deals the queues of processors out to the shards. Each of several shards stays on the processors whose queues
    /// it serves: a request is then carried out where it was made.
    fn serve_queues(&self, shards: &[Shard], fd: &OwnedFd, ending: &Ending) -> io::Result<()> {
        let (queues, several) = (queue_count()?, shards.len() > 1);
        for (index, shard) in shards.iter().enumerate() {
            let numbers = (0..queues).filter(|number| usize::from(*number) % shards.len() == index);
            let (numbers, fd): (Vec<u16>, _) = (numbers.collect(), fd.try_clone()?);
            let (served, asked) = (Arc::clone(&self.counts), self.asked.clone());
            let (ending, is_locked) = (ending.clone(), shard.facts.locked.is_ok());
            shard.call(move |handle, local| {
                if several {
                    stay_on(&numbers);
                }
                let (fd, offered) = (braid_uring::Fd::new(fd), local.offered(handle, &asked));
                let (handle, pool) = (handle.clone(), local.pool.clone());
                handle.clone().spawn(async move {
                    let queues = braid_export_fuse::serve_queues(
                        handle, fd, numbers, offered, pool, served, is_locked,
                    );
                    if let Err(error) = queues.await {
                        eprintln!("fuse: {error}");
                        ending.is_refused.store(true, Ordering::SeqCst);
                        ending.aborter.abort();
                    }
                });
            });
        }
        Ok(())
    }
}

/// Receivers of the end of a mount's serving.
#[derive(Clone)]
struct Ending {
    aborter: Aborter,
    events: Sender<Event>,
    /// The kernel refused a queue.
    is_refused: Arc<AtomicBool>,
}

/// Returns true if requests are to come through queues of io_uring.
fn queues_are_wanted(on: &Start<'_>) -> bool {
    queues_are_offered() == Some(true) && on.shards[0].facts.driver == "uring"
}

/// Keeps the calling thread on `processors`, as far as it may run there. That is for speed alone.
fn stay_on(processors: &[u16]) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut chosen = CpuSet::new();
    let most = usize::from(u16::MAX).min(CpuSet::MAX_CPU);
    let processors = processors.iter().map(|one| usize::from(*one));
    processors.filter(|one| *one < most && allowed.is_set(*one)).for_each(|one| chosen.set(one));
    if chosen.count() > 0 {
        let _ = sched_setaffinity(None, &chosen);
    }
}

/// The name of a way in `status`.
fn name_of(transport: Transport) -> &'static str {
    match transport {
        Transport::Device => "device",
        Transport::Uring => "uring",
    }
}

impl Export for Fuse {
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError> {
        let spec = on.spec;
        check_root()?;
        let (attachment, transport) = match queues_are_wanted(on) {
            // They may have been turned off since: then all is done again without.
            true => self.attach(on, Transport::Uring)?,
            false => None,
        }
        .map_or_else(|| self.attach(on, Transport::Device), |attached| Ok(Some(attached)))?
        .ok_or_else(|| ExportError::failed("FUSE does not serve the volume"))?;
        let path = attachment.device().unwrap_or_default();
        let mut warnings = Vec::new();
        let link = link::of(spec, &path, &mut warnings);
        let device = device::Facts::new(path, link.as_ref());
        // Once in a life.
        let _ = self.facts.set(Facts { device, mount: spec.mount.clone(), transport });
        *self.attached() = Some(Attached { attachment, _link: link });
        Ok(warnings)
    }

    fn status(&self) -> ExportStatus {
        let facts = self.facts.get();
        ExportStatus {
            mount: facts.map(|facts| facts.mount.display().to_string()),
            transport: facts.map(|facts| name_of(facts.transport).to_owned()),
            counts: self.counts.read(),
            io: self.asked.read().into(),
            ..device::Facts::status(facts.map(|facts| &facts.device), "fuse")
        }
    }

    fn is_device(&self) -> bool {
        true
    }

    fn users(&self) -> Result<Vec<String>, ExportError> {
        let Some(device) = self.device() else { return Ok(Vec::new()) };
        Ok(device.holders()?.iter().map(ToString::to_string).collect())
    }

    fn follow(&self, change: Change) -> io::Result<Option<String>> {
        let Some(device) = self.device() else { return Ok(None) };
        match change {
            Change::ReadOnly(read_only) => device.set_read_only(read_only)?,
            Change::Size(_) => device.refresh_size()?,
        }
        Ok(None)
    }

    fn check_unused(&self) -> Result<(), ExportError> {
        match &*self.attached() {
            Some(attached) => Ok(attached.attachment.check_unused()?),
            None => Ok(()),
        }
    }

    fn take_down(&self, force: bool) -> Result<(), ExportError> {
        let mut slot = self.attached();
        let Some(Attached { attachment, .. }) = &mut *slot else { return Ok(()) };
        match force {
            false => attachment.detach()?,
            true if attachment.detach_force().saved => {}
            true => {
                eprintln!("detached by force: what the kernel had not written yet is lost");
            }
        }
        *slot = None;
        Ok(())
    }
}

impl From<DetachError> for ExportError {
    fn from(error: DetachError) -> ExportError {
        match &error {
            DetachError::Busy { holders, .. } => ExportError::InUse {
                holders: holders.iter().map(ToString::to_string).collect(),
                text: error.to_string(),
            },
            _ => ExportError::failed(error),
        }
    }
}

/// Detaches a device that a killed process left. No process serves it, so a file system that is mounted on it answers
/// with errors, and is detached with it.
fn clear_left(mount: &Path, link: Option<&Path>) -> Result<Option<String>, ExportError> {
    let found = Attachment::find(mount).map_err(ExportError::failed)?;
    let Some(mut left) = found else { return Ok(None) };
    let path = left.device();
    let forced = left.detach_force();
    if let (Some(link), Some(path)) = (link, &path) {
        link::remove(link, path);
    }
    let device = path.unwrap_or_else(|| PathBuf::from("its device"));
    Ok(Some(device::told_of_left(&device, &forced.unmounted)))
}
