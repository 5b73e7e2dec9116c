//! From experiments on a device to the constants of its timing model.
//!
//! ```text
//!  Measured ◀──Batch── Session ──times──▶ reading, turning, writing ──▶ constants of each kind
//!  a device    Timing     │ record                                            │ candidates
//!  or a model             └──────────── replayed through each model ◀─────────┘
//!                                            │ the error of each
//!                                            ▼
//!                                  Fit: the kind whose model errs least, as a profile
//! ```
//!
//! A fit reads. It writes only with the permission to destroy the content of the device, which the caller must
//! have asked the user for. The constants that can be measured:
//!
//! | kind | seen | not seen |
//! |---|---|---|
//! | plain | rates, latency | the bus: it is within the rates |
//! | usb-flash | command, settling, jump, rates, largest command, page, unit, copying, open units | the erase block apart from the unit; endurance; steps and pages that cost less than times differ; units that do not divide 24 MiB |
//! | disk | revolution, seeks, rates of both ends, command, depth of the queue; writing: the cache | |
//!
//! The gain of several requests at once is in the profile of a disk, and is a remark on other kinds.
//! Deliberately absent: I/O, clocks, and the decision which device may be written.

mod choose;
mod fitted;
mod glance;
mod held_out;
mod kinds;
mod measured;
mod plan;
mod reading;
mod robust;
mod session;
mod text;
mod turning;
mod writing;

pub use choose::fit;
pub use fitted::{Errors, Fit, Fitted};
pub use glance::Glance;
pub use measured::{Batch, Measured, Modelled, Request, Timing, fill};
pub use plan::{Permission, Plan};
pub use robust::Estimate;
pub use session::Fault;
