//! Writing data with its parity.
//!
//! ```text
//!   1  memory for the unit              a holder of rows never waits for memory
//!   2  its rows, and the steps before a write (crate::redundant::write)
//!   3  old data and parity are read     as few as the plan needs
//!   4  the new parity is computed
//!   5  the log entry                    so that a crash, and the loss of a member, do no harm
//!   6  data and parity                  at the same time
//! ```

use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::parity_plan::{Lost, Method, ParityState, choose, reads};
use braid_array::{ArrayByte, ArraySpan, Geometry, MemberByte, MemberSpan, Role};
use braid_block::{Errno, Flags, Io, Op, Payload, Span};
use braid_mem::Buf;

use super::{
    MOST_ZERO_STRIPES, MOST_ZEROES, Parity, WHOLE_STRIPE, in_sync_bytes, is_parity, readable_roles,
    roles_in_sync, rows_of_unit, written_roles,
};
use crate::background::Later;
use crate::canary::Canary;
use crate::device::addressed;
use crate::join_all;
use crate::pending::join_futures;
use crate::redundant::core::{Core, failures};
use crate::redundant::keeping::{Finder, Inner};
use crate::redundant::log::{Change, Entered, Entry};
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;
use crate::redundant::stripe::plan::{Plan, compute};
use crate::redundant::stripe::units::{Unit, cut, join};
use crate::redundant::write::{Finished, Guard};

/// The least zeroes in a part of a stripe that a member is asked to make, in bytes.
const LEAST_ZEROES: u64 = 64 << 10;

/// Result of the change of a unit.
pub(super) struct Changed {
    pub(super) result: Result<(), Errno>,
    /// True if every member has the new data.
    pub(super) everywhere: bool,
}

impl Changed {
    /// Returns the result of a change that was not begun.
    fn nothing(errno: Errno) -> Changed {
        Changed { result: Err(errno), everywhere: true }
    }
}

impl Parity {
    /// Carries out a write, a discard or zeroes.
    pub(super) async fn store_io(&self, inner: &Rc<Inner>, io: Io) -> (Finished, Payload) {
        match io.op {
            Op::Discard => (self.discard(inner, addressed(io.span), io.flags).await, io.payload),
            Op::WriteZeroes => {
                (self.write_zeroes(inner, addressed(io.span), io.flags).await, io.payload)
            }
            _ => {
                let width = self.geometry.stripe();
                let store = |io| self.store_span(inner, io);
                self.gather.write(&inner.core, width, io, store).await
            }
        }
    }

    /// Gives up the space of the whole stripes in `span`, if each member makes zeroes by giving up space. Discarded
    /// bytes of members may be anything, and parity would not fit: they become zeroes, whose parity is zero.
    async fn discard(&self, inner: &Rc<Inner>, span: ArraySpan, flags: Flags) -> Finished {
        let width = self.geometry.stripe();
        let is_able = |member: &Rc<Member>| member.dev.limits().unmaps_zeroes;
        if !inner.core.roster.written().iter().all(is_able) {
            return Finished::nothing_to_do(); // A discard is a hint.
        }
        let stripes = span.offset.get().div_ceil(width)..span.end().get() / width;
        let start = ArrayByte::new(stripes.start * width);
        let len = stripes.end.saturating_sub(stripes.start) * width;
        self.write_zeroes(inner, ArraySpan::new(start, len), flags).await
    }

    /// Writes zeroes. For whole stripes the members zero their parts, since the parity of zeroes is zero.
    async fn write_zeroes(&self, inner: &Rc<Inner>, span: ArraySpan, flags: Flags) -> Finished {
        let geometry = &self.geometry;
        let width = geometry.stripe();
        let mut offset = span.offset;
        let mut finished = Finished::nothing_to_do();
        while offset < span.end() && finished.result().is_ok() {
            let left = span.end() - offset;
            if offset.is_multiple_of(width) && left >= width {
                let stripes = match self.log {
                    None => left / width,
                    Some(_) => (left / width).min(MOST_ZERO_STRIPES),
                };
                let part = ArraySpan::new(offset, stripes * width);
                finished = finished.and(self.zero_stripes(inner, part, flags).await);
                offset += part.len;
            } else {
                let len = left.min(width - offset % width);
                let part = ArraySpan::new(offset, len);
                finished = finished.and(self.store_zeroes(inner, part, flags).await);
                offset += len;
            }
        }
        finished
    }

    /// Has the members zero whole stripes: without a log at once, with a log unit by unit.
    async fn zero_stripes(&self, inner: &Rc<Inner>, span: ArraySpan, flags: Flags) -> Finished {
        let geometry = &self.geometry;
        if self.log.is_some() {
            let io = Io::write_zeroes(Span::new(span.offset.get(), span.len), flags);
            return self.store_span(inner, io).await.0;
        }
        let first = MemberByte::new(span.offset / geometry.stripe() * geometry.chunk());
        let rows = MemberSpan::new(first, span.len / geometry.stripe() * geometry.chunk());
        self.zero_members(inner, rows, flags).await
    }

    async fn zero_members(&self, inner: &Rc<Inner>, rows: MemberSpan, flags: Flags) -> Finished {
        let core = &inner.core;
        let guard = match core.begin_write(in_sync_bytes(rows)).await {
            Ok(guard) => guard,
            Err(errno) => return Finished::refused(errno),
        };
        let members = core.roster.written();
        let started = members.iter().map(|member| {
            let span = member.span_on_device(rows);
            member.dev.start(match Canary::DiscardPassedOn.is_planted() {
                true => Io::discard(span, flags),
                false => Io::write_zeroes(span, flags),
            })
        });
        let completions = join_all(started.collect()).await;
        let places = members.iter().map(|member| (Rc::clone(member), rows)).collect();
        let failed = failures(members, &completions);
        let changed = self.judge_writes(inner, rows, places, failed).await;
        guard.finish(changed.everywhere, changed.result).await
    }

    /// Stores zeroes as a client's write, in parts for which there is memory; `span` lies within a stripe.
    async fn store_zeroes(&self, inner: &Rc<Inner>, span: ArraySpan, flags: Flags) -> Finished {
        let geometry = &self.geometry;
        let most =
            if geometry.stripe() <= MOST_ZEROES { MOST_ZEROES } else { rows_of_unit(geometry) };
        let mut offset = span.offset;
        let mut finished = Finished::nothing_to_do();
        while offset < span.end() && finished.result().is_ok() {
            let len = most.min(span.end() - offset);
            let mut zeroes = inner.core.work.pool().get_wait(len as usize).await;
            zeroes.fill(0);
            let io = Io { op: Op::WriteZeroes, ..Io::write(offset.get(), zeroes, flags) };
            finished = finished.and(self.store_span(inner, io).await.0);
            offset += len;
        }
        finished
    }

    /// Stores a write, or zeroes, in units, as many at once as there is memory for. Zeroes have a payload, too, unless they
    /// are whole stripes.
    pub(super) async fn store_span(&self, inner: &Rc<Inner>, io: Io) -> (Finished, Payload) {
        let Io { op, span, flags, payload } = io;
        let geometry = &self.geometry;
        let most_logged = |is_whole| {
            self.log.as_ref().map_or(u64::MAX, |log| log.most_rows(&inner.core, is_whole))
        };
        let most = rows_of_unit(geometry).min(most_logged(false));
        let most_of_whole = (WHOLE_STRIPE / geometry.parities() as u64).min(most_logged(true));
        let mut units = cut(geometry, addressed(span), payload, most, most_of_whole);
        units.iter_mut().for_each(|unit| unit.is_zeroes = op == Op::WriteZeroes);
        if let [_] = &units[..] {
            let unit = units.remove(0);
            let (finished, unit) = self.store_unit(inner, unit, flags).await;
            return (finished, join(vec![unit]));
        }
        let storing = units.into_iter();
        let storing =
            storing.map(|unit| Box::pin(self.store_unit(inner, unit, flags)) as Later<'_, _>);
        let mut finished = Finished::nothing_to_do();
        let mut stored = Vec::new();
        for (one, unit) in join_futures(storing.collect()).await {
            finished = finished.and(one);
            stored.push(unit);
        }
        (finished, join(stored))
    }

    /// Stores one unit. Returns the unit with its payload.
    async fn store_unit(
        &self,
        inner: &Rc<Inner>,
        mut unit: Unit,
        flags: Flags,
    ) -> (Finished, Unit) {
        let is_whole = unit.is_whole(&self.geometry);
        let memory = self.unit_memory(unit.rows.len, is_whole).await;
        let (mut columns, rest) = Columns::new(&self.geometry, unit.rows, memory, |column| {
            !is_whole || is_parity(column)
        });
        let guard = match inner.core.begin_write(in_sync_bytes(unit.rows)).await {
            Ok(guard) => guard,
            Err(errno) => return (Finished::refused(errno), unit),
        };
        let changed = self.change(inner, &guard, &mut unit, &mut columns, rest, flags).await;
        drop(columns);
        unit.pieces.iter_mut().for_each(|piece| match changed.everywhere {
            true => piece.payload.reclaim(),
            false => piece.payload.detach(),
        });
        (guard.finish(changed.everywhere, changed.result).await, unit)
    }

    /// Carries out steps 3 to 6.
    async fn change(
        &self,
        inner: &Rc<Inner>,
        guard: &Guard,
        unit: &mut Unit,
        columns: &mut Columns,
        mut memory: Buf,
        flags: Flags,
    ) -> Changed {
        let core = &inner.core;
        let start = core.clock.now();
        loop {
            let Some(plan) = self.plan_and_read(inner, unit, columns).await else {
                return Changed::nothing(Errno::IO);
            };
            let is_logged =
                !(unit.is_all_zero(&self.geometry) && Canary::ZeroesNotLogged.is_planted());
            let Some(log) = self.log.as_ref().filter(|_| is_logged) else {
                compute(unit, columns, &plan);
                return self.store_columns(inner, guard, unit, columns, &plan, flags).await;
            };
            let is_counted_on = self.is_counted_on(core, unit.rows);
            let change = Change { unit, columns, plan: &plan, is_counted_on, start };
            let entry = match log.enter(core, change, memory).await {
                Ok(Entered::Logged(entry)) => Some(entry),
                Ok(Entered::NotNeeded) => None,
                Ok(Entered::Replan(unused)) => {
                    memory = unused;
                    columns.reclaim();
                    continue;
                }
                Err(errno) => return Changed::nothing(errno),
            };
            let changed = self.store_columns(inner, guard, unit, columns, &plan, flags).await;
            self.leave_log(core, entry, &changed).await;
            return changed;
        }
    }

    /// Tells the log, if it has an `entry` of the change, that the change is in place, or failed.
    pub(super) async fn leave_log(&self, core: &Rc<Core>, entry: Option<Entry>, changed: &Changed) {
        let Some((log, entry)) = self.log.as_ref().zip(entry) else { return };
        // Superblocks name the members that lack the unit, before the log may forget it. The log of a stopped
        // array forgets nothing: no flush counts for it any more.
        if !changed.everywhere {
            let _ = core.fence().await;
        }
        match changed.result {
            Ok(()) => log.in_place(core, entry),
            Err(_) => log.failed(core, entry),
        }
    }

    /// Plans, and carries out step 3: reads old data and parity into `columns`. Returns `None` if the unit
    /// cannot be written.
    async fn plan_and_read(
        &self,
        inner: &Rc<Inner>,
        unit: &Unit,
        columns: &mut Columns,
    ) -> Option<Plan> {
        let core = &inner.core;
        let mut unreadable: Vec<Role> = Vec::new();
        let mut tried = false;
        loop {
            let Some(plan) = self.plan(core, unit, &unreadable) else {
                // Too many members cannot read all of these rows; but each block may have enough members.
                if !std::mem::replace(&mut tried, true) && !unreadable.is_empty() {
                    self.heal_blocks(core, columns, Finder::Request).await;
                    unreadable.clear();
                    continue;
                }
                core.note(format!(
                    "rows {} of stripe {} cannot be written: more of them cannot be read than \
                     parity makes up for",
                    unit.rows, unit.stripe
                ));
                return None;
            };
            let failed = columns.read(&core.roster, &plan.reads).await;
            if failed.is_empty() {
                return Some(plan);
            }
            for (role, member) in failed {
                if let Some(member) = member {
                    inner.heal_later(member, in_sync_bytes(unit.rows), Finder::Request);
                }
                unreadable.push(role);
            }
        }
    }

    /// Plans `unit`, if the members of the roles `unreadable` could not read their rows. Returns `None` if
    /// parity does not make up for all of them.
    fn plan(&self, core: &Core, unit: &Unit, unreadable: &[Role]) -> Option<Plan> {
        let geometry = &self.geometry;
        let generation = core.roster.generation();
        let mut readable = readable_roles(core, unit.rows);
        unreadable.iter().for_each(|role| readable[*role] = false);
        if unit.is_whole(geometry) {
            // Nothing is read, so rows that no member has can be written.
            readable = roles_in_sync(core);
        }
        let mut parity = written_roles(core);
        for (role, is_written) in parity.iter_mut() {
            *is_written &= is_parity(geometry.column_of(unit.stripe, role));
        }
        let mut lost = Lost::of(geometry, unit.stripe, &|role| readable[role])?;
        let needed = parity.roles_where(|is_written| *is_written);
        for role in needed.filter(|role| !readable[*role]) {
            lost.is_written(geometry.column_of(unit.stripe, role));
        }
        let is_trusted = self.is_parity_trusted(core, unit.rows);
        let state = if is_trusted { ParityState::InSync } else { ParityState::Unknown };
        let methods = choose(geometry, &unit.bands, &lost, state);
        if methods[..unit.bands.len()].contains(&Method::Restore)
            && !self.may_reconstruct(core, unit.rows, &readable)
        {
            return None;
        }
        let reads = reads(geometry, unit.stripe, &unit.bands, &methods, &lost);
        Some(Plan { methods, reads, readable, parity, generation })
    }

    /// Carries out step 6, under the guard of the unit's rows.
    async fn store_columns(
        &self,
        inner: &Rc<Inner>,
        guard: &Guard,
        unit: &mut Unit,
        columns: &mut Columns,
        plan: &Plan,
        flags: Flags,
    ) -> Changed {
        assert!(guard.covers(in_sync_bytes(unit.rows)), "a unit of rows that are not guarded");
        let (mut places, mut started) = (Vec::new(), Vec::new());
        let (is_zeroes, is_all_zero) = (unit.is_zeroes, unit.is_all_zero(&self.geometry));
        {
            let slots = inner.core.roster.slots();
            let mut store = |role: Role, rows: MemberSpan, payload: &mut Payload| {
                for member in slots[role].written() {
                    let span = member.span_on_device(rows);
                    // Of blocks that become zero in part, and of few blocks, zeroes are better written.
                    let is_worth = || {
                        let block = member.dev.limits().physical_block;
                        span.len >= LEAST_ZEROES && span.is_aligned(block) && is_zero(payload)
                    };
                    let are_zero = is_all_zero || is_zeroes && is_worth();
                    started.push(member.dev.start(match are_zero {
                        true => Io::write_zeroes(span, flags),
                        false => Io::write(span.offset, payload.share(), flags),
                    }));
                    places.push((Rc::clone(member), rows));
                }
            };
            for piece in &mut unit.pieces {
                let role = columns.role_of(Column::Data(piece.column));
                store(role, piece.rows, &mut piece.payload);
            }
            for role in plan.parity.roles_where(|is_written| *is_written) {
                let mut payload = columns.share(role);
                let mut at = unit.rows.offset;
                for rows in unit.bands.merged() {
                    payload.take_front(rows.offset - at);
                    store(role, rows, &mut payload.take_front(rows.len));
                    at = rows.end();
                }
            }
        }
        let completions = join_all(started).await;
        let members = places.iter().map(|(member, _)| Rc::clone(member)).collect();
        let failed = failures(members, &completions);
        self.judge_writes(inner, unit.rows, places, failed).await
    }

    /// Judges writes of `rows` to `places`, of which those of `failed` failed. The members are taken out if
    /// parity makes up for them. Otherwise the write has failed: parity is recomputed from the data that
    /// arrived. If that also fails, the rows are torn, and the array is stopped.
    pub(super) async fn judge_writes(
        &self,
        inner: &Rc<Inner>,
        rows: MemberSpan,
        mut places: Vec<(Rc<Member>, MemberSpan)>,
        failed: Vec<(Rc<Member>, Errno)>,
    ) -> Changed {
        let core = &inner.core;
        places.retain(|(member, _)| {
            member.has_bad_blocks.get() && !failed.iter().any(|(one, _)| Rc::ptr_eq(one, member))
        });
        core.are_good_again(&places).await;
        let Some((_, errno)) = failed.first() else {
            return Changed { result: Ok(()), everywhere: true };
        };
        if core.take_out_failed(&failed, "a write") {
            return Changed { result: Ok(()), everywhere: false };
        }
        core.note(format!(
            "a write of the rows {rows} failed on more members than parity makes up for: {errno}"
        ));
        if !self.mend(core, rows).await {
            // Missing data in these rows cannot be reconstructed any more. Only the log, or a resync, can
            // repair them at the next start: the superblocks still say "active".
            core.agreement.tear(in_sync_bytes(rows));
            core.stop(&format!("the rows {rows} are half written, and could not be mended"));
        }
        Changed { result: Err(*errno), everywhere: false }
    }
}

fn is_zero(payload: &Payload) -> bool {
    payload.bufs().iter().all(|buf| buf.iter().all(|byte| *byte == 0))
}
