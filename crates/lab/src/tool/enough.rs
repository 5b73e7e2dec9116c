//! The shortest trial whose number characterises the subject: the plan warns of shorter ones, and the rule
//! `too-short` judges them.

/// Seconds above which the length is no reason for doubt. A tool that was asked for one second may stop a
/// little before it.
pub const ENOUGH_S: f64 = 0.95;
/// Wall time of starting and watching a tool, in seconds.
pub const START_UP_S: f64 = 0.03;
/// Largest part of the wall time for start-up without a reason for doubt.
pub const START_UP_ENOUGH: f64 = 0.03;
