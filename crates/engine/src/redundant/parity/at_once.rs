//! Writing a small unit within the call, if the members answer there: the usual case of an array in memory.
//!
//! ```text
//!        D0   D1   P    Q
//!      |    | ** | ++ | ++ |      rows of one chunk (*), and the parity of these rows (+)
//!
//!   1  steps 1 to 3 of a write hold already  (crate::redundant::write)
//!   2  old data and parity are read
//!   3  the new parity is the old one, changed by old + new
//!   4  with a partial parity log: a header, with old data + old parity
//!   5  data and parity are written, steps 5 and 6 of a write
//! ```
//!
//! The steps are those of [`super::store`], and nothing else runs between them. Nothing is allocated, and the cost
//! does not depend on the number of members.
//!
//! Invariants
//! * A write that was not begun here is carried out in steps. Once a member was asked to write, the change is
//!   judged as any other ([`Parity::judge_writes`]), under the same guard.
//! * Only for an array in which each role has one member in sync, whose parity is trusted; without a stripe log.

use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::{ArrayByte, Geometry, MemberSpan, Role};
use braid_block::{Completion, Flags, Io, Op, Payload};
use braid_mem::Buf;

use super::{Parity, in_sync_bytes, rows_of_unit};
use crate::canary::Canary;
use crate::redundant::core::{Core, failures};
use crate::redundant::keeping::Inner;
use crate::redundant::log::{Entry, SmallChange};
use crate::redundant::roster::Member;
use crate::redundant::write::Guard;
use crate::{Pending, join_all};

/// Rows of one data column, and the members that have them and their parity.
struct Small {
    rows: MemberSpan,
    data: Role,
    p: Role,
    /// The role of Q, and the power by which it takes the data.
    q: Option<(Role, u8)>,
    /// The place of the data in the array.
    start: ArrayByte,
}

impl Small {
    fn roles(&self) -> impl Iterator<Item = Role> {
        [Some(self.data), Some(self.p), self.q.map(|(role, _)| role)].into_iter().flatten()
    }
}

/// The old contents of the rows of a [`Small`], and then the new parity.
struct Old {
    data: Buf,
    p: Buf,
    q: Option<Buf>,
    /// Memory of the log, a header and the partial parity, if there is a log.
    log: Option<Buf>,
}

/// The reason for carrying a write out in steps.
struct InSteps;

impl Parity {
    /// Starts a write, a discard or zeroes.
    #[inline]
    pub(super) fn write_data(self: &Rc<Self>, inner: &Rc<Inner>, io: Io) -> Pending {
        let core = &inner.core;
        if let Some(small) = self.small(core, &io)
            && let Some((guard, published)) = core.begin_write_now(in_sync_bytes(small.rows))
        {
            if let Some(mut old) = self.read_now(core, &small)
                && let Ok(entry) = self.enter_now(core, &small, &mut old)
            {
                update(&small, &mut old, &io.payload);
                let payload = io.payload;
                let mut started = start_writes(core, &guard, &small, old, io.flags, payload);
                return match take_if_all_done(&mut started) {
                    Some(payload) => {
                        if let Some((log, entry)) = self.log.as_ref().zip(entry) {
                            log.in_place(core, entry);
                        }
                        let result = guard.finish_now(&published).result();
                        Pending::ready(Completion { result, payload })
                    }
                    None => self.see_through(inner, guard, &small, started, entry),
                };
            }
            // Nothing was changed.
            guard.give_up();
        }
        inner.write_in_steps(io)
    }

    /// Returns the place of `io`, if it is a write that can be carried out within the call.
    #[inline]
    fn small(&self, core: &Core, io: &Io) -> Option<Small> {
        let geometry = &self.geometry;
        let (chunk, len) = (geometry.chunk(), io.span.len);
        let is_small = io.op == Op::Write
            && matches!(io.payload, Payload::One(_))
            && io.span.offset % chunk + len <= chunk
            && len <= rows_of_unit(geometry)
            && geometry.data() > 1;
        let is_logged_in_steps =
            || self.log.as_ref().is_some_and(|log| log.header_of_small().is_none());
        if !is_small || is_logged_in_steps() || !self.is_complete(core) {
            return None;
        }
        let run = geometry.locate(ArrayByte::new(io.span.offset));
        let rows = MemberSpan::new(run.offset, len);
        if !self.is_parity_trusted(core, rows) {
            return None;
        }
        let stripe = geometry.stripe_of_row(rows.offset);
        let q = (geometry.parities() == 2).then(|| {
            let index = (io.span.offset / chunk % geometry.data() as u64) as usize;
            (geometry.role_of(stripe, Column::Q), geometry.power(stripe, index))
        });
        let start = ArrayByte::new(io.span.offset);
        Some(Small { rows, data: run.role, p: geometry.role_of(stripe, Column::P), q, start })
    }

    /// Returns true if each role has one member, which is in sync. It is asked for once for each membership.
    #[inline]
    fn is_complete(&self, core: &Core) -> bool {
        let generation = core.roster.generation();
        let (of, is_complete) = self.complete.get();
        if of == generation {
            return is_complete;
        }
        let slots = core.roster.slots();
        let is_complete =
            slots.values().all(|slot| slot.readable().is_some() && slot.replacement().is_none());
        self.complete.set((generation, is_complete));
        is_complete
    }

    /// Reads the old data and parity. Returns `None` if there is no memory now, or a member does not answer with
    /// them within the call.
    #[inline]
    fn read_now(&self, core: &Core, small: &Small) -> Option<Old> {
        let len = small.rows.len as usize;
        let of_log = self.log.as_ref().and_then(|log| log.header_of_small()).map(|it| it + len);
        let mut data = self.cache.get(len * small.roles().count() + of_log.unwrap_or(0))?;
        let mut p = data.split_off(len);
        let q = small.q.map(|_| p.split_off(len));
        // A log has one parity.
        let log = of_log.map(|_| p.split_off(len));
        let slots = core.roster.slots();
        let read = |role: Role, buf: Buf| {
            let member = slots[role].readable().filter(|member| !member.is_bad(small.rows))?;
            let io = Io::read(member.on_device(small.rows.offset), buf);
            match member.dev.start(io) {
                Pending::Ready(Some(Completion { result: Ok(()), payload })) => payload.into_one(),
                _ => None,
            }
        };
        let (data, p) = (read(small.data, data)?, read(small.p, p)?);
        let q = match (small.q, q) {
            (Some((role, _)), Some(q)) => Some(read(role, q)?),
            _ => None,
        };
        Some(Old { data, p, q, log })
    }

    /// Enters the change in the log, if there is one, before any of it is written.
    #[inline]
    fn enter_now(
        &self,
        core: &Core,
        small: &Small,
        old: &mut Old,
    ) -> Result<Option<Entry>, InSteps> {
        let Some((log, mut memory)) = self.log.as_ref().zip(old.log.take()) else {
            return Ok(None);
        };
        if Canary::PartialWriteNotLogged.is_planted() {
            return Ok(None);
        }
        let header = log.header_of_small().ok_or(InSteps)?;
        let partial = &mut memory[header..];
        partial.copy_from_slice(&old.p);
        braid_parity::xor_into(partial, &old.data);
        let change = SmallChange { role: small.p, rows: small.rows, data: small.start };
        log.enter_now(core, change, memory).map(Some).ok_or(InSteps)
    }

    /// Waits for writes that were `started`, and judges them.
    #[cold]
    fn see_through(
        self: &Rc<Self>,
        inner: &Rc<Inner>,
        guard: Guard,
        small: &Small,
        started: [Option<Pending>; 3],
        entry: Option<Entry>,
    ) -> Pending {
        let core = &inner.core;
        let (parity, inner, rows) = (Rc::clone(self), Rc::clone(inner), small.rows);
        let slots = core.roster.slots();
        let members: Vec<Rc<Member>> =
            small.roles().filter_map(|role| slots[role].readable().cloned()).collect();
        drop(slots);
        let places = members.iter().map(|member| (Rc::clone(member), rows)).collect();
        let started = started.into_iter().flatten().collect();
        core.background.request(async move {
            let mut completions = join_all(started).await;
            let failed = failures(members, &completions);
            let payload = std::mem::take(&mut completions[0].payload);
            drop(completions);
            let changed = parity.judge_writes(&inner, rows, places, failed).await;
            parity.leave_log(&inner.core, entry, &changed).await;
            let finished = guard.finish(changed.everywhere, changed.result).await;
            Completion { result: finished.result(), payload }
        })
    }
}

/// Makes the old parity that of the `new` data.
#[inline]
fn update(small: &Small, old: &mut Old, new: &Payload) {
    let new = new.bufs().first().expect("a small write has one buffer");
    braid_parity::xor_into(&mut old.data, new);
    braid_parity::xor_into(&mut old.p, &old.data);
    if let (Some(q), Some((_, power))) = (&mut old.q, small.q) {
        braid_parity::update_q(q, power, &old.data);
    }
}

/// Starts the writes of data and parity, the data first.
#[inline]
fn start_writes(
    core: &Core,
    guard: &Guard,
    small: &Small,
    new: Old,
    flags: Flags,
    payload: Payload,
) -> [Option<Pending>; 3] {
    assert!(guard.covers(in_sync_bytes(small.rows)), "a unit of rows that are not guarded");
    let slots = core.roster.slots();
    let write = |role: Role, payload: Payload| {
        let member = slots[role].readable()?;
        let span = member.span_on_device(small.rows);
        Some(member.dev.start(Io { op: Op::Write, span, flags, payload }))
    };
    let q = small.q.zip(new.q).and_then(|((role, _), q)| write(role, q.into()));
    [write(small.data, payload), write(small.p, new.p.into()), q]
}

/// Takes the payload of the first write, if all of them are done.
#[inline]
fn take_if_all_done(started: &mut [Option<Pending>; 3]) -> Option<Payload> {
    let is_done =
        |one: &Pending| matches!(one, Pending::Ready(Some(Completion { result: Ok(()), .. })));
    if !started.iter().flatten().all(is_done) {
        return None;
    }
    match &mut started[0] {
        Some(Pending::Ready(completion)) => completion.take().map(|one| one.payload),
        _ => None,
    }
}
