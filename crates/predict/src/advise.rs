//! Which layout of given members suits a workload.
//!
//! ```text
//!  members ──arrangements──▶ level × chunk × count × order ──predict──▶ ranked by what is needed
//! ```
//!
//! Every candidate is carried out on a machine of its own; none is left out because of a rule of thumb.
//! What was measured counts instead of what was predicted, where there is such a thing. Deliberately absent:
//! measuring, and devices: a member here is a profile. The order is [`rank()`]'s.

mod rank;

use braid_array::GeometryError;
use braid_level::Level;
use braid_model::{Host, Kind};

pub use self::rank::{Need, rank, twin};
pub use crate::array::Offer;
use crate::array::{Array, usual_shape};
use crate::load::Outcome;
use crate::machine::Machine;
use crate::off::off_by_kinds;
use crate::tool::Run;
use crate::workload::{Workload, window};

/// A layout and what is predicted of it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The level; `None` for one member alone.
    pub level: Option<Level>,
    /// Bytes of a chunk, for levels that have one.
    pub chunk: Option<u64>,
    /// Indices of the offers, in order.
    pub members: Vec<usize>,
    /// Bytes of data.
    pub capacity: u64,
    /// Members that may be lost, whichever they are.
    pub losses: usize,
    /// The price of all its members, if the caller gives it: [`predict`] knows no prices.
    pub price: Option<f64>,
    /// The read-ahead for which long reads through the page cache were predicted, in bytes.
    pub read_ahead: u64,
    /// The predicted outcome of the workload.
    pub outcome: Outcome,
    /// The measured figures of the layout, if there are any.
    pub measured: Option<Measured>,
    /// Bytes programmed for each written byte, if members wear.
    pub amplification: Option<f64>,
    /// Bytes that can be written until the first member is worn out, if members wear.
    pub life: Option<f64>,
    /// The limit of its speed.
    pub limit: Limit,
    /// The error of predictions for its kinds of members, as |ln(model / real)| ([`off`](crate::off)).
    pub error: f64,
}

/// Measured figures of a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Bytes per second: the median of the repetitions.
    pub rate: f64,
    /// The lowest and the highest repetition.
    pub range: (f64, f64),
    /// The greatest time of the fastest 99 of 100 requests, in nanoseconds, if it is known.
    pub latency_ns: Option<f64>,
    /// The predicted bytes per second of the measured part of the layout.
    pub expected: f64,
}

impl Candidate {
    /// True if it was measured, and differs from its prediction by more than the usual error for its kinds of
    /// members.
    pub fn differs(&self) -> bool {
        let apart = |one: &Measured| (one.rate.max(1.0) / one.expected.max(1.0)).ln().abs();
        self.measured.as_ref().is_some_and(|one| apart(one) > self.error)
    }

    /// From where to where a predicted rate may lie, in bytes per second.
    pub fn interval(&self, rate: f64) -> (f64, f64) {
        (rate * (-self.error).exp(), rate * self.error.exp())
    }

    /// The layout.
    pub fn arrangement(&self) -> Arrangement {
        Arrangement { level: self.level, chunk: self.chunk, members: self.members.clone() }
    }

    /// Bytes per second, as measured, or else as predicted.
    pub fn rate(&self) -> f64 {
        self.measured.map_or_else(|| self.outcome.rate(), |measured| measured.rate)
    }

    /// The greatest time of the fastest 99 of 100 requests, in nanoseconds, measured or else predicted. Through
    /// the page cache no client waits for a request.
    pub fn latency_ns(&self) -> Option<f64> {
        let measured = self.measured.and_then(|measured| measured.latency_ns);
        measured.or_else(|| self.predicted_latency_ns())
    }

    /// The same as predicted.
    pub fn predicted_latency_ns(&self) -> Option<f64> {
        let has = !self.outcome.latencies_ns.is_empty();
        has.then(|| self.outcome.percentile_ns(99.0) as f64)
    }
}

/// The limit of a layout's speed.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A bus moves bytes nearly all the time.
    Bus(String),
    /// Writes below the allocation unit, which the members rewrite as a whole.
    Rewrites {
        /// The allocation unit, in bytes.
        unit: u64,
        /// Bytes programmed for each byte written.
        amplification: f64,
    },
    /// Heads of disks seek, or wait for their place to come round, for this share of the time.
    Heads(f64),
    /// Members are at work nearly all the time.
    Members,
    /// Members wait: for each other's bytes, or because too little is asked at once.
    Waiting(f64),
}

/// A share of the time from which on something is the limit.
const NEARLY: f64 = 0.9;

/// A share of the time from which on heads on their way are the limit.
const HALF: f64 = 0.5;

/// Bytes programmed for each byte written, from which on rewriting is the limit.
const MUCH: f64 = 1.5;

/// Chunks that are tried, in bytes.
pub const CHUNKS: &[u64] =
    &[16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];

/// A way to join members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// The level; `None` for one member alone.
    pub level: Option<Level>,
    /// Bytes of a chunk, for levels that have one.
    pub chunk: Option<u64>,
    /// Indices of the offers, in order.
    pub members: Vec<usize>,
}

impl Arrangement {
    fn alone(member: usize) -> Arrangement {
        Arrangement { level: None, chunk: None, members: vec![member] }
    }
}

/// All sensible ways to join members.
pub fn arrangements(offers: &[Offer], chunks: &[u64]) -> Vec<Arrangement> {
    let mut all = vec![Arrangement::alone(0)];
    // Members alone, one of each kind.
    for (index, offer) in offers.iter().enumerate().skip(1) {
        if !offers[..index].iter().any(|earlier| earlier.name == offer.name) {
            all.push(Arrangement::alone(index));
        }
    }
    for count in 2..=offers.len() {
        let mut orders = vec![(0..count).collect::<Vec<_>>()];
        for order in [interleaved(offers, count), fastest(offers, count), largest(offers, count)] {
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        for order in orders {
            let mut push = |level: Level, chunk| {
                let members = order.clone();
                all.push(Arrangement { level: Some(level), chunk, members });
            };
            push(Level::Linear, None);
            push(Level::Raid1, None);
            for level in [Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6] {
                if count < level.least_members() || (level == Level::Raid5 && count < 3) {
                    continue;
                }
                chunks.iter().for_each(|chunk| push(level, Some(*chunk)));
            }
        }
    }
    all
}

/// So many of the fastest offers, in their order where they are about alike.
fn fastest(offers: &[Offer], count: usize) -> Vec<usize> {
    let error = off_by_kinds(offers.iter().map(|offer| &offer.profile.kind)).log;
    let class = |index: &usize| {
        let (read, write) = offers[*index].profile.long_rates().unwrap_or_default();
        -((read + write).max(1.0).ln() / error).round()
    };
    let mut order: Vec<usize> = (0..offers.len()).collect();
    order.sort_by(|one, other| class(one).total_cmp(&class(other)));
    order.truncate(count);
    order
}

/// So many of the largest offers, in their order where they are of one size.
fn largest(offers: &[Offer], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..offers.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(offers[*index].size));
    order.truncate(count);
    order
}

/// So many of the offers that buses take turns.
fn interleaved(offers: &[Offer], count: usize) -> Vec<usize> {
    let mut buses: Vec<Option<&str>> = Vec::new();
    let mut queues: Vec<Vec<usize>> = Vec::new();
    for (index, offer) in offers.iter().enumerate() {
        let bus = offer.bus.as_deref();
        match buses.iter().position(|known| *known == bus) {
            Some(place) => queues[place].push(index),
            None => {
                buses.push(bus);
                queues.push(vec![index]);
            }
        }
    }
    let longest = queues.iter().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..longest).flat_map(|turn| queues.iter().filter_map(move |queue| queue.get(turn)));
    turns.copied().take(count).collect()
}

/// The outcome of a workload on a layout.
///
/// # Errors
/// The members cannot be joined in this way.
pub fn predict(
    offers: &[Offer],
    arrangement: &Arrangement,
    workload: &Workload,
    host: &Host,
) -> Result<Candidate, GeometryError> {
    predict_within(u64::MAX, offers, arrangement, workload, host)
}

/// The same for a workload that keeps to the first `part` bytes of the layout.
///
/// # Errors
/// As [`predict`].
pub fn predict_within(
    part: u64,
    offers: &[Offer],
    arrangement: &Arrangement,
    workload: &Workload,
    host: &Host,
) -> Result<Candidate, GeometryError> {
    let Arrangement { level, chunk, members } = arrangement;
    let chosen: Vec<&Offer> = members.iter().map(|index| &offers[*index]).collect();
    let shape = level.map(|level| usual_shape(level, chunk.unwrap_or(0)));
    let Array { mut machine, size: capacity, losses, under_way, buses } =
        Array::of(&chosen, shape, GRID)?;
    let outcome = workload.run(&mut machine, host, capacity.min(part), under_way);
    let wear: Vec<_> = machine.wear().collect();
    let written: u64 = wear.iter().flatten().map(|wear| wear.written).sum();
    let programmed: u64 = wear.iter().flatten().map(|wear| wear.programmed).sum();
    let amplification = (written > 0).then(|| programmed as f64 / written as f64);
    let life = chosen
        .iter()
        .zip(&wear)
        .filter_map(|(member, wear)| life(member, (*wear)?, outcome.written));
    let life = life.reduce(f64::min);
    let limit = limit(&machine, &chosen, &buses, amplification);
    let error = off_by_kinds(chosen.iter().map(|member| &member.profile.kind)).log;
    let members = members.clone();
    Ok(Candidate {
        level: *level,
        chunk: *chunk,
        members,
        capacity,
        losses,
        price: None,
        read_ahead: window(&machine, host),
        outcome,
        measured: None,
        amplification,
        life,
        limit,
        error,
    })
}

/// Bytes per second of one long read through the page cache, with each of these read-aheads in bytes.
///
/// # Errors
/// The members cannot be joined so.
pub fn by_read_ahead(
    offers: &[Offer],
    arrangement: &Arrangement,
    host: &Host,
    windows: &[u64],
) -> Result<Vec<(u64, f64)>, GeometryError> {
    let Arrangement { level, chunk, members } = arrangement;
    let chosen: Vec<&Offer> = members.iter().map(|index| &offers[*index]).collect();
    let shape = level.map(|level| usual_shape(level, chunk.unwrap_or(0)));
    let with = |window: &u64| {
        let mut array = Array::of(&chosen, shape, GRID)?;
        let (bytes, request) = (array.size, 1 << 20);
        let read = Run::Read { bytes, request, window: Some(*window) };
        Ok((*window, read.on(&mut array, host).rate()))
    };
    windows.iter().map(with).collect()
}

/// The limit of a machine's speed.
fn limit(
    machine: &Machine,
    members: &[&Offer],
    buses: &[Option<String>],
    amplification: Option<f64>,
) -> Limit {
    let busiest = machine.bus_shares().enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
    let count = members.len() as f64;
    let (at_work, moving) = machine.member_shares().fold((0.0, 0.0), |(at_work, moving), one| {
        (at_work + one.0 / count, moving + one.1 / count)
    });
    let unit = members.iter().find_map(|member| match &member.profile.kind {
        Kind::Flash(flash) => Some(flash.unit_bytes),
        _ => None,
    });
    match (busiest, amplification, unit) {
        (Some((bus, share)), _, _) if share > NEARLY => {
            Limit::Bus(buses[bus].clone().unwrap_or_else(|| "its own bus".to_owned()))
        }
        (_, Some(amplification), Some(unit)) if amplification > MUCH => {
            Limit::Rewrites { unit, amplification }
        }
        _ if moving > HALF => Limit::Heads(moving),
        _ if at_work > NEARLY => Limit::Members,
        _ => Limit::Waiting(at_work),
    }
}

/// Sizes are rounded to this, so that sticks of almost one size are of one size.
const GRID: u64 = 1 << 20;

/// Bytes of data that can be written until a member is worn: it erases units as long as each block of it may
/// be erased.
fn life(member: &Offer, wear: braid_model::Wear, written: u64) -> Option<f64> {
    let Kind::Flash(flash) = &member.profile.kind else { return None };
    let erasable = flash.endurance_cycles * member.size as f64;
    (wear.erased > 0 && written > 0).then(|| erasable / wear.erased as f64 * written as f64)
}
