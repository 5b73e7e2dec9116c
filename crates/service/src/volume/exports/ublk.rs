//! The volume as a block device of the kernel's ublk driver: `/dev/ublkbN`, a queue for each shard.
//!
//! ```text
//!   new        add ──▶ open ──▶ shards wait for requests ──▶ start
//!   left       begin_recovery ──▶ open ──▶ shards wait ──▶ end_recovery: requests go on
//!   take down  stop: what is under way is answered ──▶ shards close ──▶ delete
//! ```
//!
//! Invariants
//! * A device stays after its process dies only if every completed write is outside of that process ([`outlives`]).
//!   Otherwise a client would go on with data that are gone.
//! * A device that was left is taken over only by the volume that it belongs to, and only if it has its blocks and is
//!   no longer.

mod notes;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_device::Tally;
use braid_export_ublk::{self as ublk, Counters, Counts, Device, State};
use braid_stack::{Node, Stack};

pub(in crate::volume) use notes::keep_inside;
use notes::{forget, half_taken, note, taking_note};

use super::device::{self, Facts, check_root, read_ahead};
use super::link::{self, Link};
use super::mounted::{mount_points, save, unmount};
use super::{Change, Export, Kind, Prepared, Start};
use crate::control::{Counters as _, Event, ExportStatus};
use crate::volume::error::{ExportError, RunError};
use crate::volume::spec::{Spec, Way};
use crate::volume::warnings::Warning;

pub(super) const KIND: Kind = Kind { prepare, clear_left, takes_over };

/// Time limit for the shards to close a device that was stopped, and for its node in /dev to come.
const CLOSE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Ublk {
    /// Counts of each queue.
    counts: OnceLock<Vec<Arc<Counters>>>,
    /// Latencies of its requests.
    asked: Tally,
    /// Set at the start.
    facts: OnceLock<Facts>,
    attached: Mutex<Option<Attached>>,
}

/// A device that is served.
struct Attached {
    device: Device,
    serving: Serving,
    /// Goes with the device.
    _link: Option<Link>,
}

/// The queues of a device on the shards.
struct Serving {
    counts: Vec<Arc<Counters>>,
    /// Says nothing, and is disconnected when all queues are closed.
    closed: Receiver<()>,
    /// Set before the queues are ended on purpose.
    is_ending: Arc<AtomicBool>,
}

/// Kept by a queue until it is closed.
struct End {
    is_ending: Arc<AtomicBool>,
    events: Sender<Event>,
    _closed: Sender<()>,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.is_ending.load(Ordering::SeqCst) {
            // The volume may be ending, and then there is no receiver.
            let _ = self.events.send(Event::Unmounted);
        }
    }
}

fn prepare(spec: &Spec, _: &mut Vec<Warning>) -> Prepared {
    Ok((spec.way() == Some(Way::Ublk)).then(|| Box::<Ublk>::default() as Box<dyn Export>))
}

/// Returns true if each write that the volume completes is outside of its process: on members that are files or block
/// devices. RAM disks, caches that write behind, and stores of changes keep some inside.
fn outlives(stack: &Stack) -> bool {
    let is_outside = matches!(
        &stack.node,
        Node::File(_)
            | Node::Missing(_)
            | Node::Md(_)
            | Node::Linear(_)
            | Node::Raid0(_)
            | Node::Raid1(_)
            | Node::Raid10(_)
            | Node::Parity(_)
            | Node::Slice(_)
    );
    is_outside && stack.members().iter().all(outlives)
}

/// The device that a process of the volume with the folder `mount` left.
fn find(mount: &Path) -> Result<Option<Device>, ExportError> {
    ublk::find(ublk::tag(mount.as_os_str().as_bytes())).map_err(ExportError::failed)
}

/// Returns true if the volume goes on with the device that a process of it left.
fn takes_over(spec: &Spec) -> bool {
    spec.way() == Some(Way::Ublk)
        && outlives(&spec.stack)
        && !note(&spec.mount).exists()
        && find(&spec.mount).is_ok_and(|left| {
            left.is_some_and(|left| {
                left.stays()
                    && left.is_servable()
                    && matches!(left.state(), State::Live | State::Quiesced)
            })
        })
}

impl Ublk {
    fn attached(&self) -> MutexGuard<'_, Option<Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device, while it is attached.
    fn device(&self) -> Option<Device> {
        Some(self.attached().as_ref()?.device)
    }

    /// Adds a device and starts it.
    fn attach(&self, on: &Start<'_>) -> Result<(Device, Serving), RunError> {
        let tag = ublk::tag(on.spec.mount.as_os_str().as_bytes());
        let queues = u16::try_from(on.shards.len()).expect("a volume has few shards");
        let device = Device::add(tag, queues, outlives(&on.spec.stack), &on.limits);
        let device = device.map_err(ExportError::failed)?;
        // Of an earlier device.
        forget(&on.spec.mount);
        let started = self.serve(&device, on).and_then(|serving| match device.start() {
            Ok(()) => Ok(serving),
            Err(error) => Err(broken(&device, "is not started", &error)),
        });
        match started {
            Ok(serving) => Ok((device, serving)),
            Err(why) => {
                // Its queues end by that, and close it.
                let _ = device.stop();
                let _ = device.delete();
                Err(why)
            }
        }
    }

    /// Goes on with a device that a killed process left. If that fails once it was begun, only `down` can mend it, and
    /// the next attempt says so.
    fn take_over(&self, device: Device, on: &Start<'_>) -> Result<(Device, Serving), RunError> {
        let known = device.known().map_err(ExportError::failed)?;
        check_same(&device, known, &on.limits, &on.spec.name)?;
        let (note, name) = (taking_note(&on.spec.mount), &on.spec.name);
        if note.exists() {
            return Err(ExportError::failed(half_taken(&device, name)).into());
        }
        std::fs::write(&note, "").map_err(ExportError::failed)?;
        if let Err(error) = device.begin_recovery() {
            // Nothing was changed.
            let _ = std::fs::remove_file(&note);
            return Err(broken(&device, "is not taken over", &error));
        }
        let serving = self.serve(&device, on)?;
        let ended = device.end_recovery();
        ended.map_err(|error| broken(&device, "is not taken over", &error))?;
        std::fs::remove_file(&note).map_err(ExportError::failed)?;
        if known.size < on.limits.size {
            device.update_size(on.limits.size).map_err(ExportError::failed)?;
        }
        Ok((device, serving))
    }

    /// Has the shards wait for requests of all queues.
    fn serve(&self, device: &Device, on: &Start<'_>) -> Result<Serving, RunError> {
        let fd = open(&device.char_path())
            .map_err(|error| broken(device, "cannot be opened", &error))?;
        let (sender, closed) = channel();
        let is_ending = Arc::<AtomicBool>::default();
        let mut counts = Vec::new();
        for number in 0..device.queues() {
            let shard = &on.shards[usize::from(number) % on.shards.len()];
            let fd = fd.try_clone().map_err(ExportError::failed)?;
            let (counted, asked) = (Arc::<Counters>::default(), self.asked.clone());
            counts.push(Arc::clone(&counted));
            let (events, depth) = (on.events.clone(), device.depth());
            let end = End { is_ending: Arc::clone(&is_ending), events, _closed: sender.clone() };
            let served = shard.ask(move |handle, local| {
                let queue = braid_uring::ublk::Queue::new(handle, fd, number, depth)?;
                let (offered, pool) = (local.offered(handle, &asked), local.pool.clone());
                ublk::serve(handle, queue, offered, pool, counted, end).map_err(io::Error::other)
            });
            if let Err(error) = served.and_then(|served| served) {
                is_ending.store(true, Ordering::SeqCst);
                return Err(broken(device, "cannot be served", &error));
            }
        }
        Ok(Serving { counts, closed, is_ending })
    }
}

/// Refuses to go on with a device that clients know otherwise than the volume is now.
fn check_same(
    device: &Device,
    known: ublk::params::Known,
    limits: &Limits,
    name: &str,
) -> Result<(), ExportError> {
    let is_same = known.size <= limits.size
        && known.logical_block == u64::from(limits.logical_block)
        && (known.read_only || !limits.read_only);
    if is_same {
        return Ok(());
    }
    let path = device.path();
    Err(ExportError::failed(format!(
        "{} was left by a process of {name} that ended, with {} bytes in blocks of {}, and the volume is not like \
         that any more: `braid down {name} --force` takes it away, with what is mounted on it",
        path.display(),
        known.size,
        known.logical_block,
    )))
}

fn broken(device: &Device, what: &str, error: &io::Error) -> RunError {
    ExportError::failed(format!("{} {what}: {error}", device.path().display())).into()
}

/// Opens a device by which another one is served, whose node may still be about to come.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let deadline = Instant::now() + CLOSE;
    loop {
        match braid_uring::ublk::open(path) {
            Err(error) if may_pass(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// Returns true for errors of a node that is not there yet, or of a process that is on its way out.
fn may_pass(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ResourceBusy)
}

impl Export for Ublk {
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError> {
        check_root()?;
        let spec = on.spec;
        // What cannot be taken over was taken away before.
        let (device, serving) = match find(&spec.mount)? {
            Some(left) => self.take_over(left, on)?,
            None => self.attach(on)?,
        };
        let path = device.path();
        let mut warnings = Vec::new();
        let reads_ahead = File::open(&path)
            .and_then(|file| braid_sys::block::set_read_ahead(file, read_ahead(&on.limits)));
        if let Err(error) = reads_ahead {
            let text = format!("{} reads ahead as usual: {error}", path.display());
            warnings.push(Warning::lasting(text));
        }
        let link = link::of(spec, &path, &mut warnings);
        // Once in a life.
        let _ = self.facts.set(Facts::new(path, link.as_ref()));
        let _ = self.counts.set(serving.counts.clone());
        *self.attached() = Some(Attached { device, serving, _link: link });
        Ok(warnings)
    }

    fn status(&self) -> ExportStatus {
        let counts = self.counts.get().into_iter().flatten();
        ExportStatus {
            counts: counts.fold(Counts::default(), |sum, queue| sum.plus(queue.read())),
            io: self.asked.read().into(),
            ..Facts::status(self.facts.get(), "ublk")
        }
    }

    fn is_device(&self) -> bool {
        true
    }

    fn users(&self) -> Result<Vec<String>, ExportError> {
        let Some(attached) = self.device() else { return Ok(Vec::new()) };
        Ok(device::texts(&device::holders(&attached.path())?))
    }

    fn follow(&self, change: Change) -> io::Result<Option<String>> {
        let Some(device) = self.device() else { return Ok(None) };
        match change {
            Change::ReadOnly(read_only) => {
                let file = File::open(device.path())?;
                if read_only {
                    file.sync_all()?;
                }
                braid_sys::block::set_read_only(&file, read_only)?;
                Ok(None)
            }
            Change::Size(bytes) => {
                let path = device.path();
                let text = "has its earlier size until the volume is brought down and up: this kernel's ublk driver \
                            cannot change it";
                let is_told = device.update_size(bytes)?;
                Ok((!is_told).then(|| format!("{} {text}", path.display())))
            }
        }
    }

    fn check_unused(&self) -> Result<(), ExportError> {
        let Some(attached) = self.device() else { return Ok(()) };
        device::check_unused(&attached.path())
    }

    fn take_down(&self, force: bool) -> Result<(), ExportError> {
        let mut slot = self.attached();
        let Some(Attached { device, serving, .. }) = &*slot else { return Ok(()) };
        // Kept until the device is away: nothing is mounted on it meanwhile.
        let claim = match force {
            true => None,
            false => {
                let path = device.path();
                Some(device::claim(&path).map_err(|error| device::in_use(&path, &error))?)
            }
        };
        if force && !save(&device.path()) {
            eprintln!("detached by force: what the kernel had not written yet is lost");
        }
        serving.is_ending.store(true, Ordering::SeqCst);
        let stopped = device.stop();
        drop(claim);
        let is_closed = serving.closed.recv_timeout(CLOSE) == Err(RecvTimeoutError::Disconnected);
        match stopped.and_then(|()| if is_closed { device.delete() } else { Ok(()) }) {
            Ok(()) => {}
            // The device goes with the process, or is cleared away by the next one.
            Err(error) if force => eprintln!("{}: {error}", device.path().display()),
            Err(error) => {
                serving.is_ending.store(false, Ordering::SeqCst);
                return Err(ExportError::failed(error));
            }
        }
        *slot = None;
        Ok(())
    }
}

/// Takes away a device that a killed process left. No process serves it, so a file system that is mounted on it answers
/// with errors, and is taken away with it.
fn clear_left(mount: &Path, link: Option<&Path>) -> Result<Option<String>, ExportError> {
    let Some(left) = find(mount)? else { return Ok(None) };
    let path = left.path();
    let points = mount_points(&path);
    left.stop().map_err(ExportError::failed)?;
    for point in points.iter().rev() {
        // One that stays answers with errors.
        let _ = unmount(point);
    }
    left.delete().map_err(ExportError::failed)?;
    forget(mount);
    if let Some(link) = link {
        link::remove(link, &path);
    }
    Ok(Some(device::told_of_left(&path, &points)))
}
