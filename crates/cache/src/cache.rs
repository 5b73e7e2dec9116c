//! The cache as a device: what is answered from memory, what the origin is asked, what is kept of it.
//!
//! ```text
//!   read   every byte held? ── yes ──▶ copied, answered at once
//!             │ no
//!             ▼
//!          take its blocks ──▶ held by now? ── no ──▶ read the origin ──▶ keep ──▶ answer
//!
//!   write  take its blocks ──▶ write the origin ──▶ keep, or drop what was held ──▶ answer
//! ```
//!
//! Invariants
//! * The origin is complete at every moment: a write is answered when the origin has answered it.
//! * What is held of a sector is what the origin answered last, and a request that changes a block has
//!   it for itself, so nobody reads something older than somebody read before.
//! * Of a write that failed nothing is held: its sectors may be old or new, as the origin has them.
//! * A hit allocates nothing.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Completion, Extent, Io, Limits, Op, Payload, Span};
use braid_engine::{Clock, Dev, Device, Pending};
use braid_level::{CacheMode, CachePolicy};
use braid_mem::{Advice, Region};

use crate::contents::{Contents, Piece};
use crate::counters::Counters;
use crate::curve;
use crate::ranges::Ranges;
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
    /// Runs that are longer than this many bytes go past the cache; none if none does.
    pub sequential_cutoff: Option<u64>,
}

/// A cache in front of a device. Cheap to clone, all clones are the same.
#[derive(Clone)]
pub struct Cache {
    inner: Rc<Inner>,
}

struct Inner {
    origin: Dev,
    config: Config,
    memory: Region,
    contents: RefCell<Contents>,
    streams: RefCell<Streams>,
    counters: RefCell<Counters>,
    ranges: Rc<Ranges>,
    clock: OnceCell<Rc<dyn Clock>>,
}

impl Cache {
    /// A cache in front of `origin`, which holds nothing yet.
    ///
    /// # Errors
    /// `EINVAL` for a block or a size that cannot be; else no memory.
    pub fn new(origin: Dev, config: Config) -> io::Result<Cache> {
        let Config { size, block, policy, sequential_cutoff, .. } = config;
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
        let origin_bytes = origin.limits().size;
        let inner = Inner {
            origin,
            config,
            memory,
            contents: RefCell::new(Contents::new(slots, block, policy, origin_bytes)),
            streams: RefCell::new(Streams::new(sequential_cutoff)),
            counters: RefCell::default(),
            ranges: Rc::default(),
            clock: OnceCell::new(),
        };
        Ok(Cache { inner: Rc::new(inner) })
    }

    /// Counts from now on how long the origin takes to read, by `clock`; by the first that is given.
    pub fn time_origin(&self, clock: Rc<dyn Clock>) {
        self.inner.clock.get_or_init(|| clock);
    }

    /// How it was made.
    pub fn config(&self) -> Config {
        self.inner.config
    }

    /// Memory for what is where and who leaves, in bytes: what is allocated beside the data.
    pub fn index_bytes(&self) -> u64 {
        self.inner.contents.borrow().index_bytes() as u64
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        *self.inner.counters.borrow()
    }

    /// What it would miss with another policy, or at another size.
    pub fn curve(&self) -> curve::Report {
        self.inner.contents.borrow().curve().report()
    }

    /// How many blocks are held, and how many there is room for.
    pub fn used_blocks(&self) -> (u32, u32) {
        self.inner.contents.borrow().used()
    }
}

impl Device for Cache {
    fn limits(&self) -> Limits {
        Limits { immediate: false, ..*self.inner.origin.limits() }
    }

    #[inline]
    fn start(&self, mut io: Io) -> Pending {
        match io.op {
            Op::Read => {
                if self.inner.read_held(&mut io) {
                    return Pending::ready(io.complete(Ok(())));
                }
                Pending::task(Rc::clone(&self.inner).read(io))
            }
            Op::Flush => self.inner.origin.start(io),
            Op::Write | Op::WriteZeroes | Op::Discard => {
                Pending::task(Rc::clone(&self.inner).change(io))
            }
        }
    }

    fn extents(&self, span: Span) -> Vec<Extent> {
        self.inner.origin.extents(span)
    }
}

impl Inner {
    /// Answers a read from memory, if every byte of it is there.
    #[inline]
    fn read_held(&self, io: &mut Io) -> bool {
        let mut contents = self.contents.borrow_mut();
        let blocks = contents.blocks(io.span);
        let blocks = blocks.end - blocks.start;
        match io.payload.bufs_mut() {
            // As most requests are: looked up once, and copied in one go.
            [buf] if blocks == 1 => {
                let piece = contents.piece(io.span);
                let Some(at) = contents.hit(piece) else { return false };
                self.memory.read(at, buf);
            }
            _ => {
                if !contents.pieces(io.span).all(|piece| contents.has(piece)) {
                    return false;
                }
                let mut cursor = Cursor::new(&mut io.payload);
                for piece in contents.pieces(io.span) {
                    let Some(at) = contents.hit(piece) else { return false };
                    cursor.each(piece.len, |done, part| self.memory.read(at + done, part));
                }
            }
        }
        let counters = &mut *self.counters.borrow_mut();
        counters.reads += 1;
        counters.cache_hits += 1;
        counters.cache_reads += blocks;
        counters.bytes_read += io.span.len;
        counters.bytes_from_ram += io.span.len;
        true
    }

    async fn read(self: Rc<Self>, mut io: Io) -> Completion {
        let span = io.span;
        let is_long = self.streams.borrow_mut().is_long(span);
        let blocks = self.contents.borrow().blocks(span);
        let taken = self.ranges.take(blocks.clone()).await;
        if self.read_held(&mut io) {
            taken.finish();
            return io.complete(Ok(()));
        }
        let now = || self.clock.get().map_or(Duration::ZERO, |clock| clock.now());
        let start = now();
        let mut done = self.origin.start(io).await;
        let took = now().saturating_sub(start);
        let is_kept = !is_long && done.result.is_ok() && !self.ranges.was_given_up(&blocks);
        if is_kept {
            self.keep(span, &mut done.payload, false);
        }
        let counters = &mut *self.counters.borrow_mut();
        counters.disk_reads += 1;
        if done.result.is_ok() {
            counters.reads += 1;
            counters.cache_misses += u64::from(!is_long);
            counters.uncached_reads += u64::from(is_long);
            counters.origin_read_time += took;
            counters.bytes_read += span.len;
            counters.bytes_from_origin += span.len;
        }
        taken.finish();
        done
    }

    /// A write, or what makes zeroes or nothing of a span.
    async fn change(self: Rc<Self>, io: Io) -> Completion {
        let (op, span) = (io.op, io.span);
        let is_long = op == Op::Write && self.streams.borrow_mut().is_long(span);
        let blocks = self.contents.borrow().blocks(span);
        let taken = self.ranges.take(blocks.clone()).await;
        let doubt = Doubt { inner: &self, span };
        let mut done = self.origin.start(io).await;
        std::mem::forget(doubt);
        let is_kept = op == Op::Write
            && self.config.mode == CacheMode::WriteThrough
            && done.result.is_ok()
            && !self.ranges.was_given_up(&blocks);
        match (is_kept, is_long) {
            (true, false) => self.keep(span, &mut done.payload, true),
            // What is held of a long run stays right; nothing else is held for it.
            (true, true) => self.renew(span, &mut done.payload),
            (false, _) => self.drop_held(span),
        }
        let counters = &mut *self.counters.borrow_mut();
        counters.disk_writes += 1;
        if done.result.is_ok() && op == Op::Write {
            counters.writes += 1;
            counters.uncached_writes += u64::from(!is_kept || is_long);
            counters.bytes_written += span.len;
        }
        taken.finish();
        done
    }

    /// Holds what `payload` has for `span`.
    fn keep(&self, span: Span, payload: &mut Payload, is_written: bool) {
        let mut contents = self.contents.borrow_mut();
        let counters = &mut *self.counters.borrow_mut();
        let mut cursor = Cursor::new(payload);
        for piece in contents.pieces(span) {
            let Some(put) = contents.put(piece, is_written) else { continue };
            cursor.each(piece.len, |done, part| self.memory.write(put.at + done, part));
            counters.cache_writes += 1;
            let replaced = u64::from(put.replaced);
            if is_written {
                counters.write_replacement += replaced;
            } else {
                counters.replacement += replaced;
            }
        }
    }

    /// As [`Inner::keep`], of blocks of which something is held already.
    fn renew(&self, span: Span, payload: &mut Payload) {
        let mut contents = self.contents.borrow_mut();
        let mut cursor = Cursor::new(payload);
        for piece in contents.pieces(span) {
            let at = contents.renew(piece);
            cursor.each(piece.len, |done, part| {
                if let Some(at) = at {
                    self.memory.write(at + done, part);
                }
            });
        }
    }

    fn drop_held(&self, span: Span) {
        let mut contents = self.contents.borrow_mut();
        let dropped = contents.pieces(span).filter(|piece: &Piece| contents.drop(*piece)).count();
        self.counters.borrow_mut().write_invalidates += dropped as u64;
    }
}

/// A span that the origin is changing: dropped, nobody learns any more how that ended, and nothing is
/// held of it.
struct Doubt<'a> {
    inner: &'a Inner,
    span: Span,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.inner.drop_held(self.span);
    }
}

/// Goes through a payload from its front.
struct Cursor<'a> {
    payload: &'a mut Payload,
    buf: usize,
    within: usize,
}

impl<'a> Cursor<'a> {
    fn new(payload: &'a mut Payload) -> Cursor<'a> {
        Cursor { payload, buf: 0, within: 0 }
    }

    /// Has `f` see the next `len` bytes, part by part, each with how many there were before it.
    fn each(&mut self, len: u64, mut f: impl FnMut(usize, &mut [u8])) {
        let (mut done, len) = (0, len as usize);
        while done < len {
            let buf = &mut self.payload.bufs_mut()[self.buf];
            let count = (buf.len() - self.within).min(len - done);
            f(done, &mut buf[self.within..self.within + count]);
            done += count;
            self.within += count;
            if self.within == buf.len() {
                (self.buf, self.within) = (self.buf + 1, 0);
            }
        }
    }
}
