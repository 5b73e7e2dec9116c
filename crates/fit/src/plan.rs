//! The plan of a fit, told before the fit begins.

use std::time::Duration;

use crate::glance::Glance;
use crate::reading::{AT_DEPTH, DEPTHS, EACH, LENGTHS, RANDOM};
use crate::session::{Fault, LEAD, SMALL, Session};
use crate::{held_out, turning, writing};

/// Repetitions where there is time enough, and the least that tell an interval.
const USUAL: u64 = 15;
const FEWEST: u64 = 5;
/// The expected time of a write that rewrites a unit, in seconds: 263 ms of a stick (uFLIP, CIDR 2009).
const UNIT_S: f64 = 0.263;
/// The smallest device that can be measured at all.
const LEAST: u64 = 16 << 20;

/// The permissions of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// True if the content of the device may be destroyed.
    pub destroy: bool,
    /// The time after which the fit gives up.
    pub limit: Duration,
}

/// The plan of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Bytes that are read.
    pub reads: u64,
    /// Bytes that are written, at most; 0 without permission.
    pub writes: u64,
    /// The expected duration.
    pub expected: Duration,
    /// The time after which it is given up.
    pub limit: Duration,
    /// The number of repetitions of each experiment.
    pub repetitions: u64,
    /// The results of the first reads.
    pub glance: Glance,
}

impl Plan {
    /// As many repetitions as there is time for.
    pub(crate) fn new(
        session: &Session<'_>,
        glance: Glance,
        Permission { destroy: may_write, limit }: Permission,
    ) -> Result<Plan, Fault> {
        let with = |repetitions| {
            let (reads, writes, seconds) = cost(&glance, may_write, repetitions);
            let expected = Duration::from_secs_f64(seconds);
            Plan { reads, writes, expected, limit, repetitions, glance }
        };
        if may_write && !glance.turns && session.size < writing::LEAST {
            let what = "experiments that write";
            return Err(Fault::TooSmall { size: session.size, least: writing::LEAST, what });
        }
        // First answers are not all: half as much again has to fit as well.
        let fits = |plan: &Plan| plan.expected * 3 / 2 <= limit;
        (FEWEST..=USUAL).rev().map(with).find(fits).ok_or_else(|| {
            let needs = Some(with(FEWEST).expected * 3 / 2);
            Fault::Late { limit, needs, during: "the experiments" }
        })
    }
}

/// Refuses a device on which not even the first reads make sense.
pub(crate) fn large_enough(size: u64) -> Result<(), Fault> {
    if size < LEAST {
        return Err(Fault::TooSmall { size, least: LEAST, what: "a fit" });
    }
    Ok(())
}

/// Bytes that are read and written, and seconds.
fn cost(glance: &Glance, may_write: bool, repetitions: u64) -> (u64, u64, f64) {
    let continuing = LENGTHS.len() as u64 * (EACH + LEAD);
    let random = (2 * RANDOM + DEPTHS.len() * AT_DEPTH) as u64 + held_out::REQUESTS;
    let mut requests = repetitions * continuing + random;
    let mut reads = repetitions * (EACH + LEAD) * LENGTHS.iter().sum::<u64>() * SMALL
        + random * SMALL
        + held_out::BYTES;
    if glance.turns {
        requests += repetitions * turning::REQUESTS;
        reads += repetitions * turning::BYTES;
    }
    let mut seconds = (requests as f64 * glance.request_ns + reads as f64 * glance.byte_ns) / 1e9;
    let mut writes = 0;
    if may_write && glance.turns {
        writes = turning::WRITTEN;
        seconds += 64.0 * glance.request_ns / 1e9;
    } else if may_write {
        let (bytes, units) = writing::amount(repetitions);
        writes = bytes + held_out::BYTES;
        // Sticks write at half the rate of reading.
        seconds += writes as f64 * glance.byte_ns * 2.0 / 1e9 + units as f64 * UNIT_S;
    }
    (reads, writes, seconds)
}
