//! One window of a pass over copies: a part of the array that lies in one piece, under a lock.

use std::rc::Rc;

use braid_block::{Completion, Flags, Io, Payload, Span};

use crate::join_all;
use crate::redundant::Inner;
use crate::redundant::control::JobKind;
use crate::redundant::found::{BLOCK, Found};
use crate::redundant::member::{Member, MemberState};

impl Inner {
    /// Copies `array` to `member`, where it lies at `offset` of its data.
    pub(in crate::redundant) async fn fill_copy(
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
    pub(in crate::redundant) async fn compare_copies(
        self: Rc<Self>,
        array: Span,
        kind: JobKind,
    ) -> Found {
        let mut found = Found::default();
        let count = self.holders(array).len();
        if count < 2 {
            return found;
        }
        // In one piece, so that windows do not wait for each other's halves.
        let memory = self.work.pool().get_wait(count * array.len as usize).await;
        let mut memory = Payload::One(memory);
        let mut bufs: Vec<Payload> = (0..count).map(|_| memory.take_front(array.len)).collect();
        let _locked = self.ranges.lock(array).await;
        let block = u64::from(self.limits.logical_block);
        let mut parts = vec![array];
        while let Some(part) = parts.pop() {
            match self.compare_part(part, kind, &mut bufs).await {
                Some(one) => found.add(one, usize::MAX),
                None => {
                    let half = (part.len / 2).next_multiple_of(block);
                    parts.push(Span::new(part.offset + half, part.len - half));
                    parts.push(Span::new(part.offset, half));
                }
            }
        }
        found
    }

    /// Compares the copies of `part`, with memory in `bufs`. `None` if one of them cannot be read
    /// as a whole: its halves are to be compared, so that each sector is judged by what was read
    /// of it before.
    async fn compare_part(
        self: &Rc<Self>,
        part: Span,
        kind: JobKind,
        bufs: &mut [Payload],
    ) -> Option<Found> {
        let is_whole = part.len > u64::from(self.limits.logical_block);
        let mut holders = self.holders(part);
        holders.truncate(bufs.len());
        let is_bad = |(member, offset): &(Rc<Member>, u64)| member.is_bad(*offset, part.len);
        if is_whole && holders.iter().any(is_bad) {
            return None;
        }
        holders.retain(|one| !is_bad(one));
        let started = holders.iter().zip(&mut *bufs).map(|((member, offset), buf)| {
            member.dev.start(Io::read(member.data_offset + offset, buf.take_front(part.len)))
        });
        let completions = join_all(started.collect()).await;
        let readable: Vec<bool> = completions.iter().map(|one| one.result.is_ok()).collect();
        give_back(bufs.iter_mut(), completions);
        let mut found = Found::default();
        if is_whole && readable.contains(&false) {
            return None;
        }
        let Some(reference) = readable.iter().position(|readable| *readable) else {
            return Some(found); // Nothing to learn here; a read of it says that it failed.
        };
        let len = part.len as usize;
        let truth = bufs[reference].bufs()[0][..len].to_vec();
        let mut rewritten = Vec::new();
        for (index, (member, offset)) in holders.iter().enumerate() {
            let copy = &bufs[index].bufs()[0][..len];
            let differs = readable[index] && *copy != truth[..];
            if differs {
                note_differences(&mut found, part.offset, &truth, copy);
            }
            found.unreadable += u64::from(!readable[index]);
            if !readable[index] || (differs && kind != JobKind::Check) {
                rewritten.push((index, member, *offset));
            }
        }
        let started = rewritten.iter().map(|(index, member, offset)| {
            let mut payload = bufs[*index].take_front(part.len);
            payload.bufs_mut()[0].copy_from_slice(&truth);
            member.dev.start(Io::write(member.data_offset + offset, payload, Flags::NONE))
        });
        let completions = join_all(started.collect()).await;
        for ((index, member, _), written) in rewritten.iter().zip(&completions) {
            match written.result {
                Ok(()) if !readable[*index] => member.corrected.set(member.corrected.get() + 1),
                Ok(()) => found.repaired += part.len,
                Err(errno) => {
                    self.fail(member, &format!("a write failed: {errno}"));
                }
            }
        }
        for ((index, ..), written) in rewritten.iter().zip(completions) {
            give_back([&mut bufs[*index]].into_iter(), vec![written]);
        }
        self.fence().await;
        Some(found)
    }
}

/// Puts memory back in front of where it was taken from.
fn give_back<'a>(bufs: impl Iterator<Item = &'a mut Payload>, completions: Vec<Completion>) {
    for (buf, completion) in bufs.zip(completions) {
        let rest = std::mem::replace(buf, completion.payload);
        buf.append(rest);
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
