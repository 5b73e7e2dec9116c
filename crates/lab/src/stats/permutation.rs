//! Tests that count: if nothing differed, how often would chance alone give a difference at
//! least as large?
//!
//! * Paired, `sign_flip`: without a difference each pair's log ratio might as well have had the
//!   other sign. All 2ⁿ signs are counted for the sum (Fisher, *The Design of Experiments*, 1935).
//! * Paired, `wilcoxon_signed_rank`: the same on the ranks of the sizes (Wilcoxon, 1945), so one
//!   wild repetition weighs no more than its rank.
//! * Independent, `mann_whitney`: without a difference any choice of n_a of all the values might
//!   have been sample a. All choices are counted for the sum of ranks (Mann and Whitney, 1947).
//!
//! All are two-sided and handle ties by counting what is really there. Counting is cheap for the
//! sizes of campaigns (below); beyond them signs or choices are drawn with a fixed seed, and the
//! p-value is (1 + as extreme) / (1 + drawn), which is never 0 (Phipson and Smyth, 2010).
//!
//! What no test can do is in `smallest_p`: of n pairs two in 2ⁿ signs are the most extreme, so
//! with 4 pairs no p-value is below 12.5 %.

use std::cmp::Ordering;

use super::check::check_finite;
use super::error::StatsError;
use super::ranks::doubled_ranks;
use crate::rng::SplitMix64;

/// Pairs up to which all signs of the sum are counted.
const FLIPS_EXACT_UP_TO: usize = 24;
/// Pairs up to which all signs of the ranks are counted.
const RANKS_EXACT_UP_TO: usize = 100;
/// Values in both samples up to which all choices are counted. Of 80 there are 10²³ choices of
/// half; their number is rounded in the sixteenth digit, and so is the p-value.
const CHOICES_EXACT_UP_TO: usize = 80;
/// Signs or choices drawn beyond; a p-value of 5 % is then known to ±0.4 %.
const DRAWS: u32 = 9_999;
/// Fixed, so that a report rendered twice says the same.
const SEED: u64 = 0x5169;
/// Sums that differ by less than this part of the largest possible one are a tie that rounding
/// has pulled apart.
const ROUNDING: f64 = 1e-11;

/// Which paired test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PairedTest {
    /// On the sum of the log ratios: the stronger one unless repetitions are wild.
    #[default]
    SignFlip,
    /// On the ranks of the log ratios.
    Wilcoxon,
}

impl PairedTest {
    /// Runs it on differences (of logarithms).
    ///
    /// # Errors
    ///
    /// Of nothing and of anything not finite.
    pub fn run(self, differences: &[f64]) -> Result<TestResult, StatsError> {
        match self {
            Self::SignFlip => sign_flip(differences),
            Self::Wilcoxon => wilcoxon_signed_rank(differences),
        }
    }

    /// Which way the test's own sum points: greater when the differences above 0 outweigh those
    /// below. A sum of ranks may point another way than a sum of sizes.
    pub fn direction(self, differences: &[f64]) -> Ordering {
        let moving: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        let sum: f64 = match self {
            Self::SignFlip => moving.iter().sum(),
            Self::Wilcoxon => signed_ranks(&moving).iter().sum(),
        };
        sum.partial_cmp(&0.0).unwrap_or(Ordering::Equal)
    }
}

/// How a p-value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestMethod {
    /// Every possibility was counted.
    Exact,
    /// This many were drawn, with a fixed seed.
    MonteCarlo(u32),
}

/// What a test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestResult {
    /// Two-sided probability, above 0 and at most 1, of a difference at least this large if
    /// there is none.
    pub p_value: f64,
    /// The smallest p-value that a sample of this size and these ties can give.
    pub smallest_p: f64,
    /// How it was found.
    pub method: TestMethod,
}

/// The paired sign-flip test on differences, of logarithms where ratios are meant. Differences of
/// 0 stay in and favour no side.
///
/// # Errors
///
/// Of nothing and of anything not finite.
pub fn sign_flip(differences: &[f64]) -> Result<TestResult, StatsError> {
    check_finite("sign-flip test", differences)?;
    Ok(flip(differences))
}

fn flip(differences: &[f64]) -> TestResult {
    let moving: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let most: f64 = moving.iter().map(|d| d.abs()).sum();
    // Slightly less, so that a tie counts as "at least as large".
    let reached = moving.iter().sum::<f64>().abs() - most * ROUNDING;
    let smallest = (1.0 - moving.len() as f64).exp2().min(1.0);
    if moving.len() > FLIPS_EXACT_UP_TO {
        return drawn(count_drawn_flips(&moving, reached), smallest);
    }
    let p_value = if reached <= 0.0 { 1.0 } else { exact_flips(&moving, reached) };
    TestResult {
        p_value: p_value.clamp(smallest, 1.0),
        smallest_p: smallest,
        method: TestMethod::Exact,
    }
}

/// A drawn p-value from how many draws were as extreme.
fn drawn(as_extreme: u32, smallest_exact: f64) -> TestResult {
    let all = f64::from(DRAWS) + 1.0;
    TestResult {
        p_value: (f64::from(as_extreme) + 1.0) / all,
        smallest_p: smallest_exact.max(1.0 / all),
        method: TestMethod::MonteCarlo(DRAWS),
    }
}

/// The part of all signs with |sum| ≥ reached, for reached > 0.
///
/// The sums of the first half and of the second half of the differences are listed and sorted;
/// then for each of the first, rising, the place in the second from which the two together reach
/// the mark only falls. 2 · 2^(n/2) steps and not 2ⁿ. The two tails mirror each other.
fn exact_flips(differences: &[f64], reached: f64) -> f64 {
    let (first, second) = differences.split_at(differences.len() / 2);
    let (first, second) = (sorted_sums(first), sorted_sums(second));
    let mut from = second.len();
    let mut count = 0;
    for sum in &first {
        while from > 0 && sum + second[from - 1] >= reached {
            from -= 1;
        }
        count += second.len() - from;
    }
    2.0 * count as f64 / (first.len() * second.len()) as f64
}

/// All sums with either sign, ascending.
fn sorted_sums(differences: &[f64]) -> Vec<f64> {
    let mut sums = signed_sums(differences);
    sums.sort_by(f64::total_cmp);
    sums
}

/// All sums; bit i of the index says that difference i is added, else subtracted.
fn signed_sums(differences: &[f64]) -> Vec<f64> {
    differences.iter().fold(vec![0.0], |sums, difference| {
        let minus = sums.iter().map(|sum| sum - difference);
        minus.chain(sums.iter().map(|sum| sum + difference)).collect()
    })
}

/// How many of the drawn signs reach the mark. Eight signs at a time are looked up in a table of
/// the 256 sums they can make.
fn count_drawn_flips(differences: &[f64], reached: f64) -> u32 {
    let tables: Vec<Vec<f64>> = differences.chunks(8).map(signed_sums).collect();
    let mut rng = SplitMix64::new(SEED);
    (0..DRAWS).map(|_| u32::from(draw_sum(&tables, &mut rng).abs() >= reached)).sum()
}

fn draw_sum(tables: &[Vec<f64>], rng: &mut SplitMix64) -> f64 {
    let mut sum = 0.0;
    for tables in tables.chunks(8) {
        for (table, byte) in tables.iter().zip(rng.next_u64().to_le_bytes()) {
            // A table of fewer than eight signs has fewer entries, a power of two.
            sum += table[usize::from(byte) & (table.len() - 1)];
        }
    }
    sum
}

/// The Wilcoxon signed-rank test on differences. Differences of 0 are left out, as Wilcoxon does,
/// and equal sizes share their ranks.
///
/// # Errors
///
/// Of nothing and of anything not finite.
pub fn wilcoxon_signed_rank(differences: &[f64]) -> Result<TestResult, StatsError> {
    check_finite("signed-rank test", differences)?;
    let moving: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if moving.len() > RANKS_EXACT_UP_TO {
        return Ok(flip(&signed_ranks(&moving)));
    }
    let ranks = ranks_of_sizes(&moving);
    let total: u64 = ranks.iter().sum();
    let positive: u64 =
        ranks.iter().zip(&moving).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    // Both tails are alike: the chance of a sum up to the smaller of the two, twice.
    let smaller = positive.min(total - positive);
    let tail: f64 = positive_rank_sums(&ranks, smaller).iter().sum();
    let smallest_p = (1.0 - moving.len() as f64).exp2().min(1.0);
    Ok(TestResult {
        p_value: (2.0 * tail).clamp(smallest_p, 1.0),
        smallest_p,
        method: TestMethod::Exact,
    })
}

/// Twice the rank of each difference's size.
fn ranks_of_sizes(differences: &[f64]) -> Vec<u64> {
    doubled_ranks(&differences.iter().map(|d| d.abs()).collect::<Vec<f64>>())
}

/// The same with the difference's sign.
fn signed_ranks(differences: &[f64]) -> Vec<f64> {
    let ranks = ranks_of_sizes(differences).into_iter();
    ranks.zip(differences).map(|(rank, d)| (rank as f64).copysign(*d)).collect()
}

/// Probability of each sum 0..=most of the ranks with a positive sign, when each sign is a coin.
fn positive_rank_sums(ranks: &[u64], most: u64) -> Vec<f64> {
    let mut chances = vec![0.0; most as usize + 1];
    chances[0] = 1.0;
    for &rank in ranks {
        for sum in (0..chances.len()).rev() {
            let added = sum.checked_sub(rank as usize).map_or(0.0, |before| chances[before]);
            chances[sum] = (chances[sum] + added) / 2.0;
        }
    }
    chances
}

/// The Mann-Whitney test of two independent samples: twice the smaller tail of the rank sum, at
/// most 1.
///
/// # Errors
///
/// When a sample is empty or has anything not finite.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Result<TestResult, StatsError> {
    let what = "Mann-Whitney test";
    check_finite(what, a)?;
    check_finite(what, b)?;
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut ranks = doubled_ranks(&[few, many].concat());
    if ranks.iter().all(|rank| rank % 2 == 0) {
        // No half ranks: half as many sums.
        ranks.iter_mut().for_each(|rank| *rank /= 2);
    }
    let reached: u64 = ranks[..few.len()].iter().sum();
    if ranks.len() > CHOICES_EXACT_UP_TO {
        return Ok(draw_choices(ranks, few.len(), reached));
    }
    let counts = rank_sum_counts(&ranks, few.len());
    let all: f64 = counts.iter().sum();
    let at_most: f64 = counts[..=reached as usize].iter().sum();
    let at_least: f64 = counts[reached as usize..].iter().sum();
    // The most extreme sums: the few have all the lowest or all the highest ranks.
    let ends = [counts.iter().find(|c| **c > 0.0), counts.iter().rfind(|c| **c > 0.0)];
    let extreme = ends.into_iter().flatten().copied().fold(all, f64::min);
    Ok(TestResult {
        p_value: (2.0 * at_most.min(at_least) / all).min(1.0),
        smallest_p: (2.0 * extreme / all).min(1.0),
        method: TestMethod::Exact,
    })
}

/// How many choices of `chosen` of the ranks have each sum: `counts[sum]`.
///
/// Rank by rank, lowest first: a choice of k with this rank is a choice of k − 1 of those before
/// it. These have sums from their k − 1 lowest to their k − 1 highest, and only there is anything
/// to add, which makes 20 against 20 a matter of 100,000 additions.
fn rank_sum_counts(ranks: &[u64], chosen: usize) -> Vec<f64> {
    let mut ranks: Vec<usize> = ranks.iter().map(|rank| *rank as usize).collect();
    ranks.sort_unstable();
    let highest = |of: &[usize], size: usize| of[of.len() - size..].iter().sum::<usize>();
    let mut counts = vec![vec![0.0; highest(&ranks, chosen) + 1]; chosen + 1];
    counts[0][0] = 1.0;
    for (before, &rank) in ranks.iter().enumerate() {
        for size in (1..=chosen.min(before + 1)).rev() {
            let lowest: usize = ranks[..size - 1].iter().sum();
            let sums = lowest..=highest(&ranks[..before], size - 1);
            let (smaller, larger) = counts.split_at_mut(size);
            let target = &mut larger[0][lowest + rank..];
            for (count, more) in target.iter_mut().zip(&smaller[size - 1][sums]) {
                *count += more;
            }
        }
    }
    counts.swap_remove(chosen)
}

fn draw_choices(mut ranks: Vec<u64>, chosen: usize, reached: u64) -> TestResult {
    let mut rng = SplitMix64::new(SEED);
    let (mut at_most, mut at_least) = (1.0, 1.0);
    for _ in 0..DRAWS {
        // The start of a Fisher-Yates shuffle: a fair choice from any order before.
        for index in 0..chosen {
            let other = index + rng.below(ranks.len() - index);
            ranks.swap(index, other);
        }
        let sum: u64 = ranks[..chosen].iter().sum();
        at_most += f64::from(u8::from(sum <= reached));
        at_least += f64::from(u8::from(sum >= reached));
    }
    let all = f64::from(DRAWS) + 1.0;
    TestResult {
        p_value: (2.0 * f64::min(at_most, at_least) / all).min(1.0),
        smallest_p: 2.0 / all,
        method: TestMethod::MonteCarlo(DRAWS),
    }
}
