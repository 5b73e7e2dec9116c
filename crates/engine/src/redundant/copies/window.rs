//! One window of a pass over copies: a part of the array that lies in one piece, under a lock.

use std::rc::Rc;

use braid_array::{ArraySpan, MemberByte, MemberSpan};
use braid_block::{Completion, Flags, Io, Payload};

use super::ballot::Ballot;
use super::{Copies, in_sync_bytes};
use crate::canary::Canary;
use crate::join_all;
use crate::redundant::core::Core;
use crate::redundant::found::{BLOCK, Found, Mismatch, MismatchMember, half_of, join_places};
use crate::redundant::keeping::{Finder, Inner, Lost};
use crate::redundant::kind::JobKind;
use crate::redundant::roster::Member;

impl Copies {
    /// Copies `array` to `members`, at `offset` of their data. Returns the parts of which no copy could be
    /// read.
    pub(super) async fn fill_copies(
        &self,
        inner: &Rc<Inner>,
        mut members: Vec<Rc<Member>>,
        array: ArraySpan,
        offset: MemberByte,
    ) -> Vec<Lost> {
        let core = &inner.core;
        // Memory first: a holder of memory then needs only the lock.
        let buf = core.work.pool().get_wait(array.len as usize).await;
        let _locked = core.lane.ranges().lock(in_sync_bytes(array)).await;
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

    /// Reads every copy of `array` and compares them block by block. Except for a check, the copies of a block
    /// that differ from [the valid content](Ballot::result) are rewritten. Unreadable copies are always
    /// rewritten.
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
        // One allocation, so that windows do not wait for memory that other windows hold.
        let memory = core.work.pool().get_wait(count * array.len as usize).await;
        let mut memory = Payload::One(memory);
        let mut bufs: Vec<Payload> = (0..count).map(|_| memory.take_front(array.len)).collect();
        if Canary::MemoryInParts.is_planted() {
            bufs.clear();
            for _ in 0..count {
                bufs.push(Payload::One(core.work.pool().get_wait(array.len as usize).await));
            }
        }
        let _locked = core.lane.ranges().lock(in_sync_bytes(array)).await;
        let block = u64::from(core.limits.logical_block);
        let mut parts = vec![array];
        while let Some(part) = parts.pop() {
            match self.compare_part(core, part, kind, &mut bufs).await {
                Some(one) => found.add(one, usize::MAX),
                None => {
                    let half = half_of(part.len, block);
                    let (first, rest) = part.split_at(half);
                    parts.extend([rest, first]);
                }
            }
        }
        found
    }

    /// Returns the members in sync whose copies of `part` are compared, and where the copies are.
    fn voters(&self, core: &Core, part: ArraySpan) -> Vec<(Rc<Member>, MemberByte)> {
        if !Canary::FilledVotes.is_planted() {
            return self.holders(core, part);
        }
        let (geometry, slots) = (self.mirrored(), core.roster.slots());
        let runs = (0..geometry.copies()).map(|copy| geometry.locate(part.offset, copy));
        runs.filter_map(|run| Some((slots[run.role].primary.clone()?, run.offset))).collect()
    }

    /// Compares the copies of `part`, with memory in `bufs`. Returns `None` if one of them cannot be read as a
    /// whole: the halves are to be compared, so that each page is judged by its own reads, and each sector if
    /// no copy of the page can be read.
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
        let mut holders = self.voters(core, part);
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
        let is_unclear = readable.contains(&false);
        let is_lost = !readable.contains(&true);
        if is_unclear && (is_large || (is_divisible && is_lost)) {
            return None;
        }
        if is_lost {
            found.is_unread(in_sync_bytes(part)); // Reads of the part also fail.
            return Some(found);
        }
        if readable.iter().filter(|readable| **readable).count() > 1 {
            found.compared += part.len;
        }
        let wrong = judge(part, &holders, &readable, bufs, kind, &mut found);
        for (index, place) in wrong {
            let (member, offset) = &holders[index];
            let mut behind = std::mem::take(&mut bufs[index]);
            let mut whole = behind.take_front(place.offset - *offset);
            let payload = behind.take_front(place.len);
            let (is_written, payload) = if readable[index] {
                core.make_equal(member, place, payload).await
            } else {
                core.write_again(member, place, payload, Finder::Pass).await
            };
            whole.append(payload);
            whole.append(behind);
            bufs[index] = in_one(whole);
            match (is_written, readable[index]) {
                (true, true) => found.repaired += place.len,
                (true, false) => found.unreadable += 1,
                // The members still disagree, and the caller has to know.
                (false, _) if member.is_in_sync() => found.is_unsettled(in_sync_bytes(part)),
                (false, _) => {}
            }
        }
        Some(found)
    }
}

/// Compares the contents of `part` in `bufs`, block by block, for those of `holders` that were `readable`.
/// Returns the places to be rewritten, by holder; the holder's buffer then has the valid content.
fn judge(
    part: ArraySpan,
    holders: &[(Rc<Member>, MemberByte)],
    readable: &[bool],
    bufs: &mut [Payload],
    kind: JobKind,
    found: &mut Found,
) -> Vec<(usize, MemberSpan)> {
    let mut wrong: Vec<(usize, MemberSpan)> = Vec::new();
    let all_readable = !readable.contains(&false);
    for start in (0..part.len).step_by(BLOCK) {
        let len = (part.len - start).min(BLOCK as u64);
        let range = start as usize..(start + len) as usize;
        let block = |index: usize| &bufs[index].bufs()[0][range.clone()];
        if all_readable && (1..holders.len()).all(|index| block(index) == block(0)) {
            continue;
        }
        let copies = (0..holders.len()).map(|index| readable[index].then(|| block(index)));
        let ballot = Ballot::of(&copies.collect::<Vec<_>>());
        if !ballot.is_unanimous() {
            let (offset, majority) = (part.offset.get() + start, ballot.majority());
            let member = |(index, (member, at)): (usize, &(Rc<Member>, MemberByte))| {
                let group = ballot.content(index)?;
                let is_wrong = majority.is_some_and(|majority| majority != group);
                let offset = member.on_device(*at + start);
                Some(MismatchMember { role: member.role()?, offset, group, is_wrong })
            };
            let members = holders.iter().enumerate().filter_map(member).collect();
            found.differ(Mismatch { offset, len, array: vec![offset], members });
        }
        let result = ballot.result(kind);
        let has_it = |index: &usize| result.is_some() && ballot.content(*index) == result;
        let source = (0..holders.len()).find(has_it).map(|index| block(index).to_vec());
        for (index, (_, at)) in holders.iter().enumerate().filter(|(index, _)| !has_it(index)) {
            match &source {
                Some(right) if !readable[index] || kind != JobKind::Check => {
                    bufs[index].bufs_mut()[0][range.clone()].copy_from_slice(right);
                    wrong.push((index, MemberSpan::new(*at + start, len)));
                }
                None if !readable[index] => found.is_unread(in_sync_bytes(part)),
                _ => {}
            }
        }
    }
    join_places(wrong)
}

impl Core {
    /// Writes `payload` at `offset` of the data of those of `members` that are still being filled. A member
    /// that fails is taken out.
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

    /// Writes `payload` over the differing `place` of `member`. Returns true if the member has it now, and the
    /// payload.
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
            // A stopped array returns its own error to the next caller.
            let _ = self.fence().await;
        }
        (result.is_ok(), payload)
    }
}

/// Returns buffers to the front of the payloads that they were taken from, each in one piece.
fn give_back<'a>(bufs: impl Iterator<Item = &'a mut Payload>, completions: Vec<Completion>) {
    for (buf, completion) in bufs.zip(completions) {
        let rest = std::mem::replace(buf, completion.payload);
        buf.append(rest);
        *buf = in_one(std::mem::take(buf));
    }
}

/// Returns the same bytes in one buffer.
fn in_one(payload: Payload) -> Payload {
    payload.into_one().map_or(Payload::None, Payload::One)
}
