//! One window of a pass: a part of the array that lies in one piece, under a lock.

use std::rc::Rc;

use braid_block::{Flags, Io, Payload, Span};

use super::Inner;
use super::control::JobKind;
use super::member::{Member, MemberState};
use crate::join_all;

/// What copies are compared in, in bytes.
const BLOCK: usize = 4096;

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Bytes, in whole blocks, that differed between copies.
    pub(super) mismatches: u64,
    /// Where in the array, from the first on.
    pub(super) places: Vec<u64>,
    /// Copies that could not be read and were written again.
    pub(super) unreadable: u64,
}

impl Found {
    pub(super) fn add(&mut self, other: Found, most_places: usize) {
        self.mismatches += other.mismatches;
        self.unreadable += other.unreadable;
        self.places.extend(other.places);
        self.places.sort_unstable();
        self.places.truncate(most_places);
    }
}

impl Inner {
    /// Copies `array` to `member`, where it lies at `offset` of its data.
    pub(super) async fn fill_window(
        self: Rc<Self>,
        member: &Rc<Member>,
        offset: u64,
        array: Span,
    ) -> Result<(), String> {
        // Memory first: whoever holds some then needs only the lock.
        let buf = self.work.pool().get_wait(array.len as usize).await;
        let _locked = self.ranges.lock(array).await;
        if !matches!(member.state.get(), MemberState::Recovering(_)) {
            return Ok(());
        }
        let (result, payload) = self.read_part(array, Payload::One(buf), None).await;
        result.map_err(|errno| format!("no copy of {array} can be read: {errno}"))?;
        let io = Io::write(member.data_offset + offset, payload, Flags::NONE);
        member.dev.start(io).await.result.map_err(|errno| format!("a write failed: {errno}"))
    }

    /// Reads every copy of `array` and compares them; but for a check, what differs from the
    /// first is written again, and always what cannot be read.
    pub(super) async fn compare_window(self: Rc<Self>, array: Span, kind: JobKind) -> Found {
        let count = self.candidates(array, None).len();
        if count < 2 {
            return Found::default();
        }
        let mut bufs = Vec::with_capacity(count);
        // All at once, so that windows do not wait for each other's halves.
        while bufs.len() < count {
            match self.work.pool().get(array.len as usize) {
                Some(buf) => bufs.push(buf),
                None => {
                    bufs.clear();
                    bufs.push(self.work.pool().get_wait(array.len as usize).await);
                }
            }
        }
        let _locked = self.ranges.lock(array).await;
        let mut candidates = self.candidates(array, None);
        candidates.truncate(count);
        let started = candidates.iter().zip(bufs).map(|((member, offset), buf)| {
            member.dev.start(Io::read(member.data_offset + offset, buf))
        });
        let completions = join_all(started.collect()).await;
        let Some(reference) = completions.iter().position(|one| one.result.is_ok()) else {
            return Found::default(); // Nothing to learn here; a read of it says that it failed.
        };
        let truth = completions[reference].payload.bufs()[0].to_vec();
        let mut found = Found::default();
        let mut rewrite = Vec::new();
        for ((member, offset), completion) in candidates.into_iter().zip(completions) {
            let unreadable = completion.result.is_err();
            let copy = completion.payload;
            let mut differs = false;
            if unreadable {
                found.unreadable += 1;
            } else if *copy.bufs()[0] != truth[..] {
                differs = true;
                note_differences(&mut found, array.offset, &truth, &copy.bufs()[0]);
            }
            if unreadable || (differs && kind != JobKind::Check) {
                let mut copy = copy;
                copy.bufs_mut()[0].copy_from_slice(&truth);
                let io = Io::write(member.data_offset + offset, copy, Flags::NONE);
                rewrite.push((Rc::clone(&member), unreadable, member.dev.start(io)));
            }
        }
        for (member, unreadable, written) in rewrite {
            match written.await.result {
                Ok(()) if unreadable => member.corrected.set(member.corrected.get() + 1),
                Ok(()) => {}
                Err(errno) => {
                    self.fail(&member, &format!("a write failed: {errno}"));
                    self.fence().await;
                }
            }
        }
        found
    }
}

/// Adds the blocks of `copy` that differ from `truth`; each place counts once, however many
/// copies differ there.
fn note_differences(found: &mut Found, start: u64, truth: &[u8], copy: &[u8]) {
    for (index, (one, other)) in truth.chunks(BLOCK).zip(copy.chunks(BLOCK)).enumerate() {
        let place = start + (index * BLOCK) as u64;
        if one != other && !found.places.contains(&place) {
            found.mismatches += one.len() as u64;
            found.places.push(place);
        }
    }
}
