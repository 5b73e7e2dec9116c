//! Reading data from its member (a read of a complete stripe), or by reconstruction from the rows of the other
//! members (a degraded read).
//!
//! A reconstruction reads under a lock: between the writes of a unit's data and of its parity the rows do not
//! agree.

use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::parity_plan::sources;
use braid_array::plan::plan_span;
use braid_array::{ArraySpan, Geometry, MemberSpan, Plan, Role};
use braid_block::{Completion, Errno, Io, Payload, Span};

use super::{Parity, in_sync_bytes, readable_roles, rows_of_unit};
use crate::Pending;
use crate::background::Later;
use crate::device::addressed;
use crate::pending::join_futures;
use crate::redundant::core::Core;
use crate::redundant::keeping::{Finder, Inner};
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;
use crate::redundant::stripe::units::{Piece, Unit, cut, join};

/// Result of a reconstruction of rows.
pub(super) struct Reconstructed {
    /// True if the readable members suffice.
    pub(super) is_known: bool,
    /// The members that could not be read.
    pub(super) unreadable: Vec<Rc<Member>>,
}

impl Parity {
    #[inline]
    pub(super) fn read_data(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        let span = addressed(io.span);
        let slots = inner.core.roster.slots();
        let holder = |role: Role, rows: MemberSpan| {
            slots[role].readable().filter(|member| !member.is_bad(rows))
        };
        match plan_span(&self.geometry, span) {
            Plan::Forward { role, offset } => {
                let Some(member) = holder(role, MemberSpan::new(offset, span.len)) else {
                    drop(slots);
                    return inner.retry(span, io.payload, None);
                };
                let at = Span::new(member.on_device(offset), span.len);
                let pending = member.dev.start(Io { span: at, ..io });
                match pending {
                    Pending::Ready(Some(Completion { result: Ok(()), .. })) => pending,
                    _ => inner.follow(Rc::clone(member), span, pending),
                }
            }
            Plan::Fan(fan) => {
                if fan.spans.iter().any(|one| holder(one.role, one.span).is_none()) {
                    drop(slots);
                    return inner.retry(span, io.payload, None);
                }
                inner.read_fan(io, fan, &|role| slots[role].readable().expect("looked at above"))
            }
        }
    }

    /// Reads stripe by stripe, from all members that can be read; `failed` is the member that was asked first.
    pub(super) async fn read_units(
        &self,
        inner: &Rc<Inner>,
        span: ArraySpan,
        payload: Payload,
        failed: Option<u32>,
    ) -> (Result<(), Errno>, Payload) {
        let most = rows_of_unit(&self.geometry);
        let units = cut(&self.geometry, span, payload, most, most).into_iter();
        let reading =
            units.map(|unit| Box::pin(self.read_unit(inner, unit, failed)) as Later<'_, _>);
        let mut result = Ok(());
        let mut units = Vec::new();
        for (one, unit) in join_futures(reading.collect()).await {
            result = result.and(one);
            units.push(unit);
        }
        (result, join(units))
    }

    /// Fills the pieces of `unit`. If a member is missing and several pieces are wanted, all rows are read
    /// once, and the missing ones are reconstructed from those that the client wants.
    async fn read_unit(
        &self,
        inner: &Rc<Inner>,
        mut unit: Unit,
        failed: Option<u32>,
    ) -> (Result<(), Errno>, Unit) {
        let stripe = unit.stripe;
        let role_of = |piece: &Piece| self.geometry.role_of(stripe, Column::Data(piece.column));
        let lost = {
            let slots = inner.core.roster.slots();
            unit.pieces.iter().map(role_of).find(|role| slots[*role].readable().is_none())
        };
        if let (Some(role), true, None) = (lost, unit.pieces.len() > 1, failed)
            && self.read_all_rows(inner, &mut unit, role).await
        {
            return (Ok(()), unit);
        }
        let roles: Vec<Role> = unit.pieces.iter().map(role_of).collect();
        let pieces = unit.pieces.iter_mut().zip(roles).map(|(piece, role)| {
            let payload = std::mem::take(&mut piece.payload);
            self.read_rows(inner, role, piece.rows, payload, failed)
        });
        let done = join_futures(pieces.collect()).await;
        let mut result = Ok(());
        for (piece, (one, payload)) in unit.pieces.iter_mut().zip(done) {
            result = result.and(one);
            piece.payload = payload;
        }
        (result, unit)
    }

    /// Fills the pieces of `unit` from all rows of the present members, without `role`. Returns true if they
    /// suffice.
    async fn read_all_rows(&self, inner: &Rc<Inner>, unit: &mut Unit, role: Role) -> bool {
        let mut columns = self.columns(unit.rows).await;
        if !self.reconstruct_alone(inner, &mut columns, role).await {
            return false;
        }
        for piece in &mut unit.pieces {
            let role = columns.role_of(Column::Data(piece.column));
            fill(&mut piece.payload, columns.get(role, piece.rows));
        }
        true
    }

    /// Reads `rows` of `role` from its member, or by reconstruction; if the members do not suffice, in halves,
    /// down to blocks.
    fn read_rows<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        role: Role,
        rows: MemberSpan,
        mut payload: Payload,
        failed: Option<u32>,
    ) -> Later<'a, (Result<(), Errno>, Payload)> {
        Box::pin(async move {
            let holder = || inner.core.roster.slots()[role].readable().cloned();
            let mut tried = failed;
            loop {
                let member = holder();
                if let Some(member) = &member
                    && !member.is_bad(rows)
                    && Some(member.number) != tried
                {
                    let io = Io::read(member.on_device(rows.offset), payload);
                    let completion = member.dev.start(io).await;
                    payload = completion.payload;
                    if completion.result.is_ok() && inner.core.roster.has(member) {
                        return (Ok(()), payload);
                    }
                }
                let mut columns = self.columns(rows).await;
                if self.reconstruct_alone(inner, &mut columns, role).await {
                    fill(&mut payload, columns.get(role, rows));
                    if let Some(member) = member {
                        inner.heal_later(member, in_sync_bytes(rows), Finder::Request);
                    }
                    return (Ok(()), payload);
                }
                // Another member may have been filled before this one failed.
                tried = member.map(|member| member.number);
                if holder().is_none_or(|now| Some(now.number) == tried) {
                    break;
                }
            }
            let block = u64::from(inner.core.limits.logical_block);
            if rows.len <= block {
                return (Err(Errno::IO), payload);
            }
            let half = (rows.len / 2).next_multiple_of(block);
            let front = payload.take_front(half);
            let (first, rest) = rows.split_at(half);
            let front = self.read_rows(inner, role, first, front, None).await;
            let back = self.read_rows(inner, role, rest, payload, None).await;
            let mut payload = front.1;
            payload.append(back.1);
            (front.0.and(back.0), payload)
        })
    }

    /// Waits for memory for `rows` of every role.
    pub(super) async fn columns(&self, rows: MemberSpan) -> Columns {
        let needed = self.geometry.members() * rows.len as usize;
        let memory = self.cache.get_wait(needed).await;
        Columns::new(&self.geometry, rows, memory, |_| true).0
    }

    /// Reconstructs `role` in the rows of `columns`, while writes are kept out. Returns true if the other
    /// members suffice. Unreadable members are healed afterwards.
    async fn reconstruct_alone(
        &self,
        inner: &Rc<Inner>,
        columns: &mut Columns,
        role: Role,
    ) -> bool {
        let rows = columns.rows;
        let entered = inner.core.lane.ranges().enter(in_sync_bytes(rows)).await;
        let Reconstructed { is_known, unreadable } =
            self.reconstruct(&inner.core, columns, role, false).await;
        drop(entered);
        for member in unreadable {
            inner.heal_later(member, in_sync_bytes(rows), Finder::Request);
        }
        is_known
    }

    /// Reconstructs `role` in the rows of `columns` from the other members. The caller keeps writes out. Reads
    /// the members that suffice, or with `all` every readable member: a pass reads each member from one end to
    /// the other, and a disk loses more time by skipped rows than by reading them.
    pub(super) async fn reconstruct(
        &self,
        core: &Core,
        columns: &mut Columns,
        role: Role,
        all: bool,
    ) -> Reconstructed {
        let rows = columns.rows;
        let mut unreadable = Vec::new();
        let mut readable = readable_roles(core, rows);
        readable[role] = false;
        loop {
            let sources = sources(&columns.geometry, columns.stripe, role, &|role| readable[role]);
            let may = self.may_reconstruct(core, rows, &readable);
            let Some(mut sources) = sources.filter(|_| may) else {
                return Reconstructed { is_known: false, unreadable };
            };
            if all {
                sources = readable.roles_where(|is_readable| *is_readable).collect();
            }
            let wanted: Vec<(Role, MemberSpan)> =
                sources.iter().map(|role| (*role, rows)).collect();
            let failed = columns.read(&core.roster, &wanted).await;
            if failed.is_empty() {
                let is_known = columns.recover(rows, &|role| sources.contains(&role));
                assert!(is_known, "the sources were chosen to suffice");
                if !matches!(columns.geometry.column_of(columns.stripe, role), Column::Data(_)) {
                    columns.compute(rows, &|wanted| wanted == role, &|_| None);
                }
                return Reconstructed { is_known, unreadable };
            }
            for (failed, member) in failed {
                unreadable.extend(member);
                readable[failed] = false;
            }
        }
    }
}

/// Copies `from` into `payload`, which has the same length.
fn fill(payload: &mut Payload, mut from: &[u8]) {
    for buf in payload.bufs_mut() {
        let (part, rest) = from.split_at(buf.len());
        buf.copy_from_slice(part);
        from = rest;
    }
}
