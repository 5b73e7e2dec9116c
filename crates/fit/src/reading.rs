//! The constants that reads determine for any device: commands, rate, the largest command, jumps, depth.

use crate::held_out::whole_ns;
use crate::robust::{Estimate, Sum, median, misfit, parts, quantile, sorted};
use crate::session::{Fault, SMALL, Session};

/// Lengths of continuing reads, in blocks of 4 KiB.
pub(crate) const LENGTHS: [u64; 20] =
    [1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256];
/// Continuing reads of each length in a repetition, beside those that lead.
pub(crate) const EACH: u64 = 2;
/// Random reads of each way.
pub(crate) const RANDOM: usize = 121;
/// The idle time after which a device has settled.
const REST_NS: u64 = 20_000_000;
/// The tested depths.
pub(crate) const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Random reads at each depth.
pub(crate) const AT_DEPTH: usize = 256;

/// The results of the reads.
pub(crate) struct Reading {
    /// The cost of a command before its first byte, in nanoseconds.
    pub(crate) command: Estimate,
    /// Nanoseconds a byte.
    pub(crate) byte: Estimate,
    /// The same without commands: for a model that has only a rate.
    pub(crate) byte_alone: Estimate,
    /// Most bytes of a command; `None` if no length showed a second one.
    pub(crate) transfer_max: Option<u64>,
    /// The time by which a random read exceeds a continuing one, in nanoseconds.
    pub(crate) jump: Estimate,
    /// The extra time of a read that follows at once, in nanoseconds.
    pub(crate) settle: Estimate,
    /// Reads a second at each of [`DEPTHS`].
    pub(crate) at_depth: Vec<f64>,
    /// The spread of equal reads: half of their times lie within this share of their median.
    pub(crate) spread: f64,
}

/// A continuing read of `bytes` with commands of at most `most`, as a sum of commands and bytes.
fn as_sum(bytes: u64, most: u64, took: f64) -> Sum<2> {
    Sum { of: [bytes.div_ceil(most) as f64, bytes as f64], took }
}

pub(crate) fn read(session: &mut Session<'_>, repetitions: usize) -> Result<Reading, Fault> {
    let during = "continuing reads";
    let mut runs: Vec<Vec<(u64, f64)>> = Vec::new();
    for _ in 0..repetitions {
        let mut run = Vec::new();
        for length in LENGTHS.map(|blocks| blocks * SMALL) {
            run.push((length, median(&session.continuing(during, length, EACH)?)));
        }
        runs.push(run);
    }
    let of_length = |index: usize| -> Vec<f64> { runs.iter().map(|run| run[index].1).collect() };
    let medians: Vec<(u64, f64)> = (LENGTHS.iter().enumerate())
        .map(|(index, blocks)| (blocks * SMALL, median(&of_length(index))))
        .collect();
    let first = sorted(&of_length(0));
    let spread = (quantile(&first, 0.75) - quantile(&first, 0.25)) / medians[0].1;
    let transfer_max = transfer_max(session, &medians, spread)?;
    let most = transfer_max.unwrap_or(u64::MAX);
    let sums = |run: &[(u64, f64)], most| -> Vec<Sum<2>> {
        run.iter().map(|(bytes, took)| as_sum(*bytes, most, *took)).collect()
    };
    let found: Vec<[f64; 2]> = runs.iter().map(|run| parts(&sums(run, most))).collect();
    let alone: Vec<f64> = runs.iter().flatten().map(|(bytes, took)| took / *bytes as f64).collect();
    let estimate = |values: Vec<f64>| {
        Estimate::of(&values).ok_or(Fault::Nonsense("no repetition was made".to_owned()))
    };
    let continued = medians[0].1;

    let during = "random reads";
    let rested = session.anywhere(SMALL, RANDOM);
    let rested = session.run(during, rested, REST_NS)?;
    let at_once = session.anywhere(SMALL, RANDOM);
    let at_once = session.run(during, at_once, 0)?;
    let beyond = |times: &[f64], base: f64| times.iter().map(|took| took - base).collect();
    // A processor that has rested, too, answers later: what no device does is no cost of a jump.
    let quicker = if median(&at_once) < median(&rested) { &at_once } else { &rested };
    let jump = estimate(beyond(quicker, continued))?;
    let settle = estimate(beyond(&at_once[1..], median(&rested)))?;

    let mut at_depth = Vec::new();
    for depth in DEPTHS {
        let requests = session.anywhere(SMALL, AT_DEPTH);
        let timings = session.run_at("depths", requests, depth, 0)?;
        at_depth.push(AT_DEPTH as f64 / (whole_ns(&timings) / 1e9));
    }
    Ok(Reading {
        command: estimate(found.iter().map(|found| found[0]).collect())?,
        byte: estimate(found.iter().map(|found| found[1]).collect())?,
        byte_alone: estimate(alone)?,
        transfer_max,
        jump: not_negative(jump),
        settle: not_negative(settle),
        at_depth,
        spread,
    })
}

/// Zero where the interval holds zero.
fn not_negative(estimate: Estimate) -> Estimate {
    let value = if estimate.low <= 0.0 { 0.0 } else { estimate.value };
    Estimate { value, low: estimate.low.max(0.0), high: estimate.high.max(0.0) }
}

/// The largest command: the length at which times step up by what a command costs.
///
/// All lengths together say which step explains them best; between the two lengths that lie beside that step
/// it is then looked for by halves, down to 4 KiB. Steps that explain little, or are within what equal reads differ by, are none.
fn transfer_max(
    session: &mut Session<'_>,
    medians: &[(u64, f64)],
    spread: f64,
) -> Result<Option<u64>, Fault> {
    let judge = |most: u64| {
        let sums: Vec<Sum<2>> =
            medians.iter().map(|(bytes, took)| as_sum(*bytes, most, *took)).collect();
        let found = parts(&sums);
        (misfit(&sums, &found), most, found)
    };
    let without = judge(u64::MAX).0;
    let longest = LENGTHS[LENGTHS.len() - 1];
    let steps = (4..longest).map(|blocks| judge(blocks * SMALL));
    let Some(best) = steps.min_by(|a, b| a.0.total_cmp(&b.0)) else { return Ok(None) };
    let (off, most, [command, byte]) = best;
    if off > 0.6 * without || command < (2.0 * spread).max(0.02) * byte * most as f64 {
        return Ok(None);
    }
    let mut below = LENGTHS.iter().filter(|blocks| **blocks * SMALL <= most).max().copied();
    let mut above = LENGTHS.iter().filter(|blocks| **blocks * SMALL > most).min().copied();
    while let (Some(low), Some(high)) = (below, above)
        && high - low > 1
    {
        let middle = (low + high) / 2;
        let took = median(&session.continuing("the largest command", middle * SMALL, 9)?);
        if took - byte * (middle * SMALL) as f64 > 1.5 * command {
            above = Some(middle);
        } else {
            below = Some(middle);
        }
    }
    Ok(below.map(|blocks| blocks * SMALL))
}
