//! Reading copies: from the best placed copy, and from another after a failure.
//!
//! ```text
//!   one member ── ok ──▶ answer                        the usual case: nothing is allocated
//!       │ error
//!       ▼
//!   piece by piece: every copy in turn, halves, down to blocks ──▶ answer
//!       │ a copy failed where another did not
//!       ▼
//!   afterwards: locked, read again from the good copy, written to the bad one, read back
//! ```

use std::rc::Rc;

use braid_array::plan::plan_span_with;
use braid_array::{ArraySpan, ByRole, MemberByte, MemberSpan, Plan, Role};
use braid_block::{Completion, Errno, Io, Payload, Span};

use super::{Copies, in_sync_bytes};
use crate::background::Later;
use crate::canary::Canary;
use crate::device::addressed;
use crate::redundant::balance::{Standing, choose};
use crate::redundant::core::Core;
use crate::redundant::keeping::{Finder, Inner};
use crate::redundant::read::CAREFUL;
use crate::redundant::roster::{Member, Slot};
use crate::{Extents, Pending};

/// Smallest chunk of a level with copies, in bytes.
const LEAST_CHUNK: u64 = 4096;

impl Copies {
    #[inline]
    pub(super) fn read_copy(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        let span = addressed(io.span);
        let mut careful = false;
        let geometry = self.geometry.borrow();
        let slots = inner.core.roster.slots();
        let frontier = inner.core.agreement.frontier();
        let first = frontier.is_some_and(|frontier| in_sync_bytes(span).end() > frontier);
        let plan = plan_span_with(slots.len(), span, |offset| {
            let rest = ArraySpan::between(offset, span.end());
            let copy = choose(&**geometry, rest, first, |role, place| stands(&slots, role, place));
            careful |= copy.is_none();
            let run = geometry.locate(offset, copy.unwrap_or(0));
            if let Some(member) = slots[run.role].readable() {
                careful |= is_behind(&inner.core, member, rest);
                member.head.set(run.offset + run.len.min(rest.len));
            }
            run
        });
        if careful {
            drop((geometry, slots));
            return inner.retry(span, io.payload, None);
        }
        match plan {
            Plan::Forward { role, offset } => {
                let member = slots[role].readable().expect("chosen because it is readable");
                let at = Span::new(member.on_device(offset), span.len);
                let pending = member.dev.start(Io { span: at, ..io });
                match pending {
                    Pending::Ready(Some(Completion { result: Ok(()), .. })) => pending,
                    _ => inner.follow(Rc::clone(member), span, pending),
                }
            }
            Plan::Fan(fan) => inner.read_fan(io, fan, &|role| {
                slots[role].readable().expect("chosen because it is readable")
            }),
        }
    }

    pub(super) async fn read_piece_by_piece(
        &self,
        inner: &Rc<Inner>,
        span: ArraySpan,
        mut payload: Payload,
        failed: Option<u32>,
    ) -> (Result<(), Errno>, Payload) {
        let mut done = Payload::None;
        let mut result = Ok(());
        let mut offset = span.offset;
        while offset < span.end() && result.is_ok() {
            let run = self.mirrored().locate(offset, 0);
            let len = run.len.min(span.end() - offset).min(CAREFUL);
            let part = payload.take_front(len);
            let piece = ArraySpan::new(offset, len);
            let (answer, part) = self.read_part(inner, piece, part, failed, Finder::Request).await;
            result = answer;
            done.append(part);
            offset += len;
        }
        done.append(payload);
        (result, done)
    }

    /// Reads a span that lies in one piece from any copy that can be read, or block by block from different
    /// copies.
    pub(super) fn read_part<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        mut payload: Payload,
        failed: Option<u32>,
        finder: Finder,
    ) -> Later<'a, (Result<(), Errno>, Payload)> {
        Box::pin(async move {
            let candidates = self.candidates(&inner.core, span, failed);
            // The member that failed at first is asked last, and repaired even if another copy answers before.
            let first = candidates.iter().filter(|(member, _)| Some(member.number) == failed);
            let mut bad: Vec<Rc<Member>> = first.map(|(member, _)| Rc::clone(member)).collect();
            for (member, offset) in candidates {
                if is_behind(&inner.core, &member, span) {
                    inner.core.lane.ranges().until_writes_end(in_sync_bytes(span)).await;
                }
                let io = Io::read(member.on_device(offset), payload);
                let completion = member.dev.start(io).await;
                payload = completion.payload;
                match completion.result {
                    Ok(()) if !inner.core.roster.has(&member) => {
                        // It was removed meanwhile, and another may have its role.
                        return self.read_part(inner, span, payload, failed, finder).await;
                    }
                    Ok(()) => {
                        let bad = bad.into_iter().filter(|bad| !Rc::ptr_eq(bad, &member));
                        bad.for_each(|bad| inner.heal_later(bad, in_sync_bytes(span), finder));
                        return (Ok(()), payload);
                    }
                    Err(_) if Some(member.number) == failed => {}
                    Err(_) => bad.push(member),
                }
            }
            let block = u64::from(inner.core.limits.logical_block);
            if span.len <= block {
                return (Err(Errno::IO), payload);
            }
            let half = (span.len / 2).next_multiple_of(block);
            let mut front = payload.take_front(half);
            let (first, rest) = span.split_at(half);
            let (first, part) = self.read_part(inner, first, front, failed, finder).await;
            front = part;
            let (second, part) = self.read_part(inner, rest, payload, failed, finder).await;
            front.append(part);
            (first.and(second), front)
        })
    }

    /// Returns the members that hold a copy of `span`, which lies in one piece, with its offset. The valid copy
    /// comes first while copies may differ.
    pub(super) fn holders(&self, core: &Core, span: ArraySpan) -> Vec<(Rc<Member>, MemberByte)> {
        let geometry = self.mirrored();
        let slots = core.roster.slots();
        let copies = (0..geometry.copies()).filter_map(|copy| {
            let run = geometry.locate(span.offset, copy);
            Some((Rc::clone(slots[run.role].readable()?), run.offset))
        });
        let mut holders: Vec<(Rc<Member>, MemberByte)> = copies.collect();
        holders.sort_by_key(|(member, _)| member.write_mostly);
        holders
    }

    /// Returns the holders from which `span` may be read. The member that failed already comes last.
    fn candidates(
        &self,
        core: &Core,
        span: ArraySpan,
        failed: Option<u32>,
    ) -> Vec<(Rc<Member>, MemberByte)> {
        let mut candidates = self.holders(core, span);
        candidates.retain(|(member, offset)| !member.is_bad(MemberSpan::new(*offset, span.len)));
        candidates.sort_by_key(|(member, _)| Some(member.number) == failed);
        candidates
    }

    /// Returns the extents of the first copy in read order, up to the end of its piece.
    pub(super) fn extents_of_copy(&self, core: &Core, span: ArraySpan) -> Extents {
        let geometry = self.mirrored();
        let slots = core.roster.slots();
        let standing = |role, place| stands(&slots, role, place);
        let Some(copy) = choose(&*geometry, span, true, standing) else {
            return Extents::data(span.len);
        };
        let run = geometry.locate(span.offset, copy);
        let Some(member) = slots[run.role].readable() else {
            return Extents::data(span.len);
        };
        if is_behind(core, member, span) {
            return Extents::data(span.len);
        }
        let there = Span::new(member.on_device(run.offset), span.len.min(run.len));
        member.dev.extents(there)
    }

    /// Rewrites `span` on `member`, which could not read it, from a copy that can be read.
    pub(super) async fn rewrite(
        &self,
        inner: &Rc<Inner>,
        member: Rc<Member>,
        span: ArraySpan,
        finder: Finder,
    ) {
        let core = &inner.core;
        let Some(buf) = core.work.pool().get(span.len as usize) else {
            return; // The next read of the place retries.
        };
        let _locked = core.lane.ranges().lock(in_sync_bytes(span)).await;
        if !member.is_in_sync() || core.gate.is_stopped() {
            return;
        }
        let holders = self.holders(core, span);
        let is_it = |(one, _): &&(Rc<Member>, MemberByte)| Rc::ptr_eq(one, &member);
        let Some((_, offset)) = holders.iter().find(is_it) else { return };
        let at = member.on_device(*offset);
        // Of several reads that met the same error the first rewrites the place.
        let again = member.dev.start(Io::read(at, buf)).await;
        if again.result.is_ok() && !member.is_bad(MemberSpan::new(*offset, span.len)) {
            return;
        }
        let mut payload = again.payload;
        let others = holders.iter().filter(|(other, offset)| {
            !Rc::ptr_eq(other, &member) && !other.is_bad(MemberSpan::new(*offset, span.len))
        });
        for (other, there) in others {
            let completion = other.dev.start(Io::read(other.on_device(*there), payload)).await;
            payload = completion.payload;
            if completion.result.is_ok() {
                let place = MemberSpan::new(*offset, span.len);
                core.write_again(&member, place, payload, finder).await;
                return;
            }
        }
    }

    /// Returns the parts that every readable copy lists in its bad-block log.
    pub(super) fn lost_of_copies(&self, core: &Core) -> Vec<ArraySpan> {
        let geometry = self.geometry.borrow();
        let slots = core.roster.slots();
        let used = MemberSpan::first(geometry.member_size());
        let block = u64::from(core.limits.logical_block);
        let mut lost: Vec<ArraySpan> = Vec::new();
        for (role, slot) in slots.iter() {
            let Some(member) = slot.readable() else { continue };
            for place in member.bad_within(used, block) {
                let mut at = place.offset;
                while at < place.end() {
                    let Some(owner) = geometry.owner(role, at) else {
                        at += LEAST_CHUNK; // The last chunks of a layout may hold nothing.
                        continue;
                    };
                    let piece = ArraySpan::new(owner.offset, owner.len.min(place.end() - at));
                    at += piece.len;
                    let standing = |role, place| stands(&slots, role, place);
                    let is_lost =
                        |part: &ArraySpan| choose(&**geometry, *part, true, standing).is_none();
                    lost.extend(self.parts_alike(core, piece).into_iter().filter(is_lost));
                }
            }
        }
        join_neighbours(lost)
    }

    /// Cuts `piece`, which lies in one piece on its members, at the edges of bad-block entries. Each part is
    /// listed as a whole by a copy, or not at all.
    fn parts_alike(&self, core: &Core, piece: ArraySpan) -> Vec<ArraySpan> {
        let block = u64::from(core.limits.logical_block);
        let edges = self.holders(core, piece).into_iter().flat_map(|(member, offset)| {
            let bad = member.bad_within(MemberSpan::new(offset, piece.len), block);
            bad.into_iter().flat_map(move |bad| [bad.offset - offset, bad.end() - offset])
        });
        piece.cut_at(edges)
    }
}

/// Returns true if the member may lack a write of `span` that was answered.
#[inline]
fn is_behind(core: &Core, member: &Member, span: ArraySpan) -> bool {
    member.write_mostly
        && !core.behind.is_empty()
        && core.lane.ranges().is_written(in_sync_bytes(span))
        && !Canary::LateMemberRead.is_planted()
}

/// Returns the standing of the member of `role`, if it can be read at `place`.
#[inline]
fn stands(slots: &ByRole<Slot>, role: Role, place: MemberSpan) -> Option<Standing> {
    let member = slots[role].readable().filter(|member| !member.is_bad(place))?;
    Some(Standing {
        write_mostly: member.write_mostly,
        is_slow: member.is_slow.get(),
        reads: member.reads.get(),
        head: member.head.get(),
    })
}

/// Returns the spans in order, with adjacent spans joined.
pub(in crate::redundant) fn join_neighbours(mut spans: Vec<ArraySpan>) -> Vec<ArraySpan> {
    spans.sort_unstable_by_key(|span| span.offset);
    let mut joined: Vec<ArraySpan> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.end() >= span.offset => {
                last.len = last.end().max(span.end()) - last.offset;
            }
            _ => joined.push(span),
        }
    }
    joined
}
