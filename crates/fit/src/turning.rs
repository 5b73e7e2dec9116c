//! The constants that only disks have: a revolution, a curve of seeks, zones, a write cache.
//!
//! A read elsewhere takes the time of the command, the seek and the transfer, plus a part of a revolution that
//! is uniformly distributed. So the shortest of many equally long jumps is the time without the rotation, plus
//! the expected minimum of as many parts, which is subtracted.

use std::f64::consts::TAU;

use crate::measured::{Request, Timing};
use crate::reading::Reading;
use crate::robust::{Estimate, Sum, median, parts, quantile, sorted};
use crate::session::{Fault, SMALL, Session, run_of};

/// Jumps, as shares of the disk, and how many of them for each repetition; beside the short ones.
const SHARES: [f64; 7] = [0.001, 0.01, 0.05, 0.15, 0.35, 0.6, 0.9];
/// The short jump: more than any track has, else the head waits for the place to pass.
const SHORT: u64 = 8 << 20;
/// Jumps of each share in a repetition.
const JUMPS: usize = 10;
/// Short ones in a repetition: the shortest seek is to be told from the rest of a revolution.
const SHORT_JUMPS: usize = 120;
/// The least disk: below, the short jump is not short.
pub(crate) const LEAST: u64 = 4 << 30;
/// Reads in each zone in a repetition, and their length.
const ZONES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
const ZONE_READ: u64 = 256 << 10;
/// Writes that fill a cache: their length, how many at a time, how many at most.
const CACHED: u64 = 64 << 10;
const AT_A_TIME: usize = 64;
const MOST_CACHED: usize = 4096;
/// The usual speeds of disks; a measured speed within the tolerance of one of them is replaced by it.
const SPEEDS: [f64; 8] = [3600.0, 4200.0, 5400.0, 5900.0, 7200.0, 10_000.0, 12_000.0, 15_000.0];

/// The number of requests of a whole repetition.
pub(crate) const REQUESTS: u64 = (SHORT_JUMPS + SHARES.len() * JUMPS + ZONES.len() * 4) as u64;
/// Bytes that are read in a repetition.
pub(crate) const BYTES: u64 = REQUESTS * SMALL + ZONES.len() as u64 * 4 * ZONE_READ;
/// Bytes that are written at most.
pub(crate) const WRITTEN: u64 = CACHED * MOST_CACHED as u64;

/// The least concentration of the angles at which reads of one place end, from 0 to 1, for these to be of one
/// revolution: normal errors of 9 % of a revolution have it.
const ALIGNED: f64 = 0.85;
/// The shortest revolution that disks have, in nanoseconds: that of 15,000 rpm.
const FASTEST_NS: f64 = 4e6;

/// The constants that only disks have.
pub(crate) struct Turning {
    pub(crate) rpm: Estimate,
    /// The reason why the revolution is uncertain.
    pub(crate) doubt: Option<String>,
    /// Seeks in nanoseconds: to the next track, the average, over all.
    pub(crate) seeks: [Estimate; 3],
    /// Bytes a second, at the beginning and at the end.
    pub(crate) rates: [Estimate; 2],
}

pub(crate) fn turning(
    session: &mut Session<'_>,
    reading: &Reading,
    repetitions: usize,
) -> Result<Turning, Fault> {
    let command = reading.command.value;
    let short = SHORT as f64 / session.size as f64;
    let mut groups = vec![jumps(session, short, SHORT_JUMPS * repetitions)?];
    for share in SHARES {
        groups.push(jumps(session, share, JUMPS * repetitions)?);
    }
    let (revolution, doubt) = revolution(session, &groups[0])?;
    let rates = zones(session, command, repetitions)?;

    // Each part of the jumps is a repetition of its own for the interval; all of them are the value.
    // Half of what is normal lies within 1.35 standard deviations.
    let error = reading.spread / 1.35;
    let curve = |part, of| curve(&groups, part, of, command, &rates, revolution.value, error);
    let whole = curve(0, 1);
    let thirds = [curve(0, 3), curve(1, 3), curve(2, 3)];
    let seeks = [0, 1, 2].map(|which| {
        let of_parts = thirds.iter().map(|third| third[which]);
        let (low, high) = of_parts.fold((whole[which], whole[which]), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        Estimate { value: whole[which], low, high }
    });
    Ok(Turning { rpm: revolution.map(|ns| 60e9 / ns), doubt, seeks, rates })
}

/// The place of a read on the disk, its jump as a share of the disk, and its time.
#[derive(Clone, Copy)]
struct Jump {
    at: f64,
    far: f64,
    took: f64,
}

/// `count` small reads, each about `share` of the disk from the one before.
fn jumps(session: &mut Session<'_>, share: f64, count: usize) -> Result<Vec<Jump>, Fault> {
    let size = session.size;
    let far = (((size as f64 * share) as u64).max(SHORT)) / SMALL * SMALL;
    let mut at = session.rng.below(((size - far) / SMALL).max(1)) * SMALL;
    let mut requests = Vec::new();
    for _ in 0..=count {
        requests.push(Request { write: false, offset: at, bytes: SMALL });
        // A little more, by any part of a track, so that what is waited is any part of a revolution.
        let aside = session.rng.below(SHORT / 2 / SMALL) * SMALL;
        let (up, down) = (at + far + aside, at.checked_sub(far + aside));
        let goes_up = up + SMALL <= size && (down.is_none() || session.rng.percent(50));
        at = match down {
            _ if goes_up => up,
            Some(down) => down,
            None => session.rng.below((size - far) / SMALL) * SMALL,
        };
    }
    let places: Vec<u64> = requests.iter().map(|request| request.offset).collect();
    let took = session.run("jumps", requests, 0)?;
    let whole = size as f64;
    let pairs = places.windows(2).zip(&took[1..]);
    Ok(pairs
        .map(|(pair, took)| Jump {
            at: pair[1] as f64 / whole,
            far: pair[1].abs_diff(pair[0] + SMALL) as f64 / whole,
            took: *took,
        })
        .collect())
}

/// Returns the time of a revolution in nanoseconds, and why it is uncertain.
///
/// Reads of one place end at one angle, so whole revolutions lie between their ends, however late the next read
/// is asked for. If a cache answers them, the revolution is how much short jumps differ. A revolution near a speed
/// that disks have is that speed, but not if the ends contradict it: processors that are busy make answers late.
fn revolution(
    session: &mut Session<'_>,
    short: &[Jump],
) -> Result<(Estimate, Option<String>), Fault> {
    let times = sorted(&short.iter().map(|jump| jump.took).collect::<Vec<_>>());
    let between = (quantile(&times, 0.95) - quantile(&times, 0.05)) / 0.9;
    let place = session.size / 3 / SMALL * SMALL;
    let again = vec![Request { write: false, offset: place, bytes: SMALL }; 41];
    let again = session.run_at("one place, read again and again", again, 1, 0)?;
    let took = again[1..].iter().map(|read| read.took_ns()).collect::<Vec<_>>();
    let none = || Fault::Nonsense("one place was not read".to_owned());
    let took = Estimate::of(&took).ok_or_else(none)?;
    let near = |found: Estimate, tolerance: f64| {
        let off = |speed: &f64| (speed / found.value - 1.0).abs();
        let speeds = SPEEDS.map(|rpm| 60e9 / rpm);
        let nearest = speeds.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        let value = nearest.filter(|speed| off(speed) < tolerance).unwrap_or(found.value);
        Estimate { value, low: found.low.min(value), high: found.high.max(value) }
    };
    let jumps = Estimate { value: between, low: 0.95 * between, high: 1.05 * between };
    if took.value < 0.9 * FASTEST_NS {
        return Ok((near(jumps, 0.05), None));
    }
    let (period, concentration) = period(&again[1..], took);
    if concentration >= ALIGNED && took.value < 1.15 * between {
        return Ok((near(Estimate { value: period, ..took }, 0.015), None));
    }
    // Answers that are late only make a revolution look longer.
    let found = Estimate { low: FASTEST_NS, high: took.high.max(jumps.high), ..took };
    let doubt = format!(
        "reads of one place took {:.2} ms and short jumps differ by {:.2} ms, but the ends of these reads \
         are no whole revolutions apart: rpm is uncertain, so measure again when the machine is not busy",
        took.value / 1e6,
        between / 1e6
    );
    Ok((found, Some(doubt)))
}

/// Returns the period near `took` at which the ends of reads agree best, in nanoseconds, and how well: the
/// length of the mean of their angles as unit vectors, 1 if all ends are whole periods apart.
fn period(reads: &[Timing], took: Estimate) -> (f64, f64) {
    const STEPS: u32 = 400;
    let (low, high) = (0.97 * took.low, 1.03 * took.high);
    let first = reads.first().map_or(0, |read| read.end_ns);
    let concentration = |period: f64| {
        let angles = reads.iter().map(|read| (read.end_ns - first) as f64 / period * TAU);
        let (x, y) = angles.fold((0.0, 0.0), |(x, y), angle| (x + angle.cos(), y + angle.sin()));
        x.hypot(y) / reads.len() as f64
    };
    let periods = (0..=STEPS).map(|step| low + (high - low) * f64::from(step) / f64::from(STEPS));
    let all = periods.map(|period| (period, concentration(period)));
    all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((took.value, 0.0))
}

/// Rates at the beginning and at the end, as lines through those of the zones.
fn zones(
    session: &mut Session<'_>,
    command: f64,
    repetitions: usize,
) -> Result<[Estimate; 2], Fault> {
    let mut ends: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        let mut sums = Vec::new();
        for zone in ZONES {
            let room = session.size - 4 * ZONE_READ - (64 << 20);
            let aside = session.rng.below((64 << 20) / SMALL) * SMALL;
            let from = ((room as f64 * zone) as u64) / SMALL * SMALL + aside;
            let took = session.run("zones", run_of(false, from, ZONE_READ, 4), 0)?;
            let share = from as f64 / session.size as f64;
            let rate = ZONE_READ as f64 / (median(&took[1..]) - command).max(1.0) * 1e9;
            sums.push(Sum { of: [1.0 - share, share], took: rate });
        }
        let found = parts(&sums);
        ends.iter_mut().zip(found).for_each(|(end, rate)| end.push(rate));
    }
    let none = || Fault::Nonsense("no zone was read".to_owned());
    let [outer, inner] = ends;
    Ok([Estimate::of(&outer).ok_or_else(none)?, Estimate::of(&inner).ok_or_else(none)?])
}

/// The seeks of a track, the average and the whole way, from one of `of` parts of each group.
fn curve(
    groups: &[Vec<Jump>],
    part: usize,
    of: usize,
    command: f64,
    rates: &[Estimate; 2],
    revolution: f64,
    error: f64,
) -> [f64; 3] {
    let mut sums = Vec::new();
    let fewest = groups.iter().map(Vec::len).min().unwrap_or(1).max(1);
    for group in groups {
        let mine = || group.iter().skip(part).step_by(of);
        let rate = |at: f64| rates[0].value + (rates[1].value - rates[0].value) * at;
        let seeks = mine().map(|jump| jump.took - command - SMALL as f64 / rate(jump.at) * 1e9);
        let seeks = sorted(&seeks.collect::<Vec<_>>());
        let count = seeks.len() as f64;
        // As many as times are off by here may be among the shortest by error, and are passed over; of
        // uniform parts the nth is n of count + 1.
        let doubtful = count * error * (seeks[0] + command) / revolution;
        let nth = doubtful.min(count / 50.0) as usize;
        let shortest = seeks[nth] - revolution * (nth + 1) as f64 / (count + 1.0);
        let far = mine().map(|jump| jump.far).sum::<f64>() / count;
        let sum = Sum { of: [1.0, far.sqrt(), far], took: shortest.max(1.0) };
        // The shortest of more is nearer to what there is.
        sums.extend(std::iter::repeat_n(sum, group.len() / fewest));
    }
    let [track, root, linear] = parts(&sums);
    // Of uniform distances: E √x = 8/15, E x = 1/3. A little within, so that rounding leaves a curve.
    let way = root + linear;
    let average = root * 8.0 / 15.0 + linear / 3.0;
    let average = average.clamp(way * 0.335, way * 0.532);
    [track.max(1000.0), track.max(1000.0) + average, track.max(1000.0) + way]
}

/// The bytes that the write cache holds, 0 for none; `None` if all written bytes fitted.
pub(crate) fn write_cache(
    session: &mut Session<'_>,
    command: f64,
) -> Result<Option<Estimate>, Fault> {
    let mut times: Vec<f64> = Vec::new();
    let is_slow = |took: &f64| *took > 5.0 * command + 1e6;
    while times.len() < MOST_CACHED {
        let mut requests = session.anywhere(CACHED, AT_A_TIME);
        requests.iter_mut().for_each(|request| request.write = true);
        times.extend(session.run("writes into the cache", requests, 0)?);
        // One that is slow is a hiccup; once it is full all are.
        if let Some(full) = times.windows(4).position(|next| next.iter().all(is_slow)) {
            let before = times[..full].iter().sum::<f64>();
            let drained = before / median(&times[full..]);
            let held = (full as f64 - drained).max(0.0);
            let bytes = |writes: f64| (writes * CACHED as f64).max(0.0);
            // What comes behind would wait for what is in the cache.
            let rest_ns = (2.0 * held * median(&times[full..])) as u64;
            let read = session.anywhere(SMALL, 1);
            session.run("writes into the cache", read, rest_ns)?;
            let value = if full < 2 { 0.0 } else { bytes(held) };
            return Ok(Some(Estimate { value, low: bytes(held - 1.0), high: bytes(full as f64) }));
        }
    }
    Ok(None)
}
