//! A device by direct I/O, timed by the system's clock.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use braid_fit::{Batch, Measured, Request, Timing, fill};
use braid_probe::{FileKind, MemberFacts};
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::failure::{Context, Failure};

/// What direct I/O wants memory to be aligned to, whatever the device.
const ALIGNMENT: usize = 4096;

/// An open device.
pub(super) struct Direct {
    file: File,
    size: u64,
    block: u64,
    began: Instant,
    /// Memory for each request that is under way at once.
    memory: Vec<Memory>,
}

/// Bytes, of which those from the first aligned one on are used.
#[derive(Default)]
struct Memory(Vec<u8>);

impl Memory {
    fn aligned(&mut self, length: usize) -> &mut [u8] {
        let have = self.0.len();
        if have < length + ALIGNMENT {
            self.0.resize(length + ALIGNMENT, 0);
            // Zeroes are not written by every device: what is written has to be something.
            fill(&mut self.0);
        }
        let from = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[from..from + length]
    }
}

impl Direct {
    /// Opens what `facts` are about; for writing only if it is to be destroyed, and then for nobody else.
    pub(super) fn open(facts: &MemberFacts, destroy: bool) -> Result<Direct, Failure> {
        let path = &facts.path;
        let is_file = facts.kind == FileKind::Regular;
        let exclusive = if destroy && !is_file { OFlags::EXCL } else { OFlags::empty() };
        let flags = (OFlags::DIRECT | exclusive).bits().cast_signed();
        let opened = OpenOptions::new().read(true).write(destroy).custom_flags(flags).open(path);
        let file = match opened {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                let text =
                    format!("{} is refused: its file system has no direct I/O", path.display());
                let next = "name a block device, or a file on another file system";
                return Err(
                    Failure::refused(format!("{text}, so memory would be measured")).next(next)
                );
            }
            opened => opened.context(format!("cannot open {}", path.display()))?,
        };
        if destroy && is_file {
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                .context(format!("cannot lock {}", path.display()))?;
        }
        let mut direct = Direct {
            file,
            size: facts.size,
            block: u64::from(facts.logical_block_size.unwrap_or(512)),
            began: Instant::now(),
            memory: vec![Memory::default()],
        };
        // Some file systems want more than the disk below.
        let smallest = Request { write: false, offset: 0, bytes: direct.block };
        if facts.size >= 4096 && one(&direct.file, &mut direct.memory[0], smallest).is_err() {
            direct.block = 4096;
        }
        direct.size = facts.size / 4096 * 4096;
        Ok(direct)
    }
}

/// Carries one request out.
fn one(file: &File, memory: &mut Memory, request: Request) -> io::Result<()> {
    let length = usize::try_from(request.bytes).map_err(io::Error::other)?;
    let bytes = memory.aligned(length);
    match request.write {
        true => file.write_all_at(bytes, request.offset),
        false => file.read_exact_at(bytes, request.offset),
    }
}

impl Measured for Direct {
    fn size(&self) -> u64 {
        self.size
    }

    fn block(&self) -> u64 {
        self.block
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
        let (file, began) = (&self.file, self.began);
        let depth = batch.depth.max(1);
        if self.memory.len() < depth {
            self.memory.resize_with(depth, Memory::default);
        }
        let longest = batch.requests.iter().map(|request| request.bytes).max().unwrap_or(0);
        let longest = usize::try_from(longest).map_err(|error| error.to_string())?;
        for memory in &mut self.memory[..depth] {
            memory.aligned(longest);
        }
        let now = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let timed = |memory: &mut Memory, request: &Request| -> Result<Timing, String> {
            if batch.pause_ns > 0 {
                std::thread::sleep(Duration::from_nanos(batch.pause_ns));
            }
            let start_ns = now();
            one(file, memory, *request).map_err(|error| {
                let what = if request.write { "write" } else { "read" };
                format!("a {what} of {} bytes at {}: {error}", request.bytes, request.offset)
            })?;
            Ok(Timing { start_ns, end_ns: now() })
        };
        if depth == 1 {
            let memory = &mut self.memory[0];
            return batch.requests.iter().map(|request| timed(memory, request)).collect();
        }
        // A thread for each that is under way; each takes the next request when it is free.
        let next = AtomicUsize::new(0);
        let done = Mutex::new(vec![Ok(Timing { start_ns: 0, end_ns: 0 }); batch.requests.len()]);
        std::thread::scope(|scope| {
            for memory in &mut self.memory[..depth] {
                scope.spawn(|| {
                    while let Some((index, request)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        batch.requests.get(index).map(|request| (index, request))
                    } {
                        let timing = timed(memory, request);
                        done.lock().expect("no thread panics with the lock")[index] = timing;
                    }
                });
            }
        });
        done.into_inner().expect("no thread panics with the lock").into_iter().collect()
    }
}
