//! The stripe log after a crash: replaying its records in place.

use std::rc::Rc;

use braid_array::geometry::Raid456;
use braid_array::{MemberByte, MemberSpan, Role};
use braid_block::{Payload, Span};
use braid_md::Resync;
use braid_md::stripe_log::{self, BLOCK, Found, Head, MemberLog, Replay, Transaction};

use super::Records;
use crate::canary::Canary;
use crate::redundant::core::Core;
use crate::redundant::log::{Outcome, RestartError, Restarted, read_area, write_role};
use crate::redundant::roster::Member;

impl Records {
    pub(super) async fn make_good(
        &self,
        core: &Rc<Core>,
        geometry: &Raid456,
        is_dirty: bool,
    ) -> Result<Restarted, RestartError> {
        let found = core.agreement.resync();
        let restarted = |outcome, resync, unfit| Ok(Restarted { outcome, resync, unfit });
        let members = core.roster.written();
        let mut logs = Vec::with_capacity(members.len());
        let mut areas = Vec::with_capacity(members.len());
        let mut doubts = Vec::new();
        let mut synced = u64::MAX;
        let mut tail = 0;
        for member in &members {
            let Some(role) = member.role() else { continue };
            let in_sync = member.is_in_sync();
            let mut log = MemberLog { role: role.get(), in_sync, head: None, found: Vec::new() };
            let mut area = Vec::new();
            match self.read_head(core, member).await {
                Ok(head) => {
                    tail = tail.max(head.tail);
                    synced = synced.min(head.synced);
                    if is_dirty {
                        let start = member.data_offset - head.area;
                        match read_area(core, member, Span::new(start, head.area)).await {
                            Ok(bytes) => {
                                log.found = stripe_log::scan(&bytes, &head);
                                if Canary::TornHeaderIsEnd.is_planted() {
                                    end_at_gap(&mut log.found);
                                }
                                area = bytes;
                            }
                            Err(why) => doubts.push(format!("{}: {why}", member.label)),
                        }
                    }
                    log.head = Some(head);
                }
                Err(why) if in_sync => doubts.push(format!("{}: {why}", member.label)),
                Err(_) => {}
            }
            logs.push(log);
            areas.push(area);
        }
        self.places.start_at(tail);
        if !is_dirty {
            return restarted(Outcome::Good(0), found, Vec::new());
        }
        if let Some(doubt) = doubts.into_iter().next() {
            return restarted(Outcome::Doubtful(doubt), Resync::From(0), Vec::new());
        }
        let mut replay = match stripe_log::plan_replay(&logs) {
            Ok(replay) => replay,
            Err(why) => {
                let why = why.to_string();
                return restarted(Outcome::Doubtful(why), Resync::From(0), Vec::new());
            }
        };
        if Canary::LogNotReplayed.is_planted() {
            replay.transactions.clear();
        }
        self.places.start_at(replay.next_sequence);
        let unfit = replay_in_place(core, geometry, &replay, &areas).await?;
        // Also without records: the array is in sync now, and that is recorded.
        let count = replay.transactions.len().max(1);
        let resync = if synced == u64::MAX { Resync::Clean } else { Resync::From(synced) };
        restarted(Outcome::Good(count), resync, unfit)
    }

    async fn read_head(&self, core: &Core, member: &Member) -> Result<Head, String> {
        let room = member.data_offset;
        let place =
            room.checked_sub(BLOCK as u64).ok_or("there is no room in front of its data")?;
        let block = read_area(core, member, Span::new(place, BLOCK as u64)).await?;
        let head = Head::parse(&block, &self.array_uuid, member.number, room);
        let head = head.map_err(|why| why.to_string())?;
        if head.area != self.area {
            return Err(format!("its log has {} bytes, not {}", head.area, self.area));
        }
        if let Some(array) = &*core.publisher.array.borrow() {
            head.check_current(array.events, array.updated).map_err(|why| why.to_string())?;
            if Canary::OlderHeadLeftOut.is_planted() && head.updated < array.updated {
                return Err("it is older than the superblock".to_owned());
            }
        }
        Ok(head)
    }
}

/// Writes the transactions of `replay` in place. Returns the rows whose parity must be recomputed: those of
/// writes that never began, and those of records without data.
///
/// A record that is missing because of rot looks as if its write never began, but the write may have completed.
/// While all members are there, such rows are not overwritten: their contents in place are as valid, and their
/// parity is recomputed.
async fn replay_in_place(
    core: &Rc<Core>,
    geometry: &Raid456,
    replay: &Replay,
    areas: &[Vec<u8>],
) -> Result<Vec<MemberSpan>, RestartError> {
    let error = |why: String| RestartError::Write { why };
    let size = geometry.member_size();
    let mut unfit: Vec<(u64, u64)> = Vec::new();
    let mut refill = MemberByte::new(u64::MAX);
    let dropped = || replay.dropped.iter().flat_map(|dropped| &dropped.rows);
    let left_alone: Vec<(u64, u64)> = match core.gate.is_degraded() {
        true => Vec::new(),
        false => dropped().copied().collect(),
    };
    for (start, _) in &left_alone {
        refill = refill.min(MemberByte::new(*start));
    }
    for transaction in &replay.transactions {
        for part in &transaction.parts {
            let span = MemberSpan::new(MemberByte::new(part.offset), part.len.into());
            if !span.is_within(size) || !span.is_aligned(core.limits.logical_block) {
                let why = format!("a record of {span} outside members of {size} bytes");
                return Err(RestartError::Log { why });
            }
            for (start, end) in outside((part.offset, span.end().get()), &left_alone) {
                let from = part.payload + (start - part.offset) as usize;
                let content = &areas[part.member][from..from + (end - start) as usize];
                let mut memory = core.work.pool().get_wait(content.len()).await;
                memory.copy_from_slice(content);
                // The contents go to all written members of the role, not only to the one with the record.
                let (span, payload) =
                    (MemberSpan::new(MemberByte::new(start), end - start), Payload::One(memory));
                write_role(core, Role::new(part.role), span, payload).await.map_err(error)?;
            }
        }
        let Transaction { rows, parts, missing_roles, .. } = transaction;
        let first = rows.first().map_or(0, |(start, _)| *start);
        // A record without a payload does not tell which data arrived; and a member that is being filled and
        // has no record must be filled there again.
        if parts.is_empty() {
            unfit.extend(rows);
        }
        if parts.is_empty() || !missing_roles.is_empty() {
            refill = refill.min(MemberByte::new(first));
        }
    }
    core.fill_again_from(refill).await;
    unfit.extend(dropped());
    let within = |(start, end): (u64, u64)| {
        let start = start.min(size);
        MemberSpan::new(MemberByte::new(start), end.min(size).saturating_sub(start))
    };
    Ok(unfit.into_iter().map(within).collect())
}

/// Returns the parts of a range outside `holes`.
fn outside(range: (u64, u64), holes: &[(u64, u64)]) -> Vec<(u64, u64)> {
    holes.iter().fold(vec![range], |pieces, (start, end)| {
        let around = |(from, to): (u64, u64)| [(from, to.min(*start)), (from.max(*end), to)];
        pieces.into_iter().flat_map(around).filter(|(from, to)| from < to).collect()
    })
}

/// Keeps the records up to the first that is missing.
fn end_at_gap(found: &mut Vec<Found>) {
    found.sort_by_key(|one| one.record.sequence);
    let follows = |pair: &[Found]| pair[0].record.sequence + 1 == pair[1].record.sequence;
    let end = found.windows(2).position(|pair| !follows(pair)).map_or(found.len(), |end| end + 1);
    found.truncate(end);
}
