//! After a crash: what the log says is made good, before the first request.
//!
//! ```text
//!   superblocks say "clean" ──▶ nothing to do; the log starts anew
//!   they say "active"       ──▶ partial parity: rows that were being written get the parity of
//!                               what is left of them and what arrived
//!                           ──▶ records: what is complete is written again
//!                           ──▶ durable, and the array is in sync as far as it was
//! ```
//!
//! A log that cannot be read, or not all of it, makes nothing worse: what it would have made good
//! is resynchronised, if all members are there. If one is missing, the array is not started.

use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_block::{Flags, Io, Payload, Span};
use braid_md::Resync;
use braid_md::ppl::{self, Newest};
use braid_md::rejection::PplRejection;
use braid_md::stripe_log::{self, BLOCK, Head, MemberLog, Replay};

use super::columns::Columns;
use super::log::Kind;
use super::partial::{Partial, area_of};
use super::records::Records;
use crate::redundant::control::JobKind;
use crate::redundant::data::Data;
use crate::redundant::member::{Member, MemberState};
use crate::redundant::{Inner, Redundant};

/// Why what a crash left cannot be made good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// Members are missing, and what the log says of the others cannot be used.
    #[error(
        "the array was being written when it was left, members are missing, and the log that would \
         make it good cannot be used: {why}"
    )]
    Log {
        /// What is wrong with the log.
        why: String,
    },
    /// Making it good failed.
    #[error("what the log says could not be written: {why}")]
    Write {
        /// What failed.
        why: String,
    },
}

/// What became of a log's content.
enum Outcome {
    /// As many writes were made good, and the log is whole.
    Good(usize),
    /// It cannot be relied on.
    Doubtful(String),
}

impl Redundant {
    /// Makes good what a crash left, by the log. To be awaited before the first request; it
    /// writes only if there is something to make good.
    ///
    /// # Errors
    /// [`RestartError`]: then the array must not be used.
    pub async fn restart(&self) -> Result<(), RestartError> {
        let inner = &self.inner;
        let Data::Parity(parity) = &inner.data else { return Ok(()) };
        if inner.read_only {
            return Ok(());
        }
        let is_dirty = inner.resync.get() != Resync::Clean;
        let outcome = match &parity.log.kind {
            Kind::None => return Ok(()),
            Kind::Partial(_) if !is_dirty => return Ok(()),
            Kind::Partial(partial) => inner.restart_partial(partial).await?,
            Kind::Records(records) => inner.restart_records(records, is_dirty).await?,
        };
        let note = match outcome {
            Outcome::Good(0) => return Ok(()),
            Outcome::Good(count) => format!("{count} writes were made good by the log"),
            Outcome::Doubtful(why) if inner.degraded.get() => {
                return Err(RestartError::Log { why });
            }
            Outcome::Doubtful(why) => {
                inner.resync.set(Resync::From(0));
                format!("the log cannot be used, all is resynchronised: {why}")
            }
        };
        inner.note(note);
        inner.publish().await;
        Ok(())
    }
}

impl Inner {
    async fn restart_partial(self: &Rc<Self>, partial: &Partial) -> Result<Outcome, RestartError> {
        let holders: Vec<(usize, Rc<Member>)> = {
            let slots = self.slots.borrow();
            let holder = |(role, slot): (usize, &super::super::member::Slot)| {
                Some((role, Rc::clone(slot.readable()?)))
            };
            slots.iter().enumerate().filter_map(holder).collect()
        };
        let mut doubts = Vec::new();
        let mut torn = Vec::new();
        let mut count = 0;
        for (role, member) in holders {
            let mut trouble = |trouble: Trouble| {
                let (all, why) = match trouble {
                    Trouble::Torn(why) => (&mut torn, why),
                    Trouble::Log(why) => (&mut doubts, why),
                    Trouble::Write(why) => return Err(RestartError::Write { why }),
                };
                all.push(format!("{}: {why}", member.label));
                Ok(())
            };
            match self.read_partial(partial, &member).await {
                Ok((area, newest)) => {
                    for (entry, range) in newest.parity_ranges() {
                        match self.recompute(role, &area, entry, range).await {
                            Ok(()) => count += 1,
                            Err(why) => trouble(why)?,
                        }
                    }
                }
                Err(why) => trouble(why)?,
            }
        }
        self.make_durable(u64::MAX).await;
        if let Some(doubt) = doubts.into_iter().next() {
            return Ok(Outcome::Doubtful(doubt));
        }
        self.fill_again_from(0);
        if self.degraded.get() {
            // What is missing is what parity says it is: there is nothing to resynchronise, and
            // what is written from now on is logged.
            torn.into_iter().for_each(|why| self.note(format!("passed over in the log: {why}")));
            self.resync.set(Resync::Clean);
            return Ok(Outcome::Good(count.max(1)));
        }
        if let Some(why) = torn.into_iter().next() {
            return Ok(Outcome::Doubtful(why));
        }
        // Where nothing was logged the parity was not known to fit.
        if count > 0 && self.resync.get() == Resync::From(0) {
            self.resync.set(Resync::Clean);
        }
        Ok(Outcome::Good(count))
    }

    /// Members that are being filled may not have what was being written at the crash, of the rows
    /// from `first` on.
    fn fill_again_from(&self, first: u64) {
        for member in self.members.borrow().iter() {
            if let MemberState::Recovering(done) = member.state.get() {
                member.state.set(MemberState::Recovering(done.min(first)));
            }
        }
    }

    async fn read_partial(
        self: &Rc<Self>,
        partial: &Partial,
        member: &Rc<Member>,
    ) -> Result<(Vec<u8>, Newest), Trouble> {
        let no_room = || Trouble::Log("it has no room for a log".to_owned());
        let (start, size) = area_of(member).ok_or_else(no_room)?;
        let area = self.read_area(member, Span::new(start, size)).await.map_err(Trouble::Log)?;
        let newest = ppl::newest(&area, partial.signature)?;
        Ok((area, newest))
    }

    async fn read_area(
        self: &Rc<Self>,
        member: &Rc<Member>,
        area: Span,
    ) -> Result<Vec<u8>, String> {
        const PART: u64 = 1 << 20;
        let mut bytes = Vec::with_capacity(area.len as usize);
        while (bytes.len() as u64) < area.len {
            let done = bytes.len() as u64;
            let len = (area.len - done).min(PART);
            let memory = self.work.pool().get_wait(len as usize).await;
            let read = member.dev.start(Io::read(area.offset + done, memory)).await;
            read.result.map_err(|errno| format!("its log cannot be read: {errno}"))?;
            read.payload.bufs().iter().for_each(|buf| bytes.extend_from_slice(buf));
        }
        Ok(bytes)
    }

    /// Gives the rows of a logged write the parity of what it left alone and of what arrived.
    async fn recompute(
        self: &Rc<Self>,
        role: usize,
        area: &[u8],
        entry: &ppl::Entry,
        range: std::ops::Range<usize>,
    ) -> Result<(), Trouble> {
        let geometry = &self.parity().geometry;
        let kept = Newest::parity(area, entry, range)?;
        let covered = ppl::covered(entry, geometry.chunk(), geometry.data(), geometry.size())?;
        let p = geometry.role_of(covered.stripe, Column::P);
        ppl::check_parity_role(entry, p as u16, role as u16)?;
        let written: Vec<usize> = (covered.first..covered.first + covered.count)
            .map(|index| geometry.role_of(covered.stripe, Column::Data(index)))
            .collect();
        let (mut start, end) = covered.rows;
        while start < end {
            let rows = Span::new(start, (end - start).min(super::rows_of_unit(geometry)));
            let readable = self.readable_roles(rows);
            // What was written to a member that is gone is gone with it; the rest of these rows
            // was not touched, and the old parity fits it as well as ever.
            if written.iter().all(|role| readable[*role]) {
                let offset = (start - covered.rows.0) as usize;
                let kept = (!kept.is_empty()).then(|| &kept[offset..offset + rows.len as usize]);
                self.recompute_rows(rows, p, &written, kept).await.map_err(Trouble::Write)?;
            }
            start = rows.end();
        }
        Ok(())
    }

    async fn recompute_rows(
        self: &Rc<Self>,
        rows: Span,
        p: usize,
        written: &[usize],
        kept: Option<&[u8]>,
    ) -> Result<(), String> {
        let parity = self.parity();
        let memory = parity.cache.get_wait(parity.geometry.members() * rows.len as usize).await;
        let (mut columns, _) = Columns::new(&parity.geometry, rows, memory, |_| true);
        let mut wanted: Vec<(usize, Span)> = written.iter().map(|role| (*role, rows)).collect();
        wanted.sort_unstable_by_key(|(role, _)| *role);
        if let Some((role, _)) = columns.read(self, &wanted).await.first() {
            return Err(format!("the member in role {role} cannot be read at {rows}"));
        }
        let sum = {
            let mut sources: Vec<&[u8]> =
                written.iter().map(|role| columns.get(*role, rows)).collect();
            sources.extend(kept);
            let mut sum = vec![0; rows.len as usize];
            braid_parity::xor(&mut sum, &sources);
            sum
        };
        columns.get_mut(p, rows).copy_from_slice(&sum);
        let payload = columns.share(p);
        self.write_role(p, rows, payload).await
    }

    /// Writes `rows` of `role` to all members that are to have them.
    async fn write_role(
        self: &Rc<Self>,
        role: usize,
        rows: Span,
        mut payload: Payload,
    ) -> Result<(), String> {
        let members: Vec<Rc<Member>> = self.slots.borrow()[role].written().cloned().collect();
        for member in members {
            let io = Io::write(member.data_offset + rows.offset, payload.share(), Flags::NONE);
            let written = member.dev.start(io).await.result;
            written.map_err(|errno| format!("{}: a write failed: {errno}", member.label))?;
        }
        Ok(())
    }

    async fn restart_records(
        self: &Rc<Self>,
        records: &Records,
        is_dirty: bool,
    ) -> Result<Outcome, RestartError> {
        let members = self.written_members();
        let mut logs = Vec::with_capacity(members.len());
        let mut areas = Vec::with_capacity(members.len());
        let mut doubts = Vec::new();
        let mut synced = u64::MAX;
        let mut tail = 0;
        for member in &members {
            let role = member.role.get().expect("a member that is written has a role");
            let mut log =
                MemberLog { role, in_sync: member.is_in_sync(), head: None, found: Vec::new() };
            let mut area = Vec::new();
            match self.read_head(records, member).await {
                Ok(head) => {
                    tail = tail.max(head.tail);
                    synced = synced.min(head.synced);
                    if is_dirty {
                        let start = member.data_offset - head.area;
                        match self.read_area(member, Span::new(start, head.area)).await {
                            Ok(bytes) => {
                                log.found = stripe_log::scan(&bytes, &head);
                                area = bytes;
                            }
                            Err(why) => doubts.push(format!("{}: {why}", member.label)),
                        }
                    }
                    log.head = Some(head);
                }
                Err(why) if member.is_in_sync() => doubts.push(format!("{}: {why}", member.label)),
                Err(_) => {}
            }
            logs.push(log);
            areas.push(area);
        }
        records.start_at(tail);
        if !is_dirty {
            return Ok(Outcome::Good(0));
        }
        if let Some(doubt) = doubts.into_iter().next() {
            return Ok(Outcome::Doubtful(doubt));
        }
        let replay = match stripe_log::plan_replay(&logs) {
            Ok(replay) => replay,
            Err(why) => return Ok(Outcome::Doubtful(why.to_string())),
        };
        records.start_at(replay.next_sequence);
        self.replay(&replay, &members, &areas).await?;
        self.make_durable(u64::MAX).await;
        self.resync.set(if synced == u64::MAX { Resync::Clean } else { Resync::From(synced) });
        // Also without anything to be written: the array is in sync now, and that is recorded.
        Ok(Outcome::Good(replay.transactions.len().max(1)))
    }

    async fn read_head(
        self: &Rc<Self>,
        records: &Records,
        member: &Rc<Member>,
    ) -> Result<Head, String> {
        let room = member.data_offset;
        let place =
            room.checked_sub(BLOCK as u64).ok_or("there is no room in front of its data")?;
        let block = self.read_area(member, Span::new(place, BLOCK as u64)).await?;
        let head = Head::parse(&block, records.array_uuid(), member.number, room);
        let head = head.map_err(|why| why.to_string())?;
        if head.area != records.area() {
            return Err(format!("its log has {} bytes, not {}", head.area, records.area()));
        }
        if let Some(array) = &*self.publisher.array.borrow() {
            head.check_current(array.events, array.updated).map_err(|why| why.to_string())?;
        }
        Ok(head)
    }

    async fn replay(
        self: &Rc<Self>,
        replay: &Replay,
        members: &[Rc<Member>],
        areas: &[Vec<u8>],
    ) -> Result<(), RestartError> {
        let error = |why: String| RestartError::Write { why };
        let size = self.parity().geometry.member_size();
        let mut unfit: Vec<(u64, u64)> = Vec::new();
        for transaction in &replay.transactions {
            for part in &transaction.parts {
                let span = Span::new(part.offset, part.len.into());
                if !span.is_within(size) || !span.is_aligned(self.limits.logical_block) {
                    let why = format!("a record of {span} outside members of {size} bytes");
                    return Err(RestartError::Log { why });
                }
                let content = &areas[part.member][part.payload..part.payload + part.len as usize];
                let mut memory = self.work.pool().get_wait(content.len()).await;
                memory.copy_from_slice(content);
                // To the member that has the record, and to whoever else has its role.
                self.write_role(part.role.into(), span, Payload::One(memory))
                    .await
                    .map_err(error)?;
            }
            if transaction.parts.is_empty() {
                unfit.extend(&transaction.rows);
                // A record without a payload says nothing of what arrived where.
                self.fill_again_from(transaction.rows.first().map_or(0, |(start, _)| *start));
            }
            for member in members.iter().filter(|member| {
                member.role.get().is_some_and(|role| transaction.missing_roles.contains(&role))
            }) {
                if let MemberState::Recovering(done) = member.state.get() {
                    let first = transaction.rows.first().map_or(0, |(start, _)| *start);
                    member.state.set(MemberState::Recovering(done.min(first)));
                }
            }
        }
        unfit.extend(replay.dropped.iter().flat_map(|dropped| &dropped.rows));
        for (start, end) in unfit {
            let chunk = self.parity().geometry.chunk();
            let mut start = start.min(size);
            while start < end.min(size) {
                let most = super::rows_of_unit(&self.parity().geometry);
                let len = (end.min(size) - start).min(chunk - start % chunk).min(most);
                Rc::clone(self).compare_rows(Span::new(start, len), JobKind::Resync).await;
                start += len;
            }
        }
        Ok(())
    }
}

enum Trouble {
    /// A checksum is another one, as it is if the log was being written at the crash: then nothing
    /// that it says had begun.
    Torn(String),
    Log(String),
    Write(String),
}

impl From<PplRejection> for Trouble {
    fn from(why: PplRejection) -> Trouble {
        match why.is_torn() {
            true => Trouble::Torn(why.to_string()),
            false => Trouble::Log(why.to_string()),
        }
    }
}
