//! How long a trial must be for its number to say something of the subject: the plan foresees it, and
//! the rule `too-short` judges it.

/// Seconds below which a number is not used.
pub(crate) const LEAST_S: f64 = 0.2;
/// Seconds from which on the length is no reason to doubt. A tool that was asked for one second may
/// stop a little before it.
pub(crate) const ENOUGH_S: f64 = 0.95;
/// What starting and watching a tool adds to its wall time, in seconds.
pub(crate) const START_UP_S: f64 = 0.03;
/// Part of the wall time that start-up may be in a number that is used.
pub(crate) const START_UP_LEAST: f64 = 0.10;
/// Part that is no reason to doubt.
pub(crate) const START_UP_ENOUGH: f64 = 0.03;
