//! A device whose changes go to a store (copy on write).
//!
//! ```text
//!   read    table: has the store the block? ── yes ──▶ store, at its place there
//!                                           └─ no ───▶ origin
//!   write   blocks that the store has ───────────────▶ store
//!           others: locked ▸ the rest of the first and last block copied ▸ written to the store ▸ bits set in memory
//!   flush   store flushed ▸ pages of the table with new bits written ▸ store flushed
//! ```
//!
//! Invariants
//! * The origin is never written, nor flushed.
//! * The table on the store names a block only when its data are durable there: a crash between the two loses changes
//!   that were not flushed, and nothing else.
//! * The bit of a block is set after all of its bytes are in the store. Until then it is locked against other writes.
//! * A change that its caller drops is still carried out to its end ([`Background`]).
//!
//! Deliberately absent: giving room back. A discard does nothing.

mod store;
mod table;

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;

use braid_block::{Completion, Errno, Flags, Io, Limits, Op, Payload, Span};
use braid_mem::Pool;

pub use store::{BLOCK, Layout, PAGE, StoreError};

use crate::background::Background;
use crate::signal::Signal;
use crate::{Dev, Device, Extents, Pending, join_all};
use store::BLOCK_BYTES;
use table::{Table, blocks_of};

/// Memory for copies of blocks and pages of the table, in bytes.
const POOL: usize = 256 << 10;

/// A device whose changes go to a store. Cheap to clone; all clones are the same device.
#[derive(Clone)]
pub struct Cow {
    inner: Rc<Inner>,
}

struct Inner {
    origin: Dev,
    store: Dev,
    layout: Layout,
    table: RefCell<Table>,
    /// Spans of the blocks that are being brought into the store.
    busy: Locks,
    /// The one flush under way.
    flushing: Locks,
    background: Rc<Background>,
    pool: Pool,
}

impl Cow {
    /// Returns the device that is `origin` with the changes in `store`, whose header was checked
    /// ([`Layout::check`]). [`Cow::run`] must be polled beside its requests, unless the store is read-only.
    ///
    /// # Errors
    /// There is no memory.
    ///
    /// # Panics
    /// If the store is shorter than its layout.
    pub fn new(origin: Dev, store: Dev) -> io::Result<Cow> {
        let layout = Layout::new(origin.limits().size);
        assert!(layout.size() <= store.limits().size, "a store of {} bytes", store.limits().size);
        Ok(Cow {
            inner: Rc::new(Inner {
                origin,
                store,
                layout,
                table: RefCell::default(),
                busy: Locks::default(),
                flushing: Locks::default(),
                background: Rc::default(),
                pool: Pool::new(POOL)?,
            }),
        })
    }

    /// Returns the limits of a device with the limits `origin` in front of which is a store with the limits `store`.
    pub fn limits(origin: Limits, store: Limits) -> Limits {
        Limits {
            logical_block: origin.logical_block.max(store.logical_block),
            physical_block: BLOCK_BYTES.max(store.physical_block),
            read_only: store.read_only,
            discard: false,
            unmaps_zeroes: false,
            volatile: store.volatile,
            rotational: origin.rotational || store.rotational,
            immediate: false,
            shared_flush: false,
            ..origin
        }
    }

    /// Carries changes to their end that their callers dropped. Never ends.
    pub fn run(&self) -> impl Future<Output = ()> + 'static {
        let background = Rc::clone(&self.inner.background);
        async move { background.run().await }
    }
}

impl Device for Cow {
    fn limits(&self) -> Limits {
        Cow::limits(*self.inner.origin.limits(), *self.inner.store.limits())
    }

    fn start(&self, io: Io) -> Pending {
        let inner = Rc::clone(&self.inner);
        match io.op {
            Op::Read if inner.table.borrow().first_unread(io.span).is_none() => inner.read(io),
            Op::Read => Pending::task(async move {
                match inner.read_table(io.span).await {
                    Ok(()) => inner.read(io).await,
                    Err(errno) => io.complete(Err(errno)),
                }
            }),
            Op::Discard => Pending::ready(io.complete(Ok(()))),
            Op::Flush => self.inner.background.request(async move {
                let result = inner.flush().await;
                io.complete(result)
            }),
            Op::Write | Op::WriteZeroes => {
                self.inner.background.request(async move { inner.change(io).await })
            }
        }
    }

    fn extents(&self, span: Span) -> Extents {
        let inner = &self.inner;
        let table = inner.table.borrow();
        if table.first_unread(span).is_some() {
            return Extents::data(span.len);
        }
        match table.run(span) {
            (true, run) => inner.store.extents(inner.in_store(run)),
            (false, run) => inner.origin.extents(run),
        }
    }
}

impl Inner {
    /// Returns the place of `span` in the store.
    fn in_store(&self, span: Span) -> Span {
        Span::new(self.layout.data_at() + span.offset, span.len)
    }

    /// Reads the pages of the table that `span` needs.
    async fn read_table(&self, span: Span) -> Result<(), Errno> {
        loop {
            let Some(page) = self.table.borrow().first_unread(span) else { return Ok(()) };
            let buf = self.pool.get_wait(PAGE as usize).await;
            let done = self.store.start(Io::read(self.layout.page_at(page), buf)).await;
            done.result?;
            self.table.borrow_mut().read(page, &done.payload.to_vec());
        }
    }

    /// Reads what the table, whose pages were read, says where it is.
    fn read(&self, io: Io) -> Pending {
        let Io { op, span, flags, mut payload } = io;
        let start = |has: bool, run: Span, payload: Payload| {
            let (dev, span) =
                if has { (&self.store, self.in_store(run)) } else { (&self.origin, run) };
            dev.start(Io { op, span, flags, payload })
        };
        let table = self.table.borrow();
        let (has, run) = table.run(span);
        if run == span {
            return start(has, run, payload);
        }
        let mut rest = span;
        let mut started = Vec::new();
        while !rest.is_empty() {
            let (has, run) = table.run(rest);
            started.push(start(has, run, payload.take_front(run.len)));
            rest = Span::new(run.end(), rest.end() - run.end());
        }
        Pending::task(async move {
            let mut whole = Completion { result: Ok(()), payload: Payload::None };
            for done in join_all(started).await {
                whole.result = whole.result.and(done.result);
                whole.payload.append(done.payload);
            }
            whole
        })
    }

    /// Writes data or zeroes to the store.
    async fn change(&self, io: Io) -> Completion {
        let Io { op, span, flags, payload } = io;
        let refused = |payload, errno| Completion { result: Err(errno), payload };
        if let Err(errno) = self.read_table(span).await {
            return refused(payload, errno);
        }
        let (first, end) = blocks_of(span);
        let blocks = Span::new(first * BLOCK, (end - first) * BLOCK);
        // Nothing else changes a block that the store has, but requests that overlap this one.
        let is_there = self.table.borrow().has_all(span);
        let locked = if is_there { None } else { Some(self.busy.lock(blocks).await) };
        if locked.is_some()
            && let Err(errno) = self.copy_edges(span).await
        {
            return refused(payload, errno);
        }
        let kept = if flags.contains(Flags::NO_UNMAP) { Flags::NO_UNMAP } else { Flags::NONE };
        let write = Io { op, span: self.in_store(span), flags: kept, payload };
        let mut done = self.store.start(write).await;
        if done.result.is_ok() {
            self.table.borrow_mut().insert(span);
        }
        drop(locked);
        if done.result.is_ok() && flags.contains(Flags::FUA) {
            done.result = self.flush().await;
        }
        done
    }

    /// Copies the bytes of the first and the last block that `span` does not cover, where the store has not got
    /// them. The blocks are locked.
    async fn copy_edges(&self, span: Span) -> Result<(), Errno> {
        let (first, end) = blocks_of(span);
        let last_end = (end * BLOCK).min(self.layout.origin);
        let front = Span::new(first * BLOCK, span.offset - first * BLOCK);
        let back = Span::new(span.end(), last_end - span.end());
        for (block, rest) in [(first, front), (end - 1, back)] {
            if rest.is_empty() || self.table.borrow().has(block) {
                continue;
            }
            let buf = self.pool.get_wait(rest.len as usize).await;
            let read = self.origin.start(Io::read(rest.offset, buf)).await;
            read.result?;
            let to = self.in_store(rest).offset;
            self.store.start(Io::write(to, read.payload, Flags::NONE)).await.result?;
        }
        Ok(())
    }

    /// Makes all changes durable that completed before.
    async fn flush(&self) -> Result<(), Errno> {
        // An older page must not be written over a newer one.
        let _turn = self.flushing.lock(Span::new(0, 1)).await;
        let pages = self.table.borrow_mut().take_dirty();
        let result = self.store_pages(&pages).await;
        if result.is_err() {
            self.table.borrow_mut().give_back(&pages);
        }
        result
    }

    async fn store_pages(&self, pages: &[(u64, Vec<u8>)]) -> Result<(), Errno> {
        self.store.start(Io::flush()).await.result?;
        if pages.is_empty() {
            return Ok(());
        }
        for (page, bytes) in pages {
            let mut buf = self.pool.get_wait(PAGE as usize).await;
            buf.copy_from_slice(bytes);
            let write = Io::write(self.layout.page_at(*page), buf, Flags::NONE);
            self.store.start(write).await.result?;
        }
        self.store.start(Io::flush()).await.result
    }
}

/// Spans that are locked.
#[derive(Default)]
struct Locks {
    held: RefCell<Vec<Span>>,
    changed: Signal,
}

/// A locked span, until it is dropped.
struct Locked<'a> {
    locks: &'a Locks,
    span: Span,
}

impl Locks {
    /// Locks `span` once no other lock overlaps it.
    async fn lock(&self, span: Span) -> Locked<'_> {
        let is_free = || !self.held.borrow().iter().any(|held| held.overlaps(span));
        self.changed.until(is_free).await;
        self.held.borrow_mut().push(span);
        Locked { locks: self, span }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.held.borrow_mut();
        // Of locks that are held no two are equal.
        held.retain(|held| *held != self.span);
        drop(held);
        self.locks.changed.notify();
    }
}
