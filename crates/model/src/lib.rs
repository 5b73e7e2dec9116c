//! Timing models: when would this device be done?
//!
//! * [`Profile`]: the constants of a kind of device; [`profile()`] looks one up by name.
//! * [`Timetable`]: one device's schedule; [`Bus`]: what several devices share.
//!
//! A model is arithmetic: the time is an argument, in nanoseconds since any fixed moment, so that
//! the same model runs in wall time, in a simulation, and in a prediction. Deliberately absent:
//! clocks, randomness and contents.

mod profile;
mod timetable;

pub use profile::{Profile, profile, profile_names};
pub use timetable::{Bus, Timetable, Work};
