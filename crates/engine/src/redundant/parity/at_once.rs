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
//! Other shards write in the same way ([`crate::redundant::shards`]), with their own devices and memory.
//!
//! Invariants
//! * A write that was not begun here is carried out in steps. Once a member was asked to write, the change is
//!   judged as any other ([`Parity::judge_writes`]), under the same guard.
//! * Only for an array in which each role has one member in sync, whose parity is trusted; without a stripe log.

use std::rc::Rc;

use braid_array::geometry::{Column, Raid456};
use braid_array::{ArrayByte, Geometry, MemberSpan, Role};
use braid_block::{Completion, Flags, Io, Op, Payload, Span};
use braid_mem::Buf;

use super::{Parity, in_sync_bytes, rows_of_unit};
use crate::canary::Canary;
use crate::redundant::core::{Core, failures};
use crate::redundant::keeping::Inner;
use crate::redundant::log::{Entry, SmallChange};
use crate::redundant::roster::Member;
use crate::redundant::write::Guard;
use crate::{Dev, Pending, join_all};

/// Rows of one data column, and the members that have them and their parity.
pub(in crate::redundant) struct Small {
    pub(in crate::redundant) rows: MemberSpan,
    data: Role,
    p: Role,
    /// The role of Q, and the power by which it takes the data.
    q: Option<(Role, u8)>,
    /// The place of the data in the array.
    start: ArrayByte,
}

/// A device, and the offset of the rows on it.
type Place<'a> = (&'a Dev, u64);

impl Small {
    /// Returns the place of `io`, if it is a write of some rows of one data column, whose parity can be changed by the old
    /// data.
    #[inline]
    pub(in crate::redundant) fn of(geometry: &Raid456, io: &Io) -> Option<Small> {
        let (chunk, len) = (geometry.chunk(), io.span.len);
        let is_small = io.op == Op::Write
            && matches!(io.payload, Payload::One(_))
            && io.span.offset % chunk + len <= chunk
            && len <= rows_of_unit(geometry)
            && geometry.data() > 1;
        if !is_small {
            return None;
        }
        let start = ArrayByte::new(io.span.offset);
        let run = geometry.locate(start);
        let rows = MemberSpan::new(run.offset, len);
        let stripe = geometry.stripe_of_row(rows.offset);
        let q = (geometry.parities() == 2).then(|| {
            let index = (io.span.offset / chunk % geometry.data() as u64) as usize;
            (geometry.role_of(stripe, Column::Q), geometry.power(stripe, index))
        });
        Some(Small { rows, data: run.role, p: geometry.role_of(stripe, Column::P), q, start })
    }

    /// Returns the roles that are read and written, the data first.
    pub(in crate::redundant) fn roles(&self) -> impl Iterator<Item = Role> {
        [Some(self.data), Some(self.p), self.q.map(|(role, _)| role)].into_iter().flatten()
    }

    /// Returns the memory for old data and parity, in bytes.
    #[inline]
    pub(in crate::redundant) fn memory(&self) -> usize {
        self.rows.len as usize * self.roles().count()
    }

    /// Reads the old data and parity into `memory`, whose rest is a log's. Returns `None` if a device does not answer with
    /// them within the call.
    #[inline]
    pub(in crate::redundant) fn read<'a>(
        &self,
        memory: Buf,
        has_log: bool,
        place: impl Fn(Role) -> Option<Place<'a>>,
    ) -> Option<Old> {
        let len = self.rows.len as usize;
        let mut data = memory;
        let mut p = data.split_off(len);
        let q = self.q.map(|_| p.split_off(len));
        // A log has one parity.
        let log = has_log.then(|| p.split_off(len));
        let read = |role: Role, buf: Buf| {
            let (dev, offset) = place(role)?;
            match dev.start(Io::read(offset, buf)) {
                Pending::Ready(Some(Completion { result: Ok(()), payload })) => payload.into_one(),
                _ => None,
            }
        };
        let (data, p) = (read(self.data, data)?, read(self.p, p)?);
        let q = match (self.q, q) {
            (Some((role, _)), Some(q)) => Some(read(role, q)?),
            _ => None,
        };
        Some(Old { data, p, q, log })
    }

    /// Makes the old parity that of the `new` data.
    #[inline]
    pub(in crate::redundant) fn update(&self, old: &mut Old, new: &Payload) {
        let new = new.bufs().first().expect("a small write has one buffer");
        braid_parity::xor_into(&mut old.data, new);
        braid_parity::xor_into(&mut old.p, &old.data);
        if let (Some(q), Some((_, power))) = (&mut old.q, self.q) {
            braid_parity::update_q(q, power, &old.data);
        }
    }

    /// Starts the writes of data and parity, the data first.
    #[inline]
    pub(in crate::redundant) fn start<'a>(
        &self,
        new: Old,
        flags: Flags,
        payload: Payload,
        place: impl Fn(Role) -> Option<Place<'a>>,
    ) -> [Option<Pending>; 3] {
        let write = |role: Role, payload: Payload| {
            let (dev, offset) = place(role)?;
            let span = Span::new(offset, self.rows.len);
            Some(dev.start(Io { op: Op::Write, span, flags, payload }))
        };
        let q = self.q.zip(new.q).and_then(|((role, _), q)| write(role, q.into()));
        [write(self.data, payload), write(self.p, new.p.into()), q]
    }
}

/// Takes the payload of the first write, if all of them are done.
#[inline]
pub(in crate::redundant) fn take_if_all_done(
    started: &mut [Option<Pending>; 3],
) -> Option<Payload> {
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

/// The old contents of the rows of a [`Small`], and then the new parity.
pub(in crate::redundant) struct Old {
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
                small.update(&mut old, &io.payload);
                assert!(
                    guard.covers(in_sync_bytes(small.rows)),
                    "a unit of rows that are not guarded"
                );
                let slots = core.roster.slots();
                let mut started = small.start(old, io.flags, io.payload, |role| {
                    let member = slots[role].readable()?;
                    Some((&member.dev, member.on_device(small.rows.offset)))
                });
                drop(slots);
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
        let small = Small::of(&self.geometry, io)?;
        let is_logged_in_steps =
            || self.log.as_ref().is_some_and(|log| log.header_of_small().is_none());
        if is_logged_in_steps() || !self.is_complete(core) {
            return None;
        }
        self.is_parity_trusted(core, small.rows).then_some(small)
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
        let of_log = self.log.as_ref().and_then(|log| log.header_of_small());
        let of_log = of_log.map(|header| header + small.rows.len as usize);
        let memory = self.cache.get(small.memory() + of_log.unwrap_or(0))?;
        let slots = core.roster.slots();
        small.read(memory, of_log.is_some(), |role| {
            let member = slots[role].readable().filter(|member| !member.is_bad(small.rows))?;
            Some((&member.dev, member.on_device(small.rows.offset)))
        })
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
