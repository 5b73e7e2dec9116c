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

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;

use braid_block::{Errno, Extent, Io, Limits, Op, Span};
use braid_engine::{Clock, Dev, Device, Pending};
use braid_level::CacheMode;

use crate::aside::{Aside, AsideStatus, Rules};
use crate::config::{Config, slots_of};
use crate::contents::Contents;
use crate::counters::Counters;
use crate::curve;
use crate::held::Held;
use crate::log::error::{LogError, Replayed};
use crate::memory::Memory;
use crate::mode::write_back::{WriteBack, WriteBackConfig, WriteBackStatus};
use crate::mode::{write_around, write_through};
use crate::streams::Streams;

/// A cache in front of a device. Cheap to clone, all clones are the same.
#[derive(Clone)]
pub struct Cache {
    pub(crate) held: Rc<Held>,
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
        let held = Rc::new(hold(origin, config, None)?);
        Ok(Cache { held, write_back: None })
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
        let held = Rc::new(hold(origin, config, None)?);
        let (_, slots) = held.contents.borrow().used();
        let write_back = WriteBack::new(Rc::clone(&held), more, slots, config.block)?;
        Ok(Cache { held, write_back: Some(Rc::new(write_back)) })
    }

    /// A cache in front of an `origin` that others may still be asking past it, in `memory` that was made
    /// for it: it holds nothing before [`Cache::begin`].
    ///
    /// # Errors
    /// As [`Cache::new`]; `EINVAL` for less memory than its size.
    pub fn attach(origin: Dev, config: Config, memory: Memory) -> io::Result<Cache> {
        if config.mode == CacheMode::WriteBack {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let held = hold(origin, config, Some(memory))?;
        held.is_holding.set(false);
        Ok(Cache { held: Rc::new(held), write_back: None })
    }

    /// Nobody asks the origin past it any more: what is read and written from now on is held.
    pub fn begin(&self) {
        self.held.is_holding.set(true);
    }

    /// Whether both hold the same, in whatever mode.
    pub fn is_same(&self, other: &Cache) -> bool {
        Rc::ptr_eq(&self.held, &other.held)
    }

    /// The device behind it.
    pub fn origin(&self) -> Dev {
        self.held.origin.clone()
    }

    /// What is asked from now on goes to the origin past it: it holds nothing more, and gives its memory
    /// back, which takes a while to drop. In write-back mode [`Cache::close`] comes before.
    pub fn end(&self) -> Memory {
        self.held.is_holding.set(false);
        self.resize(self.config().block, Memory::default()).unwrap_or_default()
    }

    /// Ends write-back mode, while requests come: the origin has everything, the log is closed, and writes
    /// go through from now on. Those that come meanwhile wait.
    ///
    /// # Errors
    /// The origin, or the log's device, failed: all goes on as before.
    pub async fn close(&self) -> Result<(), Errno> {
        if let Some(write_back) = self.written_back() {
            write_back.close().await?;
            self.set_mode(CacheMode::WriteThrough);
        }
        Ok(())
    }

    /// The same cache, to be offered in place of this one, which asks the origin until then: in write-back
    /// mode from [`Cache::begin_write_back`] on, before which who changes something waits. [`Cache::restart`]
    /// comes before it is offered, and its setup says that the origin is in use; [`Cache::run`] then.
    ///
    /// # Errors
    /// `EINVAL` if it is in write-back mode; no memory.
    pub fn to_write_back(&self, more: WriteBackConfig) -> io::Result<Cache> {
        if self.written_back().is_some() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (slots, block) = (self.used_blocks().1, self.config().block);
        let write_back = WriteBack::new(Rc::clone(&self.held), more, slots, block)?;
        write_back.have_changes_wait();
        Ok(Cache { held: Rc::clone(&self.held), write_back: Some(Rc::new(write_back)) })
    }

    /// All that asked past write-back mode has been answered: it begins.
    ///
    /// # Errors
    /// `EBUSY` if somebody went away in the middle of a change, and nobody knows when the origin does that:
    /// then writes go through, and the log is closed.
    ///
    /// # Panics
    /// If it was not made by [`Cache::to_write_back`].
    pub async fn begin_write_back(&self) -> Result<(), Errno> {
        let write_back = self.write_back.as_ref().expect("a cache that is to be write-back");
        if self.held.ranges.has_given_up() {
            write_back.end_waiting().await;
            return Err(Errno::from_raw(16));
        }
        self.held.contents.borrow_mut().track_dirty();
        self.held.config.set(Config { mode: CacheMode::WriteBack, ..self.config() });
        self.held.is_holding.set(true);
        write_back.begin();
        Ok(())
    }

    /// Has writes go through from now on, or around.
    ///
    /// # Panics
    /// To or from write-back mode: see [`Cache::close`].
    pub fn set_mode(&self, mode: CacheMode) {
        assert!(mode != CacheMode::WriteBack && self.written_back().is_none(), "write-back mode");
        self.held.config.set(Config { mode, ..self.config() });
    }

    /// Holds draining to so many bytes a second from now on, while nobody waits for it, or to nothing.
    /// Answers whether the cache is in write-back mode.
    pub fn set_drain(&self, rate: Option<u64>) -> bool {
        let write_back = self.written_back();
        write_back.inspect(|write_back| write_back.set_drain(rate)).is_some()
    }

    /// In write-back mode, that.
    fn written_back(&self) -> Option<&Rc<WriteBack>> {
        self.write_back.as_ref().filter(|write_back| !write_back.is_closed())
    }

    /// Counts from now on how long the origin takes to read, by `clock`, and steps aside by `rules` where it
    /// is no slower than the cache.
    ///
    /// # Panics
    /// If it was given a clock before.
    pub fn time_origin(&self, clock: Rc<dyn Clock>, rules: Rules) {
        self.held.aside.replace(Aside::new(rules, clock.now()));
        assert!(self.held.clock.set(clock).is_ok(), "a clock was given before");
    }

    /// Whether it holds what is read, and by which figures.
    pub fn aside(&self) -> AsideStatus {
        let now = self.held.clock.get().map(|clock| clock.now());
        self.held.aside.borrow().status(now.unwrap_or_default())
    }

    /// Has room for `size` bytes of data from now on, in whole blocks. `more` is what [`Memory::to_grow`]
    /// made for it, of nothing if it is to shrink: then who would leave first leaves. What is answered is
    /// not needed any more, and takes a while to drop. `None` if more than that is dirty: all stays as it
    /// was.
    ///
    /// # Panics
    /// If `more` is not what is missing, or `size` has no block: whoever asks has checked it.
    pub fn resize(&self, size: u64, more: Memory) -> Option<Memory> {
        let block = self.config().block;
        let slots = slots_of(size, block).expect("a size of some blocks");
        let len = slots as usize * block as usize;
        let mut memory = self.held.memory.borrow_mut();
        let mut contents = self.held.contents.borrow_mut();
        let is = contents.used().1;
        if contents.dirty().is_some_and(|dirty| dirty.block_count() > slots.into()) {
            return None;
        }
        if slots == is {
            return Some(more);
        }
        let moves = contents.resize(slots);
        self.held.aside.borrow_mut().start_over();
        drop(contents);
        self.held.config.set(Config { size, ..self.config() });
        if let Some(write_back) = &self.write_back {
            write_back.resized(slots);
        }
        if slots > is {
            let replaced = memory.grow(more);
            assert!(memory.len() >= len, "{} bytes of memory for {len}", memory.len());
            return Some(replaced);
        }
        for one in moves {
            let from = one.from.index() * block as usize;
            memory.copy(from..from + block as usize, one.to.index() * block as usize);
        }
        Some(memory.shrink(len))
    }

    /// What it would miss with another policy, or at another size.
    pub fn curve(&self) -> curve::Report {
        self.held.contents.borrow().curve().report()
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
        self.written_back().map(|write_back| write_back.status())
    }

    /// How it is.
    pub fn config(&self) -> Config {
        self.held.config.get()
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
fn hold(origin: Dev, config: Config, memory: Option<Memory>) -> io::Result<Held> {
    let Config { size, block, mode, policy, sequential_cutoff } = config;
    let slots = slots_of(size, block).ok_or(io::ErrorKind::InvalidInput)?;
    let len = slots as usize * block as usize;
    let memory = match memory {
        Some(memory) if memory.len() < len => return Err(io::ErrorKind::InvalidInput.into()),
        Some(memory) => memory,
        None => Memory::new(len)?,
    };
    let mut contents = Contents::new(slots, block, policy, origin.limits().size);
    if mode == CacheMode::WriteBack {
        contents.track_dirty();
    }
    Ok(Held {
        origin,
        config: Cell::new(config),
        memory: RefCell::new(memory),
        contents: RefCell::new(contents),
        streams: RefCell::new(Streams::new(sequential_cutoff)),
        counters: RefCell::default(),
        ranges: Rc::default(),
        clock: OnceCell::new(),
        aside: RefCell::default(),
        is_holding: Cell::new(true),
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
        match (self.written_back(), io.op) {
            (Some(write_back), Op::Write) => write_back.write(io),
            (Some(write_back), Op::Flush) => write_back.start_flush(io),
            (Some(write_back), _) => write_back.operate(io),
            (None, Op::Flush) => self.held.origin.start(io),
            (None, _) if self.config().mode == CacheMode::WriteAround => {
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
