//! Side-by-side measurements with peers.
//!
//! Every figure is a ratio between two things that are measured in turn, in one run, on one machine: the
//! machine is shared, and its load changes more between two runs than the difference that is to be measured.
//! Each binary in `src/bin` measures one thing and prints a table with the target beside each ratio;
//! `README.md` explains how to read it.
//!
//! * [`process`]: programs that are started, and the clean-up when they or this program end.
//! * [`cpu`]: processor time of a process. [`fio`]: one run of fio.
//! * [`nbd`], [`load`], [`bare`]: a client; a load generator that sends many requests with one call; and a
//!   server without an engine, which is the lower bound.
//! * [`peer`]: the servers that are compared; [`attached`]: block devices made from them.
//! * [`mirrored`], [`parity`]: arrays of RAID 1, and of RAID 5 and 6, over any devices, in this process.
//! * [`stats`], [`table`]: ratios, and how they are printed.
//!
//! Deliberately absent: absolute figures as targets, and anything on which a test depends.

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
