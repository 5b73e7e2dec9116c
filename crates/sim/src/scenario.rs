//! What happens to an array, as a value: [drawn](crate::draw) from a seed, shrunk by taking parts
//! away, told.
//!
//! ```text
//!   a new array ─▶ life ─▶ life ─▶ … ─▶ the last life: made whole, and judged
//!                   │ clients ask over connections; faults and operators act at their times
//!                   │ probes: "what if the power went now?", tried beside the life that goes on
//!                   └ its end: at rest, killed, or the power goes
//! ```
//!
//! A scenario only proposes: whether a fault is placed at its time is the [`crate::atlas`]'s to
//! say, by what is missing by then.
//!
//! Invariants: the same scenario has the same run; taking a part away leaves a scenario.

use braid_block::Op;
use braid_nbd::protocol::ReplyStyle;

use crate::spec::Spec;

/// All that happens to an array.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it comes from.
    pub seed: u64,
    /// What it happens to.
    pub spec: Spec,
    /// How the array is when it is new.
    pub start: Start,
    /// One after the other.
    pub lives: Vec<Life>,
}

/// How an array is when it is new.
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
    /// How fast passes go, in bytes a second.
    pub speed: u64,
    /// How long a member may take for a request, in nanoseconds; for ever if there is none.
    pub deadline_ns: Option<u64>,
    /// By how many seconds the clock was set ahead before it.
    pub clock_by_s: i64,
    /// Who asks for what.
    pub connections: Vec<Connection>,
    /// What happens beside, in order of time.
    pub acts: Vec<Act>,
    /// Moments at which a crash is tried beside.
    pub probes: Vec<Probe>,
    /// How many more are tried soon after something happened to members.
    pub aftershocks: u32,
    /// How it ends.
    pub end: End,
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
    /// What it asks for.
    pub requests: Vec<Request>,
    /// It goes in the middle of a message, with requests under way.
    pub leaves: bool,
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How long the client waits before, in nanoseconds.
    pub pause_ns: u64,
    /// What is asked.
    pub op: Op,
    /// From which block of 512 bytes on; taken by what the array has.
    pub block: u64,
    /// How many.
    pub blocks: u64,
    /// Durable before the answer.
    pub fua: bool,
    /// What is written.
    pub data: u64,
}

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// In nanoseconds since the life's start.
    pub at_ns: u64,
    /// What.
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
        /// How many.
        blocks: u64,
    },
    /// The next requests of a kind fail.
    Transient {
        /// Which disk.
        disk: usize,
        /// Of this kind.
        op: Op,
        /// How many.
        count: u64,
        /// They take this long to fail, in nanoseconds.
        after_ns: u64,
    },
    /// The next requests are not answered for a time; what they write lands before it or after it.
    Hang {
        /// Which disk.
        disk: usize,
        /// Of this kind; of all if there is none.
        op: Option<Op>,
        /// How many.
        count: u64,
        /// For how long, in nanoseconds; for ever if there is none.
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
    /// What is written to rows fails for want of space.
    Full {
        /// On this disk; on all if there is none.
        disk: Option<usize>,
        /// From which block of the members' data.
        block: u64,
        /// How many.
        blocks: u64,
        /// For how long, in nanoseconds.
        for_ns: u64,
    },
    /// A member that is out holds something else by now: writes to it were lost, or went astray.
    Scribble {
        /// Which disk.
        disk: usize,
        /// What.
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
    /// Whether it befalls disks; else an operator does it.
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
    /// What it leaves.
    pub way: Way,
    /// Whether members are lost with it.
    pub loses: bool,
    /// How many crashes follow while the array is brought up again.
    pub again: u32,
    /// What else may go one way or another.
    pub dice: u64,
}

/// What a crash leaves of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All of it.
    All,
    /// Nothing.
    Nothing,
    /// Of each block what the dice say.
    Blocks,
    /// One of these, disk by disk.
    Mixed,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everybody is answered, the volume goes down.
    Rest,
    /// The process is killed after so many events.
    Kill(u64),
    /// The power goes, as a probe has it.
    Power(Probe),
}
