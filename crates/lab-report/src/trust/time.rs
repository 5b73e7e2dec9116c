//! Too little measured, and processes that did not run together.
//!
//! Sources of the limits:
//!
//! * The kernel plans writing back, and estimates a device's rate, in steps of 200 ms
//!   (`BANDWIDTH_INTERVAL`); frequency governors step in 10 to 100 ms. A trial of about one step
//!   measures the step ([`LEAST_S`]); from five steps on, one more or less is within 20 %
//!   ([`ENOUGH_S`]).
//! * A tool without a clock of its own is timed from outside: starting it takes some 10 ms, and it
//!   is looked at every 20 ms. These [`START_UP_S`] are in its time, a tenth of it at [`LEAST_S`].
//! * The median of fewer than [`LEAST_REQUESTS`] requests says nothing, and of fewer than
//!   [`ENOUGH_REQUESTS`] the 95th percentile is a single request.
//!
//! Deliberately absent: the minutes that a flash device takes to use up its fast part. Their sign
//! is a rate that falls, which is another rule's.

use super::Checked;
use super::case::TrialCase;
use braid_lab::metric::Metric;
use braid_lab::tool::enough::{ENOUGH_S, START_UP_S};

/// Seconds below which a number is not used.
const LEAST_S: f64 = 0.3;
/// Requests below which a number is not used.
const LEAST_REQUESTS: f64 = 5.0;
/// Requests from which on their number is no reason to doubt.
const ENOUGH_REQUESTS: f64 = 30.0;
/// The slowest process's time over the fastest's from which on part of the time was run with
/// fewer processes than asked for: a third of it, at 1.5.
const UNFAIR_FROM: f64 = 1.5;

/// Rule `too-short`.
pub(super) fn check_duration(case: &TrialCase<'_>) -> Checked {
    let (seconds, own_clock) = case.measured_s();
    if !seconds.is_finite() || seconds <= 0.0 {
        return Checked::Unknown;
    }
    let short = match own_clock {
        true => format!("only {seconds:.2} s were measured"),
        false => format!(
            "it took {seconds:.2} s, of which starting and watching the tool are about {:.0} %",
            (START_UP_S / seconds * 100.0).min(100.0)
        ),
    };
    let time = match seconds {
        s if s < LEAST_S => Checked::invalid(short),
        s if s < ENOUGH_S => Checked::suspect(short),
        _ => Checked::Fine,
    };
    let few = |count: f64| format!("only {count} requests were completed");
    let requests = match case.trial.measured.get(Metric::Requests) {
        Some(count) if count < LEAST_REQUESTS => Checked::invalid(few(count)),
        Some(count) if count < ENOUGH_REQUESTS => Checked::suspect(few(count)),
        _ => Checked::Fine,
    };
    // The graver of the two, and of equals the first.
    if requests.standing() > time.standing() { requests } else { time }
}

/// Rule `processes-unfair`. Processes that had equal work and ended apart left the others alone at
/// the end, and the rate of all is not that of so many at once. Of a tool that runs for a time all
/// run to the end, and the number is the bytes of the luckiest over those of the unluckiest: a rate
/// of so many processes, only shared unevenly.
pub(super) fn check_processes(case: &TrialCase<'_>) -> Checked {
    let setup = &case.workload.setup;
    if setup.processes < 2 {
        return Checked::Fine;
    }
    let processes = setup.processes;
    match case.get(Metric::SpreadOfProcesses) {
        None => Checked::Unknown,
        Some(spread) if spread < UNFAIR_FROM => Checked::Fine,
        Some(spread) if case.runs_for_a_time() => Checked::remark(format!(
            "all {processes} processes ran to the end, but one of them got {spread:.1} times as \
             much as another"
        ))
        .but_do("look at the fairness too where each process matters; the sum of all is right"),
        Some(spread) => Checked::suspect(format!(
            "the slowest of {processes} processes took {spread:.1} times as long as the fastest, so \
             at the end fewer ran than were asked for"
        )),
    }
}
