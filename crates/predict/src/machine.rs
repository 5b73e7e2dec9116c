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

use braid_array::{ArrayByte, Geometry};
use braid_model::{Bus, BusProfile, Kind, Timetable, Wear, Work};

use crate::queue::{Command, Part, Queue};

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
    buses: Vec<Bus>,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
    /// Bytes that are left of each request.
    left: BTreeMap<u64, u64>,
}

/// Where bytes lie.
pub enum Layout {
    /// All on member 0.
    Single,
    /// Each byte on one member.
    Of(Box<dyn Geometry>),
}

struct Member {
    queue: Queue,
    device: Timetable,
    bus: usize,
    under_way: Option<Command>,
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
            })
            .collect::<Vec<_>>();
        assert!(members.iter().all(|one| one.bus < buses.len()), "every member's bus is there");
        Machine {
            layout,
            members,
            buses: buses.iter().copied().map(Bus::new).collect(),
            now_ns: 0,
            events: BinaryHeap::new(),
            made: 0,
            left: BTreeMap::new(),
        }
    }

    /// Requests come from a file system, which gives them in whole, and not page by page.
    #[must_use]
    pub fn below_a_file_system(mut self) -> Machine {
        self.members.iter_mut().for_each(|member| member.queue.keep_whole());
        self
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
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let (role, on_member, run) = match &self.layout {
                Layout::Single => (0, at, end - at),
                Layout::Of(geometry) => {
                    let run = geometry.locate(ArrayByte::new(at));
                    (run.role.index(), run.offset.get(), run.len.min(end - at))
                }
            };
            self.members[role].queue.push(write, on_member, Part { owner, bytes: run });
            at += run;
        }
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
        let done = member.device.serve(&mut self.buses[member.bus], self.now_ns, work);
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
                for Part { owner, bytes } in command.expect("a command was under way").parts {
                    let left = self.left.get_mut(&owner).expect("a request has bytes left");
                    *left -= bytes;
                    let left = *left;
                    if left == 0 {
                        self.left.remove(&owner);
                    }
                    happened.push(Next::Moved { owner, left });
                }
                self.start(index);
            }
        }
        true
    }
}
