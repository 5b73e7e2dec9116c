//! Writing data with its parity.
//!
//! ```text
//!   1  memory for the unit              so that whoever has rows never waits for any
//!   2  its rows, and all that a change stands in (crate::redundant::write)
//!   3  old data and parity are read     as few as the planner can do with
//!   4  the new parity is computed
//!   5  the log says what is coming      so that a crash, and the loss of a member, harm nothing
//!   6  data and parity                  at the same time
//! ```

use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_array::parity_plan::{Lost, MAX_BANDS, Method, ParityState, choose, reads};
use braid_block::{Completion, Errno, Flags, Io, Op, Payload, Span};
use braid_mem::Buf;

use super::columns::Columns;
use super::units::{Unit, cut, join};
use super::{WHOLE_STRIPE, is_parity, rows_of_unit};
use crate::join_all;
use crate::pending::join_futures;
use crate::redundant::write::failures;
use crate::redundant::{Inner, Later};

/// How a unit is worked out.
pub(super) struct Plan {
    pub(super) methods: [Method; MAX_BANDS],
    reads: Vec<(usize, Span)>,
    /// By role: what can be read.
    readable: Vec<bool>,
    /// By role: whether it is parity that is to be written.
    pub(super) parity: Vec<bool>,
}

impl Inner {
    /// A write, a discard or zeroes.
    pub(in crate::redundant) async fn write_data(self: Rc<Self>, io: Io) -> Completion {
        match io.op {
            // A hint. What members read as after a discard is anything, and parity would not fit.
            Op::Discard => io.complete(Ok(())),
            Op::WriteZeroes => self.write_zeroes(io).await,
            _ => self.gather(io).await,
        }
    }

    /// Zeroes; over whole stripes the members are asked for them, since zeroes have zeroes for
    /// parity.
    async fn write_zeroes(self: &Rc<Self>, io: Io) -> Completion {
        let geometry = &self.parity().geometry;
        let width = geometry.stripe();
        let mut offset = io.span.offset;
        let mut result = Ok(());
        while offset < io.span.end() && result.is_ok() {
            let left = io.span.end() - offset;
            let is_plain = self.parity().log.is_none();
            if is_plain && offset.is_multiple_of(width) && left >= width {
                let len = left / width * width;
                let members =
                    Span::new(offset / width * geometry.chunk(), len / width * geometry.chunk());
                result = self.zero_members(members, io.flags).await;
                offset += len;
            } else {
                let len = left.min(width - offset % width);
                result = self.store_zeroes(Span::new(offset, len), io.flags).await;
                offset += len;
            }
        }
        io.complete(result)
    }

    async fn zero_members(self: &Rc<Self>, rows: Span, flags: Flags) -> Result<(), Errno> {
        let guard = self.begin_write(rows).await?;
        let members = self.written_members();
        let started = members.iter().map(|member| {
            let span = Span::new(member.data_offset + rows.offset, rows.len);
            member.dev.start(Io::write_zeroes(span, flags))
        });
        let completions = join_all(started.collect()).await;
        let failed = failures(members, &completions);
        let result = match failed.is_empty() {
            true => Ok(()),
            false => self.judge_failed_writes(rows, &failed),
        };
        guard.finish(failed.is_empty()).await.and(result)
    }

    /// Stores zeroes as if a client had sent them, in parts for which there is memory; `span` lies
    /// within a stripe.
    async fn store_zeroes(self: &Rc<Self>, span: Span, flags: Flags) -> Result<(), Errno> {
        const MOST: u64 = 2 << 20;
        let geometry = &self.parity().geometry;
        let most = if geometry.stripe() <= MOST { MOST } else { rows_of_unit(geometry) };
        let mut offset = span.offset;
        while offset < span.end() {
            let len = most.min(span.end() - offset);
            let mut zeroes = self.work.pool().get_wait(len as usize).await;
            zeroes.fill(0);
            self.store_span(Io::write(offset, zeroes, flags)).await.result?;
            offset += len;
        }
        Ok(())
    }

    /// Stores a write, unit by unit, as many at once as there is memory for.
    pub(super) async fn store_span(self: &Rc<Self>, io: Io) -> Completion {
        let Io { span, flags, payload, .. } = io;
        let parity = self.parity();
        let geometry = &parity.geometry;
        let most = rows_of_unit(geometry).min(self.most_logged_rows(false));
        let most_of_whole =
            (WHOLE_STRIPE / geometry.parities() as u64).min(self.most_logged_rows(true));
        let mut units = cut(geometry, span, payload, most, most_of_whole);
        if let [_] = &units[..] {
            let unit = units.remove(0);
            let (result, unit) = self.store_unit(unit, flags).await;
            return Completion { result, payload: join(vec![unit]) };
        }
        let storing = units.into_iter();
        let storing = storing.map(|unit| Box::pin(self.store_unit(unit, flags)) as Later<'_, _>);
        let mut result = Ok(());
        let mut stored = Vec::new();
        for (one, unit) in join_futures(storing.collect()).await {
            result = result.and(one);
            stored.push(unit);
        }
        Completion { result, payload: join(stored) }
    }

    /// Stores one unit, which comes back with its payload.
    async fn store_unit(
        self: &Rc<Self>,
        mut unit: Unit,
        flags: Flags,
    ) -> (Result<(), Errno>, Unit) {
        let parity = self.parity();
        let is_whole = unit.is_whole(&parity.geometry);
        let memory = parity.unit_memory(unit.rows.len, is_whole).await;
        let (mut columns, rest) = Columns::new(&parity.geometry, unit.rows, memory, |column| {
            !is_whole || is_parity(column)
        });
        let guard = match self.begin_write(unit.rows).await {
            Ok(guard) => guard,
            Err(errno) => return (Err(errno), unit),
        };
        let (result, everywhere) = self.change(&mut unit, &mut columns, rest, flags).await;
        drop(columns);
        unit.pieces.iter_mut().for_each(|piece| piece.payload.reclaim());
        (guard.finish(everywhere).await.and(result), unit)
    }

    /// Steps 3 to 6; answers whether every member has what was written.
    async fn change(
        self: &Rc<Self>,
        unit: &mut Unit,
        columns: &mut Columns,
        memory: Buf,
        flags: Flags,
    ) -> (Result<(), Errno>, bool) {
        let start = self.clock.now();
        let mut unreadable: Vec<usize> = Vec::new();
        let mut tried = false;
        let plan = loop {
            let Some(plan) = self.plan(unit, &unreadable) else {
                // Too many members cannot read all of these rows; but perhaps not the same ones.
                if !std::mem::replace(&mut tried, true) && !unreadable.is_empty() {
                    self.put_blocks_right(columns).await;
                    unreadable.clear();
                    continue;
                }
                self.note(format!(
                    "rows {} of stripe {} cannot be written: more of them cannot be read than \
                     parity makes up for",
                    unit.rows, unit.stripe
                ));
                return (Err(Errno::IO), true);
            };
            let failed = columns.read(self, &plan.reads).await;
            if failed.is_empty() {
                break plan;
            }
            for (role, member) in failed {
                member.into_iter().for_each(|member| self.put_rows_right(member, unit.rows));
                unreadable.push(role);
            }
        };
        if self.parity().log.is_none() {
            compute(unit, columns, &plan);
            return self.store_columns(unit, columns, &plan, flags).await;
        }
        let logged = match self.log_unit(unit, columns, &plan, memory).await {
            Ok(logged) => logged,
            Err(errno) => return (Err(errno), true),
        };
        let (result, everywhere) = self.store_columns(unit, columns, &plan, flags).await;
        if let Some(logged) = logged {
            if !everywhere {
                // Whoever does not have it is out before the log may forget it.
                self.fence().await;
            }
            self.unit_is_stored(logged, unit, start);
        }
        (result, everywhere)
    }

    /// How `unit` is worked out, where the members of the roles `unreadable` could not read it;
    /// `None` if parity does not make up for all that cannot be read.
    fn plan(&self, unit: &Unit, unreadable: &[usize]) -> Option<Plan> {
        let geometry = &self.parity().geometry;
        let mut readable = self.readable_roles(unit.rows);
        unreadable.iter().for_each(|role| readable[*role] = false);
        let mut parity = self.written_roles();
        for (role, is_written) in parity.iter_mut().enumerate() {
            *is_written &= is_parity(geometry.column_of(unit.stripe, role));
        }
        let mut lost = Lost::of(geometry, unit.stripe, &|role| readable[role])?;
        for role in (0..geometry.members()).filter(|role| parity[*role] && !readable[*role]) {
            lost.is_written(geometry.column_of(unit.stripe, role));
        }
        let state = match self.is_parity_trusted(unit.rows) {
            true => ParityState::InSync,
            false => ParityState::Unknown,
        };
        let methods = choose(geometry, &unit.bands, &lost, state);
        let reads = reads(geometry, unit.stripe, &unit.bands, &methods, &lost);
        Some(Plan { methods, reads, readable, parity })
    }

    async fn store_columns(
        self: &Rc<Self>,
        unit: &mut Unit,
        columns: &mut Columns,
        plan: &Plan,
        flags: Flags,
    ) -> (Result<(), Errno>, bool) {
        let (mut members, mut started) = (Vec::new(), Vec::new());
        {
            let slots = self.slots.borrow();
            let mut store = |role: usize, rows: Span, payload: &mut Payload| {
                for member in slots[role].written() {
                    let offset = member.data_offset + rows.offset;
                    started.push(member.dev.start(Io::write(offset, payload.share(), flags)));
                    members.push(Rc::clone(member));
                }
            };
            for piece in &mut unit.pieces {
                let role = columns.role_of(Column::Data(piece.column));
                store(role, piece.rows, &mut piece.payload);
            }
            for role in (0..plan.parity.len()).filter(|role| plan.parity[*role]) {
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
        let failed = failures(members, &completions);
        match failed.is_empty() {
            true => (Ok(()), true),
            false => (self.judge_failed_writes(unit.rows, &failed), false),
        }
    }
}

/// The new parity of a unit, in `columns`.
pub(super) fn compute(unit: &Unit, columns: &mut Columns, plan: &Plan) {
    for (band, method) in unit.bands.iter().zip(plan.methods) {
        if method == Method::Restore {
            restore(columns, band.rows, plan);
        }
        compute_band(unit, columns, plan, band, method);
    }
}

/// What is lost of `rows`, from all that was read.
pub(super) fn restore(columns: &mut Columns, rows: Span, plan: &Plan) {
    let restored = columns.recover(rows, &|role| plan.readable[role]);
    assert!(restored, "planned only where it can be done");
}

pub(super) fn compute_band(
    unit: &Unit,
    columns: &mut Columns,
    plan: &Plan,
    band: &braid_array::parity_plan::Band,
    method: Method,
) {
    let is_wanted = |role: usize| plan.parity[role];
    for rows in unit.parts(band) {
        match method {
            Method::Plain => {}
            Method::Modify => {
                for index in band.first..band.first + band.count {
                    let new = unit.new_data(index, rows).expect("the band is written");
                    columns.update(rows, index, new, &is_wanted);
                }
            }
            Method::Full | Method::Reconstruct | Method::Restore => {
                columns.compute(rows, &is_wanted, &|index| unit.new_data(index, rows));
            }
        }
    }
}
