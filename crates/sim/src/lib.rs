//! Deterministic simulation: the engine on a virtual clock, over disks that fail as told.
//!
//! * [`Sim`]: a single-threaded executor whose every choice (which task next, how long a disk
//!   takes) is drawn from one seed; its clock jumps to the next event.
//! * [`SimDisk`]: a member with a volatile cache, random latency and [`Faults`] laid over data
//!   that stays pristine underneath; it can say what a crash at this moment might leave.
//! * [`Oracle`]: for each block, the values that a read, or a crash, may show; [`Client`]: a
//!   random load that holds a volume to its oracle.
//! * [`scenario`], [`world`]: what happens to an array through several lives, drawn from a seed, and
//!   the whole stack that it happens to: NBD clients and sessions over pipes, the engine, disks that
//!   are put together as production does it ([`found`]).
//! * [`halves`]: two machines with a half of an array each.
//! * [`remote`]: a remote member, whose network and server fail.
//! * `hang`, `opened`: members that hang, behind the deadline of production (`braid_device::Metered`).
//! * [`atlas`]: which faults may be placed, so that every failure is a bug; [`kernel`]: what Linux's
//!   md would make of the same superblocks.
//! * [`campaign`], [`shrink`], [`exhaust`], [`rot`], [`speed`], [`keep`]: the program `braid-sim`: many
//!   seeds, a failing one made small, crashes at every moment, rot in every block of metadata, and how
//!   fast all that is.
//! * [`for_each_seed`]: runs a test over seeds and prints the one-line command that repeats a
//!   failure.
//!
//! Invariants: the same seed gives the same run, to the nanosecond and the byte; nothing here
//! reads a clock, the environment (but for which seeds are run), an address or a hash order. An
//! oracle and a client know nothing of the simulation, so they test production executors too.
//!
//! Deliberately absent: silent corruption of data on members that take part (there are no checksums to find
//! it), and time spent by computation.

pub mod atlas;
mod birth;
mod brief;
pub mod campaign;
pub mod canaries;
mod client;
pub mod contents;
mod decay;
mod disk;
pub mod draw;
mod executor;
pub mod exhaust;
pub mod failing;
mod fault;
pub mod found;
pub mod front;
pub mod fuzz;
pub mod halves;
mod hang;
mod image;
pub mod keep;
pub mod kernel;
mod life;
mod load;
mod media;
mod memory;
mod nbd;
mod opened;
mod oracle;
mod orders;
mod pipe;
mod quiet;
pub mod remote;
pub mod report;
mod rest;
mod restart;
pub mod rot;
pub mod scenario;
mod seeds;
mod shards;
mod share;
pub mod shrink;
pub mod spec;
pub mod speed;
mod stage;
pub mod timeline;
mod torn;
mod verify;
pub mod world;
mod worlds;

pub use braid_seed::Rng;
pub use client::{Client, Load, Report};
pub use disk::{Listener, Record, SimDisk, Timing};
pub use executor::{Handle, Outcome, Sim, Stuck, Witness};
pub use fault::{Fault, Faults, Target};
pub use image::Image;
pub use oracle::{Mismatch, Oracle, ReadToken, WriteToken};
pub use seeds::for_each_seed;
