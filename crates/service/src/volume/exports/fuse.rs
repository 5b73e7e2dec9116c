//! The volume as a block device of this machine: a FUSE file system of one file, served by the first shard, and a loop
//! device on that file, set up from the main thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use braid_device::Tally;
use braid_export_fuse::{AttachedDevice, Attachment, Counters, DetachError, Mount};

use super::link::{self, Link};
use super::{Change, Export, Kind, Prepared, Start};
use crate::control::{Event, ExportStatus};
use crate::volume::error::{ExportError, RunError};
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
    path: PathBuf,
    /// A name of the device that stays.
    link: Option<PathBuf>,
    mount: PathBuf,
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
}

impl Export for Fuse {
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError> {
        let Start { spec, shards, limits, events } = *on;
        if !rustix::process::geteuid().is_root() {
            let why =
                "only root can attach a volume as a block device: --attach none serves it over NBD";
            return Err(ExportError::failed(why).into());
        }
        let mount = Mount::new(&spec.mount, &spec.name, limits.read_only);
        let (mount, fd) = mount.map_err(ExportError::failed)?;
        let (served, asked) = (Arc::clone(&self.counts), self.asked.clone());
        let (aborter, events) = (mount.aborter(), events.clone());
        shards[0].call(move |handle, local| {
            let (fd, offered) = (braid_uring::Fd::new(fd), local.offered(handle, &asked));
            let pool = local.pool.clone();
            let serve = braid_export_fuse::serve(handle.clone(), fd, offered, pool, served);
            handle.spawn(async move {
                if let Err(error) = serve.await {
                    eprintln!("fuse: {error}");
                    // A program that waits for an answer gets an error instead.
                    aborter.abort();
                }
                // The volume may be ending, and then there is no receiver.
                let _ = events.send(Event::Unmounted);
            });
        });
        let attachment = Attachment::attach(mount, &spec.name, &limits);
        let attachment = attachment.map_err(ExportError::failed)?;
        let path = attachment.device().unwrap_or_default();
        let mut warnings = Vec::new();
        let link = spec.link.as_ref().and_then(|link| {
            let made = Link::make(link, &path, &spec.mount);
            let warning =
                |why| format!("{} does not lead to {}: {why}", link.display(), path.display());
            made.map_err(|why| warnings.push(Warning::lasting(warning(why)))).ok()
        });
        let named = link.as_ref().map(|link| link.path().to_owned());
        // Once in a life.
        let _ = self.facts.set(Facts { path, link: named, mount: spec.mount.clone() });
        *self.attached() = Some(Attached { attachment, _link: link });
        Ok(warnings)
    }

    fn status(&self) -> ExportStatus {
        let text = |path: &PathBuf| path.display().to_string();
        let facts = self.facts.get();
        ExportStatus {
            kind: "fuse".to_owned(),
            address: facts.map(|facts| text(&facts.path)).unwrap_or_default(),
            uris: Vec::new(),
            link: facts.and_then(|facts| facts.link.as_ref()).map(text),
            mount: facts.map(|facts| text(&facts.mount)),
            connections: 0,
            counts: self.counts.read(),
            io: self.asked.read().into(),
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
    let device = path.map_or("its device".to_owned(), |path| path.display().to_string());
    let on_it: Vec<String> =
        forced.unmounted.iter().map(|point| point.display().to_string()).collect();
    let gone = format!("{device}, which a process that was killed had left, was taken away");
    Ok(Some(match on_it.is_empty() {
        true => gone,
        false => format!(
            "{gone}, and what was mounted on it: {}; check that file system before it is mounted again",
            on_it.join(", ")
        ),
    }))
}
