//! The order of layouts by what is needed, and the one rule about redundancy.
//!
//! Invariant: unless throughput itself is the need, the first layout survives a loss if any that does is as good, which
//! is: not worse by more than the interval that is printed of the other's figure.

use std::cmp::Ordering;

use super::Candidate;

/// The figure that matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// Bytes per second; redundancy is preferred if it costs less speed than the error of predictions.
    Balanced,
    /// Room for data, with redundancy if there are members enough.
    Capacity,
    /// One member at least may be lost.
    Redundancy,
    /// Bytes per second, and nothing else.
    Throughput,
    /// The time of a request.
    Latency,
    /// Bytes per second for the money, among layouts that reach `least` bytes per second.
    Price {
        /// The speed that suffices; 0 if every speed does.
        least: f64,
    },
}

/// Figures within one in a hundred are equal.
const EQUAL: f64 = 0.01;

impl Candidate {
    /// The price of its members; without prices each costs one.
    fn cost(&self) -> f64 {
        self.price.unwrap_or(self.members.len() as f64).max(f64::MIN_POSITIVE)
    }

    /// The figure for a need, where more is better, as measured or as predicted.
    fn figure(&self, need: Need, by_prediction: bool) -> f64 {
        let measured = self.measured.filter(|_| !by_prediction);
        let rate = measured.map_or_else(|| self.outcome.rate(), |measured| measured.rate);
        let predicted = self.predicted_latency_ns();
        let latency_ns = measured.and_then(|measured| measured.latency_ns).or(predicted);
        match (need, latency_ns) {
            (Need::Latency, Some(ns)) => 1e9 / ns.max(1.0),
            (Need::Price { .. }, _) => rate / self.cost(),
            _ => rate,
        }
    }

    /// The lower end of the interval that is printed of its figure, as a part of it.
    fn low(&self, need: Need, by_prediction: bool) -> f64 {
        let predicted = (-self.error).exp();
        match self.measured.filter(|_| !by_prediction) {
            // Of times that were measured, no interval is known.
            Some(one) if need != Need::Latency => (one.range.0 / one.rate).min(1.0 - EQUAL),
            _ => predicted,
        }
    }

    /// True if this layout does as well as the other, within one per cent, with as much room and redundancy and
    /// no more members or money; both are measured, or neither is.
    pub fn has_all_of(&self, other: &Candidate) -> bool {
        let is_as_much = |one: f64, other: f64| one >= other * (1.0 - EQUAL);
        let is_as_soon = match (self.latency_ns(), other.latency_ns()) {
            (Some(one), Some(other)) => is_as_much(other, one),
            _ => true,
        };
        self.measured.is_some() == other.measured.is_some()
            && is_as_much(self.rate(), other.rate())
            && is_as_much(self.capacity as f64, other.capacity as f64)
            && is_as_soon
            && self.losses >= other.losses
            && self.members.len() <= other.members.len()
            && self.cost() <= other.cost()
    }

    fn suffices(&self, need: Need) -> bool {
        !matches!(need, Need::Price { least } if self.rate() < least)
    }
}

/// The best first: those that were measured before the others, since both are wrong in ways of their own. Of
/// equals, within one in a hundred, that whose requests take less, by more than models are off: a trace is done in
/// its time by all that can. Then that with fewer members, then that which may lose more of them, then that with more
/// room. Then the first that survives a loss comes before all, if it is as good as the best, which does not, and
/// throughput is not all that counts.
pub fn rank(candidates: &mut Vec<Candidate>, need: Need) {
    if need == Need::Redundancy {
        candidates.retain(|one| one.losses > 0);
    }
    let best = |measured: bool, need: Need| {
        let alike = candidates.iter().filter(|one| one.measured.is_some() == measured);
        alike.map(|one| one.figure(need, false)).fold(0.0, f64::max)
    };
    let best = |need: Need| [best(false, need), best(true, need)];
    let (fastest, worth) = (best(Need::Throughput), best(need));
    let roomiest = candidates.iter().map(|one| one.capacity).max().unwrap_or(0).max(1) as f64;
    let key = |one: &Candidate| -> [f64; 6] {
        let index = usize::from(one.measured.is_some());
        let part = |need: Need, best: [f64; 2]| {
            -(one.figure(need, false) / best[index].max(f64::MIN_POSITIVE) / EQUAL).round()
        };
        let flag = |is_so: bool| f64::from(u8::from(is_so));
        let (unmeasured, speed) = (flag(one.measured.is_none()), part(Need::Throughput, fastest));
        let (count, losses) = (one.members.len() as f64, -(one.losses as f64));
        let room = -(one.capacity as f64 / roomiest / EQUAL).round();
        let class = one.latency_ns().map_or(0.0, |ns| (ns.max(1.0).ln() / one.error).round());
        match need {
            Need::Throughput | Need::Balanced | Need::Redundancy => {
                [unmeasured, speed, class, count, losses, room]
            }
            Need::Latency => [unmeasured, -one.figure(need, false), speed, count, losses, room],
            // Room is known without a measurement.
            Need::Capacity => [flag(one.losses == 0), room, unmeasured, speed, count, losses],
            Need::Price { .. } => {
                let insufficient = flag(!one.suffices(need));
                [unmeasured, insufficient, part(need, worth), one.cost(), losses, room]
            }
        }
    };
    let mut keyed: Vec<_> = candidates.drain(..).map(|one| (key(&one), one)).collect();
    keyed.sort_by(|one, other| {
        let figures = one.0.iter().zip(&other.0).map(|(one, other)| one.total_cmp(other));
        figures.fold(Ordering::Equal, Ordering::then)
    });
    candidates.extend(keyed.into_iter().map(|(_, one)| one));
    if need != Need::Throughput
        && let Some(index) = as_good(candidates, need)
    {
        candidates[..=index].rotate_right(1);
    }
}

/// The layout with which the rule compares the best one. If the best layout survives no loss, it is the first
/// that survives one and is as good; otherwise it is the layout that would come first without the rule.
pub fn twin(ranked: &[Candidate], need: Need) -> Option<&Candidate> {
    match ranked {
        [best, ..] if best.losses > 0 => {
            let other = ranked.iter().find(|one| one.losses == 0)?;
            let by_prediction = best.measured.is_some() != other.measured.is_some();
            let figure = |one: &Candidate| one.figure(need, by_prediction);
            let is_ahead = figure(other) > (1.0 + EQUAL) * figure(best);
            (is_ahead && is_as_good(best, other, need, by_prediction)).then_some(other)
        }
        _ => as_good(ranked, need).map(|index| &ranked[index]),
    }
}

/// The first layout that survives a loss and is as good as the first of all, which survives none. Where none was measured
/// like that one, predictions are compared with its prediction, like with like, unless that turned out to be wrong.
fn as_good(ranked: &[Candidate], need: Need) -> Option<usize> {
    let best = ranked.first().filter(|one| one.losses == 0)?;
    let is_alike = |one: &Candidate| one.measured.is_some() == best.measured.is_some();
    let by_prediction = !ranked.iter().any(|one| one.losses > 0 && is_alike(one));
    if by_prediction && best.differs() {
        return None;
    }
    ranked.iter().position(|one| {
        let is_comparable = by_prediction || is_alike(one);
        one.losses > 0 && is_comparable && is_as_good(one, best, need, by_prediction)
    })
}

/// True if a layout is not worse by more than the printed interval of the other.
fn is_as_good(one: &Candidate, other: &Candidate, need: Need, by_prediction: bool) -> bool {
    let least = other.figure(need, by_prediction) * other.low(need, by_prediction);
    one.figure(need, by_prediction) >= least && (one.suffices(need) || !other.suffices(need))
}
