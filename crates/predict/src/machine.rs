//! Members behind queues, on a virtual clock: what a host with these devices does with requests.
//!
//! ```text
//!  load ──submit──▶ layout ──▶ queue ──command──▶ timetable ──▶ done ──▶ load
//!   ▲                          queue              timetable, bus          │
//!   └──────────────── events, in the order of their times ◀───────────────┘
//! ```
//!
//! Invariants: time does not go back; events of one moment come in the order in which they were made,
//! so a run is a function of its load. A device has one command at a time. Deliberately absent: contents,
//! and what the host does with them (`load`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use braid_model::{Bus, BusProfile, Kind, Timetable, Wear, Work};

use crate::layout::{Busy, Layout, Op, Unit};
use crate::queue::{Command, Merge, Part, Queue};

/// A member: what it is, and which bus it hangs on.
#[derive(Clone, Debug)]
pub struct MemberModel {
    /// The device.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// Index of its bus.
    pub bus: usize,
}

/// A machine at one moment.
pub struct Machine {
    layout: Layout,
    members: Vec<Member>,
    buses: Vec<Shared>,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
    /// Bytes that are left of each request.
    left: BTreeMap<u64, u64>,
    /// Units under way, by number.
    units: BTreeMap<u64, UnderWay>,
    next_unit: u64,
}

struct UnderWay {
    owner: u64,
    /// Bytes of members that are to move before the next step.
    waits: u64,
    unit: Unit,
}

/// A bus, and the bytes that it moved from and to devices.
struct Shared {
    profile: BusProfile,
    schedule: Bus,
    moved: (u64, u64),
}

struct Member {
    queue: Queue,
    device: Timetable,
    bus: usize,
    under_way: Option<Command>,
    /// Where the last read that it was asked for ends, and how many bytes of reads wait.
    head: u64,
    reads: u64,
    busy_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Done(usize),
    Wake(u64),
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Bytes of a request have moved; the request is done when none are left.
    Moved {
        /// Whose they are.
        owner: u64,
        /// How many are left of it.
        left: u64,
    },
    /// A moment that was asked for.
    Woke(u64),
}

impl Machine {
    /// A machine at rest. `most` is the largest command that its devices are given, in bytes.
    ///
    /// # Panics
    /// If a member is no device, or its bus is not there.
    pub fn new(
        layout: Layout,
        members: &[MemberModel],
        buses: &[BusProfile],
        most: u64,
    ) -> Machine {
        let members = members
            .iter()
            .map(|one| Member {
                queue: Queue::new(most),
                device: Timetable::new(&one.kind, one.size).expect("a member is a device"),
                bus: one.bus,
                under_way: None,
                head: 0,
                reads: 0,
                busy_ns: 0,
            })
            .collect::<Vec<_>>();
        assert!(members.iter().all(|one| one.bus < buses.len()), "every member's bus is there");
        Machine {
            layout,
            members,
            buses: buses
                .iter()
                .map(|profile| Shared {
                    profile: *profile,
                    schedule: Bus::new(*profile),
                    moved: (0, 0),
                })
                .collect(),
            now_ns: 0,
            events: BinaryHeap::new(),
            made: 0,
            left: BTreeMap::new(),
            units: BTreeMap::new(),
            next_unit: 0,
        }
    }

    /// What the queues before its devices merge.
    #[must_use]
    pub fn merging(mut self, merge: Merge) -> Machine {
        self.members.iter_mut().for_each(|member| member.queue.merge(merge));
        self
    }

    /// Bytes that keep all members busy, 0 if there is no such number.
    pub fn stripe(&self) -> u64 {
        self.layout.stripe()
    }

    /// The time, in nanoseconds since the beginning.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What writing did to each member that wears.
    pub fn wear(&self) -> impl Iterator<Item = Option<Wear>> + '_ {
        self.members.iter().map(|member| member.device.wear())
    }

    fn at(&mut self, time_ns: u64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((time_ns.max(self.now_ns), self.made, event)));
    }

    /// Asks for [`Next::Woke`] at a time.
    pub fn wake_at(&mut self, time_ns: u64, owner: u64) {
        self.at(time_ns, Event::Wake(owner));
    }

    /// Puts a request in: its bytes wait in the queues until [`Machine::unplug`], or until a
    /// device that is at work takes them.
    pub fn submit(&mut self, owner: u64, write: bool, offset: u64, bytes: u64) {
        *self.left.entry(owner).or_default() += bytes;
        let members = &self.members;
        let busy =
            |member: usize| Busy { head: members[member].head, reads: members[member].reads };
        for mut unit in self.layout.units(write, offset, bytes, &busy) {
            let ops = std::mem::take(&mut unit.first);
            self.next_unit += 1;
            let waits = ops.iter().map(|op| op.bytes).sum();
            self.units.insert(self.next_unit, UnderWay { owner, waits, unit });
            self.queue(self.next_unit, &ops);
        }
    }

    fn queue(&mut self, unit: u64, ops: &[Op]) {
        for op in ops {
            let member = &mut self.members[op.member];
            if !op.write {
                member.head = op.offset + op.bytes;
                member.reads += op.bytes;
            }
            member.queue.push(op.write, op.offset, Part { owner: unit, bytes: op.bytes });
        }
    }

    /// How much of the time so far each bus moved bytes, from 0 to 1; 0 for one that is never the limit.
    pub fn bus_shares(&self) -> impl Iterator<Item = f64> + '_ {
        let of = |bytes: u64, rate: u64| if rate == 0 { 0.0 } else { bytes as f64 / rate as f64 };
        self.buses.iter().map(move |bus| {
            let seconds =
                of(bus.moved.0, bus.profile.rate_in) + of(bus.moved.1, bus.profile.rate_out);
            seconds / (self.now_ns.max(1) as f64 / 1e9)
        })
    }

    /// How much of the time so far each member was at work, from 0 to 1.
    pub fn member_shares(&self) -> impl Iterator<Item = f64> + '_ {
        self.members.iter().map(|member| member.busy_ns as f64 / self.now_ns.max(1) as f64)
    }

    /// Gives every device that is idle its next command.
    pub fn unplug(&mut self) {
        for index in 0..self.members.len() {
            self.start(index);
        }
    }

    fn start(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.under_way.is_some() {
            return;
        }
        let Some(command) = member.queue.pop() else { return };
        let (offset, bytes) = (command.offset, command.bytes);
        let work = if command.write {
            Work::Write { offset, bytes }
        } else {
            Work::Read { offset, bytes }
        };
        let bus = &mut self.buses[member.bus];
        *(if command.write { &mut bus.moved.1 } else { &mut bus.moved.0 }) += bytes;
        let done = member.device.serve(&mut bus.schedule, self.now_ns, work);
        member.busy_ns += done - self.now_ns;
        member.under_way = Some(command);
        self.at(done, Event::Done(index));
    }

    /// Goes on to the next moment at which something happens, and says what: nothing where
    /// nothing is under way. A command's owners come one after the other.
    pub fn next(&mut self, happened: &mut Vec<Next>) -> bool {
        happened.clear();
        let Some(Reverse((time_ns, _, event))) = self.events.pop() else { return false };
        self.now_ns = time_ns;
        match event {
            Event::Wake(owner) => happened.push(Next::Woke(owner)),
            Event::Done(index) => {
                let command = self.members[index].under_way.take();
                let command = command.expect("a command was under way");
                if !command.write {
                    self.members[index].reads -= command.bytes;
                }
                for part in command.parts {
                    happened.extend(self.moved(part));
                }
                self.start(index);
            }
        }
        true
    }

    /// Bytes of a unit have moved: its next step, or its end, is what happens then.
    fn moved(&mut self, part: Part) -> Option<Next> {
        let under_way = self.units.get_mut(&part.owner).expect("a part is of a unit under way");
        under_way.waits -= part.bytes;
        if under_way.waits > 0 {
            return None;
        }
        let ops = std::mem::take(&mut under_way.unit.then);
        if !ops.is_empty() {
            under_way.waits = ops.iter().map(|op| op.bytes).sum();
            self.queue(part.owner, &ops);
            self.unplug();
            return None;
        }
        let done = self.units.remove(&part.owner).expect("it is under way");
        let left = self.left.get_mut(&done.owner).expect("a request has bytes left");
        *left -= done.unit.bytes;
        let left = *left;
        if left == 0 {
            self.left.remove(&done.owner);
        }
        Some(Next::Moved { owner: done.owner, left })
    }
}
