//! Reading data: from the member that has it, or recovered from the other members' rows.
//!
//! What is recovered is read under a lock: between the writes of a unit's data and of its parity
//! the rows mean nothing.

use std::rc::Rc;

use braid_array::Geometry;
use braid_array::Plan;
use braid_array::geometry::{Column, Raid456};
use braid_array::plan::plan_span;
use braid_block::{Completion, Errno, Io, Payload, Span};

use super::columns::Columns;
use super::rows_of_unit;
use super::units::{Piece, Unit, cut, join};
use crate::Pending;
use crate::pending::join_futures;
use crate::redundant::member::Member;
use crate::redundant::{Inner, Later};

impl Inner {
    #[inline]
    pub(in crate::redundant) fn read_data(self: &Rc<Self>, io: Io) -> Pending {
        let geometry = &self.parity().geometry;
        let span = io.span;
        let slots = self.slots.borrow();
        let holder = |role: usize, rows: Span| {
            slots[role].readable().filter(|member| !member.is_bad(rows.offset, rows.len))
        };
        match plan_span(geometry, span) {
            Plan::Forward { member: role, offset } => {
                let Some(member) = holder(role, Span::new(offset, span.len)) else {
                    drop(slots);
                    return self.retry(span, io.payload, None);
                };
                let at = Span::new(member.data_offset + offset, span.len);
                let pending = member.dev.start(Io { span: at, ..io });
                match pending {
                    Pending::Ready(Some(Completion { result: Ok(()), .. })) => pending,
                    _ => self.follow(Rc::clone(member), span, pending),
                }
            }
            Plan::Fan(fan) => {
                if fan.spans.iter().any(|one| holder(one.member, one.span).is_none()) {
                    drop(slots);
                    return self.retry(span, io.payload, None);
                }
                self.read_fan(io, fan, &|one| {
                    holder(one.member, one.span).expect("looked at above")
                })
            }
        }
    }

    /// Reads stripe by stripe, whatever of it can be read; `failed` is the member that was asked
    /// first.
    pub(in crate::redundant) async fn read_data_carefully(
        self: &Rc<Self>,
        span: Span,
        payload: Payload,
        failed: Option<u32>,
    ) -> (Result<(), Errno>, Payload) {
        let geometry = &self.parity().geometry;
        let most = rows_of_unit(geometry);
        let units = cut(geometry, span, payload, most, most).into_iter();
        let reading = units.map(|unit| Box::pin(self.read_unit(unit, failed)) as Later<'_, _>);
        let mut result = Ok(());
        let mut units = Vec::new();
        for (one, unit) in join_futures(reading.collect()).await {
            result = result.and(one);
            units.push(unit);
        }
        (result, join(units))
    }

    /// Fills the pieces of `unit`. Where a member is missing and several pieces are wanted, all
    /// rows are read once, and what is missing is worked out from what the client wants anyway.
    async fn read_unit(
        self: &Rc<Self>,
        mut unit: Unit,
        failed: Option<u32>,
    ) -> (Result<(), Errno>, Unit) {
        let geometry = &self.parity().geometry;
        let stripe = unit.stripe;
        let role_of = |piece: &Piece| geometry.role_of(stripe, Column::Data(piece.column));
        let lost = {
            let slots = self.slots.borrow();
            unit.pieces.iter().map(role_of).find(|role| slots[*role].readable().is_none())
        };
        if let (Some(role), true, None) = (lost, unit.pieces.len() > 1, failed)
            && self.read_all_rows(&mut unit, role).await
        {
            return (Ok(()), unit);
        }
        let roles: Vec<usize> = unit.pieces.iter().map(role_of).collect();
        let pieces = unit.pieces.iter_mut().zip(roles).map(|(piece, role)| {
            self.read_rows(role, piece.rows, std::mem::take(&mut piece.payload), failed)
        });
        let done = join_futures(pieces.collect()).await;
        let mut result = Ok(());
        for (piece, (one, payload)) in unit.pieces.iter_mut().zip(done) {
            result = result.and(one);
            piece.payload = payload;
        }
        (result, unit)
    }

    /// Fills the pieces of `unit` from all rows of the members that are there, without `role`;
    /// answers whether they suffice.
    async fn read_all_rows(self: &Rc<Self>, unit: &mut Unit, role: usize) -> bool {
        let parity = self.parity();
        let memory = parity.cache.get_wait(parity.geometry.members() * unit.rows.len as usize);
        let (mut columns, _) = Columns::new(&parity.geometry, unit.rows, memory.await, |_| true);
        let entered = self.ranges.enter(unit.rows).await;
        let (recovered, failed) = self.work_out(&mut columns, role).await;
        drop(entered);
        failed.into_iter().for_each(|member| self.put_rows_right(member, unit.rows));
        if recovered {
            for piece in &mut unit.pieces {
                let role = columns.role_of(Column::Data(piece.column));
                fill(&mut piece.payload, columns.get(role, piece.rows));
            }
        }
        recovered
    }

    /// Reads `rows` of `role`, of whichever member has it, or from the others; if they do not
    /// suffice, in halves, down to blocks.
    fn read_rows(
        self: &Rc<Self>,
        role: usize,
        rows: Span,
        mut payload: Payload,
        failed: Option<u32>,
    ) -> Later<'_, (Result<(), Errno>, Payload)> {
        Box::pin(async move {
            let holder = self.slots.borrow()[role].readable().cloned();
            if let Some(member) = &holder
                && !member.is_bad(rows.offset, rows.len)
                && Some(member.number) != failed
            {
                let io = Io::read(member.data_offset + rows.offset, payload);
                let completion = member.dev.start(io).await;
                payload = completion.payload;
                if completion.result.is_ok() {
                    return (Ok(()), payload);
                }
            }
            let (recovered, mut payload) = self.recover_rows(role, rows, payload).await;
            if recovered {
                if let Some(member) = holder {
                    self.put_rows_right(member, rows);
                }
                return (Ok(()), payload);
            }
            let block = u64::from(self.limits.logical_block);
            if rows.len <= block {
                return (Err(Errno::IO), payload);
            }
            let half = (rows.len / 2).next_multiple_of(block);
            let front = payload.take_front(half);
            let rest = Span::new(rows.offset + half, rows.len - half);
            let front = self.read_rows(role, Span::new(rows.offset, half), front, None).await;
            let back = self.read_rows(role, rest, payload, None).await;
            let mut payload = front.1;
            payload.append(back.1);
            (front.0.and(back.0), payload)
        })
    }

    /// Fills `payload` with what `role` has of `rows`, from the other members; answers whether
    /// they suffice.
    async fn recover_rows(
        self: &Rc<Self>,
        role: usize,
        rows: Span,
        mut payload: Payload,
    ) -> (bool, Payload) {
        let parity = self.parity();
        let count = parity.geometry.members() as u64;
        let memory = parity.cache.get_wait((count * rows.len) as usize).await;
        let (mut columns, _) = Columns::new(&parity.geometry, rows, memory, |_| true);
        let entered = self.ranges.enter(rows).await;
        let (recovered, failed) = self.work_out(&mut columns, role).await;
        drop(entered);
        failed.into_iter().for_each(|member| self.put_rows_right(member, rows));
        if recovered {
            fill(&mut payload, columns.get(role, rows));
        }
        (recovered, payload)
    }

    /// Works out what `role` has of the rows of `columns`, which nobody else changes meanwhile,
    /// from the other members; answers whether they suffice, and which of them could not be read.
    pub(super) async fn work_out(
        self: &Rc<Self>,
        columns: &mut Columns,
        role: usize,
    ) -> (bool, Vec<Rc<Member>>) {
        self.work_out_from(columns, role, false).await
    }

    /// The same, by reading all that can be read: a pass goes over each member from one end to the
    /// other, and a disk that leaves rows out loses more than they take.
    pub(super) async fn work_out_in_a_pass(
        self: &Rc<Self>,
        columns: &mut Columns,
        role: usize,
    ) -> (bool, Vec<Rc<Member>>) {
        self.work_out_from(columns, role, true).await
    }

    /// From those that suffice, or from all that can be read.
    async fn work_out_from(
        self: &Rc<Self>,
        columns: &mut Columns,
        role: usize,
        all: bool,
    ) -> (bool, Vec<Rc<Member>>) {
        let rows = columns.rows;
        let mut unreadable = Vec::new();
        if !self.parity().can_be_worked_out(rows) {
            return (false, unreadable);
        }
        let mut readable = self.readable_roles(rows);
        readable[role] = false;
        loop {
            let Some(mut sources) = sources(&columns.geometry, columns.stripe, role, &readable)
            else {
                return (false, unreadable);
            };
            if all {
                sources = (0..readable.len()).filter(|role| readable[*role]).collect();
            }
            let wanted: Vec<(usize, Span)> = sources.iter().map(|role| (*role, rows)).collect();
            let failed = columns.read(self, &wanted).await;
            if failed.is_empty() {
                let recovered = columns.recover(rows, &|role| sources.contains(&role));
                assert!(recovered, "the sources were chosen to suffice");
                if !matches!(columns.geometry.column_of(columns.stripe, role), Column::Data(_)) {
                    columns.compute(rows, &|wanted| wanted == role, &|_| None);
                }
                return (true, unreadable);
            }
            for (failed, member) in failed {
                unreadable.extend(member);
                readable[failed] = false;
            }
        }
    }

    /// Has `rows` written again on `member`, which could not read them, from the others.
    pub(super) fn put_rows_right(self: &Rc<Self>, member: Rc<Member>, rows: Span) {
        if self.read_only || self.limits.read_only {
            return;
        }
        let inner = Rc::clone(self);
        self.background.spawn(async move { inner.rewrite_rows(&member, rows).await });
    }

    /// Where others cannot read all of `rows` either, in halves, down to blocks.
    async fn rewrite_rows(self: &Rc<Self>, member: &Rc<Member>, rows: Span) {
        let block = u64::from(self.limits.logical_block);
        let mut parts = vec![rows];
        while let Some(part) = parts.pop() {
            if !self.rewrite_part(member, part).await && part.len > block {
                let half = (part.len / 2).next_multiple_of(block);
                parts.push(Span::new(part.offset + half, part.len - half));
                parts.push(Span::new(part.offset, half));
            }
        }
    }

    /// Answers false if the others do not suffice.
    async fn rewrite_part(self: &Rc<Self>, member: &Rc<Member>, rows: Span) -> bool {
        let parity = self.parity();
        let count = parity.geometry.members() as u64;
        let memory = parity.cache.get_wait((count * rows.len) as usize).await;
        let (mut columns, _) = Columns::new(&parity.geometry, rows, memory, |_| true);
        let _locked = self.ranges.lock(rows).await;
        let Some(role) = member.role.get().map(usize::from) else { return true };
        let has_role = |one: &Rc<Member>| Rc::ptr_eq(one, member);
        if !self.slots.borrow()[role].readable().is_some_and(has_role) {
            return true;
        }
        // Of several reads that met the same error the first has it put right.
        if !member.is_bad(rows.offset, rows.len)
            && columns.read(self, &[(role, rows)]).await.is_empty()
        {
            return true;
        }
        // Whoever else cannot be read is put right by who needs that, or two would have each other
        // put right for ever.
        let (is_known, _) = self.work_out(&mut columns, role).await;
        if is_known {
            let payload = columns.take(role);
            self.write_again(member, rows, payload).await;
        }
        is_known
    }

    /// Has every block of the rows of `columns`, which nobody else changes meanwhile, written
    /// again where a member cannot read it and the others can: each row on its own, where all of
    /// them together cannot be recovered.
    pub(super) async fn put_blocks_right(self: &Rc<Self>, columns: &mut Columns) {
        let block = u64::from(self.limits.logical_block);
        let rows = columns.rows;
        for offset in (rows.offset..rows.end()).step_by(block as usize) {
            self.put_block_right(columns, Span::new(offset, block)).await;
        }
    }

    async fn put_block_right(self: &Rc<Self>, columns: &mut Columns, block: Span) {
        let mut readable = self.readable_roles(block);
        let roles = (0..readable.len()).filter(|role| readable[*role]);
        let wanted: Vec<(usize, Span)> = roles.map(|role| (role, block)).collect();
        let failed = columns.read(self, &wanted).await;
        failed.iter().for_each(|(role, _)| readable[*role] = false);
        if failed.is_empty() || !columns.recover(block, &|role| readable[role]) {
            return;
        }
        let is_parity = |role: usize| {
            !matches!(columns.geometry.column_of(columns.stripe, role), Column::Data(_))
        };
        let lost: Vec<bool> = (0..readable.len())
            .map(|role| is_parity(role) && failed.iter().any(|(other, _)| *other == role))
            .collect();
        columns.compute(block, &|role| lost[role], &|_| None);
        for (role, member) in failed {
            let Some(member) = member else { continue };
            let [before, part, rest] = columns.take_apart(role, block);
            let part = self.write_again(&member, block, part).await;
            columns.put_together(role, [before, part, rest]);
        }
    }
}

/// Copies `from` into `payload`, which is as long.
fn fill(payload: &mut Payload, mut from: &[u8]) {
    for buf in payload.bufs_mut() {
        let (part, rest) = from.split_at(buf.len());
        buf.copy_from_slice(part);
        from = rest;
    }
}

/// From which roles' rows that of `role` is worked out, if only those for which `readable` holds
/// can be read; `None` if they do not suffice. No more than are needed: all other data that can
/// be read, and as much parity as data cannot.
fn sources(geometry: &Raid456, stripe: u64, role: usize, readable: &[bool]) -> Option<Vec<usize>> {
    let can_be_read = |other: &usize| *other != role && readable[*other];
    let data = (0..geometry.data()).map(|index| geometry.role_of(stripe, Column::Data(index)));
    let mut sources: Vec<usize> = data.filter(can_be_read).collect();
    let lost = geometry.data() - sources.len();
    let parity = [Column::P, Column::Q].into_iter().take(geometry.parities());
    let parity = parity.map(|column| geometry.role_of(stripe, column)).filter(can_be_read);
    sources.extend(parity.take(lost));
    (sources.len() == geometry.data()).then_some(sources)
}
