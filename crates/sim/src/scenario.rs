//! The events of an array, as a value: [drawn](crate::draw) from a seed, shrunk by removing parts, printed.
//!
//! ```text
//!   a new array ─▶ life ─▶ life ─▶ … ─▶ the last life: made whole, and judged
//!                   │ clients ask over connections; faults and operators act at their times
//!                   │ probes: "what if the power went now?", tried beside the life that goes on
//!                   └ its end: at rest, killed, or the power goes
//! ```
//!
//! A scenario only proposes: [`crate::atlas`] decides whether a fault is placed at its time, by the members
//! missing then.
//!
//! Invariants: the same scenario has the same run; without one of its parts it is still a scenario.

use braid_block::Op;
use braid_nbd::protocol::ReplyStyle;

use crate::front::Front;
use crate::spec::Spec;

/// All that happens to an array.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed from which it was drawn.
    pub seed: u64,
    /// The array.
    pub spec: Spec,
    /// The state of the new array.
    pub start: Start,
    /// The lives, one after the other.
    pub lives: Vec<Life>,
}

/// The state of a new array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Complete, and its copies agree.
    Clean,
    /// Copies and parity never agreed from this sync byte on.
    Unsynced(u64),
    /// The member with this role was never there.
    Missing(usize),
}

/// From one start of a process to its end.
#[derive(Clone, Debug)]
pub struct Life {
    /// The order of everything that may go one way or another.
    pub schedule: u64,
    /// The rate of passes, in bytes a second.
    pub speed: u64,
    /// The longest time of a member's request, in nanoseconds; no limit if `None`.
    pub deadline_ns: Option<u64>,
    /// The number of seconds by which the clock was set ahead before it.
    pub clock_by_s: i64,
    /// The parts of the stack between the array and the clients.
    pub front: Front,
    /// The number of shards beside the array's, which read from its members.
    pub shards: usize,
    /// The clients and their requests.
    pub connections: Vec<Connection>,
    /// The other events, in order of time.
    pub acts: Vec<Act>,
    /// Moments at which a crash is simulated beside the life.
    pub probes: Vec<Probe>,
    /// The number of further ones soon after an event of members.
    pub aftershocks: u32,
    /// Its end.
    pub end: End,
}

impl Life {
    /// A life of the array alone, in which nothing happens.
    pub(crate) fn plain(schedule: u64, speed: u64) -> Life {
        Life {
            schedule,
            speed,
            deadline_ns: None,
            clock_by_s: 0,
            front: Front::default(),
            shards: 0,
            connections: Vec::new(),
            acts: Vec::new(),
            probes: Vec::new(),
            aftershocks: 0,
            end: End::Rest,
        }
    }
}

/// A client.
#[derive(Clone, Debug)]
pub struct Connection {
    /// When it comes, in nanoseconds.
    pub at_ns: u64,
    /// Which replies it wants.
    pub style: ReplyStyle,
    /// Requests under way at once.
    pub depth: usize,
    /// Its requests.
    pub requests: Vec<Request>,
    /// True if it disconnects in the middle of a message, with requests in flight.
    pub leaves: bool,
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The pause of the client before, in nanoseconds.
    pub pause_ns: u64,
    /// The kind of the request.
    pub op: Op,
    /// The first block of 512 bytes, modulo the size of the array.
    pub block: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// True if it must be durable before the answer.
    pub fua: bool,
    /// The written data.
    pub data: u64,
}

/// An event at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// In nanoseconds since the life's start.
    pub at_ns: u64,
    /// The event.
    pub what: What,
}

/// Something that happens to disks, or that an operator does. Numbers pick one of those that are
/// suitable by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Some blocks cannot be read until they are written.
    Latent {
        /// Which disk.
        disk: usize,
        /// From which block of its data.
        block: u64,
        /// The number of blocks.
        blocks: u64,
    },
    /// The next requests of a kind fail.
    Transient {
        /// Which disk.
        disk: usize,
        /// The kind.
        op: Op,
        /// The number of requests.
        count: u64,
        /// The time until they fail, in nanoseconds.
        after_ns: u64,
    },
    /// The next requests are not answered for a time; what they write lands before it or after it.
    Hang {
        /// Which disk.
        disk: usize,
        /// The kind; all kinds if `None`.
        op: Option<Op>,
        /// The number of requests.
        count: u64,
        /// The duration, in nanoseconds; for ever if `None`.
        for_ns: Option<u64>,
    },
    /// Everything takes so many times as long.
    Slow {
        /// Which disk.
        disk: usize,
        /// As long.
        times: u64,
    },
    /// It is pulled.
    Vanish {
        /// Which disk.
        disk: usize,
    },
    /// One that was pulled is there again, with what it held.
    Return {
        /// Which.
        disk: usize,
    },
    /// A flush fails, and what it was to make durable is gone.
    FlushError {
        /// Which disk.
        disk: usize,
    },
    /// Writes to some rows fail for want of space.
    Full {
        /// The disk; all disks if `None`.
        disk: Option<usize>,
        /// The first block of the members' data.
        block: u64,
        /// The number of blocks.
        blocks: u64,
        /// The duration, in nanoseconds.
        for_ns: u64,
    },
    /// A member that is out holds something else by now: writes to it were lost, or went astray.
    Scribble {
        /// Which disk.
        disk: usize,
        /// The data.
        data: u64,
    },
    /// An operator takes a member out.
    Fail {
        /// Which.
        pick: u64,
    },
    /// … lets go of one that is out.
    Remove {
        /// Which.
        pick: u64,
    },
    /// … adds a blank disk.
    Add,
    /// … adds a disk that was a member.
    AddAgain {
        /// Which.
        pick: u64,
    },
    /// … has a blank disk filled beside a member.
    Replace {
        /// Which.
        pick: u64,
    },
    /// … starts a check.
    Check,
    /// … starts a repair.
    Repair,
    /// … ends a scrub.
    NoScrub,
    /// … sets another speed, in bytes a second.
    Speed {
        /// Which.
        rate: u64,
    },
    /// … gives a raid1 another role.
    Grow,
    /// … gives the array a bitmap, or the one that it has other chunks.
    Bitmap {
        /// In bytes.
        chunk: u64,
    },
    /// … takes its bitmap away.
    NoBitmap,
    /// … sets the clock ahead, or back.
    Clock {
        /// By so many seconds.
        by_s: i64,
    },
    /// From now on each pool lends at most so many bytes at a time, or one buffer: all it has if there is none.
    Memory {
        /// In bytes.
        limit: Option<usize>,
    },
    /// … has no pass run.
    Hold,
    /// … lets passes go on.
    GoOn,
}

impl What {
    /// True if it is a fault of disks; otherwise an operator's act.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            What::Latent { .. }
                | What::Transient { .. }
                | What::Slow { .. }
                | What::Hang { .. }
                | What::Vanish { .. }
                | What::Return { .. }
                | What::FlushError { .. }
                | What::Full { .. }
                | What::Scribble { .. }
        )
    }
}

/// A moment at which a crash is tried, beside the life that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// After so many events of the life.
    pub event: u64,
    /// The data that it leaves.
    pub way: Way,
    /// True if members are lost with it.
    pub loses: bool,
    /// The number of crashes that follow while the array is brought up again.
    pub again: u32,
    /// The seed of all other choices.
    pub dice: u64,
}

/// The unflushed data that a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All of it.
    All,
    /// Nothing.
    Nothing,
    /// Each block has a random one of its versions.
    Blocks,
    /// One of these ways, chosen for each disk.
    Mixed,
}

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every request is answered, and the volume goes down.
    Rest,
    /// The process is killed after so many events.
    Kill(u64),
    /// The power goes, as a probe has it.
    Power(Probe),
}
