//! Members behind queues, on a virtual clock: what a host with these devices does with requests.
//!
//! ```text
//!  load ──submit──▶ nodes ──▶ queue ──command──▶ timetable ──▶ done ──▶ nodes ──▶ load
//!   ▲                         queue              timetable, bus                    │
//!   └──────────────────── events, in the order of their times ◀────────────────────┘
//! ```
//!
//! A node is a device, nodes that are joined by a layout, or a cache in front of a node. What is asked of one
//! becomes units, whose bytes are asked of the nodes below, and are counted to the unit above when they have
//! moved: levels nest without knowing of each other.
//!
//! Invariants: time does not go back; events of one moment come in the order in which they were made,
//! so a run is a function of its load. A device has one command at a time, a remote one all that are asked of it.
//! Deliberately absent: contents, and what the host does with them (`load`).

mod caches;
mod usage;
mod write_caches;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use braid_block::Span;
use braid_cache::Shadow;
use braid_model::{Bus, BusProfile, Kind, Timetable};

use crate::cached::{Asked, Cached, ORIGIN};
use crate::layout::{Busy, Layout, Op, Unit};
use crate::queue::{Command, Merge, Part, Queue};
use crate::rounds::Owner;

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

/// The parts of a machine.
pub(crate) enum Made {
    Device(MemberModel),
    /// In the order of the layout's members; `None` for a missing one.
    Joined(Layout, Vec<Option<Made>>),
    Cached {
        shadow: Box<Shadow>,
        /// Time for which something may be dirty, in write-back mode; in nanoseconds.
        age_ns: Option<u64>,
        origin: Box<Made>,
        memory: MemberModel,
    },
}

/// A machine at one moment.
pub struct Machine {
    /// Each behind those below it; the last is what the load asks.
    nodes: Vec<Node>,
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
    /// Number of runs that its caches remember.
    runs: u64,
}

struct UnderWay {
    owner: Owner,
    /// Whose unit it is.
    node: usize,
    write: bool,
    /// Bytes of members that are to move before the next step.
    waits: u64,
    unit: Unit,
    /// For what a cache asked its origin.
    asked: Option<Asked>,
}

struct Node {
    what: What,
    /// The end of the last read that was requested, and the bytes of waiting reads.
    head: u64,
    reads: u64,
    /// It is a remote device.
    is_far: bool,
}

enum What {
    /// Index of the member.
    Device(usize),
    /// Indices of nodes.
    Joined(Layout, Vec<Option<usize>>),
    /// With the nodes that are its origin and its memory.
    Cached(Box<Cached>, [usize; 2]),
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
    /// At most one, unless the device takes more.
    under_way: BTreeMap<u64, Command>,
    node: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A command of a device: its index, and the command's number.
    Done(usize, u64),
    Wake(u64),
    /// A cache looks whether it is time to drain.
    Look(usize),
}

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Bytes of a request have moved; the request is done when none are left.
    Moved {
        /// Whose they are.
        owner: u64,
        /// The bytes of it that are left.
        left: u64,
    },
    /// A requested time has come.
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
        let of = |one: &MemberModel| Some(Made::Device(one.clone()));
        Machine::over(Made::Joined(layout, members.iter().map(of).collect()), buses, most)
    }

    /// As [`Machine::new`], of any part but a device alone.
    pub(crate) fn over(part: Made, buses: &[BusProfile], most: u64) -> Machine {
        let shared = |profile: &BusProfile| Shared {
            profile: *profile,
            schedule: Bus::new(*profile),
            moved: (0, 0),
        };
        let mut machine = Machine {
            nodes: Vec::new(),
            members: Vec::new(),
            buses: buses.iter().map(shared).collect(),
            now_ns: 0,
            events: BinaryHeap::new(),
            made: 0,
            left: BTreeMap::new(),
            units: BTreeMap::new(),
            next_unit: 0,
            runs: 0,
        };
        machine.add(part, most);
        machine
    }

    /// Adds a part and all that is below it; answers its node.
    fn add(&mut self, part: Made, most: u64) -> usize {
        let what = match part {
            Made::Device(model) => {
                assert!(model.bus < self.buses.len(), "every member's bus is there");
                let device = Timetable::new(&model.kind, model.size);
                self.members.push(Member {
                    queue: Queue::new(most),
                    device: device.expect("a member is a device"),
                    bus: model.bus,
                    under_way: BTreeMap::new(),
                    node: self.nodes.len(),
                });
                What::Device(self.members.len() - 1)
            }
            Made::Joined(layout, parts) => {
                let below = parts.into_iter().map(|part| part.map(|part| self.add(part, most)));
                What::Joined(layout, below.collect())
            }
            Made::Cached { shadow, age_ns, origin, memory } => {
                let below = [*origin, Made::Device(memory)].map(|part| self.add(part, most));
                What::Cached(Box::new(Cached::new(*shadow, age_ns)), below)
            }
        };
        let is_far = matches!(what, What::Device(member) if self.members[member].device.overlaps());
        self.nodes.push(Node { what, head: 0, reads: 0, is_far });
        self.nodes.len() - 1
    }

    /// Sets how the queues before its devices merge requests.
    #[must_use]
    pub fn merging(mut self, merge: Merge) -> Machine {
        self.members.iter_mut().for_each(|member| member.queue.merge(merge));
        self
    }

    /// True if earlier requests change the duration of a request: there is a cache.
    pub fn has_cache(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.what, What::Cached(..)))
    }

    /// Bytes that keep all members busy, 0 if there is no such number.
    pub fn stripe(&self) -> u64 {
        let mut node = self.nodes.len() - 1;
        loop {
            match &self.nodes[node].what {
                What::Device(_) => return 0,
                What::Joined(layout, _) => return layout.stripe(),
                What::Cached(_, below) => node = below[ORIGIN],
            }
        }
    }

    /// True if its queues, which are all alike, merge requests.
    pub(crate) fn merges(&self) -> bool {
        self.members.first().is_some_and(|member| member.queue.merges())
    }

    /// The time, in nanoseconds since the beginning.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
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
        self.ask(self.nodes.len() - 1, Owner::Request(owner), write, offset, bytes);
    }

    /// Asks a node for bytes, which are counted to `owner` when they have moved.
    fn ask(&mut self, node: usize, owner: Owner, write: bool, offset: u64, bytes: u64) {
        if !write {
            self.nodes[node].head = offset + bytes;
            self.nodes[node].reads += bytes;
        }
        let nodes = &self.nodes;
        let busy = |node: usize| {
            let Node { head, reads, is_far, .. } = nodes[node];
            Busy { head, reads, is_far }
        };
        match &self.nodes[node].what {
            What::Device(member) => {
                let Owner::Unit(owner) = owner else { panic!("a device is asked by units") };
                self.members[*member].queue.push(write, offset, Part { owner, bytes });
            }
            What::Joined(layout, below) => {
                let busy = |member: usize| below[member].map(busy);
                let mut units = layout.units(write, offset, bytes, &busy);
                if !self.merges() {
                    units = Unit::gather(units);
                }
                for unit in units {
                    self.begin(node, owner, write, unit, None);
                }
            }
            What::Cached(..) => {
                let hit = self.cached(node).ask(owner, write, Span::new(offset, bytes));
                if let Some(unit) = hit {
                    self.begin(node, owner, write, unit, None);
                }
                self.go_on(node);
            }
        }
    }

    fn begin(
        &mut self,
        node: usize,
        owner: Owner,
        write: bool,
        mut unit: Unit,
        asked: Option<Asked>,
    ) {
        let ops = std::mem::take(&mut unit.first);
        self.next_unit += 1;
        let (number, waits) = (self.next_unit, ops.iter().map(|op| op.bytes).sum());
        self.units.insert(number, UnderWay { owner, node, write, waits, unit, asked });
        self.carry_out(node, number, &ops);
    }

    fn carry_out(&mut self, node: usize, unit: u64, ops: &[Op]) {
        for op in ops {
            let below = match &self.nodes[node].what {
                What::Joined(_, below) => below[op.member],
                What::Cached(_, below) => Some(below[op.member]),
                What::Device(_) => None,
            };
            let below = below.expect("only members that are there are asked");
            self.ask(below, Owner::Unit(unit), op.write, op.offset, op.bytes);
        }
    }

    /// Gives every device that is idle its next command.
    pub fn unplug(&mut self) {
        for index in 0..self.members.len() {
            self.start(index);
        }
    }

    fn start(&mut self, index: usize) {
        loop {
            let member = &mut self.members[index];
            if !member.under_way.is_empty() && !member.device.overlaps() {
                return;
            }
            let Some(command) = member.queue.pop(&mut member.device, self.now_ns) else { return };
            let bus = &mut self.buses[member.bus];
            *(if command.write { &mut bus.moved.1 } else { &mut bus.moved.0 }) += command.bytes;
            let done = member.device.serve(&mut bus.schedule, self.now_ns, command.work());
            // The next event's number.
            let number = self.made + 1;
            member.under_way.insert(number, command);
            self.at(done, Event::Done(index, number));
        }
    }

    /// Goes on to the next moment at which something happens, and says what: nothing where
    /// nothing is under way. A command's owners come one after the other.
    pub fn next(&mut self, happened: &mut Vec<Next>) -> bool {
        happened.clear();
        let Some(Reverse((time_ns, _, event))) = self.events.pop() else { return false };
        self.now_ns = time_ns;
        match event {
            Event::Wake(owner) => happened.push(Next::Woke(owner)),
            Event::Look(node) => {
                if let Some((rounds, _)) = self.cached(node).rounds() {
                    rounds.look(time_ns);
                }
                self.go_on(node);
                self.unplug();
            }
            Event::Done(index, number) => {
                let command = self.members[index].under_way.remove(&number);
                let command = command.expect("a command was under way");
                if !command.write {
                    let node = self.members[index].node;
                    self.nodes[node].reads -= command.bytes;
                }
                for part in command.parts {
                    self.moved(part.owner, part.bytes, happened);
                }
                self.start(index);
            }
        }
        true
    }

    /// Bytes of a unit have moved: its next step, or its end, is what happens then.
    fn moved(&mut self, number: u64, bytes: u64, happened: &mut Vec<Next>) {
        let under_way = self.units.get_mut(&number).expect("it is of a unit under way");
        under_way.waits -= bytes;
        if under_way.waits > 0 {
            return;
        }
        let ops = std::mem::take(&mut under_way.unit.then);
        if !ops.is_empty() {
            under_way.waits = ops.iter().map(|op| op.bytes).sum();
            let node = under_way.node;
            self.carry_out(node, number, &ops);
            self.unplug();
            return;
        }
        let done = self.units.remove(&number).expect("it is under way");
        if !done.write {
            self.nodes[done.node].reads -= done.unit.bytes;
        }
        if let Some(asked) = &done.asked {
            self.cached(done.node).answered(asked);
            self.go_on(done.node);
            self.unplug();
        }
        self.credit(done.owner, done.unit.bytes, happened);
    }

    /// Counts bytes that have moved to their owner.
    fn credit(&mut self, owner: Owner, bytes: u64, happened: &mut Vec<Next>) {
        match owner {
            Owner::Unit(above) => self.moved(above, bytes, happened),
            Owner::Request(owner) => {
                let left = self.left.get_mut(&owner).expect("a request has bytes left");
                *left -= bytes;
                let left = *left;
                if left == 0 {
                    self.left.remove(&owner);
                }
                happened.push(Next::Moved { owner, left });
            }
            Owner::Run(node, (start, end)) => {
                self.cached(node).drained(start..end);
                self.go_on(node);
                self.unplug();
            }
            Owner::Round(node) => {
                let rounds = self.cached(node).rounds();
                let flushed = rounds.map_or(Vec::new(), |(rounds, shadow)| rounds.flushed(shadow));
                self.go_on(node);
                self.unplug();
                flushed.into_iter().for_each(|owner| self.credit(owner, 1, happened));
            }
        }
    }
}
