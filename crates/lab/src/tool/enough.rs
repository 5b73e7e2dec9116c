//! How long a trial must be for its number to say something of the subject: the plan foresees it, and
//! the rule `too-short` judges it.

/// Seconds from which on the length is no reason to doubt. A tool that was asked for one second may
/// stop a little before it.
pub const ENOUGH_S: f64 = 0.95;
/// What starting and watching a tool adds to its wall time, in seconds.
pub const START_UP_S: f64 = 0.03;
/// Part of the wall time that start-up may be without a reason to doubt.
pub const START_UP_ENOUGH: f64 = 0.03;
