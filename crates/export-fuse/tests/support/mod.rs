//! A served volume for tests that need root, `/dev/fuse` and loop devices.
//!
//! Everything is taken away again when it is dropped, also after a panic, and no test hangs: a
//! guard ends the connection after a minute, which turns whatever waits into an error.

#![allow(dead_code, reason = "each test file uses its part of it")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use braid_block::{Errno, Flags, Io, Limits, Op, Span};
use braid_device::{Ram, RamDevice};
use braid_engine::{Dev, Device, Extents, Pending};
use braid_export_fuse::{
    Aborter, Attachment, Counters, Mount, QUEUES_PARAMETER, ServeError, Transport, agree,
    queue_count, serve, serve_beside_queues, serve_queues,
};
use braid_mem::Pool;
use braid_seed::Rng;
use braid_uring::{Config, Executor, Fd, Handle, Mode};
use rustix::fs::OFlags;
use tempfile::TempDir;

/// Returns true if these tests can run here; prints the reason if not.
pub(crate) fn is_possible() -> bool {
    for path in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = OpenOptions::new().read(true).write(true).open(path) {
            println!("skipped: cannot open {path}: {error}");
            return false;
        }
    }
    if !rustix_is_root() {
        println!("skipped: not root");
        return false;
    }
    if over_uring()
        && let Err(error) = OpenOptions::new().write(true).open(QUEUES_PARAMETER)
    {
        println!("skipped: no FUSE over io_uring: {QUEUES_PARAMETER}: {error}");
        return false;
    }
    true
}

/// Returns true in the tests that run over queues of io_uring: those of `over_uring.rs`.
pub(crate) fn over_uring() -> bool {
    module_path!().starts_with("over_uring")
}

/// FUSE over io_uring is offered while this is there, which is for one test after the other. Dropping it leaves all as
/// it was. Connections of others may meet either setting.
struct Offer {
    before: String,
    _lock: File,
}

impl Offer {
    fn new() -> Offer {
        let path = std::env::temp_dir().join("braid-fuse-over-io-uring.lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let before = std::fs::read_to_string(QUEUES_PARAMETER).unwrap();
        std::fs::write(QUEUES_PARAMETER, "Y").unwrap();
        Offer { before, _lock: lock }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        std::fs::write(QUEUES_PARAMETER, self.before.trim()).unwrap();
    }
}

fn rustix_is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// A volume that is served, and its mount as long as it is not attached.
pub(crate) struct Served {
    pub(crate) mount: Option<Mount>,
    pub(crate) limits: Limits,
    pub(crate) ram: Ram,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trouble: Arc<Trouble>,
    pub(crate) dir: PathBuf,
    pub(crate) over: Transport,
    shard: Option<JoinHandle<Result<(), ServeError>>>,
    _guard: mpsc::Sender<()>,
    /// Dropped last.
    _parent: TempDir,
}

/// The disturbances of a device.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// Requests take some time, and overtake each other.
    pub(crate) slow: AtomicBool,
    /// Requests are not answered at all.
    pub(crate) stuck: AtomicBool,
    /// Requests fail with `ENOSPC`.
    pub(crate) failing: AtomicBool,
    /// Writes with FUA that came.
    pub(crate) forced: AtomicU64,
    /// Requests that came, by operation.
    asked: [AtomicU64; 5],
}

impl Trouble {
    /// Returns the number of requests of `op` that came.
    pub(crate) fn count(&self, op: Op) -> u64 {
        self.asked[op as usize].load(Ordering::Relaxed)
    }
}

/// The properties of a served device.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) size: u64,
    pub(crate) logical_block: u32,
    pub(crate) read_only: bool,
    pub(crate) pool: usize,
    pub(crate) mode: Mode,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            size: 64 << 20,
            logical_block: 512,
            read_only: false,
            pool: 16 << 20,
            mode: Mode::Auto,
        }
    }
}

impl Served {
    pub(crate) fn new(wish: Wish) -> Served {
        let parent = tempfile::tempdir().unwrap();
        Served::at(&parent.path().join("mount"), wish, parent)
    }

    pub(crate) fn at(dir: &Path, wish: Wish, parent: TempDir) -> Served {
        let ram = Ram::new(wish.size).unwrap();
        let offer = (over_uring() && wish.mode != Mode::Threads).then(Offer::new);
        let (mount, fd) = Mount::new(dir, "test", wish.read_only).unwrap();
        let guard = guard(mount.aborter(), Duration::from_secs(60));
        let limits = Limits {
            logical_block: wish.logical_block,
            read_only: wish.read_only,
            ..ram.device().limits()
        };
        let (counters, trouble) = (Arc::new(Counters::default()), Arc::new(Trouble::default()));
        let over = offer.as_ref().map_or(Transport::Device, |_| agree(&fd, limits).unwrap());
        let (send, registered) = mpsc::channel();
        let shard = std::thread::spawn({
            let (ram, counters) = (ram.device(), Arc::clone(&counters));
            let trouble = Arc::clone(&trouble);
            move || {
                let executor =
                    Executor::new(Config { mode: wish.mode, ..Config::default() }).unwrap();
                let handle = executor.handle();
                let ram = Rc::new(ram);
                let device = Tried { ram, limits, trouble, handle: handle.clone() };
                let pool = Pool::new(wish.pool).unwrap();
                let (fd, dev) = (Fd::new(fd), Dev::new(device));
                if over == Transport::Device {
                    return executor.block_on(serve(handle, fd, dev, pool, counters));
                }
                let (queues, timer) = ((0..queue_count().unwrap()).collect(), handle.clone());
                let (of_queues, pool_of_queues) = (Arc::clone(&counters), pool.clone());
                let queues = serve_queues(
                    handle.clone(),
                    fd.clone(),
                    queues,
                    dev.clone(),
                    pool_of_queues,
                    of_queues,
                    false,
                );
                handle.spawn(async move { queues.await.unwrap() });
                handle.spawn(async move {
                    // By then the kernel has what was submitted before.
                    timer.sleep(Duration::from_millis(1)).await;
                    send.send(()).unwrap();
                });
                executor.block_on(serve_beside_queues(handle, fd, dev, pool, counters))
            }
        });
        if over == Transport::Uring {
            registered.recv().unwrap();
        }
        drop(offer);
        let mount = Some(mount);
        let dir = dir.to_owned();
        let shard = Some(shard);
        Served {
            mount,
            limits,
            ram,
            counters,
            trouble,
            dir,
            over,
            shard,
            _guard: guard,
            _parent: parent,
        }
    }

    pub(crate) fn volume(&self) -> PathBuf {
        self.dir.join("volume")
    }

    pub(crate) fn attach(&mut self) -> Attachment {
        Attachment::attach(self.mount.take().unwrap(), "test", &self.limits).unwrap()
    }

    /// Waits for the end of the serving, after unmounting.
    pub(crate) fn finish(mut self) -> Result<(), ServeError> {
        self.shard.take().unwrap().join().unwrap()
    }
}

/// Ends the connection if it is not dropped within `limit`.
fn guard(aborter: Aborter, limit: Duration) -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        if receiver.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a test took more than {limit:?}: its connection is ended");
            aborter.abort();
        }
    });
    sender
}

/// A RAM disk that can be made to cause trouble.
struct Tried {
    ram: Rc<RamDevice>,
    limits: Limits,
    trouble: Arc<Trouble>,
    handle: Handle,
}

impl Device for Tried {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self, io: Io) -> Pending {
        self.trouble.asked[io.op as usize].fetch_add(1, Ordering::Relaxed);
        if io.op == Op::Write && io.flags.contains(Flags::FUA) {
            self.trouble.forced.fetch_add(1, Ordering::Relaxed);
        }
        if self.trouble.failing.load(Ordering::Relaxed) {
            return Pending::ready(io.complete(Err(Errno::NOSPC)));
        }
        if !self.trouble.slow.load(Ordering::Relaxed) && !self.trouble.stuck.load(Ordering::Relaxed)
        {
            return self.ram.start(io);
        }
        let (ram, trouble, handle) =
            (Rc::clone(&self.ram), Arc::clone(&self.trouble), self.handle.clone());
        // 0 to 3.1 ms, by the position: neighbours overtake each other.
        let delay = Duration::from_micros((io.span.offset / 4096 * 7919 % 32) * 100);
        Pending::task(async move {
            handle.sleep(delay).await;
            while trouble.stuck.load(Ordering::Relaxed) {
                handle.sleep(Duration::from_millis(20)).await;
            }
            if io.op == Op::Flush { ram.start(Io::flush()).await } else { ram.start(io).await }
        })
    }

    fn extents(&self, span: Span) -> Extents {
        self.ram.extents(span)
    }
}

/// Runs a tool and answers its output; panics if it fails.
pub(crate) fn run(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{tool} {arguments:?}: {text}");
    text
}

/// A file system mounted for a test, taken away by force if the test does not.
pub(crate) struct Mounted {
    pub(crate) point: PathBuf,
    _parent: TempDir,
}

impl Mounted {
    pub(crate) fn new(device: &Path) -> Mounted {
        let parent = tempfile::tempdir().unwrap();
        let point = parent.path().join("fs");
        std::fs::create_dir(&point).unwrap();
        run("mount", &[device.to_str().unwrap(), point.to_str().unwrap()]);
        Mounted { point, _parent: parent }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.point).output();
    }
}

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not within 10 s.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A child that is killed and waited for when dropped.
pub(crate) struct Child(pub(crate) std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `len` bytes that depend on `seed`.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Opens a file or block device for direct I/O.
pub(crate) fn open_direct(path: &Path) -> File {
    let flags = OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
}

/// Memory on a page boundary, as direct I/O wants it. (FUSE cuts requests by pages: memory elsewhere would give
/// pieces that are no whole blocks.)
pub(crate) fn aligned(len: usize) -> (Vec<u8>, usize) {
    let memory = vec![0u8; len + 4096];
    let start = memory.as_ptr().align_offset(4096);
    (memory, start)
}

pub(crate) fn write_at(file: &File, data: &[u8], at: u64) {
    let (mut memory, start) = aligned(data.len());
    memory[start..start + data.len()].copy_from_slice(data);
    file.write_all_at(&memory[start..start + data.len()], at).unwrap();
}

pub(crate) fn read_at(file: &File, len: usize, at: u64) -> Vec<u8> {
    let (mut memory, start) = aligned(len);
    file.read_exact_at(&mut memory[start..start + len], at).unwrap();
    memory[start..start + len].to_vec()
}
