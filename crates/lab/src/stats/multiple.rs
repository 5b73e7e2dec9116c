//! Which of several subjects is best, with the comparisons counted.
//!
//! With 5 subjects there are 10 pairs, and with 10 chances of 5 % each something "significant"
//! turns up in 4 of 10 campaigns that compare five equal disks. So the p-values are adjusted by
//! Holm's step-down method (Holm, 1979), which keeps the chance of any false difference at the
//! level asked for, whatever the pairs have to do with each other. All pairs are counted and not
//! only those with the leader, for who leads is known only after looking.
//!
//! Pairs are of the same repetition, and what is tested are the logarithms of their ratios: twice
//! as fast and half as fast are then equally far from equal.

use std::cmp::Ordering;

use super::check::{check_open_unit, check_positive};
use super::error::StatsError;
use super::estimate::median;
use super::percent::ByRepetition;
use super::permutation::{PairedTest, TestMethod, TestResult};

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Throughput, requests per second.
    Higher,
    /// Time, latency.
    Lower,
}

/// Two subjects compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Number of the one subject in the list given.
    pub left: usize,
    /// Number of the other, above `left`.
    pub right: usize,
    /// Repetitions in which both have a value.
    pub repetitions: usize,
    /// In how many of them the values are equal, which tells nothing.
    pub ties: usize,
    /// Which of the two the test finds larger; equal when it finds neither, and without any
    /// repetition.
    pub larger: Ordering,
    /// p-value of this pair alone.
    pub p_value: f64,
    /// p-value adjusted for all comparisons made.
    pub adjusted_p: f64,
    /// How it was found.
    pub method: TestMethod,
}

/// What may be said about the best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// This subject is better than each of the others.
    Winner(usize),
    /// These cannot be told apart at the top: the leader first, then in the order given.
    Undecided(Vec<usize>),
}

/// The outcome of comparing each with each.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// Number of the subject with the best median.
    pub leader: usize,
    /// What may be said.
    pub standing: Standing,
    /// Each pair once, in order.
    pub comparisons: Vec<Comparison>,
    /// The level asked for, such as 0.05.
    pub alpha: f64,
    /// Fewest repetitions in which the leader and another both have a value, and not the same.
    pub repetitions: usize,
    /// Repetitions of that pair that are left out of this because their values are the same.
    pub ties: usize,
    /// Smallest p-value these repetitions allow in the leader's hardest comparison.
    pub smallest_p: f64,
    /// The same after adjustment: above `alpha` no winner can be named, whatever was measured.
    pub smallest_adjusted_p: f64,
    /// Repetitions from which a winner could be named: [`repetitions_needed`].
    pub repetitions_needed: usize,
}

impl Contest {
    /// Whether these repetitions are enough for a winner, if the differences are clear.
    pub fn can_decide(&self) -> bool {
        self.smallest_adjusted_p <= self.alpha
    }
}

/// Holm's adjustment: the i-th smallest of m p-values is multiplied by m − i + 1, none becomes
/// smaller than the one before it or larger than 1. In the order given.
///
/// # Errors
///
/// When a value is not within 0..=1.
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, StatsError> {
    if let Some(index) = p_values.iter().position(|p| !(0.0..=1.0).contains(p)) {
        return Err(StatsError::OutOfRange {
            what: "Holm's adjustment",
            position: index + 1,
            value: p_values[index],
            allowed: "probabilities from 0 to 1",
        });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * left).min(1.0));
        adjusted[index] = largest;
    }
    Ok(adjusted)
}

/// The fewest repetitions n with which a paired test can be significant at `alpha` after this
/// many comparisons: comparisons · 2 · ½ⁿ ≤ alpha. 6 for one comparison at 5 %, 9 for ten.
///
/// # Errors
///
/// When `alpha` is not between 0 and 1.
pub fn repetitions_needed(comparisons: usize, alpha: f64) -> Result<usize, StatsError> {
    check_open_unit("level of significance", alpha)?;
    // alpha · 2^(n−1) ≥ comparisons, doubled step by step, which is exact for any alpha.
    let (mut allowed, mut repetitions) = (alpha, 1);
    while allowed < comparisons.max(1) as f64 {
        allowed *= 2.0;
        repetitions += 1;
    }
    Ok(repetitions)
}

/// Compares each subject with each over the repetitions they share and says which is best, or
/// which cannot be told apart from the best, at the level `alpha`.
///
/// # Errors
///
/// For fewer than two subjects, a subject without values, a value that is not above 0, or an
/// `alpha` that is not between 0 and 1.
pub fn find_winner(
    subjects: &[&ByRepetition],
    better: Better,
    test: PairedTest,
    alpha: f64,
) -> Result<Contest, StatsError> {
    check_open_unit("level of significance", alpha)?;
    if subjects.len() < 2 {
        return Err(StatsError::TooFewSubjects { have: subjects.len() });
    }
    let leader = leader_of(subjects, better)?;
    let mut comparisons = Vec::new();
    let mut smallest = Vec::new();
    for left in 0..subjects.len() {
        for right in left + 1..subjects.len() {
            let (comparison, smallest_p) = compare_pair(subjects, left, right, test)?;
            comparisons.push(comparison);
            smallest.push(smallest_p);
        }
    }
    let adjusted = holm(&comparisons.iter().map(|pair| pair.p_value).collect::<Vec<_>>())?;
    for (comparison, adjusted_p) in comparisons.iter_mut().zip(adjusted) {
        comparison.adjusted_p = adjusted_p;
    }
    // The adjustment never falls when a p-value rises, so what it makes of the smallest possible
    // ones is the smallest possible outcome. The leader must pass its hardest comparison.
    let smallest_adjusted = holm(&smallest)?;
    let hardest = |p_values: &[f64]| {
        let of_leader = comparisons.iter().zip(p_values).filter(|(pair, _)| pair.has(leader));
        of_leader.map(|(_, p)| *p).fold(0.0, f64::max)
    };
    let of_leader = comparisons.iter().filter(|pair| pair.has(leader));
    let telling = of_leader.map(|pair| (pair.repetitions - pair.ties, pair.ties));
    let (repetitions, ties) = telling.min().unwrap_or((0, 0));
    Ok(Contest {
        leader,
        standing: standing_of(subjects.len(), leader, &comparisons, better, alpha),
        alpha,
        repetitions,
        ties,
        smallest_p: hardest(&smallest),
        smallest_adjusted_p: hardest(&smallest_adjusted),
        repetitions_needed: repetitions_needed(comparisons.len(), alpha)?,
        comparisons,
    })
}

impl Comparison {
    fn has(&self, subject: usize) -> bool {
        self.left == subject || self.right == subject
    }

    /// Whether `subject`, one of the two, is the better one by the test.
    fn favours(&self, subject: usize, better: Better) -> bool {
        let wanted = match (better, self.left == subject) {
            (Better::Higher, true) | (Better::Lower, false) => Ordering::Greater,
            (Better::Higher, false) | (Better::Lower, true) => Ordering::Less,
        };
        self.larger == wanted
    }
}

/// The first of those with the best median.
fn leader_of(subjects: &[&ByRepetition], better: Better) -> Result<usize, StatsError> {
    let what = "winner";
    let mut best: Option<(usize, f64)> = None;
    for (index, subject) in subjects.iter().enumerate() {
        let values: Vec<f64> = subject.values().copied().collect();
        check_positive(what, &values)?;
        let middle = median(&values).ok_or(StatsError::Empty { what })?;
        let ahead = best.is_none_or(|(_, leading)| match better {
            Better::Higher => middle > leading,
            Better::Lower => middle < leading,
        });
        if ahead {
            best = Some((index, middle));
        }
    }
    best.map(|(index, _)| index).ok_or(StatsError::Empty { what })
}

/// The comparison, not yet adjusted, and the smallest p-value it could have had.
fn compare_pair(
    subjects: &[&ByRepetition],
    left: usize,
    right: usize,
    test: PairedTest,
) -> Result<(Comparison, f64), StatsError> {
    let logs: Vec<f64> = subjects[left]
        .iter()
        .filter_map(|(repetition, value)| Some((value / subjects[right].get(repetition)?).ln()))
        .collect();
    let result = if logs.is_empty() {
        // Nothing was measured together, so nothing can be said.
        TestResult { p_value: 1.0, smallest_p: 1.0, method: TestMethod::Exact }
    } else {
        test.run(&logs)?
    };
    let comparison = Comparison {
        left,
        right,
        repetitions: logs.len(),
        ties: logs.iter().filter(|log| **log == 0.0).count(),
        larger: test.direction(&logs),
        p_value: result.p_value,
        adjusted_p: 1.0,
        method: result.method,
    };
    Ok((comparison, result.smallest_p))
}

fn standing_of(
    subjects: usize,
    leader: usize,
    comparisons: &[Comparison],
    better: Better,
    alpha: f64,
) -> Standing {
    let beaten = |other: usize| {
        comparisons.iter().any(|pair| {
            let both = pair.has(leader) && pair.has(other);
            both && pair.adjusted_p <= alpha && pair.favours(leader, better)
        })
    };
    let beside: Vec<usize> =
        (0..subjects).filter(|other| *other != leader && !beaten(*other)).collect();
    if beside.is_empty() {
        Standing::Winner(leader)
    } else {
        Standing::Undecided([vec![leader], beside].concat())
    }
}
