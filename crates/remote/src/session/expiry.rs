//! Deadlines of requests.
//!
//! Invariant: a request that was sent is failed only after its connection was given up, so that no answer to it can come.

use std::time::Duration;

use braid_block::{Errno, Op};

use super::Session;
use super::slot::{Ask, Phase, Slot, State};

/// Bytes that may be discarded or zeroed in the time of a read.
const DISCARDED: u64 = 64 << 20;

impl Session {
    fn is_overdue(&self, slot: &Slot, now: Duration) -> bool {
        let limit = match slot.ask {
            Ask::Io(Op::Read | Op::Write) | Ask::Status => self.deadline,
            Ask::Io(Op::Flush) => self.deadline * 2,
            Ask::Io(Op::Discard | Op::WriteZeroes) => {
                let times = slot.span.len.div_ceil(DISCARDED).max(1);
                self.deadline.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
            }
        };
        !matches!(slot.state, State::Done(_)) && now.saturating_sub(slot.started) >= limit
    }

    /// Returns true if a connection has an overdue request: the connections are to be given up, before
    /// [`Session::expire`].
    pub(crate) fn has_stalled(&self, now: Duration) -> bool {
        let sent = |slot: &Slot| matches!(slot.state, State::Ready | State::Sent { .. });
        self.slots.iter().any(|(_, slot)| sent(slot) && self.is_overdue(slot, now))
    }

    /// Fails the requests whose deadline has passed, or all if there was no connection for so long.
    pub(crate) fn expire(&mut self, now: Duration) {
        if let Phase::Down(since) = self.phase
            && now.saturating_sub(since) >= self.deadline
        {
            self.gave_up = true;
        }
        let is_due = |slot: &Slot| self.gave_up || self.is_overdue(slot, now);
        let is_here = |slot: &Slot| matches!(slot.state, State::Held | State::Unknown);
        let due = self.slots.iter().filter(|(_, slot)| is_here(slot) && is_due(slot));
        for id in due.map(|(id, _)| id).collect::<Vec<_>>() {
            self.held.retain(|other| *other != id);
            if self.slots[id].state == State::Unknown {
                self.changing.retain(|(other, _)| *other != id);
                if let Some(journal) = &mut self.journal {
                    journal.release(self.slots[id].payload.len());
                }
            }
            self.counted.overdue += 1;
            self.finish(id, Err(Errno::TIMEDOUT));
        }
        self.release(now);
    }

    /// The process stood still: all that is under way begins anew.
    pub(crate) fn forgive(&mut self, now: Duration) {
        self.slots.iter_mut().for_each(|(_, slot)| slot.started = now);
        if let Phase::Down(since) = &mut self.phase {
            *since = now;
        }
    }
}
