//! Side-by-side measurements with peers.
//!
//! Every figure is a ratio between two things measured in turn, in one run, on one machine: the
//! machine is shared, and what it does for others between two runs is larger than what is to be
//! seen. The binaries in `src/bin` each measure one thing and print a table with the target
//! beside each ratio; `README.md` says how to read them.
//!
//! * [`process`]: programs that are started, and what is undone when they or we end.
//! * [`cpu`]: processor time of a process. [`fio`]: one run of fio.
//! * [`nbd`], [`load`], [`bare`]: a client, a load generator that sends many requests with one
//!   call, and a server without an engine behind it, which is the floor.
//! * [`peer`]: the servers that are compared; [`attached`]: block devices made of them.
//! * [`mirrored`], [`parity`]: arrays of RAID 1, and of RAID 5 and 6, over any devices, in this
//!   process.
//! * [`stats`], [`table`]: ratios and how they print.
//!
//! Deliberately absent: absolute figures as targets, and anything that a test depends on.

pub mod args;
pub mod attached;
pub mod bare;
pub mod cpu;
pub mod error;
pub mod fio;
pub mod load;
pub mod mirrored;
pub mod nbd;
pub mod parity;
pub mod peer;
pub mod process;
pub mod stats;
pub mod table;

pub use error::{Error, Result};
