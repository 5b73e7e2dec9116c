//! A first look at a device, from which the plan is made.

use crate::robust::{median, quantile, sorted};
use crate::session::{Fault, SMALL, Session};
use crate::turning;

/// The results of the first reads, before there is a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glance {
    /// A random read of 4 KiB, in nanoseconds.
    pub request_ns: f64,
    /// A byte of long reads, in nanoseconds.
    pub byte_ns: f64,
    /// True if random reads differ as on a rotating disk, and the device is as large as disks are.
    pub turns: bool,
}

pub(crate) fn glance(session: &mut Session<'_>) -> Result<Glance, Fault> {
    let requests = session.anywhere(SMALL, 32);
    let times = sorted(&session.run("the first reads", requests, 0)?);
    let long = session.continuing("the first reads", 1 << 20, 3)?;
    let request_ns = quantile(&times, 0.5);
    let spread = quantile(&times, 0.9) - quantile(&times, 0.1);
    // The slowest disks turn in 17 ms, the fastest in 4; memory that hiccups does so by less.
    let turns = session.size >= turning::LEAST
        && request_ns > 2e6
        && spread > 2e6
        && spread > 0.2 * request_ns;
    Ok(Glance { request_ns, byte_ns: median(&long) / f64::from(1 << 20), turns })
}
