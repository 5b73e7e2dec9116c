//! One window of a pass over copies: a part of the array that lies in one piece, under a lock.

use std::rc::Rc;

use braid_array::{ArraySpan, MemberByte, MemberSpan};
use braid_block::{Completion, Flags, Io, Payload};

use super::{Copies, in_sync_bytes};
use crate::join_all;
use crate::redundant::core::Core;
use crate::redundant::found::{BLOCK, Found};
use crate::redundant::job::JobKind;
use crate::redundant::keeping::{Finder, Inner, Lost};
use crate::redundant::layout::SyncByte;
use crate::redundant::roster::Member;

impl Copies {
    /// Copies `array` to `members`, where it lies at `offset` of their data. Answers what no copy
    /// could be read of.
    pub(super) async fn fill_copies(
        &self,
        inner: &Rc<Inner>,
        mut members: Vec<Rc<Member>>,
        array: ArraySpan,
        offset: MemberByte,
    ) -> Vec<Lost> {
        let core = &inner.core;
        // Memory first: whoever holds some then needs only the lock.
        let buf = core.work.pool().get_wait(array.len as usize).await;
        let _locked = core.ranges.lock(in_sync_bytes(array)).await;
        members.retain(|member| member.recovering().is_some());
        let mut lost = Vec::new();
        let mut parts = vec![(array, Payload::One(buf))];
        while let Some((part, payload)) = parts.pop() {
            let (result, mut payload) =
                self.read_part(inner, part, payload, None, Finder::Pass).await;
            let at = offset + (part.offset - array.offset);
            if result.is_ok() {
                core.store_filled(&members, at, payload).await;
                continue;
            }
            let block = u64::from(core.limits.logical_block);
            if part.len <= block {
                let holders = self.holders(core, part).into_iter();
                let unreadable = holders.map(|(member, _)| member).collect();
                lost.push(Lost { place: MemberSpan::new(at, part.len), unreadable });
                continue;
            }
            let half = (part.len / 2).next_multiple_of(block);
            let front = payload.take_front(half);
            let (first, rest) = part.split_at(half);
            parts.push((rest, payload));
            parts.push((first, front));
        }
        lost
    }

    /// Reads every copy of `array` and compares them; but for a check, what differs from the
    /// first is written again, and always what cannot be read.
    pub(super) async fn compare_copies(
        &self,
        inner: &Rc<Inner>,
        array: ArraySpan,
        kind: JobKind,
    ) -> Found {
        let core = &inner.core;
        let mut found = Found::default();
        let count = self.holders(core, array).len();
        if count < 2 {
            return found;
        }
        // In one piece, so that windows do not wait for each other's halves.
        let memory = core.work.pool().get_wait(count * array.len as usize).await;
        let mut memory = Payload::One(memory);
        let mut bufs: Vec<Payload> = (0..count).map(|_| memory.take_front(array.len)).collect();
        let _locked = core.ranges.lock(in_sync_bytes(array)).await;
        let block = u64::from(core.limits.logical_block);
        let mut parts = vec![array];
        while let Some(part) = parts.pop() {
            match self.compare_part(core, part, kind, &mut bufs).await {
                Some(one) => found.add(one, usize::MAX),
                None => {
                    let half = (part.len / 2).next_multiple_of(block);
                    let (first, rest) = part.split_at(half);
                    parts.extend([rest, first]);
                }
            }
        }
        found
    }

    /// Compares the copies of `part`, with memory in `bufs`. `None` if one of them cannot be read
    /// as a whole: its halves are to be compared, so that each page is judged by what was read of
    /// it, and each sector where no copy of the page can be read.
    async fn compare_part(
        &self,
        core: &Rc<Core>,
        part: ArraySpan,
        kind: JobKind,
        bufs: &mut [Payload],
    ) -> Option<Found> {
        let mut found = Found::default();
        let is_large = part.len > BLOCK as u64;
        let is_divisible = part.len > u64::from(core.limits.logical_block);
        let mut holders = self.holders(core, part);
        holders.truncate(bufs.len());
        let is_bad = |(member, offset): &(Rc<Member>, MemberByte)| {
            member.is_bad(MemberSpan::new(*offset, part.len))
        };
        let listed = holders.iter().filter(|one| is_bad(one)).count();
        if is_divisible && listed > 0 {
            return None;
        }
        found.listed += listed as u64 * part.len;
        holders.retain(|one| !is_bad(one));
        let started = holders.iter().zip(&mut *bufs).map(|((member, offset), buf)| {
            member.dev.start(Io::read(member.on_device(*offset), buf.take_front(part.len)))
        });
        let completions = join_all(started.collect()).await;
        let readable: Vec<bool> = completions.iter().map(|one| one.result.is_ok()).collect();
        give_back(bufs.iter_mut(), completions);
        let reference = readable.iter().position(|readable| *readable);
        let is_unclear = readable.contains(&false);
        if is_unclear && (is_large || (is_divisible && reference.is_none())) {
            return None;
        }
        let Some(reference) = reference else {
            found.is_unread(in_sync_bytes(part)); // A read of it says that it failed.
            return Some(found);
        };
        if readable.iter().filter(|readable| **readable).count() > 1 {
            found.compared += part.len;
        }
        let len = part.len as usize;
        let truth = bufs[reference].bufs()[0][..len].to_vec();
        for (index, (member, offset)) in holders.iter().enumerate() {
            let copy = &bufs[index].bufs()[0][..len];
            let differs = readable[index] && *copy != truth[..];
            if differs {
                note_differences(&mut found, in_sync_bytes(part).offset, &truth, copy);
            }
            if readable[index] && !(differs && kind != JobKind::Check) {
                continue;
            }
            let mut payload = bufs[index].take_front(part.len);
            payload.bufs_mut()[0].copy_from_slice(&truth);
            let place = MemberSpan::new(*offset, part.len);
            let (is_written, payload) = if readable[index] {
                core.make_equal(member, place, payload).await
            } else {
                core.write_again(member, place, payload, Finder::Pass).await
            };
            let rest = std::mem::replace(&mut bufs[index], payload);
            bufs[index].append(rest);
            match (is_written, readable[index]) {
                (true, true) => found.repaired += part.len,
                (true, false) => found.unreadable += 1,
                // The members still do not agree, and whoever asked has to know.
                (false, _) if member.is_in_sync() => found.is_unsettled(in_sync_bytes(part)),
                (false, _) => {}
            }
        }
        Some(found)
    }
}

impl Core {
    /// Writes `payload` at `offset` of the data of those of `members` that are still being filled;
    /// who fails at it is out.
    pub(in crate::redundant) async fn store_filled(
        self: &Rc<Self>,
        members: &[Rc<Member>],
        offset: MemberByte,
        mut payload: Payload,
    ) -> Payload {
        let filled = members.iter().filter(|member| member.recovering().is_some());
        let filled: Vec<Rc<Member>> = filled.cloned().collect();
        let place = MemberSpan::new(offset, payload.len());
        let started = filled.iter().map(|member| {
            member.dev.start(Io::write(member.on_device(offset), payload.share(), Flags::NONE))
        });
        let done = join_all(started.collect()).await;
        let mut written = Vec::new();
        for (member, done) in filled.into_iter().zip(done) {
            match done.result {
                Ok(()) => written.push((member, place)),
                Err(errno) => {
                    let why = format!("it could not be filled: a write failed: {errno}");
                    self.fail_or_stop(vec![(member, why)]);
                }
            }
        }
        self.are_good_again(&written).await;
        payload.detach();
        payload
    }

    /// Writes `payload` over what differs at `place` of `member`. Answers whether the
    /// member has it now, and the payload.
    pub(in crate::redundant) async fn make_equal(
        self: &Rc<Self>,
        member: &Rc<Member>,
        place: MemberSpan,
        payload: Payload,
    ) -> (bool, Payload) {
        let io = Io::write(member.on_device(place.offset), payload, Flags::NONE);
        let Completion { result, payload } = member.dev.start(io).await;
        if let Err(errno) = result {
            let why = format!("a write failed: {errno}");
            if !self.fail(member, &why) {
                self.note(format!("{}: {why}; it is needed, and kept", member.label));
            }
            // A stopped array answers its own error to whoever asks next.
            let _ = self.fence().await;
        }
        (result.is_ok(), payload)
    }
}

/// Puts memory back in front of where it was taken from: in one piece, whatever memory came back.
fn give_back<'a>(bufs: impl Iterator<Item = &'a mut Payload>, completions: Vec<Completion>) {
    for (buf, completion) in bufs.zip(completions) {
        let rest = std::mem::replace(buf, completion.payload);
        buf.append(rest);
        if let Payload::Many(_) = buf
            && let Some(whole) = std::mem::take(buf).into_one()
        {
            *buf = Payload::One(whole);
        }
    }
}

/// Adds the blocks of `copy` that differ from `truth`; each place counts once, however many
/// copies differ there.
fn note_differences(found: &mut Found, start: SyncByte, truth: &[u8], copy: &[u8]) {
    for (index, (one, other)) in truth.chunks(BLOCK).zip(copy.chunks(BLOCK)).enumerate() {
        let place = start + (index * BLOCK) as u64;
        if one != other && !found.places.contains(&place) {
            found.mismatches += one.len() as u64;
            found.places.push(place);
        }
    }
}
