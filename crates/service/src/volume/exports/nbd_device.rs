//! The volume as a block device of the kernel's NBD client: `/dev/nbdN`, a connection for each shard.
//!
//! ```text
//!   program ─▶ /dev/nbdN ─▶ kernel's client ══ socket pairs, one a shard ══▶ NBD server of the shard
//!                                │
//!                a thread inside NBD_DO_IT, for as long as the device is there
//! ```
//!
//! Invariants
//! * A device that is connected, or in use after its server has died, is never taken.
//! * When the process ends, so does the connection: what is mounted then gets errors, and the next start takes it away.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use braid_device::Tally;
use braid_export_nbd::{Bounds, Counters, Counts, Overlaps, Server, Visitor};
use braid_nbd::client::{ClientConfig, ClientError, ClientHandshake, ClientNegotiated, ClientStep};
use braid_nbd::protocol::ReplyStyle;
use braid_nbd::protocol::constants::{NBD_FLAG_CAN_MULTI_CONN, NBD_FLAG_READ_ONLY};
use braid_sys::nbd_device as kernel;

use super::device::{self, Facts, check_root, claim, read_ahead};
use super::link::{self, Link, has_client};
use super::mounted::{self, mount_points, unmount};
use super::{Change, Export, Kind, Prepared, Start};
use crate::control::{Counters as _, Event, ExportStatus};
use crate::volume::error::{ExportError, RunError};
use crate::volume::shard::Shard;
use crate::volume::sides::Side;
use crate::volume::spec::{Spec, Way};
use crate::volume::warnings::Warning;

pub(super) const KIND: Kind = Kind { prepare, clear_left, takes_over: |_| false };

/// Time limit of the handshake, of the device's start, and of its end.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes that a socket may hold: two of the longest usual requests.
const SEND_BUFFER: usize = 2 << 20;

#[derive(Default)]
struct NbdDevice {
    /// Counts of each connection.
    counts: OnceLock<Vec<Arc<Counters>>>,
    /// Latencies of its requests.
    asked: Tally,
    /// Set at the start.
    facts: OnceLock<Facts>,
    attached: Mutex<Option<Attached>>,
}

/// A device that runs.
struct Attached {
    path: PathBuf,
    running: Running,
    block: u32,
    /// Transmission flags that the server sent.
    flags: u16,
    /// Its notice for a later process, which goes with it.
    note: PathBuf,
    /// Goes after the device.
    _link: Option<Link>,
}

/// A device, and the thread that is in the kernel for it.
struct Running {
    device: Arc<File>,
    /// Says nothing, and is disconnected when the device has ended.
    ended: Receiver<()>,
    /// Set before it is ended on purpose.
    is_ending: Arc<AtomicBool>,
}

/// The server of a shard, apart from the one for other clients.
struct Serving(Server);

impl Side for Serving {
    fn stop(&self) {
        self.0.stop();
    }

    fn clients(&self) -> usize {
        self.0.open_connections()
    }
}

fn prepare(spec: &Spec, _: &mut Vec<Warning>) -> Prepared {
    Ok((spec.way() == Some(Way::Nbd)).then(|| Box::<NbdDevice>::default() as Box<dyn Export>))
}

/// The note of the device that the volume with the folder `mount` has.
fn note(mount: &Path) -> PathBuf {
    mount.with_extension("device")
}

impl NbdDevice {
    fn attached(&self) -> MutexGuard<'_, Option<Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to each shard, or to the first alone if the volume cannot have several connections.
    fn connect(&self, on: &Start<'_>) -> Result<(Vec<UnixStream>, ClientNegotiated), RunError> {
        let overlaps = Overlaps::default();
        let (mut sockets, mut counts, mut agreed) = (Vec::new(), Vec::new(), None);
        for shard in on.shards {
            let (ours, theirs) = UnixStream::pair().map_err(ExportError::failed)?;
            counts.push(self.serve(on, shard, theirs, &overlaps)?);
            let offered = shake_hands(&ours).map_err(ExportError::failed)?;
            sockets.push(ours);
            agreed = Some(offered);
            if offered.transmission_flags & NBD_FLAG_CAN_MULTI_CONN == 0 {
                break;
            }
        }
        // Once in a life.
        let _ = self.counts.set(counts);
        Ok((sockets, agreed.expect("a volume has a shard")))
    }

    /// Has `shard` serve the client at the other end of `socket`.
    fn serve(
        &self,
        on: &Start<'_>,
        shard: &Shard,
        socket: UnixStream,
        overlaps: &Overlaps,
    ) -> Result<Arc<Counters>, RunError> {
        let (asked, overlaps) = (self.asked.clone(), overlaps.clone());
        let bounds =
            Bounds { connections: 1, payload: on.budget.pool / 4 * 3, ..Bounds::default() };
        let served = shard.ask(move |handle, local| {
            let (offered, pool) = (local.offered(handle, &asked), local.pool.clone());
            let server =
                Server::new(handle, offered, pool, "", bounds, &overlaps, super::nbd::ends())?;
            server.connect(socket.into(), Visitor::told());
            let counters = server.counters();
            local.sides.add(Serving(server));
            Ok(counters)
        });
        Ok(served.and_then(|served: io::Result<_>| served).map_err(ExportError::failed)?)
    }
}

/// Carries out the client's part of the handshake, before the kernel gets the connection.
fn shake_hands(mut socket: &UnixStream) -> io::Result<ClientNegotiated> {
    socket.set_read_timeout(Some(LIMIT))?;
    let style = ReplyStyle::Simple;
    let config = ClientConfig { export: String::new(), style, base_allocation: false };
    let mut handshake = ClientHandshake::new(config);
    let (mut input, mut output, mut piece) = (Vec::new(), Vec::new(), [0; 4096]);
    loop {
        let progress = handshake.advance(&input, &mut output);
        input.drain(..progress.consumed);
        socket.write_all(&output)?;
        output.clear();
        match progress.step {
            ClientStep::Transmission(agreed) => {
                socket.set_read_timeout(None)?;
                return Ok(agreed);
            }
            ClientStep::NeedMore { .. } => match socket.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => input.extend_from_slice(&piece[..len]),
            },
            ClientStep::Fatal(error) => return Err(io::Error::other(error)),
            ClientStep::StartTls => return Err(io::Error::other(ClientError::NoTls)),
        }
    }
}

/// Gives the connections to a device that is free. Returns its path, and the device.
fn take_free(sockets: &[UnixStream]) -> Result<(PathBuf, File), ExportError> {
    for number in 0.. {
        let path = PathBuf::from(format!("/dev/nbd{number}"));
        let claimed = match claim(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && number == 0 => {
                let why = "there is no /dev/nbd0: `modprobe nbd` loads the kernel's NBD client";
                return Err(ExportError::failed(why));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(_) => continue,
            Ok(_) if has_client(&path) => continue,
            Ok(claimed) => claimed,
        };
        let device = OpenOptions::new().read(true).write(true).open(&path);
        let device = device.map_err(ExportError::failed)?;
        // Another process may be setting it up.
        let mut given = sockets.iter().map(|socket| kernel::add_socket(&device, socket));
        match given.try_for_each(|given| given) {
            Ok(()) => {
                drop(claimed);
                return Ok((path, device));
            }
            Err(_) => drop(kernel::clear(&device)),
        }
    }
    let why = "all /dev/nbdN are in use: `modprobe -r nbd; modprobe nbd nbds_max=64` makes more, when none is";
    Err(ExportError::failed(why))
}

/// Runs the device on a thread of its own, and waits until it is there.
fn run(device: File, path: &Path, on: &Start<'_>) -> Result<Running, ExportError> {
    let (device, is_ending) = (Arc::new(device), Arc::<AtomicBool>::default());
    let (sender, ended) = channel();
    let (runs, ends, events) = (Arc::clone(&device), Arc::clone(&is_ending), on.events.clone());
    std::thread::Builder::new()
        .name("nbd".to_owned())
        .spawn(move || {
            let result = kernel::run(&*runs);
            if !ends.load(Ordering::SeqCst) {
                if let Err(error) = result {
                    eprintln!("nbd: the kernel's client has ended: {error}");
                }
                // The volume may be ending, and then there is no receiver.
                let _ = events.send(Event::Unmounted);
            }
            drop::<std::sync::mpsc::Sender<()>>(sender);
        })
        .map_err(ExportError::failed)?;
    let deadline = Instant::now() + LIMIT;
    let has_size = || braid_sys::block::size(&*device).is_ok_and(|size| size == on.limits.size);
    while !(has_client(path) && has_size()) {
        let is_over = ended.recv_timeout(Duration::from_millis(2));
        if is_over == Err(RecvTimeoutError::Disconnected) || Instant::now() >= deadline {
            is_ending.store(true, Ordering::SeqCst);
            // It ends in any case with the process.
            let _ = kernel::clear(&*device);
            let text = format!("the kernel's NBD client does not start {}", path.display());
            return Err(ExportError::failed(text));
        }
    }
    Ok(Running { device, ended, is_ending })
}

/// Writes down which device it is, for the next process if this one is killed.
fn write_note(note: &Path, path: &Path) -> io::Result<()> {
    std::fs::write(note, path.as_os_str().as_encoded_bytes())
}

impl Export for NbdDevice {
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError> {
        check_root()?;
        let (spec, limits) = (on.spec, on.limits);
        let (sockets, agreed) = self.connect(on)?;
        for socket in &sockets {
            // The kernel's default is enough to work with.
            let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(socket, SEND_BUFFER);
        }
        let (path, device) = take_free(&sockets)?;
        drop(sockets);
        let (block, flags) = (limits.logical_block, agreed.transmission_flags);
        kernel::set_size(&device, block, limits.size / u64::from(block))
            .and_then(|()| kernel::set_flags(&device, flags))
            .map_err(ExportError::failed)?;
        let note = note(&spec.mount);
        write_note(&note, &path).map_err(ExportError::failed)?;
        let running = run(device, &path, on)?;
        let mut warnings = Vec::new();
        if let Err(error) = braid_sys::block::set_read_ahead(&*running.device, read_ahead(&limits))
        {
            let text = format!("{} reads ahead as usual: {error}", path.display());
            warnings.push(Warning::lasting(text));
        }
        let link = link::of(spec, &path, &mut warnings);
        // Once in a life.
        let _ = self.facts.set(Facts::new(path.clone(), link.as_ref()));
        *self.attached() = Some(Attached { path, running, block, flags, note, _link: link });
        Ok(warnings)
    }

    fn status(&self) -> ExportStatus {
        let counts = self.counts.get().into_iter().flatten();
        ExportStatus {
            counts: counts.fold(Counts::default(), |sum, one| sum.plus(one.read())),
            io: self.asked.read().into(),
            ..Facts::status(self.facts.get(), "nbd-device")
        }
    }

    fn is_device(&self) -> bool {
        true
    }

    fn users(&self) -> Result<Vec<String>, ExportError> {
        match &*self.attached() {
            Some(attached) => Ok(device::texts(&device::holders(&attached.path)?)),
            None => Ok(Vec::new()),
        }
    }

    fn follow(&self, change: Change) -> io::Result<Option<String>> {
        let attached = self.attached();
        let Some(Attached { running, block, flags, .. }) = &*attached else { return Ok(None) };
        let device = &*running.device;
        match change {
            Change::ReadOnly(read_only) => {
                if read_only {
                    device.sync_all()?;
                }
                let others = flags & !NBD_FLAG_READ_ONLY;
                let flags = if read_only { others | NBD_FLAG_READ_ONLY } else { others };
                kernel::set_flags(device, flags)?;
                braid_sys::block::set_read_only(device, read_only)?;
            }
            Change::Size(bytes) => kernel::set_size(device, *block, bytes / u64::from(*block))?,
        }
        Ok(None)
    }

    fn check_unused(&self) -> Result<(), ExportError> {
        let attached = self.attached();
        let Some(Attached { path, .. }) = &*attached else { return Ok(()) };
        device::check_unused(path)
    }

    fn take_down(&self, force: bool) -> Result<(), ExportError> {
        let mut slot = self.attached();
        let Some(Attached { path, running, note, .. }) = &*slot else { return Ok(()) };
        let Running { device: running, ended, is_ending } = running;
        // Kept until the device is away: nothing is mounted on it meanwhile.
        let claimed = if force {
            if !mounted::save(path) {
                eprintln!("detached by force: what the kernel had not written yet is lost");
            }
            None
        } else {
            let claimed = claim(path).map_err(|error| device::in_use(path, &error))?;
            // Programs that have closed it may have left pages, since this process has it open.
            claimed.sync_all().map_err(ExportError::failed)?;
            Some(claimed)
        };
        is_ending.store(true, Ordering::SeqCst);
        let left = kernel::disconnect(&**running);
        let is_over = || ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Disconnected);
        if left.is_err() || !is_over() {
            match kernel::clear(&**running) {
                Ok(()) => {}
                // The device goes with the process.
                Err(error) if force => eprintln!("{}: {error}", path.display()),
                Err(error) => {
                    is_ending.store(false, Ordering::SeqCst);
                    return Err(ExportError::failed(error));
                }
            }
        }
        drop(claimed);
        // The next process looks at the device that it names.
        let _ = std::fs::remove_file(note);
        *slot = None;
        Ok(())
    }
}

/// Takes away what is mounted on a device that a killed process left. The kernel has let go of the device itself, and a
/// file system on it answers with errors.
fn clear_left(mount: &Path, link: Option<&Path>) -> Result<Option<String>, ExportError> {
    let note = note(mount);
    let path = match std::fs::read_to_string(&note) {
        Ok(text) => PathBuf::from(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ExportError::failed(error)),
    };
    // Another program may use the device by now.
    let points = if has_client(&path) { Vec::new() } else { mount_points(&path) };
    for point in points.iter().rev() {
        // One that stays answers with errors.
        let _ = unmount(point);
    }
    if let Some(link) = link {
        link::remove(link, &path);
    }
    std::fs::remove_file(&note).map_err(ExportError::failed)?;
    Ok(Some(device::told_of_left(&path, &points)))
}
