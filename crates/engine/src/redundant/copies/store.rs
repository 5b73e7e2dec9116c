//! Storing on every copy: in the call over memory, where nothing stands in the way; else with all
//! that belongs to a write ([`crate::redundant::write`]).

use std::rc::Rc;

use braid_array::Plan;
use braid_array::plan::plan_span_with;
use braid_block::{Completion, Io, Op, Payload, Span};

use crate::redundant::Inner;
use crate::redundant::member::Member;
use crate::redundant::write::failures;
use crate::{Pending, join_all};

impl Inner {
    /// Whether no lock and no bit is in the way; takes note of the write.
    #[inline]
    pub(in crate::redundant) fn may_write_now(&self, span: Span) -> bool {
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
    pub(in crate::redundant) fn store_now(self: &Rc<Self>, io: Io) -> Pending {
        let Io { op, span, flags, .. } = io;
        match self.store_in_the_call(io) {
            Ok(completion) => Pending::ready(completion),
            Err(pending) => {
                let inner = Rc::clone(self);
                self.background.request(async move {
                    let payload = pending.await.payload;
                    inner.write_copies(Io { op, span, flags, payload }).await
                })
            }
        }
    }

    /// Answers the member's I/O that did not go smoothly, with the payload.
    #[inline]
    fn store_in_the_call(&self, mut io: Io) -> Result<Completion, Pending> {
        let span = io.span;
        let geometry = self.copies().geometry.borrow();
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
    pub(in crate::redundant) async fn write_copies(self: Rc<Self>, io: Io) -> Completion {
        let guard = match self.begin_write(io.span).await {
            Ok(guard) => guard,
            Err(errno) => return io.complete(Err(errno)),
        };
        let (mut completion, everywhere) = self.store(io).await;
        completion.result = guard.finish(everywhere).await.and(completion.result);
        completion
    }

    /// Stores on every copy; answers whether all of them have it.
    async fn store(self: &Rc<Self>, mut io: Io) -> (Completion, bool) {
        let (members, started) = self.start_copies(&mut io);
        let completions = join_all(started).await;
        let failed = failures(members, &completions);
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
        let geometry = self.copies().geometry.borrow();
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
}
