//! A file system in user space whose files lose power: what was written to them is in a volatile cache
//! until it is made durable.
//!
//! ```text
//!   WRITE, FALLOCATE ──▶ content ──▶ volatile ── FSYNC ──▶ durable
//!                        what reads              (or O_DSYNC of the file, write by write)
//!                        answer
//!   cut       the operation that is counted down to may be carried out and is not answered; later ones wait
//!   release   they fail: the process that asked has ended
//!   settle    each volatile write is kept, dropped, or torn by sectors, as a seed says
//! ```
//!
//! A write that is kept while an earlier one is dropped has overtaken it: dropping is all that reordering needs.
//!
//! Files have the size with which they were made, all in one folder. Deliberately absent: listings, holes, and
//! everything else that no member needs.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use braid_block::Errno;
use braid_export_fuse::protocol::{
    self, Attributes, FileSystemSize, HEAD, InitReply, MAX_DATA, O_DSYNC, Operation, ROOT_NODE,
    Reply, data_header, falloc, init, open,
};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::common::{LIMIT, Random};

/// The unit that the medium writes completely or not at all, in bytes.
const SECTOR: usize = 512;
const FIRST_NODE: u64 = ROOT_NODE + 1;

/// A mounted file system. Dropped, it is unmounted, and requests that wait for it fail.
pub(crate) struct Medium {
    shared: Arc<Shared>,
    point: PathBuf,
    server: Option<JoinHandle<()>>,
}

struct Shared {
    fd: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
    /// Files are opened with `FOPEN_DIRECT_IO`: the kernel then sends no FSYNC for `RWF_DSYNC`. Newer kernels flag
    /// the write, which many file systems ignore: so does this one.
    is_direct: bool,
}

struct State {
    files: Vec<File>,
    power: Power,
}

enum Power {
    On,
    /// Counts changes of files down to the cut.
    Ending(u64),
    /// Requests that are not answered, by their numbers.
    Cut(Vec<u64>),
    Off,
}

struct File {
    name: String,
    content: Vec<u8>,
    durable: Vec<u8>,
    volatile: Vec<(usize, Vec<u8>)>,
}

impl File {
    fn write(&mut self, offset: usize, bytes: Vec<u8>) {
        self.content[offset..][..bytes.len()].copy_from_slice(&bytes);
        self.volatile.push((offset, bytes));
    }

    fn sync(&mut self) {
        for (offset, bytes) in self.volatile.drain(..) {
            self.durable[offset..][..bytes.len()].copy_from_slice(&bytes);
        }
    }

    fn settle(&mut self, random: &mut Random) {
        // All of a file's, none, or each by itself.
        let style = random.below(4);
        for (offset, bytes) in std::mem::take(&mut self.volatile) {
            let chosen = if style < 2 { style } else { random.below(3) };
            for (index, sector) in bytes.chunks(SECTOR).enumerate() {
                if chosen == 0 || chosen == 2 && random.below(2) == 0 {
                    let at = offset + index * SECTOR;
                    self.durable[at..][..sector.len()].copy_from_slice(sector);
                }
            }
        }
        self.content.copy_from_slice(&self.durable);
    }

    fn attributes(&self, node: u64) -> Attributes {
        let size = self.content.len() as u64;
        Attributes { node, size, mode: 0o100_600, links: 1, block_size: 4096 }
    }
}

impl Medium {
    /// Mounts files of these names and sizes, all zeroes, at `point`; none, saying why, where that cannot be.
    pub(crate) fn new(point: &Path, files: &[(String, u64)], is_direct: bool) -> Option<Medium> {
        let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let fd = device.inspect_err(|error| println!("skipped: /dev/fuse: {error}")).ok()?;
        std::fs::create_dir_all(point).expect("a folder can be made");
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,max_read={MAX_DATA}",
            fd.as_raw_fd()
        );
        let options = std::ffi::CString::new(options).expect("no NUL in it");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("medium", point, "fuse.medium", flags, Some(options.as_c_str()))
            .inspect_err(|error| println!("skipped: FUSE cannot be mounted: {error}"))
            .ok()?;
        let file = |(name, size): &(String, u64)| {
            let bytes = vec![0; *size as usize];
            let (content, durable, volatile) = (bytes.clone(), bytes, Vec::new());
            File { name: name.clone(), content, durable, volatile }
        };
        let state = State { files: files.iter().map(file).collect(), power: Power::On };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { fd, state, changed, is_direct });
        let server = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.serve()
        });
        Some(Medium { shared, point: point.to_owned(), server: Some(server) })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// Cuts the power at the `changes`-th write, sync or allocation from now on.
    pub(crate) fn cut_after(&self, changes: u64) {
        self.shared.lock().power = Power::Ending(changes);
    }

    /// Waits for the cut.
    #[track_caller]
    pub(crate) fn wait_for_cut(&self) {
        let is_on = |state: &mut State| !matches!(state.power, Power::Cut(_));
        let wait = self.shared.changed.wait_timeout_while(self.shared.lock(), LIMIT, is_on);
        let (_state, waited) = wait.expect("the file system serves");
        assert!(!waited.timed_out(), "too few changes came for the power to be cut");
    }

    /// Lets requests that came after the cut fail, also those to come.
    pub(crate) fn release(&self) {
        let power = std::mem::replace(&mut self.shared.lock().power, Power::Off);
        if let Power::Cut(waiting) = power {
            waiting.into_iter().for_each(|unique| self.shared.fail(unique));
        }
    }

    /// Says what a power cut has left, and turns the power on. Returns the writes that were volatile.
    pub(crate) fn settle(&self, random: &mut Random) -> usize {
        let mut state = self.shared.lock();
        let volatile = state.files.iter().map(|file| file.volatile.len()).sum();
        state.files.iter_mut().for_each(|file| file.settle(random));
        state.power = Power::On;
        volatile
    }

    /// Returns what a power cut now leaves for sure of `place` of a file.
    pub(crate) fn durable(&self, name: &str, place: Range<usize>) -> Vec<u8> {
        let state = self.shared.lock();
        let file = state.files.iter().find(|file| file.name == name).expect("it is there");
        file.durable[place].to_vec()
    }

    /// Overwrites a file with zeroes, durably.
    pub(crate) fn erase(&self, name: &str) {
        let mut state = self.shared.lock();
        let file = state.files.iter_mut().find(|file| file.name == name).expect("it is there");
        file.content.fill(0);
        file.durable.fill(0);
        file.volatile.clear();
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        self.release();
        let flags = UnmountFlags::FORCE | UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        let unmounted = rustix::mount::unmount(&self.point, flags);
        if let (Ok(()), Some(server)) = (unmounted, self.server.take()) {
            let _ = server.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let (mut head, mut body) = ([0; HEAD], vec![0; MAX_DATA]);
        loop {
            let parts = &mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
            match rustix::io::readv(&self.fd, parts) {
                Ok(received) => self.answer(&head, &body, received),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::NOENT) => {}
                // Unmounted.
                Err(_) => return,
            }
        }
    }

    fn answer(&self, head: &[u8; HEAD], body: &[u8], received: usize) {
        let request = protocol::parse(head, received).expect("the kernel's requests are whole");
        let (unique, node) = (request.header.unique, request.header.node);
        let operation = request.operation;
        let mut state = self.lock();
        if matches!(operation, Operation::Forget) {
            return;
        }
        let is_change = matches!(
            operation,
            Operation::Write { .. } | Operation::Fsync | Operation::Fallocate { .. }
        );
        let mut is_cut = false;
        match &mut state.power {
            Power::Off => return self.fail(unique),
            Power::Cut(waiting) => return waiting.push(unique),
            Power::Ending(0 | 1) if is_change => is_cut = true,
            Power::Ending(left) if is_change => *left -= 1,
            Power::Ending(_) | Power::On => {}
        }
        // A sync that is not answered has made nothing durable for sure.
        if is_cut && operation == Operation::Fsync {
            state.power = Power::Cut(vec![unique]);
            return self.changed.notify_all();
        }
        let files = &mut state.files;
        let file = usize::try_from(node.wrapping_sub(FIRST_NODE)).ok();
        let file = file.and_then(|index| files.get_mut(index));
        let reply = match (operation, file) {
            (Operation::Read { offset, size }, Some(file)) => {
                let start = file.content.len().min(offset as usize);
                let end = file.content.len().min(start + size as usize);
                return self.send(&data_header(unique, end - start), &file.content[start..end]);
            }
            (operation, Some(file)) => change(file, unique, node, operation, body, self.is_direct),
            (operation, None) => about_folder(files, unique, operation),
        };
        if is_cut {
            state.power = Power::Cut(vec![unique]);
            return self.changed.notify_all();
        }
        self.send(reply.as_bytes(), &[]);
    }

    fn fail(&self, unique: u64) {
        self.send(Reply::error(unique, Errno::IO).as_bytes(), &[]);
    }

    /// Replies to the kernel, which may have given the request up.
    fn send(&self, header: &[u8], data: &[u8]) {
        let _ = rustix::io::writev(&self.fd, &[IoSlice::new(header), IoSlice::new(data)]);
    }
}

fn change(
    file: &mut File,
    unique: u64,
    node: u64,
    operation: Operation<'_>,
    body: &[u8],
    is_direct: bool,
) -> Reply {
    match operation {
        Operation::Write { offset, size, flags } => {
            file.write(offset as usize, body[..size as usize].to_vec());
            if flags & O_DSYNC != 0
                && !is_direct
                && let Some((offset, bytes)) = file.volatile.pop()
            {
                file.durable[offset..][..bytes.len()].copy_from_slice(&bytes);
            }
            Reply::written(unique, size)
        }
        Operation::Fsync => {
            file.sync();
            Reply::ok(unique)
        }
        Operation::Fallocate { offset, len, mode }
            if mode & (falloc::PUNCH_HOLE | falloc::ZERO_RANGE) != 0 =>
        {
            file.write(offset as usize, vec![0; len as usize]);
            Reply::ok(unique)
        }
        Operation::GetAttr => Reply::attr(unique, &file.attributes(node)),
        Operation::Open { .. } if is_direct => {
            Reply::open(unique, open::DIRECT_IO | open::PARALLEL_DIRECT_WRITES)
        }
        Operation::Open { .. } => Reply::open(unique, 0),
        Operation::Flush | Operation::Release | Operation::Access => Reply::ok(unique),
        Operation::StatFs => {
            Reply::statfs(unique, &FileSystemSize { blocks: 1 << 20, block_size: 4096 })
        }
        _ => Reply::error(unique, Errno::from_raw(NOSYS)),
    }
}

fn about_folder(files: &[File], unique: u64, operation: Operation<'_>) -> Reply {
    match operation {
        Operation::Init { flags, .. } => {
            let wanted = init::ASYNC_READ | init::BIG_WRITES | init::ASYNC_DIO | init::MAX_PAGES;
            let reply = InitReply {
                max_readahead: MAX_DATA as u32,
                flags: flags & wanted,
                flags2: 0,
                max_background: 1024,
                congestion_threshold: 768,
                max_write: MAX_DATA as u32,
                max_pages: (MAX_DATA / 4096) as u16,
            };
            Reply::init(unique, &reply)
        }
        Operation::Lookup { name: Some(name) } => {
            match files.iter().position(|file| file.name.as_bytes() == name) {
                Some(index) => {
                    let node = FIRST_NODE + index as u64;
                    Reply::entry(unique, &files[index].attributes(node))
                }
                None => Reply::error(unique, Errno::from_raw(NOENT)),
            }
        }
        Operation::GetAttr => {
            let mode = 0o040_755;
            let folder = Attributes { node: ROOT_NODE, size: 0, mode, links: 2, block_size: 4096 };
            Reply::attr(unique, &folder)
        }
        Operation::ReadDir { .. } => Reply::directory(unique, &[], 0),
        Operation::StatFs => {
            Reply::statfs(unique, &FileSystemSize { blocks: 1 << 20, block_size: 4096 })
        }
        Operation::OpenDir
        | Operation::ReleaseDir
        | Operation::FsyncDir
        | Operation::Access
        | Operation::Destroy => Reply::ok(unique),
        _ => Reply::error(unique, Errno::from_raw(NOSYS)),
    }
}

const NOENT: i32 = 2;
const NOSYS: i32 = 38;
