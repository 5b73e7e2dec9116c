//! State of a cache that all modes share: the origin, the contents, and reads.
//!
//! Invariants
//! * A cached sector has the value that the origin returned last, or a newer one that will be
//!   written to it.
//! * A request locks its blocks while it accesses the origin, so a read never returns older data
//!   than an earlier read.
//! * A hit does not allocate.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Completion, Io, Payload, Span};
use braid_engine::{Clock, Dev};
use braid_status::CacheCounts;

use crate::aside::Aside;
use crate::canary::Canary;
use crate::config::Config;
use crate::contents::{Contents, Piece};
use crate::cursor::Cursor;
use crate::memory::Memory;
use crate::ranges::Ranges;
use crate::streams::Streams;

/// One hit in this many is timed.
const TIMED: u64 = 64;

/// Contents of a cache, and its origin.
pub(crate) struct CacheState {
    pub(crate) origin: Dev,
    pub(crate) config: Cell<Config>,
    pub(crate) memory: RefCell<Memory>,
    pub(crate) contents: RefCell<Contents>,
    pub(crate) streams: RefCell<Streams>,
    pub(crate) counters: RefCell<CacheCounts>,
    pub(crate) ranges: Rc<Ranges>,
    pub(crate) clock: OnceCell<Rc<dyn Clock>>,
    /// Decides whether clean data are inserted; without a clock they always are.
    pub(crate) aside: RefCell<Aside>,
    /// Data may be inserted. False while requests may bypass the cache.
    pub(crate) is_caching: Cell<bool>,
}

impl CacheState {
    /// Reads the clock; zero without a clock.
    fn now(&self) -> Duration {
        self.clock.get().map_or(Duration::ZERO, |clock| clock.reading())
    }

    /// Completes a read from memory, if all its bytes are cached.
    #[inline]
    pub(crate) fn read_hit(&self, io: &mut Io) -> bool {
        if self.counters.borrow().cache_hits.is_multiple_of(TIMED) {
            return self.read_timed(io);
        }
        self.serve(io)
    }

    #[cold]
    fn read_timed(&self, io: &mut Io) -> bool {
        let start = self.now();
        let is_cached = self.serve(io);
        if is_cached {
            self.aside.borrow_mut().add_hit_time(self.now().saturating_sub(start));
        }
        is_cached
    }

    #[inline(always)]
    fn serve(&self, io: &mut Io) -> bool {
        let mut contents = self.contents.borrow_mut();
        let blocks = contents.blocks(io.span);
        let first = blocks.start;
        let blocks = blocks.end - blocks.start;
        let memory = self.memory.borrow();
        match io.payload.bufs_mut() {
            // The common case: one lookup and one copy.
            [buf] if blocks == 1 => {
                let piece = contents.piece(io.span);
                let Some(at) = contents.hit(piece) else { return false };
                memory.read(at, buf);
            }
            _ => {
                if !contents.pieces(io.span).all(|piece| contents.has(piece)) {
                    return false;
                }
                let mut cursor = Cursor::new(&mut io.payload);
                for piece in contents.pieces(io.span) {
                    let Some(at) = contents.hit(piece) else { return false };
                    cursor.fill(piece.len, |done, part| memory.read(at + done, part));
                }
            }
        }
        self.aside.borrow_mut().hit(first);
        let counters = &mut *self.counters.borrow_mut();
        counters.reads += 1;
        counters.cache_hits += 1;
        counters.cache_reads += blocks;
        counters.bytes_read += io.span.len;
        counters.bytes_from_ram += io.span.len;
        true
    }

    pub(crate) async fn read(self: Rc<Self>, mut io: Io) -> Completion {
        let span = io.span;
        let is_long = self.streams.borrow_mut().is_long(span);
        let blocks = self.contents.borrow().blocks(span);
        let taken = self.ranges.take(blocks.clone()).await;
        if self.read_hit(&mut io) {
            return io.complete(Ok(()));
        }
        let (is_caching, start) = (self.is_caching.get(), self.now());
        let mut done = self.origin.start(io).await;
        let answered = self.now();
        let took = answered.saturating_sub(start);
        let is_sound = done.result.is_ok() && is_caching && !self.ranges.was_abandoned(&blocks);
        let is_admitted = self.aside.borrow().admits(blocks.start);
        let is_past = is_long || !is_admitted;
        let is_inserted = !is_long && is_sound;
        if done.result.is_ok() && self.contents.borrow().dirty().is_some() {
            self.merge(span, &mut done.payload, is_inserted);
        } else if is_inserted {
            self.insert_data(span, &mut done.payload, false);
        }
        if self.clock.get().is_some() && done.result.is_ok() && !is_long {
            let now = self.now();
            let insertion = (is_inserted && is_admitted).then(|| now.saturating_sub(answered));
            let slots = self.contents.borrow().used().1;
            self.aside.borrow_mut().missed(blocks.start, took, insertion, slots, now);
        }
        let counters = &mut *self.counters.borrow_mut();
        counters.disk_reads += 1;
        if done.result.is_ok() {
            counters.reads += 1;
            counters.cache_misses += u64::from(!is_past);
            counters.uncached_reads += u64::from(is_past);
            counters.origin_read_ns +=
                took.as_secs() * 1_000_000_000 + u64::from(took.subsec_nanos());
            counters.bytes_read += span.len;
            counters.bytes_from_origin += span.len;
        }
        drop(taken);
        done
    }

    /// Inserts the data that `io` reads. Returns the number of inserted bytes.
    pub(crate) async fn fill(self: Rc<Self>, io: Io) -> u64 {
        let span = io.span;
        let blocks = self.contents.borrow().blocks(span);
        let _taken = self.ranges.take(blocks.clone()).await;
        let is_caching = self.is_caching.get();
        let mut done = self.origin.start(io).await;
        let is_inserted = done.result.is_ok() && is_caching && !self.ranges.was_abandoned(&blocks);
        if is_inserted {
            self.merge(span, &mut done.payload, true);
        }
        if is_inserted { span.len } else { 0 }
    }

    /// Inserts `payload` as the data of `span`, unless the cache steps aside. Returns whether all
    /// of it is cached.
    pub(crate) fn insert_data(&self, span: Span, payload: &mut Payload, is_written: bool) -> bool {
        let mut contents = self.contents.borrow_mut();
        let counters = &mut *self.counters.borrow_mut();
        let memory = self.memory.borrow();
        let aside = self.aside.borrow();
        let mut cursor = Cursor::new(payload);
        let mut is_all = true;
        for piece in contents.pieces(span) {
            let put = match aside.admits(piece.block) {
                true => contents.put(piece, is_written),
                false => contents.pass(piece, is_written),
            };
            cursor.each(piece.len, |done, part| {
                if let Some(put) = put {
                    memory.write(put.at + done, part);
                }
            });
            is_all &= put.is_some();
            counters.cache_writes += u64::from(put.is_some());
            let replaced = u64::from(put.is_some_and(|put| put.replaced));
            if is_written {
                counters.write_replacement += replaced;
            } else {
                counters.replacement += replaced;
            }
        }
        is_all
    }

    /// Handles data that the origin returned for `span`: cached sectors, which may be newer,
    /// replace them in `payload`; the others are inserted if `is_inserted`.
    fn merge(&self, span: Span, payload: &mut Payload, is_inserted: bool) {
        let mut contents = self.contents.borrow_mut();
        let counters = &mut *self.counters.borrow_mut();
        let memory = self.memory.borrow();
        let aside = self.aside.borrow();
        let mut cursor = Cursor::new(payload);
        for piece in contents.pieces(span) {
            let is_inserted = is_inserted && aside.admits(piece.block);
            for (part, is_cached) in contents.cut(piece) {
                let is_cached = is_cached && !Canary::MissReplacesDirty.is_planted();
                if is_cached && let Some(at) = contents.renew(part) {
                    cursor.fill(part.len, |done, bytes| memory.read(at + done, bytes));
                    continue;
                }
                let put = if is_inserted { contents.put(part, false) } else { None };
                cursor.each(part.len, |done, bytes| {
                    if let Some(put) = put {
                        memory.write(put.at + done, bytes);
                    }
                });
                counters.cache_writes += u64::from(put.is_some());
                counters.replacement += u64::from(put.is_some_and(|put| put.replaced));
            }
        }
    }

    /// Updates blocks that are cached already, and inserts no others.
    pub(crate) fn renew(&self, span: Span, payload: &mut Payload) {
        let mut contents = self.contents.borrow_mut();
        let memory = self.memory.borrow();
        let mut cursor = Cursor::new(payload);
        for piece in contents.pieces(span) {
            let at = contents.renew(piece);
            cursor.each(piece.len, |done, part| {
                if let Some(at) = at {
                    memory.write(at + done, part);
                }
            });
        }
    }

    pub(crate) fn invalidate(&self, span: Span) {
        let mut contents = self.contents.borrow_mut();
        let dropped = contents.pieces(span).filter(|piece: &Piece| contents.drop(*piece)).count();
        self.counters.borrow_mut().write_invalidates += dropped as u64;
    }
}
