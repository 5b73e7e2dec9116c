//! md's partial parity log, written: for raid5.
//!
//! ```text
//!   units ──▶ the queue of the member that has their parity ──▶ one header for all that wait
//!                                                                 │ durable
//!              in place, all of them ◀────────────────────────────┘
//!                 │ durable
//!                 └──▶ the next header, over this one
//! ```
//!
//! A member's log has one group of units at a time, as the kernel's has: after a crash only the
//! newest header counts. What comes meanwhile waits and is the next group.
//!
//! Whole stripes are logged without parity: after a crash theirs is made anew, and what an older
//! header says of these rows no longer counts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_array::parity_plan::{Band, Method};
use braid_block::{Flags, Io, Payload, Span};
use braid_md::ppl::{self, Entry, Header};
use braid_mem::Buf;

use super::columns::Columns;
use super::log::{Kind, Logged};
use super::store::{Plan, compute_band, restore};
use super::units::Unit;
use crate::redundant::Inner;
use crate::redundant::data::Data;
use crate::redundant::member::Member;
use crate::signal::Signal;

/// The logs of all members, by the role whose parity they are of.
pub(in crate::redundant) struct Partial {
    pub(in crate::redundant) signature: u32,
    generation: Cell<u64>,
    queues: Vec<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Units that were put into the queue, and that came into a header.
    joined: Cell<u64>,
    logged: Cell<u64>,
    /// A header is being written, or its units are.
    is_busy: Cell<bool>,
    /// Units of the last header that are not in place yet.
    active: Cell<usize>,
    /// When the last of them was: as [`super::log::Log`] counts units.
    last: Cell<u64>,
    changed: Signal,
}

struct Waiting {
    entries: Vec<Entry>,
    parity: Payload,
    /// Room for a header, of which the first unit of a group gives its own.
    header: Buf,
}

impl Partial {
    pub(super) fn new(signature: u32, members: usize) -> Partial {
        let queues = std::iter::repeat_with(Queue::default).take(members).collect();
        Partial { signature, generation: Cell::new(0), queues }
    }

    fn next_generation(&self) -> u64 {
        self.generation.set(self.generation.get() + 1);
        self.generation.get()
    }

    /// A unit of `role`'s log is in place.
    pub(super) fn leave(&self, role: usize, written: u64) {
        let queue = &self.queues[role];
        queue.last.set(written);
        queue.active.set(queue.active.get() - 1);
        if queue.active.get() == 0 {
            queue.is_busy.set(false);
            queue.changed.notify();
        }
    }
}

/// Where `member` has its log: its start and size, in bytes of the device.
pub(super) fn area_of(member: &Member) -> Option<(u64, u64)> {
    let superblock = member.superblock.borrow();
    let superblock = superblock.as_ref()?;
    let (offset, size) = superblock.ppl?;
    Some((superblock.super_offset.checked_add_signed(offset)?, size))
}

/// How many bytes of partial parity have room behind a header in the log of each of `members`.
pub(super) fn room_for_parity(members: &[Rc<Member>]) -> u64 {
    let room = |member: &Rc<Member>| Some(area_of(member)?.1 - ppl::HEADER_BYTES as u64);
    members.iter().filter_map(room).fold(ppl::RING_PARITY_BYTES, u64::min)
}

impl Inner {
    /// Computes the parity of `unit` and what is left of it without the data that is written;
    /// returns when the log has that.
    pub(super) async fn log_partial_parity(
        self: &Rc<Self>,
        partial: &Partial,
        unit: &Unit,
        columns: &mut Columns,
        plan: &Plan,
        mut memory: Buf,
    ) -> Option<Logged> {
        let role = columns.role_of(Column::P);
        let mut parity = memory.split_off(ppl::HEADER_BYTES);
        let header = memory;
        let mut entries = Vec::with_capacity(unit.bands.len());
        let mut len = 0;
        for (band, method) in unit.bands.iter().zip(plan.methods) {
            if method == Method::Restore {
                restore(columns, band.rows, plan);
            }
            let rows = band.rows.len as usize;
            let is_partial = band.count < columns.geometry.data() && plan.parity[role];
            let place = len..len + if is_partial { rows } else { 0 };
            if is_partial {
                columns.partial(band, method, &mut parity[place.clone()]);
            }
            compute_band(unit, columns, plan, band, method);
            entries.push(entry_of(columns, band, role, &parity[place.clone()]));
            len = place.end;
        }
        if !plan.parity[role] {
            return None; // Without parity there is no hole.
        }
        parity.truncate(len);
        let parity = if len == 0 { Payload::None } else { Payload::One(parity) };
        let queue = &partial.queues[role];
        queue.waiting.borrow_mut().push_back(Waiting { entries, parity, header });
        let ticket = queue.joined.get();
        queue.joined.set(ticket + 1);
        loop {
            queue.changed.until(|| queue.logged.get() > ticket || !queue.is_busy.get()).await;
            if queue.logged.get() > ticket {
                return Some(Logged::Partial { role });
            }
            // Whoever finds it idle has the next group logged, even if there is no room in it for
            // its own unit.
            queue.is_busy.set(true);
            self.log_group(partial, role).await;
            queue.changed.notify();
        }
    }

    /// Gives members that have none an empty log. What lay there may be newer than what comes.
    pub(in crate::redundant) async fn store_empty_partial(
        self: &Rc<Self>,
    ) -> Vec<(Rc<Member>, String)> {
        let Data::Parity(parity) = &self.data else { return Vec::new() };
        let Kind::Partial(partial) = &parity.log.kind else { return Vec::new() };
        let mut failed = Vec::new();
        let mut headers = Vec::new();
        let without = self.written_members().into_iter().filter(|member| !member.has_log.get());
        for member in without.collect::<Vec<_>>() {
            let Some((start, size)) = area_of(&member) else { continue };
            let io = Io::write_zeroes(Span::new(start, size), Flags::FUA.union(Flags::NO_UNMAP));
            match member.dev.start(io).await.result {
                Ok(()) => {
                    let header = Header::empty(partial.signature).encode();
                    headers.push((member, start, header));
                }
                Err(errno) => {
                    failed.push((member, format!("its log could not be written: {errno}")));
                }
            }
        }
        let ready: Vec<Rc<Member>> = headers.iter().map(|(member, ..)| Rc::clone(member)).collect();
        failed.extend(self.store_metadata("log", headers).await);
        for member in ready {
            let has_failed = failed.iter().any(|(one, _)| Rc::ptr_eq(one, &member));
            member.has_log.set(!has_failed);
        }
        failed
    }

    /// Writes a header for all that wait, as far as it has room.
    async fn log_group(self: &Rc<Self>, partial: &Partial, role: usize) {
        let queue = &partial.queues[role];
        // What the header before describes has to be durable in place.
        self.make_durable(queue.last.get()).await;
        let members: Vec<Rc<Member>> = self.slots.borrow()[role].written().cloned().collect();
        let room = room_for_parity(&members);
        let (mut entries, mut parity) = (Vec::new(), Payload::None);
        let mut units = 0;
        let mut header = None;
        {
            let mut waiting = queue.waiting.borrow_mut();
            while let Some(next) = waiting.front() {
                let fits = entries.len() + next.entries.len() <= ppl::MOST_ENTRIES
                    && parity.len() + next.parity.len() <= room;
                if units > 0 && !fits {
                    break;
                }
                let next = waiting.pop_front().expect("it is there");
                entries.extend(next.entries);
                parity.append(next.parity);
                header.get_or_insert(next.header);
                units += 1;
            }
        }
        let mut header = header.expect("whoever asks for a group waits for one");
        // Otherwise nothing is written any more, and all of them are told so.
        if !self.broken.get() {
            let generation = partial.next_generation();
            let signature = partial.signature;
            Header { signature, generation, entries }.encode_into(&mut header);
            let mut payload = Payload::One(header);
            payload.append(parity);
            let areas = members.into_iter().filter_map(|member| {
                let (start, _) = area_of(&member)?;
                Some((member, start, payload.share()))
            });
            self.store_log(areas.collect()).await;
        }
        queue.active.set(units);
        queue.logged.set(queue.logged.get() + units as u64);
    }
}

fn entry_of(columns: &Columns, band: &Band, role: usize, parity: &[u8]) -> Entry {
    let geometry = &columns.geometry;
    let in_chunk = band.rows.offset % geometry.chunk();
    let first = columns.stripe * geometry.stripe() + band.first as u64 * geometry.chunk();
    Entry {
        data_start: first + in_chunk,
        data_len: (band.rows.len * band.count as u64) as u32,
        parity_len: parity.len() as u32,
        parity_role: role as u16,
        checksum: ppl::parity_checksum([parity]),
    }
}
