//! Questions for holes, and their answers in whole blocks of the member.
//!
//! A server's extents may begin and end at any byte, and the last one may reach beyond the question. A block is a hole or
//! zeroes only if all of it is.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use braid_block::{Errno, Extent, Flags, Payload, Span};
use braid_nbd::protocol::constants::{NBD_STATE_HOLE, NBD_STATE_ZERO};

use super::Session;
use super::slot::{Ask, Fault, Owner, State};

/// A question for holes that is under way; it is given up when this is dropped.
pub(crate) struct Asked<'a> {
    session: &'a RefCell<Session>,
    id: u32,
    is_taken: bool,
}

impl Asked<'_> {
    /// Takes in a question for the holes of `span`.
    pub(crate) fn new(session: &RefCell<Session>, now: Duration, span: Span) -> Asked<'_> {
        let id = session.borrow_mut().ask(now, span);
        Asked { session, id, is_taken: false }
    }
}

impl Future for Asked<'_> {
    type Output = Result<Vec<Extent>, Errno>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.session.borrow_mut().take_status(self.id, cx.waker());
        self.is_taken = answer.is_some();
        answer.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            self.session.borrow_mut().abandon(self.id);
        }
    }
}

impl Session {
    /// Takes in a question for the holes of `span`, and returns its number.
    fn ask(&mut self, now: Duration, span: Span) -> u32 {
        let (ask, owner) = (Ask::Status, Owner::Caller(None));
        let id = self.insert(now, ask, Flags::NONE, span, Payload::None, owner);
        self.begin(id)
    }

    /// Takes in the lengths and `NBD_STATE_*` of the extents that answer the question `cookie`.
    pub(crate) fn note_status(
        &mut self,
        cookie: u64,
        extents: impl Iterator<Item = (u64, u32)>,
    ) -> Result<(), Fault> {
        let id = self.id_of(cookie)?;
        let slot = &mut self.slots[id];
        if slot.ask != Ask::Status || !slot.extents.is_empty() {
            return Err(Fault::StrayStatus);
        }
        slot.extents = in_blocks(extents, slot.span, self.block);
        Ok(())
    }

    /// Returns the answer to question `id` if it is there; otherwise keeps the waker.
    fn take_status(&mut self, id: u32, waker: &Waker) -> Option<Result<Vec<Extent>, Errno>> {
        let slot = &mut self.slots[id as usize];
        let extents = match slot.state {
            State::Done(result) => result.map(|()| std::mem::take(&mut slot.extents)),
            _ => {
                slot.owner = Owner::Caller(Some(waker.clone()));
                return None;
            }
        };
        self.slots.remove(id as usize);
        Some(extents)
    }
}

/// Returns `extents`, lengths and `NBD_STATE_*` from the beginning of `span` on, as extents of whole blocks; what is
/// unknown behind the last one is left out, and the first block is data if not even that is known.
fn in_blocks(extents: impl Iterator<Item = (u64, u32)>, span: Span, block: u64) -> Vec<Extent> {
    let mut found: Vec<Extent> = Vec::new();
    let mut add = |extent: Extent| match found.last_mut() {
        _ if extent.len == 0 => {}
        Some(last) if last.is_like(&extent) => last.len += extent.len,
        _ => found.push(extent),
    };
    // Bytes that the extents so far have, and those of whole blocks that were taken over.
    let (mut end, mut taken) = (0_u64, 0);
    for (len, state) in extents {
        end = end.saturating_add(len).min(span.len);
        // Only what reads as zeroes is known; a hole without that may read as anything.
        let zero = state & NBD_STATE_ZERO != 0;
        let allocated = state & NBD_STATE_HOLE == 0;
        let (whole, begun) = (end / block * block, end.next_multiple_of(block).min(span.len));
        if zero {
            let len = whole.saturating_sub(taken);
            add(Extent { len, allocated, zero });
            taken += len;
        }
        // A block that is zeroes in part only, too.
        add(Extent::data(begun - taken));
        taken = begun;
        if taken == span.len {
            break;
        }
    }
    if taken == 0 {
        add(Extent::data(block.min(span.len)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All divisions of six bytes into extents that are zeroes, holes or data, and one that reaches too far.
    #[test]
    fn a_block_is_zeroes_only_if_all_of_it_is() {
        const BLOCK: u64 = 2;
        let states = [0, NBD_STATE_ZERO, NBD_STATE_ZERO | NBD_STATE_HOLE, NBD_STATE_HOLE];
        for cuts in 0..1_u32 << 5 {
            let mut lens = vec![1_u64];
            for cut in 0..5 {
                match cuts >> cut & 1 {
                    0 => *lens.last_mut().expect("one") += 1,
                    _ => lens.push(1),
                }
            }
            *lens.last_mut().expect("one") += 7;
            for draw in 0..4_usize.pow(lens.len() as u32) {
                let state = |index: usize| states[draw / 4_usize.pow(index as u32) % 4];
                let told = lens.iter().enumerate().map(|(index, len)| (*len, state(index)));
                let bytes: Vec<u32> =
                    told.clone().flat_map(|(len, state)| vec![state; len as usize]).collect();
                let found = in_blocks(told, Span::new(100, 6), BLOCK);
                assert_eq!(found.iter().map(|extent| extent.len).sum::<u64>(), 6);
                let mut at = 0;
                for extent in found {
                    let all = |bit| {
                        bytes[at..at + extent.len as usize].iter().all(|state| state & bit != 0)
                    };
                    assert!(!extent.zero || all(NBD_STATE_ZERO), "{lens:?} {draw}");
                    assert!(extent.allocated || all(NBD_STATE_HOLE), "{lens:?} {draw}");
                    assert_eq!(extent.len % BLOCK, 0);
                    at += extent.len as usize;
                }
                // Whole extents of whole blocks keep what they are.
                if lens.len() == 1 {
                    let expected = state(0) & NBD_STATE_ZERO != 0;
                    assert!(
                        in_blocks([(9, state(0))].into_iter(), Span::new(0, 6), BLOCK)[0].zero
                            == expected
                    );
                }
            }
        }
        let none: [(u64, u32); 0] = [];
        assert_eq!(in_blocks(none.into_iter(), Span::new(0, 6), 2), [Extent::data(2)]);
    }
}
