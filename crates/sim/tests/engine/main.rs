//! The engine's tests, in every world that can run it.
//!
//! * `world`: where members live: simulated disks on the virtual clock, RAM, files through
//!   io_uring, files through threads.
//! * `stack`: the volumes under test, and which member holds which of their bytes.
//! * `conformance`: what holds in all worlds, each body written once.
//! * `crash`: what holds after a crash at any moment; simulation only.
//! * `cow`: changes in a store, after a crash at any moment; simulation only.
//! * `decorators`: parts and holes against the bytes behind them; simulation only.
//! * `seam`: what the seam refuses.

mod conformance;
mod cow;
mod crash;
mod decorators;
mod seam;
mod stack;
mod world;
