//! A change that is answered when the origin has answered it.
//!
//! Of a change that failed, or whose client went away before it was answered, nothing is held: its
//! sectors may be old or new, as the origin has them.

use std::rc::Rc;

use braid_block::{Completion, Io, Op, Payload, Span};

use crate::held::Held;

/// What becomes in memory of a write that the origin has; whether its long run goes past the cache.
/// Answers whether all of it is held now.
pub(super) type Hold = fn(&Held, Span, &mut Payload, bool) -> bool;

/// A write, or what makes zeroes or nothing of a span.
pub(super) async fn change(held: Rc<Held>, io: Io, hold: Hold) -> Completion {
    let (op, span) = (io.op, io.span);
    let is_long = op == Op::Write && held.streams.borrow_mut().is_long(span);
    let blocks = held.contents.borrow().blocks(span);
    let taken = held.ranges.take_to_change(blocks.clone()).await;
    let doubt = Doubt { held: &held, span };
    let mut done = held.origin.start(io).await;
    std::mem::forget(doubt);
    let is_certain = op == Op::Write && done.result.is_ok() && !held.ranges.was_given_up(&blocks);
    let is_held = is_certain && hold(&held, span, &mut done.payload, is_long);
    if !is_certain {
        held.drop_held(span);
    }
    let counters = &mut *held.counters.borrow_mut();
    counters.disk_writes += 1;
    if done.result.is_ok() && op == Op::Write {
        counters.writes += 1;
        counters.uncached_writes += u64::from(!is_held);
        counters.bytes_written += span.len;
    }
    taken.finish();
    done
}

/// A span that the origin is changing: dropped, nobody learns any more how that ended, and nothing is
/// held of it.
struct Doubt<'a> {
    held: &'a Held,
    span: Span,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.held.drop_held(self.span);
    }
}
