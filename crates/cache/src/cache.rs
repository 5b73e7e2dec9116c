//! The cache as a device: hits are served from memory; misses and writes go to the origin.
//!
//! ```text
//!   read   all bytes cached? ── yes ──▶ copy, complete at once
//!             │ no
//!             ▼
//!          lock the blocks ──▶ cached by now? ── no ──▶ read the origin ──▶ insert ──▶ complete
//!
//!   write  write-through, write-around:  lock the blocks ──▶ write the origin ──▶ insert or invalidate ──▶ complete
//!          write-back:                   insert as dirty ──▶ complete
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;

use braid_block::{Errno, Io, Limits, Op, Span};
use braid_engine::{Clock, Dev, Device, Extents, Pending};
use braid_level::CacheMode;
use braid_status::CacheCounts;

use crate::aside::{Aside, AsideStatus, Rules};
use crate::config::{Config, slots_of};
use crate::contents::Contents;
use crate::curve;
use crate::log::error::{LogError, Replayed};
use crate::memory::Memory;
use crate::mode::write_back::{WriteBack, WriteBackConfig, WriteBackStatus};
use crate::mode::{write_around, write_through};
use crate::state::CacheState;
use crate::streams::Streams;

/// A cache in front of a device. Clones share the same state.
#[derive(Clone)]
pub struct Cache {
    pub(crate) state: Rc<CacheState>,
    /// State of write-back mode, if the cache was created for it.
    write_back: Option<Rc<WriteBack>>,
}

impl Cache {
    /// Creates an empty cache in front of `origin`, in write-through or write-around mode.
    ///
    /// # Errors
    /// `EINVAL` for an invalid size or block size, or for write-back mode; otherwise out of memory.
    pub fn new(origin: Dev, config: Config) -> io::Result<Cache> {
        if config.mode == CacheMode::WriteBack {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let state = Rc::new(new_state(origin, config, None)?);
        Ok(Cache { state, write_back: None })
    }

    /// Creates a cache in write-back mode. Call [`Cache::restart`] before the first request, poll
    /// [`Cache::run`] while the cache is in use, and call [`Cache::shut_down`] after the last
    /// request.
    ///
    /// # Errors
    /// `EINVAL` for an invalid size or block size, or for another mode; otherwise out of memory.
    pub fn write_back(origin: Dev, config: Config, more: WriteBackConfig) -> io::Result<Cache> {
        if config.mode != CacheMode::WriteBack {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let state = Rc::new(new_state(origin, config, None)?);
        let (_, slots) = state.contents.borrow().used();
        let write_back = WriteBack::new(Rc::clone(&state), more, slots, config.block)?;
        Ok(Cache { state, write_back: Some(Rc::new(write_back)) })
    }

    /// Creates a cache in front of an `origin` that may still receive requests that bypass the
    /// cache, with `memory` allocated for it. The cache stays empty until [`Cache::begin`].
    ///
    /// # Errors
    /// As [`Cache::new`]; `EINVAL` if `memory` is smaller than the size.
    pub fn attach(origin: Dev, config: Config, memory: Memory) -> io::Result<Cache> {
        if config.mode == CacheMode::WriteBack {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let state = new_state(origin, config, Some(memory))?;
        state.is_caching.set(false);
        Ok(Cache { state: Rc::new(state), write_back: None })
    }

    /// Starts caching. The origin receives no more requests that bypass the cache.
    pub fn begin(&self) {
        self.state.is_caching.set(true);
    }

    /// Returns whether both handles share the same contents, in any mode.
    pub fn is_same(&self, other: &Cache) -> bool {
        Rc::ptr_eq(&self.state, &other.state)
    }

    /// Returns the device behind the cache.
    pub fn origin(&self) -> Dev {
        self.state.origin.clone()
    }

    /// Stops caching: later requests go to the origin. Returns the memory, which takes time to
    /// drop. In write-back mode, call [`Cache::close`] first.
    pub fn end(&self) -> Memory {
        self.state.is_caching.set(false);
        self.resize(self.config().block, Memory::default()).unwrap_or_default()
    }

    /// Leaves write-back mode under load: drains all dirty data, closes the log, and continues in
    /// write-through mode. Writes that arrive meanwhile wait.
    ///
    /// # Errors
    /// The origin or the log's device failed; the cache stays in write-back mode.
    pub async fn close(&self) -> Result<(), Errno> {
        if let Some(write_back) = self.active_write_back() {
            write_back.close().await?;
            self.set_mode(CacheMode::WriteThrough);
        }
        Ok(())
    }

    /// Returns a handle to this cache in write-back mode that replaces it in the export. Until the
    /// exchange is complete, requests go to the origin. Changes sent to the new handle wait until
    /// [`Cache::begin_write_back`].
    ///
    /// Call [`Cache::restart`] before the exchange, with a setup that marks the origin as in use,
    /// and then poll [`Cache::run`].
    ///
    /// # Errors
    /// `EINVAL` if the cache is in write-back mode; out of memory.
    pub fn to_write_back(&self, more: WriteBackConfig) -> io::Result<Cache> {
        if self.active_write_back().is_some() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (slots, block) = (self.used_blocks().1, self.config().block);
        let write_back = WriteBack::new(Rc::clone(&self.state), more, slots, block)?;
        write_back.lock_out_changes();
        Ok(Cache { state: Rc::clone(&self.state), write_back: Some(Rc::new(write_back)) })
    }

    /// Starts write-back mode, after all requests that bypassed it have completed.
    ///
    /// # Errors
    /// `EBUSY` if a change was abandoned before the origin completed it, and may still arrive. The
    /// cache then writes through, and the log is closed.
    ///
    /// # Panics
    /// If the handle was not made by [`Cache::to_write_back`].
    pub async fn begin_write_back(&self) -> Result<(), Errno> {
        let write_back = self.write_back.as_ref().expect("a cache that is to be write-back");
        if self.state.ranges.has_abandoned() {
            write_back.cancel_begin().await;
            return Err(Errno::from_raw(16));
        }
        self.state.contents.borrow_mut().track_dirty();
        self.state.config.set(Config { mode: CacheMode::WriteBack, ..self.config() });
        self.state.is_caching.set(true);
        write_back.begin();
        Ok(())
    }

    /// Changes the mode to write-through or write-around.
    ///
    /// # Panics
    /// If the old or the new mode is write-back: see [`Cache::close`].
    pub fn set_mode(&self, mode: CacheMode) {
        assert!(
            mode != CacheMode::WriteBack && self.active_write_back().is_none(),
            "write-back mode"
        );
        self.state.config.set(Config { mode, ..self.config() });
    }

    /// Limits draining to `rate` bytes per second, or removes the limit. The limit does not apply
    /// while a client waits for draining. Returns whether the cache is in write-back mode.
    pub fn set_drain(&self, rate: Option<u64>) -> bool {
        let write_back = self.active_write_back();
        write_back.inspect(|write_back| write_back.set_drain(rate)).is_some()
    }

    /// Returns the state of write-back mode, if the cache is in that mode.
    fn active_write_back(&self) -> Option<&Rc<WriteBack>> {
        self.write_back.as_ref().filter(|write_back| !write_back.is_closed())
    }

    /// Measures the latency of the origin by `clock`, and steps aside by `rules` if the cache is no
    /// faster than the origin.
    ///
    /// # Panics
    /// If the cache has a clock already.
    pub fn time_origin(&self, clock: Rc<dyn Clock>, rules: Rules) {
        self.state.aside.replace(Aside::new(rules, clock.now()));
        assert!(self.state.clock.set(clock).is_ok(), "a clock was given before");
    }

    /// Returns whether the cache inserts what is read, and the figures behind that decision.
    pub fn aside(&self) -> AsideStatus {
        let now = self.state.clock.get().map(|clock| clock.now());
        self.state.aside.borrow().status(now.unwrap_or_default())
    }

    /// Changes the capacity to `size` bytes, in whole blocks. `more` is the memory from
    /// [`Memory::to_grow`]; empty to shrink, which evicts the blocks that the policy would evict
    /// first. Returns memory that is no longer needed and takes time to drop. Returns `None`, and
    /// changes nothing, if more than `size` bytes are dirty.
    ///
    /// # Panics
    /// If `more` has not exactly the missing size, or `size` is less than a block; callers check
    /// this.
    pub fn resize(&self, size: u64, more: Memory) -> Option<Memory> {
        let block = self.config().block;
        let slots = slots_of(size, block).expect("a size of some blocks");
        let len = slots as usize * block as usize;
        let mut memory = self.state.memory.borrow_mut();
        let mut contents = self.state.contents.borrow_mut();
        let is = contents.used().1;
        if !fits(&contents, slots) {
            return None;
        }
        if slots == is {
            return Some(more);
        }
        let moves = contents.resize(slots);
        self.state.aside.borrow_mut().reset();
        drop(contents);
        self.state.config.set(Config { size, ..self.config() });
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

    /// Returns true if the dirty blocks fit in `size` bytes.
    pub fn can_resize(&self, size: u64) -> bool {
        let slots = slots_of(size, self.config().block);
        slots.is_some_and(|slots| fits(&self.state.contents.borrow(), slots))
    }

    /// Returns the estimated misses for other policies and sizes.
    pub fn curve(&self) -> curve::Report {
        self.state.contents.borrow().curve().report()
    }

    /// Opens the log, if any, and writes its contents to the origin. Returns what was replayed.
    ///
    /// # Errors
    /// [`LogError`]; the log is unchanged.
    pub async fn restart(&self) -> Result<Option<Replayed>, LogError> {
        match &self.write_back {
            Some(write_back) => write_back.restart().await,
            None => Ok(None),
        }
    }

    /// Returns the background task of write-back mode, which never ends; `None` in other modes.
    pub fn run(&self) -> Option<impl Future<Output = ()> + 'static> {
        self.write_back.clone().map(WriteBack::run)
    }

    /// Drains all dirty data to the origin, and closes the log.
    ///
    /// # Errors
    /// The origin or the log's device failed. Flushed data are in the log, if there is one.
    pub async fn shut_down(&self) -> Result<(), Errno> {
        match &self.write_back {
            Some(write_back) => write_back.shut_down().await,
            None => Ok(()),
        }
    }

    /// Returns the state of write-back mode: dirty data, draining, the log.
    pub fn write_back_status(&self) -> Option<WriteBackStatus> {
        self.active_write_back().map(|write_back| write_back.status())
    }

    /// Returns the configuration.
    pub fn config(&self) -> Config {
        self.state.config.get()
    }

    /// Returns the memory of the index in bytes: everything except the data.
    pub fn index_bytes(&self) -> u64 {
        self.state.contents.borrow().index_bytes() as u64
    }

    /// Returns the counters.
    pub fn counters(&self) -> CacheCounts {
        *self.state.counters.borrow()
    }

    /// Returns the number of cached blocks and of slots.
    pub fn used_blocks(&self) -> (u32, u32) {
        self.state.contents.borrow().used()
    }
}

/// Creates the state of an empty cache in front of `origin`.
fn new_state(origin: Dev, config: Config, memory: Option<Memory>) -> io::Result<CacheState> {
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
    Ok(CacheState {
        origin,
        config: Cell::new(config),
        memory: RefCell::new(memory),
        contents: RefCell::new(contents),
        streams: RefCell::new(Streams::new(sequential_cutoff)),
        counters: RefCell::default(),
        ranges: Rc::default(),
        clock: OnceCell::new(),
        aside: RefCell::default(),
        is_caching: Cell::new(true),
    })
}

/// Returns true if the dirty blocks fit in so many slots.
fn fits(contents: &Contents, slots: u32) -> bool {
    contents.dirty().is_none_or(|dirty| dirty.block_count() <= slots.into())
}

impl Device for Cache {
    fn limits(&self) -> Limits {
        Limits { immediate: false, shared_flush: false, ..*self.state.origin.limits() }
    }

    #[inline]
    fn start(&self, mut io: Io) -> Pending {
        if io.op == Op::Read {
            if self.state.read_hit(&mut io) {
                return Pending::ready(io.complete(Ok(())));
            }
            return Pending::task(Rc::clone(&self.state).read(io));
        }
        let state = Rc::clone(&self.state);
        match (self.active_write_back(), io.op) {
            (Some(write_back), Op::Write) => write_back.write(io),
            (Some(write_back), Op::Flush) => write_back.start_flush(io),
            (Some(write_back), _) => write_back.operate(io),
            (None, Op::Flush) => self.state.origin.start(io),
            (None, _) if self.config().mode == CacheMode::WriteAround => {
                Pending::task(write_around::change(state, io))
            }
            (None, _) => Pending::task(write_through::change(state, io)),
        }
    }

    fn extents(&self, span: Span) -> Extents {
        let contents = self.state.contents.borrow();
        let is_touched = |dirty: &crate::dirty::Dirty| dirty.touches(contents.blocks(span));
        if contents.dirty().is_some_and(is_touched) {
            return Extents::data(span.len);
        }
        self.state.origin.extents(span)
    }
}
