//! Timing models: when would this device be done?
//!
//! ```text
//!  TOML ──parse, check──▶ Profile ──▶ Timetable: serve(bus, now, work) ──▶ when it is done
//!  constants, each           │         plain   a rate and a latency
//!  with its source           │         flash   commands, allocation units, merges      Bus: what
//!                            │         disk    seeks, rotation, zones, queue, cache    several share
//!                            └▶ Host   ram     copies and calls
//!                                      remote  round trip, links, server
//! ```
//!
//! * [`Profile`]: the constants of one device, bus or host, and where each of them comes from.
//! * [`Timetable`]: one device's schedule; [`CommandQueue`]: what waits for it; [`Bus`]: what several
//!   devices share.
//!
//! A model is arithmetic: the time is an argument, in nanoseconds since any fixed moment, so that
//! the same model runs in wall time, in a simulation, and in a prediction. Deliberately absent:
//! clocks, randomness and contents.

mod bus;
mod constants;
mod disk;
mod flash;
mod host;
mod place;
mod plain;
mod profile;
mod queue;
mod remote;
mod timetable;

pub use bus::{Bus, BusProfile, Direction};
pub use constants::{Constant, ProfileError};
pub use disk::Disk;
pub use flash::{Flash, Wear};
pub use host::Host;
pub use place::Work;
pub use plain::{Plain, Ram};
pub use profile::{Kind, Profile, device_names, profile, profile_names};
pub use queue::{Answer, CommandQueue};
pub use remote::Remote;
pub use timetable::Timetable;

/// The time that `bytes` take at `rate` bytes per second, in nanoseconds, rounded up.
fn nanoseconds(bytes: u64, rate: u64) -> u64 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
