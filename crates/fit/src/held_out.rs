//! Experiments that no constant is estimated from, and what a model says of all experiments.

use braid_model::{BusProfile, Profile};

use crate::measured::{Measured, Modelled, Timing};
use crate::robust::{quantile, sorted};
use crate::session::{Fault, Ran, SMALL, Session, run_of};

/// Lengths of continuing requests, none of which the fit uses.
const LENGTHS: [u64; 3] = [28 << 10, 112 << 10, 224 << 10];
const CONTINUING: u64 = 12;
const RANDOM: usize = 61;
const LONG: u64 = 64 << 10;
/// Random writes, and their length.
const WRITES: usize = 25;
const WRITE: u64 = 256 << 10;

/// Requests that read.
pub(crate) const REQUESTS: u64 = CONTINUING * LENGTHS.len() as u64 + 3 * RANDOM as u64;
/// Bytes that they read at most, and that are written at most with permission.
pub(crate) const BYTES: u64 = REQUESTS * WRITE;

/// Runs them.
pub(crate) fn run(session: &mut Session<'_>, writes: bool) -> Result<(), Fault> {
    let during = "experiments held out";
    session.held_out = true;
    for bytes in LENGTHS {
        session.continuing(during, bytes, CONTINUING)?;
    }
    for bytes in [SMALL, LONG] {
        let requests = session.anywhere(bytes, RANDOM);
        session.run(during, requests, 0)?;
    }
    let mut near = session.anywhere(SMALL, RANDOM);
    let part = session.size / 100;
    let from = session.size / 2 / SMALL * SMALL;
    near.iter_mut().for_each(|read| read.offset = from + read.offset % part / SMALL * SMALL);
    session.run(during, near, 0)?;
    if writes {
        let mut at = session.size / 4 / LONG * LONG;
        for bytes in LENGTHS {
            session.run(during, run_of(true, at, bytes, CONTINUING), 0)?;
            at += bytes * CONTINUING;
        }
        let mut random = session.anywhere(WRITE, WRITES);
        for write in &mut random {
            write.write = true;
            write.offset = write.offset / WRITE * WRITE;
        }
        session.run(during, random, 0)?;
    }
    session.held_out = false;
    Ok(())
}

/// |ln(model / measured)|: of medians of batches; of held-out samples also of the 10th and the 90th percentile.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Differences {
    pub(crate) used: Vec<f64>,
    pub(crate) held_out: Vec<f64>,
}

/// By how much the model is off, as the sum of |ln(model / measured)|, in what batches with several requests at once
/// take.
pub(crate) fn at_depths(profile: &Profile, size: u64, record: &[Ran]) -> Result<f64, Fault> {
    let mut device = modelled(profile, size)?;
    let mut sum = 0.0;
    for ran in record.iter().filter(|ran| ran.batch.depth > 1) {
        let model = device.run(&ran.batch).map_err(Fault::Device)?;
        sum += (whole_ns(&model) / whole_ns(&ran.timings)).ln().abs();
    }
    Ok(sum)
}

/// From the first request to the last answer, in nanoseconds; 1 at least.
pub(crate) fn whole_ns(timings: &[Timing]) -> f64 {
    let begin = timings.iter().map(|timing| timing.start_ns).min().unwrap_or(0);
    let end = timings.iter().map(|timing| timing.end_ns).max().unwrap_or(begin);
    end.saturating_sub(begin).max(1) as f64
}

fn modelled(profile: &Profile, size: u64) -> Result<Modelled, Fault> {
    let device = Modelled::new(profile, BusProfile::default(), size);
    device.ok_or_else(|| Fault::Nonsense("it is no device".to_owned()))
}

/// Runs all that the device did on a model of it. Batches with several requests at once are left out: of the models
/// only a disk's has several at once, and its depth comes from them.
pub(crate) fn replay(profile: &Profile, size: u64, record: &[Ran]) -> Result<Differences, Fault> {
    let mut device = modelled(profile, size)?;
    let mut differences = Differences::default();
    for ran in record {
        let model = device.run(&ran.batch).map_err(Fault::Device)?;
        if ran.batch.depth > 1 {
            continue;
        }
        // The first of several is asked for wherever the one before left the device.
        let skipped = usize::from(model.len() > 1);
        let times = |timings: &[Timing]| {
            sorted(&timings[skipped..].iter().map(|one| one.took_ns()).collect::<Vec<_>>())
        };
        let (model, measured) = (times(&model), times(&ran.timings));
        let off =
            |q: f64| (quantile(&model, q).max(1.0) / quantile(&measured, q).max(1.0)).ln().abs();
        if ran.held_out {
            differences.held_out.extend([0.1, 0.5, 0.9].map(off));
        } else {
            differences.used.push(off(0.5));
        }
    }
    Ok(differences)
}
