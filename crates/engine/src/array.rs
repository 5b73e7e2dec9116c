//! A geometry over members, which carries out plans.

use braid_array::plan::plan_span;
use braid_array::{ByRole, Fan, Geometry, MemberSpan, Plan};
use braid_block::{Completion, Errno, Extent, Io, Limits, Op, Payload, Span};

use crate::background::Later;
use crate::device::addressed;
use crate::pending::join_futures;
use crate::{Dev, Device, Extents, Pending, join_all};

/// Largest number of runs whose extents one call asks for, and so of extents that it reports: callers wait.
const MOST_RUNS: usize = 128;

/// Members under a geometry, as one device.
pub struct Array<G> {
    geometry: G,
    members: ByRole<Dev>,
    limits: Limits,
}

/// Returns the part of the member's device that `span` covers. All of it is data.
#[inline]
fn whole(span: MemberSpan) -> Span {
    Span::new(span.offset.get(), span.len)
}

impl<G: Geometry> Array<G> {
    /// Joins `members` under `geometry`, which was made for their sizes in this order.
    ///
    /// # Panics
    /// If the number of members is not the geometry's.
    pub fn new(geometry: G, members: Vec<Dev>) -> Array<G> {
        assert_eq!(members.len(), geometry.members(), "members of the geometry");
        let combined = Limits::combine(members.iter().map(|member| *member.limits()));
        let stripe = u32::try_from(geometry.stripe()).unwrap_or(0);
        let optimal_io = if stripe == 0 { combined.optimal_io } else { stripe };
        let limits = Limits { size: geometry.size(), optimal_io, ..combined };
        Array { geometry, members: members.into(), limits }
    }

    /// Starts one I/O per stretch. The request is complete at once if all of them are.
    fn start_fan(&self, mut io: Io, fan: Fan) -> Pending {
        let mut payloads: Vec<Payload> = Vec::new();
        payloads.resize_with(fan.spans.len(), Payload::default);
        if io.op.has_data() {
            for piece in &fan.pieces {
                payloads[piece.span].append(io.payload.take_front(piece.len));
            }
        }
        let started = fan.spans.iter().zip(payloads).map(|(one, payload)| {
            let span = whole(one.span);
            self.members[one.role].start(Io { op: io.op, span, flags: io.flags, payload })
        });
        finish_all(started.collect(), fan)
    }

    fn flush(&self) -> Pending {
        let started = self.members.values().map(|member| member.start(Io::flush())).collect();
        finish_all(started, Fan { spans: Vec::new(), pieces: Vec::new() })
    }
}

impl<G: Geometry> Device for Array<G> {
    fn limits(&self) -> Limits {
        self.limits
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        if io.op == Op::Flush {
            return self.flush();
        }
        match plan_span(&self.geometry, addressed(io.span)) {
            Plan::Forward { role, offset } => {
                let span = whole(MemberSpan::new(offset, io.span.len));
                self.members[role].start(Io { span, ..io })
            }
            Plan::Fan(fan) => self.start_fan(io, fan),
        }
    }

    fn extents(&self, span: Span) -> Extents {
        let span = addressed(span);
        let (mut offset, mut answers, mut count) = (span.offset, Vec::new(), 0);
        while offset != span.end() && count < MOST_RUNS {
            let run = self.geometry.locate(offset);
            let wanted = MemberSpan::new(run.offset, run.len.min(span.end() - offset));
            let answer = self.members[run.role].extents(whole(wanted));
            count += if let Extents::Known(extents) = &answer { extents.len() } else { 1 };
            answers.push((wanted.len, answer));
            offset += wanted.len;
        }
        if answers.iter().all(|(_, answer)| matches!(answer, Extents::Known(_))) {
            let known =
                answers.into_iter().filter_map(|(len, answer)| Some((len, answer.at_once()?)));
            return Extents::Known(joined(known));
        }
        Extents::asked(async move {
            let boxed = |(len, answer)| (len, Box::pin(answer) as Later<'_, _>);
            let (lens, answers): (Vec<u64>, Vec<_>) = answers.into_iter().map(boxed).unzip();
            joined(lens.into_iter().zip(join_futures(answers).await))
        })
    }
}

/// Joins the answers to runs of the array that follow each other, up to the first one that ends before its run.
fn joined(answers: impl Iterator<Item = (u64, Vec<Extent>)>) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for (len, answer) in answers {
        let known: u64 = answer.iter().map(|extent| extent.len).sum();
        for extent in answer {
            match extents.last_mut() {
                Some(last) if last.is_like(&extent) => last.len += extent.len,
                _ => extents.push(extent),
            }
        }
        if known < len {
            break;
        }
    }
    extents
}

/// Returns the completion of a fan whose member I/Os are `started`.
fn finish_all(mut started: Vec<Pending>, fan: Fan) -> Pending {
    let all_done = started.iter().all(|pending| matches!(pending, Pending::Ready(_)));
    if all_done {
        let done = started.iter_mut().filter_map(|pending| match pending {
            Pending::Ready(completion) => completion.take(),
            _ => None,
        });
        return Pending::ready(gather(done.collect(), &fan));
    }
    Pending::task(async move { gather(join_all(started).await, &fan) })
}

/// Reassembles the payload. Of several errors the one nearest to the start of the request is returned (of a
/// flush, the first member's), so that the same failures give the same result in any order.
fn gather(mut completions: Vec<Completion>, fan: &Fan) -> Completion {
    let result: Result<(), Errno> = completions.iter().try_for_each(|one| one.result);
    let mut payload = Payload::None;
    for piece in &fan.pieces {
        let from = &mut completions[piece.span].payload;
        if !from.is_empty() {
            payload.append(from.take_front(piece.len));
        }
    }
    Completion { result, payload }
}
