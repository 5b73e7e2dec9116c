//! Reading copies: from the copy that is best placed, and from another when that fails.
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

use braid_array::Plan;
use braid_array::plan::plan_span_with;
use braid_block::{Completion, Errno, Extent, Io, Payload, Span};

use super::balance::choose;
use crate::Pending;
use crate::redundant::member::Member;
use crate::redundant::read::CAREFUL;
use crate::redundant::{Inner, Later, Resync};

impl Inner {
    #[inline]
    pub(in crate::redundant) fn read_copy(self: &Rc<Self>, io: Io) -> Pending {
        let span = io.span;
        let mut careful = false;
        let geometry = self.copies().geometry.borrow();
        let slots = self.slots.borrow();
        let first = matches!(self.resync.get(), Resync::From(from) if span.end() > from);
        let plan = plan_span_with(slots.len(), span, |offset| {
            let len = span.end() - offset;
            let copy = choose(&**geometry, &slots, offset, len, first);
            careful |= copy.is_none();
            let run = geometry.locate(offset, copy.unwrap_or(0));
            if let Some(member) = slots[run.member].readable() {
                member.head.set(run.offset + run.len.min(len));
            }
            run
        });
        if careful {
            drop((geometry, slots));
            return self.retry(span, io.payload, None);
        }
        match plan {
            Plan::Forward { member, offset } => {
                let member = slots[member].readable().expect("chosen because it is readable");
                let at = Span::new(member.data_offset + offset, span.len);
                let pending = member.dev.start(Io { span: at, ..io });
                match pending {
                    Pending::Ready(Some(Completion { result: Ok(()), .. })) => pending,
                    _ => self.follow(Rc::clone(member), span, pending),
                }
            }
            Plan::Fan(fan) => self.read_fan(io, fan, &|one| {
                slots[one.member].readable().expect("chosen because it is readable")
            }),
        }
    }

    pub(in crate::redundant) async fn read_copies_carefully(
        self: &Rc<Self>,
        span: Span,
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
            let (answer, part) = self.read_part(Span::new(offset, len), part, failed).await;
            result = answer;
            done.append(part);
            offset += len;
        }
        done.append(payload);
        (result, done)
    }

    /// Reads what lies in one piece from whichever copy can be read; block by block from
    /// different ones, if it must be.
    pub(in crate::redundant) fn read_part(
        self: &Rc<Self>,
        span: Span,
        mut payload: Payload,
        failed: Option<u32>,
    ) -> Later<'_, (Result<(), Errno>, Payload)> {
        Box::pin(async move {
            let candidates = self.candidates(span, failed);
            // Who failed at first is asked last, and put right even if nobody gets so far.
            let first = candidates.iter().filter(|(member, _)| Some(member.number) == failed);
            let mut bad: Vec<Rc<Member>> = first.map(|(member, _)| Rc::clone(member)).collect();
            for (member, offset) in candidates {
                let io = Io::read(member.data_offset + offset, payload);
                let completion = member.dev.start(io).await;
                payload = completion.payload;
                match completion.result {
                    Ok(()) => {
                        let bad = bad.into_iter().filter(|bad| !Rc::ptr_eq(bad, &member));
                        bad.for_each(|bad| self.put_right(bad, span));
                        return (Ok(()), payload);
                    }
                    Err(_) if Some(member.number) == failed => {}
                    Err(_) => bad.push(member),
                }
            }
            let block = u64::from(self.limits.logical_block);
            if span.len <= block {
                return (Err(Errno::IO), payload);
            }
            let half = (span.len / 2).next_multiple_of(block);
            let mut front = payload.take_front(half);
            let rest = Span::new(span.offset + half, span.len - half);
            let (first, part) = self.read_part(Span::new(span.offset, half), front, failed).await;
            front = part;
            let (second, part) = self.read_part(rest, payload, failed).await;
            front.append(part);
            (first.and(second), front)
        })
    }

    /// The members that hold a copy of `span`, which lies in one piece, and where: the one whose
    /// copy counts while they may differ comes first.
    pub(in crate::redundant) fn holders(&self, span: Span) -> Vec<(Rc<Member>, u64)> {
        let geometry = self.mirrored();
        let slots = self.slots.borrow();
        let copies = (0..geometry.copies()).filter_map(|copy| {
            let run = geometry.locate(span.offset, copy);
            Some((Rc::clone(slots[run.member].readable()?), run.offset))
        });
        let mut holders: Vec<(Rc<Member>, u64)> = copies.collect();
        holders.sort_by_key(|(member, _)| member.write_mostly);
        holders
    }

    /// Of these, those that `span` may be read from; the one that failed already comes last.
    fn candidates(&self, span: Span, failed: Option<u32>) -> Vec<(Rc<Member>, u64)> {
        let mut candidates = self.holders(span);
        candidates.retain(|(member, offset)| !member.is_bad(*offset, span.len));
        candidates.sort_by_key(|(member, _)| Some(member.number) == failed);
        candidates
    }

    /// Of the copy that reads begin with, up to the end of its piece.
    pub(in crate::redundant) fn extents_of_copy(&self, span: Span) -> Vec<Extent> {
        let geometry = self.mirrored();
        let slots = self.slots.borrow();
        let Some(copy) = choose(&*geometry, &slots, span.offset, span.len, true) else {
            return vec![Extent::data(span.len)];
        };
        let run = geometry.locate(span.offset, copy);
        let Some(member) = slots[run.member].readable() else {
            return vec![Extent::data(span.len)];
        };
        let there = Span::new(member.data_offset + run.offset, span.len.min(run.len));
        member.dev.extents(there)
    }

    /// Has `span` written again on `member`, which could not read it, from a copy that can.
    fn put_right(self: &Rc<Self>, member: Rc<Member>, span: Span) {
        if self.read_only || self.limits.read_only {
            return;
        }
        let inner = Rc::clone(self);
        self.background.spawn(async move { inner.rewrite(&member, span).await });
    }

    async fn rewrite(self: &Rc<Self>, member: &Rc<Member>, span: Span) {
        let Some(buf) = self.work.pool().get(span.len as usize) else {
            return; // The next read of it tries again.
        };
        let _locked = self.ranges.lock(span).await;
        if !member.is_in_sync() {
            return;
        }
        let number = member.number;
        let others = self.candidates(span, Some(number));
        let Some((_, offset)) = others.iter().find(|(one, _)| Rc::ptr_eq(one, member)) else {
            return;
        };
        let offset = *offset;
        let at = member.data_offset + offset;
        // Of several reads that met the same error the first has it put right.
        let again = member.dev.start(Io::read(at, buf)).await;
        let mut good = again.result.is_ok();
        if good {
            return;
        }
        let mut payload = again.payload;
        for (other, offset) in others.iter().filter(|(one, _)| one.number != number) {
            let io = Io::read(other.data_offset + offset, payload);
            let completion = other.dev.start(io).await;
            payload = completion.payload;
            good = completion.result.is_ok();
            if good {
                break;
            }
        }
        if !good {
            return;
        }
        self.write_again(member, Span::new(offset, span.len), payload).await;
    }
}
