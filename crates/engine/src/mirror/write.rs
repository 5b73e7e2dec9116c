//! Writing: to every copy, in the order that a crash at any moment asks for.
//!
//! ```text
//!   1  the superblocks say "active"             so that a crash is known to need a resync
//!   2  no lock is in the way                    so that no copy is made of half of it
//!   3  the bits of its chunks are on members    so that the resync is short
//!   4  every copy                               at the same time
//!   5  whoever failed is out, by superblocks    so that a stale copy is never believed
//!   6  the answer
//! ```
//!
//! 1 to 3 and 5 usually hold already; over memory, 4 is then done in the call.

use std::rc::Rc;

use braid_array::Plan;
use braid_array::plan::plan_span_with;
use braid_block::{Completion, Errno, Io, Op, Payload, Span};

use super::Inner;
use super::member::{Member, MemberState};
use crate::{Pending, join_all};

impl Inner {
    #[inline]
    pub(super) fn start_write(self: &Rc<Self>, io: Io) -> Pending {
        if self.open.get() && self.immediate.get() && self.may_write_now(io.span) {
            return self.store_now(io);
        }
        let inner = Rc::clone(self);
        self.background.request(async move { inner.write(io).await })
    }

    /// Whether no lock and no bit is in the way; takes note of the write.
    #[inline]
    fn may_write_now(&self, span: Span) -> bool {
        if !self.ranges.is_free(span) {
            return false;
        }
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            if !intent.is_on_members(span) {
                return false;
            }
            intent.touch(span, !self.degraded.get());
        }
        self.touched.set(true);
        true
    }

    /// Stores on members that answer in the call. What does not go smoothly is done again, with
    /// care: the same bytes in the same places.
    #[inline]
    fn store_now(self: &Rc<Self>, io: Io) -> Pending {
        let Io { op, span, flags, .. } = io;
        match self.store_in_the_call(io) {
            Ok(completion) => Pending::ready(completion),
            Err(pending) => {
                let inner = Rc::clone(self);
                self.background.request(async move {
                    let payload = pending.await.payload;
                    inner.write(Io { op, span, flags, payload }).await
                })
            }
        }
    }

    /// Answers the member's I/O that did not go smoothly, with the payload.
    #[inline]
    fn store_in_the_call(&self, mut io: Io) -> Result<Completion, Pending> {
        let span = io.span;
        let geometry = self.geometry.borrow();
        let slots = self.slots.borrow();
        for copy in 0..geometry.copies() {
            let plan = plan_span_with(slots.len(), span, |offset| geometry.locate(offset, copy));
            let Plan::Forward { member, offset } = plan else {
                return Err(Pending::ready(io.complete(Ok(()))));
            };
            for member in slots[member].written() {
                let at = Span::new(member.data_offset + offset, span.len);
                let Io { op, flags, payload, .. } = io;
                let mut pending = member.dev.start(Io { op, span: at, flags, payload });
                let Pending::Ready(completion @ Some(Completion { result: Ok(()), .. })) =
                    &mut pending
                else {
                    return Err(pending);
                };
                let payload = completion.take().map(|one| one.payload).unwrap_or_default();
                io = Io { op, span, flags, payload };
            }
        }
        Ok(io.complete(Ok(())))
    }

    /// A write, a discard or zeroes, with all that belongs to it.
    async fn write(self: Rc<Self>, io: Io) -> Completion {
        let start = self.clock.now();
        let writer = Writer::new(&self);
        let span = io.span;
        if let Err(errno) = self.activate().await {
            return io.complete(Err(errno));
        }
        let entered = self.ranges.enter(span).await;
        let ready = match &mut *self.intent.borrow_mut() {
            Some(intent) => intent.begin(span),
            None => true,
        };
        if !ready {
            self.store_bits(span).await;
        }
        // A member that failed meanwhile does not have the bits: nobody must count on it any more.
        self.fence().await;
        let (mut completion, everywhere) = match self.broken.get() {
            true => (io.complete(Err(Errno::IO)), true),
            false => self.store(io).await,
        };
        let everywhere = everywhere && !self.degraded.get();
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            intent.end(span, everywhere);
        }
        drop(entered);
        self.fence().await;
        if self.broken.get() {
            completion.result = Err(Errno::IO);
        }
        self.touched.set(true);
        drop(writer);
        if self.work.is_timing() {
            let now = self.clock.now();
            self.work.record_latency(now, now - start);
        }
        completion
    }

    /// Stores on every copy; answers whether all of them have it.
    async fn store(self: &Rc<Self>, mut io: Io) -> (Completion, bool) {
        let (members, started) = self.start_copies(&mut io);
        let completions = join_all(started).await;
        let mut failed: Vec<(Rc<Member>, Errno)> = Vec::new();
        for (member, completion) in members.into_iter().zip(&completions) {
            if let Err(errno) = completion.result
                && !failed.iter().any(|(one, _)| Rc::ptr_eq(one, &member))
            {
                failed.push((member, errno));
            }
        }
        drop(completions);
        io.payload.reclaim();
        let result = match &failed[..] {
            [] => Ok(()),
            // A hint: whoever cannot follow it has what it had.
            [(_, errno), ..] if io.op == Op::Discard => Err(*errno),
            _ => self.judge_failed_writes(io.span, &failed),
        };
        // What was discarded may be anything, on each copy.
        let everywhere = failed.is_empty() || io.op == Op::Discard;
        (io.complete(result), everywhere)
    }

    /// Starts one I/O for each stretch on each member that is written.
    fn start_copies(&self, io: &mut Io) -> (Vec<Rc<Member>>, Vec<Pending>) {
        let geometry = self.geometry.borrow();
        let slots = self.slots.borrow();
        let (mut members, mut started) = (Vec::new(), Vec::new());
        let mut start = |role: usize, span: Span, payload: &mut Payload| {
            for member in slots[role].written() {
                let span = Span::new(member.data_offset + span.offset, span.len);
                let payload = payload.share();
                started.push(member.dev.start(Io { op: io.op, span, flags: io.flags, payload }));
                members.push(Rc::clone(member));
            }
        };
        for copy in 0..geometry.copies() {
            let locate = |offset| geometry.locate(offset, copy);
            match plan_span_with(slots.len(), io.span, locate) {
                Plan::Forward { member, offset } => {
                    start(member, Span::new(offset, io.span.len), &mut io.payload);
                }
                Plan::Fan(fan) => {
                    let mut payloads: Vec<Payload> = Vec::new();
                    payloads.resize_with(fan.spans.len(), Payload::default);
                    if io.op.has_data() {
                        let mut shared = io.payload.share();
                        for piece in &fan.pieces {
                            payloads[piece.span].append(shared.take_front(piece.len));
                        }
                    }
                    for (one, mut payload) in fan.spans.iter().zip(payloads) {
                        start(one.member, one.span, &mut payload);
                    }
                }
            }
        }
        (members, started)
    }

    /// Takes out the members that failed to store `span`, unless that leaves bytes without any
    /// copy: then it is the write that failed, and the copies may differ.
    fn judge_failed_writes(&self, span: Span, failed: &[(Rc<Member>, Errno)]) -> Result<(), Errno> {
        if self.take_out_failed(failed, "a write") {
            return Ok(());
        }
        self.note(format!("a write of {span} failed on the last copies: they may differ"));
        self.doubt(span.offset);
        Err(failed[0].1)
    }

    /// Takes out the members that failed at `what`, but for those in sync if some byte has no
    /// other copy; answers whether all of them are out.
    fn take_out_failed(&self, failed: &[(Rc<Member>, Errno)], what: &str) -> bool {
        let in_sync: Vec<&Rc<Member>> =
            failed.iter().map(|(member, _)| member).filter(|member| member.is_in_sync()).collect();
        let bearable = self.can_do_without(&in_sync);
        for (member, errno) in failed {
            if bearable || !member.is_in_sync() {
                self.take_out(member, &format!("{what} failed: {errno}"));
            }
        }
        bearable
    }

    /// Makes what was written durable on every member.
    pub(super) fn start_flush(self: &Rc<Self>, io: Io) -> Pending {
        let inner = Rc::clone(self);
        self.background.request(async move {
            let members = inner.written_members();
            let started = members.iter().map(|member| member.dev.start(Io::flush())).collect();
            let completions = join_all(started).await;
            let failed: Vec<(Rc<Member>, Errno)> = members
                .into_iter()
                .zip(completions)
                .filter_map(|(member, done)| done.result.err().map(|errno| (member, errno)))
                .collect();
            let mut result = Ok(());
            if !failed.is_empty() {
                result = inner.judge_failed_flush(&failed);
            }
            inner.fence().await;
            if inner.broken.get() {
                result = Err(Errno::IO);
            }
            io.complete(result)
        })
    }

    fn judge_failed_flush(&self, failed: &[(Rc<Member>, Errno)]) -> Result<(), Errno> {
        if self.take_out_failed(failed, "a flush") {
            return Ok(());
        }
        // Nobody knows what of the only copy is durable, and no later flush can tell: a system
        // that answered an error once may have dropped what it could not write.
        self.note(format!(
            "a flush of the last copies failed ({}): nothing is written any more",
            failed[0].1
        ));
        self.broken.set(true);
        self.reopen();
        Err(failed[0].1)
    }

    /// Those that writes go to, each once.
    pub(super) fn written_members(&self) -> Vec<Rc<Member>> {
        let slots = self.slots.borrow();
        slots.iter().flat_map(|slot| slot.written().cloned()).collect()
    }

    /// Sees to it that the superblocks say that writes may be under way.
    async fn activate(self: &Rc<Self>) -> Result<(), Errno> {
        if !self.active.get() {
            self.publisher.require();
            self.set_active(true);
            self.activated.notify();
        }
        // Also the writer that comes while another has the superblocks written waits for them.
        self.fence().await;
        if self.broken.get() { Err(Errno::IO) } else { Ok(()) }
    }

    /// Whether a member is being filled.
    pub(super) fn is_recovering(&self) -> bool {
        let members = self.members.borrow();
        members.iter().any(|member| matches!(member.state.get(), MemberState::Recovering(_)))
    }
}

/// A write that keeps the array from being marked clean.
struct Writer {
    inner: Rc<Inner>,
}

impl Writer {
    fn new(inner: &Rc<Inner>) -> Writer {
        inner.writers.set(inner.writers.get() + 1);
        Writer { inner: Rc::clone(inner) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inner.writers.set(self.inner.writers.get() - 1);
    }
}
