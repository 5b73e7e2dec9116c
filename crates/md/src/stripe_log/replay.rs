//! The replay after a crash: the records of all members that are to be written in place.

use std::collections::BTreeMap;

use super::{Found, Head, Roles};
use crate::rejection::LogRejection;

/// A member's log as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLog {
    /// The member's role.
    pub role: u16,
    /// True if all of its data is up to date, except for interrupted writes.
    pub in_sync: bool,
    /// Its head; `None` without a valid and current one, which only a member that is not in sync
    /// may lack.
    pub head: Option<Head>,
    /// Records that [`scan`](super::scan()) found.
    pub found: Vec<Found>,
}

/// The steps after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Transactions to be written in place, in this order.
    pub transactions: Vec<Transaction>,
    /// Writes that never began.
    pub dropped: Vec<Dropped>,
    /// The first sequence above all that were seen: the next one, and the next tail.
    pub next_sequence: u64,
}

/// All that one write put into the logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number.
    pub sequence: u64,
    /// The parts to be written; none of a whole stripe.
    pub parts: Vec<ReplayPart>,
    /// Ranges that it writes, in bytes of each member's data; sorted, without overlaps.
    pub rows: Vec<(u64, u64)>,
    /// Roles of participants that are being rebuilt and lack their record: `rows`
    /// are to be filled again there.
    pub missing_roles: Vec<u16>,
}

/// A piece of a payload and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayPart {
    /// The member's role.
    pub role: u16,
    /// The member, by its index in what was given.
    pub member: usize,
    /// In bytes of the member's data.
    pub offset: u64,
    /// In bytes.
    pub len: u32,
    /// Start of the content, in bytes from the start of the member's log.
    pub payload: usize,
}

/// A write that did not get all of its records onto the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Its number.
    pub sequence: u64,
    /// From and up to where, in bytes of each member's data: where parity may be checked. Sorted,
    /// without overlaps; of the records that there are.
    pub rows: Vec<(u64, u64)>,
}

/// The records of one sequence.
#[derive(Default)]
struct Gathered<'a> {
    participants: Roles,
    records: Vec<(usize, &'a Found)>,
}

/// Decides what is written in place, and what is dropped. `members` are all that the array is
/// assembled from, in sync or being rebuilt; a role may have one of each.
///
/// # Errors
/// [`LogRejection::NoLog`] if a member in sync has no head: then what it had may have been
/// complete, and nothing can be said.
pub fn plan_replay(members: &[MemberLog]) -> Result<Replay, LogRejection> {
    if let Some(member) = members.iter().find(|member| member.in_sync && member.head.is_none()) {
        return Err(LogRejection::NoLog { role: member.role });
    }
    let heads = members.iter().filter_map(|member| member.head.as_ref()).map(|head| head.tail);
    let records = || members.iter().flat_map(|member| &member.found).map(|found| &found.record);
    let tail = heads.chain(records().map(|record| record.tail)).max().unwrap_or(0);
    let behind = records().map(|record| record.sequence + 1).max().unwrap_or(0);

    let mut replay =
        Replay { transactions: Vec::new(), dropped: Vec::new(), next_sequence: tail.max(behind) };
    for (sequence, gathered) in gather(members, tail) {
        if gathered.is_complete(members) {
            replay.transactions.push(gathered.transaction(sequence, members));
        } else {
            replay.dropped.push(Dropped { sequence, rows: gathered.rows() });
        }
    }
    Ok(replay)
}

/// The records that are not retired, by sequence. Where a member has two of one sequence, or one
/// of another role than its own, none of these counts.
fn gather(members: &[MemberLog], tail: u64) -> BTreeMap<u64, Gathered<'_>> {
    let mut all: BTreeMap<u64, Gathered<'_>> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        let mut own: BTreeMap<u64, Vec<&Found>> = BTreeMap::new();
        let counts = |found: &&Found| {
            member.head.is_some()
                && found.record.role == member.role
                && found.record.sequence >= tail
        };
        for found in member.found.iter().filter(counts) {
            own.entry(found.record.sequence).or_default().push(found);
        }
        for (sequence, found) in own {
            let gathered = all.entry(sequence).or_default();
            for one in &found {
                gathered.participants = gathered.participants.union(&one.record.participants);
            }
            if let [only] = found[..] {
                gathered.records.push((index, only));
            }
        }
    }
    all
}

impl Gathered<'_> {
    fn has(&self, member: usize) -> bool {
        self.records.iter().any(|(index, _)| *index == member)
    }

    /// Returns true if each participant that has a member in sync has its record.
    fn is_complete(&self, members: &[MemberLog]) -> bool {
        let mut needed = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.in_sync && self.participants.contains(member.role));
        !self.records.is_empty() && needed.all(|(index, _)| self.has(index))
    }

    fn transaction(&self, sequence: u64, members: &[MemberLog]) -> Transaction {
        let mut parts = Vec::new();
        for (member, found) in &self.records {
            let mut payload = found.payload.start;
            if found.payload.is_empty() {
                continue;
            }
            for part in &found.record.parts {
                let (role, offset, len) = (found.record.role, part.offset, part.len);
                parts.push(ReplayPart { role, member: *member, offset, len, payload });
                payload += len as usize;
            }
        }
        let lacks = |(index, member): &(usize, &MemberLog)| {
            !member.in_sync && self.participants.contains(member.role) && !self.has(*index)
        };
        let missing = members.iter().enumerate().filter(lacks);
        let missing_roles = missing.map(|(_, member)| member.role).collect();
        Transaction { sequence, parts, rows: self.rows(), missing_roles }
    }

    fn rows(&self) -> Vec<(u64, u64)> {
        let parts = self.records.iter().flat_map(|(_, found)| &found.record.parts);
        merged(parts.map(|part| (part.offset, part.offset + u64::from(part.len))))
    }
}

/// Ranges sorted, those that touch as one.
fn merged(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut sorted: Vec<(u64, u64)> = ranges.collect();
    sorted.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in sorted {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}
