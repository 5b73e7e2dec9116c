//! The cache as a device: what is answered from memory, what the origin is asked, what is kept of it.
//!
//! ```text
//!   read   every byte held? ── yes ──▶ copied, answered at once
//!             │ no
//!             ▼
//!          take its blocks ──▶ held by now? ── no ──▶ read the origin ──▶ keep ──▶ answer
//!
//!   write  write-through, write-around:  take its blocks ──▶ write the origin ──▶ keep, or drop ──▶ answer
//!          write-back:                   keep ──▶ answer
//! ```

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use braid_block::{Errno, Extent, Io, Limits, Op, Span};
use braid_engine::{Dev, Device, Pending};
use braid_level::{CacheMode, CachePolicy};
use braid_mem::{Advice, Region};

use crate::contents::Contents;
use crate::counters::Counters;
use crate::held::Held;
use crate::log::store::{LogError, Replayed};
use crate::mode::write_back::{WriteBack, WriteBackConfig, WriteBackStatus};
use crate::mode::{write_around, write_through};
use crate::streams::Streams;

/// How a cache is made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Memory for data, in bytes: whole blocks of it are used.
    pub size: u64,
    /// Bytes of a block: a power of two from 4 KiB to 64 KiB.
    pub block: u64,
    /// What becomes of writes.
    pub mode: CacheMode,
    /// Who leaves.
    pub policy: CachePolicy,
    /// Runs that are longer than this many bytes go past the cache; none if none does. In write-back mode
    /// only those of reads.
    pub sequential_cutoff: Option<u64>,
}

/// A cache in front of a device. Cheap to clone, all clones are the same.
#[derive(Clone)]
pub struct Cache {
    config: Config,
    held: Rc<Held>,
    /// In write-back mode.
    write_back: Option<Rc<WriteBack>>,
}

impl Cache {
    /// A cache in front of `origin`, which holds nothing yet and writes through or around.
    ///
    /// # Errors
    /// `EINVAL` for a block or a size that cannot be, or write-back mode; else no memory.
    pub fn new(origin: Dev, config: Config) -> io::Result<Cache> {
        if config.mode == CacheMode::WriteBack {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let held = Rc::new(hold(origin, config)?);
        Ok(Cache { config, held, write_back: None })
    }

    /// A cache in write-back mode. [`Cache::restart`] comes before the first request, [`Cache::run`] goes
    /// on while it is used, [`Cache::shut_down`] comes after the last.
    ///
    /// # Errors
    /// `EINVAL` for a block or a size that cannot be, or another mode; else no memory.
    pub fn write_back(origin: Dev, config: Config, more: WriteBackConfig) -> io::Result<Cache> {
        if config.mode != CacheMode::WriteBack {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let held = Rc::new(hold(origin, config)?);
        let (_, slots) = held.contents.borrow().used();
        let write_back = WriteBack::new(Rc::clone(&held), more, slots, config.block)?;
        Ok(Cache { config, held, write_back: Some(Rc::new(write_back)) })
    }

    /// Opens the log of a cache that has one, and writes to the origin what it holds; answers what that was.
    ///
    /// # Errors
    /// [`LogError`]: the log stays as it is.
    pub async fn restart(&self) -> Result<Option<Replayed>, LogError> {
        match &self.write_back {
            Some(write_back) => write_back.restart().await,
            None => Ok(None),
        }
    }

    /// What a cache in write-back mode does of itself, without end; none in another mode.
    pub fn run(&self) -> Option<impl Future<Output = ()> + 'static> {
        self.write_back.clone().map(WriteBack::run)
    }

    /// Has the origin take all that it does not have, and closes the log.
    ///
    /// # Errors
    /// The origin, or the log's device, failed. What was flushed is in the log, if there is one.
    pub async fn shut_down(&self) -> Result<(), Errno> {
        match &self.write_back {
            Some(write_back) => write_back.shut_down().await,
            None => Ok(()),
        }
    }

    /// What the origin does not have, in write-back mode.
    pub fn write_back_status(&self) -> Option<WriteBackStatus> {
        self.write_back.as_ref().map(|write_back| write_back.status())
    }

    /// How it was made.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Memory for what is where and who leaves, in bytes: what is allocated beside the data.
    pub fn index_bytes(&self) -> u64 {
        self.held.contents.borrow().index_bytes() as u64
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        *self.held.counters.borrow()
    }

    /// How many blocks are held, and how many there is room for.
    pub fn used_blocks(&self) -> (u32, u32) {
        self.held.contents.borrow().used()
    }
}

/// The memory of a cache in front of `origin`.
fn hold(origin: Dev, config: Config) -> io::Result<Held> {
    let Config { size, block, mode, policy, sequential_cutoff } = config;
    let is_block = block.is_power_of_two() && (4096..=65536).contains(&block);
    let slots = if is_block { size / block } else { 0 };
    let slots = u32::try_from(slots).map_err(|_| io::ErrorKind::InvalidInput)?;
    if slots == 0 || slots == u32::MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let memory = Region::new((u64::from(slots) * block) as usize, Advice::SparseHuge)?;
    // All of it now: a page that is first touched while requests are served may have to wait for
    // memory, and so for this very device.
    memory.populate();
    let contents = Contents::new(slots, block, policy);
    let is_write_back = mode == CacheMode::WriteBack;
    Ok(Held {
        origin,
        memory,
        contents: RefCell::new(if is_write_back { contents.with_dirty() } else { contents }),
        streams: RefCell::new(Streams::new(sequential_cutoff)),
        counters: RefCell::default(),
        ranges: Rc::default(),
    })
}

impl Device for Cache {
    fn limits(&self) -> Limits {
        Limits { immediate: false, ..*self.held.origin.limits() }
    }

    #[inline]
    fn start(&self, mut io: Io) -> Pending {
        if io.op == Op::Read {
            if self.held.read_held(&mut io) {
                return Pending::ready(io.complete(Ok(())));
            }
            return Pending::task(Rc::clone(&self.held).read(io));
        }
        let held = Rc::clone(&self.held);
        match (&self.write_back, io.op) {
            (Some(write_back), Op::Write) => write_back.write(io),
            (Some(write_back), Op::Flush) => write_back.start_flush(io),
            (Some(write_back), _) => write_back.operate(io),
            (None, Op::Flush) => self.held.origin.start(io),
            (None, _) if self.config.mode == CacheMode::WriteAround => {
                Pending::task(write_around::change(held, io))
            }
            (None, _) => Pending::task(write_through::change(held, io)),
        }
    }

    fn extents(&self, span: Span) -> Vec<Extent> {
        let contents = self.held.contents.borrow();
        let is_touched = |dirty: &crate::dirty::Dirty| dirty.touches(contents.blocks(span));
        if contents.dirty().is_some_and(is_touched) {
            return vec![Extent::data(span.len)];
        }
        self.held.origin.extents(span)
    }
}
