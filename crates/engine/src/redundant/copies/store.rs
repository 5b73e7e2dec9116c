//! Writing to every copy: within the call for members in memory, if nothing is in the way; else with all steps
//! of a write ([`crate::redundant::write`]).

use std::rc::Rc;

use braid_array::plan::plan_span_with;
use braid_array::{MemberSpan, Mirrored, Plan, Role};
use braid_block::{Completion, Errno, Flags, Io, Op, Payload, Span};

use super::{Copies, in_sync_bytes, late};
use crate::canary::Canary;
use crate::device::addressed;
use crate::redundant::behind::Late;
use crate::redundant::core::{Core, failures};
use crate::redundant::keeping::Inner;
use crate::redundant::layout::SyncSpan;
use crate::redundant::roster::Member;
use crate::redundant::write::{Finished, Guard};
use crate::{Pending, join_all};

/// A write under way on members: their places, and the requests, in the same order.
type Started = (Vec<(Rc<Member>, MemberSpan)>, Vec<Pending>);

/// Result of a write to members.
struct Stored {
    result: Result<(), Errno>,
    /// True if all of them have the data.
    everywhere: bool,
    /// The places on the members that have the data.
    places: Vec<(Rc<Member>, MemberSpan)>,
}

/// The part of a write that write-mostly members carry out.
struct Rest {
    core: Rc<Core>,
    late: Late,
    started: Started,
    what: (Op, SyncSpan),
    payload: Payload,
}

impl Rest {
    /// Waits for the members, and ends the write: `before` is its result on the others, if that was not good.
    async fn finish(mut self, guard: Guard, before: Option<Stored>) -> Finished {
        let core = &self.core;
        let stored = see_stored(core, self.what, self.started, &mut self.payload).await;
        // A flush may go on: the members have it, or are out.
        drop(self.late);
        core.are_good_again(&stored.places).await;
        let (everywhere, result) =
            before.map_or((true, Ok(())), |one| (one.everywhere, one.result));
        guard.finish(everywhere && stored.everywhere, result.and(stored.result)).await
    }
}

impl Copies {
    /// Stores on members that answer in the call. If a step fails, the write is repeated with care: the same
    /// bytes in the same places.
    #[inline]
    pub(super) fn store_now(self: &Rc<Self>, inner: &Rc<Inner>, io: Io) -> Pending {
        let Io { op, span, flags, .. } = io;
        self.store_in_the_call(&inner.core, io).map_or_else(
            |pending| self.see_through(&inner.core, (op, span, flags), pending),
            Pending::ready,
        )
    }

    /// Waits for the step that failed, or that a member did not carry out within the call, and repeats the write.
    ///
    /// Some copies have it by now. So the guard is taken before anything else can run: no lock, no other write and no
    /// "clean" comes between the first copy and the last.
    #[cold]
    fn see_through(
        self: &Rc<Self>,
        core: &Rc<Core>,
        (op, span, flags): (Op, Span, Flags),
        pending: Pending,
    ) -> Pending {
        let guard = core
            .enter_now(in_sync_bytes(addressed(span)))
            .expect("nothing has run since the write was let in");
        let background = Rc::clone(&core.background);
        let (copies, core) = (Rc::clone(self), Rc::clone(core));
        background.request(async move {
            let payload = pending.await.payload;
            let io = Io { op, span, flags, payload };
            let (finished, payload) = copies.store_guarded(&core, guard, io).await;
            Completion { result: finished.result(), payload }
        })
    }

    /// Returns the failed I/O of a member, with the payload, if a step fails.
    #[inline]
    fn store_in_the_call(&self, core: &Core, mut io: Io) -> Result<Completion, Pending> {
        let span = io.span;
        let geometry = self.geometry.borrow();
        let slots = core.roster.slots();
        for copy in 0..geometry.copies() {
            let locate = |offset| geometry.locate(offset, copy);
            let plan = plan_span_with(slots.len(), addressed(span), locate);
            let Plan::Forward { role, offset } = plan else {
                return Err(Pending::ready(io.complete(Ok(()))));
            };
            for member in slots[role].written() {
                let at = Span::new(member.on_device(offset), span.len);
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

    /// Carries out a write, a discard or zeroes, with all steps of a write.
    pub(super) async fn store_copies(&self, inner: &Rc<Inner>, io: Io) -> (Finished, Payload) {
        let core = &inner.core;
        let guard = match core.begin_write(in_sync_bytes(addressed(io.span))).await {
            Ok(guard) => guard,
            Err(errno) => return (Finished::refused(errno), io.payload),
        };
        self.store_guarded(core, guard, io).await
    }

    /// Carries out step 4 of a write and the steps after it. Write-mostly members may have it after the answer.
    async fn store_guarded(
        &self,
        core: &Rc<Core>,
        guard: Guard,
        mut io: Io,
    ) -> (Finished, Payload) {
        let (op, span) = (io.op, in_sync_bytes(addressed(io.span)));
        assert!(guard.covers(span), "a write of a span that is not guarded");
        let late = late::begin(core, &*self.mirrored(), &io);
        let is_late = |member: &Member| late.is_some() && member.write_mostly;
        let prompt = self.start_copies(core, &mut io, &|member| !is_late(member));
        let behind = late.map(|(late, mut copy)| {
            let started = self.start_copies(core, &mut copy, &|member| member.write_mostly);
            let core = Rc::clone(core);
            Rest { core, late, started, what: (op, span), payload: copy.payload }
        });
        let stored = see_stored(core, (op, span), prompt, &mut io.payload).await;
        let finished = match behind {
            None => {
                core.are_good_again(&stored.places).await;
                guard.finish(stored.everywhere, stored.result).await
            }
            // Fewer members have it than were to have it at the answer.
            Some(rest) if !stored.everywhere => rest.finish(guard, Some(stored)).await,
            Some(rest) if Canary::LateWriteLetGo.is_planted() => {
                core.background.spawn(async move {
                    let Rest { late, started, .. } = rest;
                    drop((join_all(started.1).await, late));
                });
                guard.finish(true, Ok(())).await
            }
            Some(rest) => {
                let answer = guard.answer();
                // From now on it does not depend on the request, which may wait for a flush, which waits for it.
                core.background.spawn(async move {
                    let _answered = rest.finish(guard, None).await;
                });
                answer.await
            }
        };
        (finished, io.payload)
    }

    /// Ends a write of another shard to `span`, which `failed` on these members.
    pub(super) async fn judge_copies(
        &self,
        core: &Rc<Core>,
        span: SyncSpan,
        failed: Vec<(Rc<Member>, Errno)>,
    ) -> Finished {
        let guard = core.take_over(span);
        guard.finish(false, judge_writes(core, Op::Write, span, &failed)).await
    }

    /// Starts one I/O for each stretch on each written member that `is_one` of them.
    fn start_copies(&self, core: &Core, io: &mut Io, is_one: &dyn Fn(&Member) -> bool) -> Started {
        let geometry = self.geometry.borrow();
        let slots = core.roster.slots();
        let (mut places, mut started) = (Vec::new(), Vec::new());
        each_place(&**geometry, slots.len(), io, &mut |role, span, io: &mut Io| {
            for member in slots[role].written().filter(|member| is_one(member)) {
                let at = member.span_on_device(span);
                let payload = io.payload.share();
                started.push(member.dev.start(Io { span: at, payload, ..*io }));
                places.push((Rc::clone(member), span));
            }
        });
        (places, started)
    }
}

/// Calls `start` for each stretch of `io` on each role that keeps a copy, with the part of `io` that belongs there.
pub(in crate::redundant) fn each_place(
    geometry: &dyn Mirrored,
    roles: usize,
    io: &mut Io,
    start: &mut dyn FnMut(Role, MemberSpan, &mut Io),
) {
    for copy in 0..geometry.copies() {
        let locate = |offset| geometry.locate(offset, copy);
        match plan_span_with(roles, addressed(io.span), locate) {
            Plan::Forward { role, offset } => {
                start(role, MemberSpan::new(offset, io.span.len), io);
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
                for (one, payload) in fan.spans.iter().zip(payloads) {
                    start(one.role, one.span, &mut Io { payload, ..*io });
                }
            }
        }
    }
}

/// Waits for a write of `payload`, takes out the members that failed, and makes the payload the caller's again.
async fn see_stored(
    core: &Rc<Core>,
    (op, span): (Op, SyncSpan),
    (places, started): Started,
    payload: &mut Payload,
) -> Stored {
    let completions = join_all(started).await;
    let failed = failures(places.iter().map(|(one, _)| Rc::clone(one)).collect(), &completions);
    drop(completions);
    match failed.is_empty() {
        true => payload.reclaim(),
        false => payload.detach(),
    }
    let result = judge_writes(core, op, span, &failed);
    // Discarded bytes may be anything, on each copy.
    let everywhere = failed.is_empty() || op == Op::Discard;
    let has_it = |(member, _): &(Rc<Member>, MemberSpan)| {
        member.has_bad_blocks.get()
            && op != Op::Discard
            && !failed.iter().any(|(one, _)| Rc::ptr_eq(one, member))
    };
    let places = places.into_iter().filter(has_it).collect();
    Stored { result, everywhere, places }
}

/// Takes out the members on which a write of `span` failed. Returns its result.
fn judge_writes(
    core: &Core,
    op: Op,
    span: SyncSpan,
    failed: &[(Rc<Member>, Errno)],
) -> Result<(), Errno> {
    match failed {
        [] => Ok(()),
        // A discard is a hint: a member that refuses it keeps its contents.
        [(_, errno), ..] if op == Op::Discard => Err(*errno),
        _ if core.take_out_failed(failed, "a write") => Ok(()),
        [(_, errno), ..] => {
            core.note(format!("a write of {span} failed on the last members: they may not agree"));
            core.agreement.differ_from(span.offset);
            core.reopen();
            core.work.tell();
            Err(*errno)
        }
    }
}
