//! Changes that complete when the origin has completed them.
//!
//! After a failed change, or one whose client disappeared, its sectors are no longer cached: the
//! origin may have the old or the new data.

use std::rc::Rc;

use braid_block::{Completion, Io, Op, Payload, Span};

use crate::state::CacheState;

/// Updates the cache after a write to the origin; the flag is set for a long run. Returns whether
/// all data are cached.
pub(super) type InsertWrite = fn(&CacheState, Span, &mut Payload, bool) -> bool;

/// Carries out a write, zeroing or discard.
pub(super) async fn change(state: Rc<CacheState>, io: Io, insert: InsertWrite) -> Completion {
    let (op, span) = (io.op, io.span);
    let is_long = op == Op::Write && state.streams.borrow_mut().is_long(span);
    let blocks = state.contents.borrow().blocks(span);
    let taken = state.ranges.take_to_change(blocks.clone()).await;
    let doubt = InvalidateOnDrop { state: &state, span };
    let is_caching = state.is_caching.get();
    let mut done = state.origin.start(io).await;
    std::mem::forget(doubt);
    let is_sound = done.result.is_ok() && is_caching && !state.ranges.was_abandoned(&blocks);
    let is_certain = op == Op::Write && is_sound;
    let is_cached = is_certain && insert(&state, span, &mut done.payload, is_long);
    if !is_certain {
        state.invalidate(span);
    }
    let counters = &mut *state.counters.borrow_mut();
    counters.disk_writes += 1;
    if done.result.is_ok() && op == Op::Write {
        counters.writes += 1;
        counters.uncached_writes += u64::from(!is_cached);
        counters.bytes_written += span.len;
    }
    taken.finish();
    done
}

/// Invalidates a span when dropped: the result of a change is unknown, because its future was
/// dropped.
struct InvalidateOnDrop<'a> {
    state: &'a CacheState,
    span: Span,
}

impl Drop for InvalidateOnDrop<'_> {
    fn drop(&mut self) {
        self.state.invalidate(self.span);
    }
}
