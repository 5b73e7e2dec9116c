//! The binomial distribution, which is that of order statistics: how many of n draws fall at or
//! below a point. Summed, not approximated, up to a variance of 1e8.

/// Beyond this variance (n = 4e8 at the median) the normal distribution is used for quantiles:
/// its error is then below one part in ten thousand of the interval's width, and a sum would take
/// a million terms.
const SUM_UP_TO_VARIANCE: f64 = 1e8;
/// Two-sided 95 % point of the normal distribution.
pub(super) const Z_95: f64 = 1.959_963_984_540_054;
/// Terms below this part of the largest add nothing that 53 bits can hold.
const NEGLIGIBLE: f64 = 1e-20;

/// Probabilities of 0..=n successes of which only a run around the most likely one is stored;
/// the rest is below 1e-20 of the largest.
#[derive(Debug, Clone)]
pub(super) struct Binomial {
    first: u64,
    probabilities: Vec<f64>,
}

impl Binomial {
    /// Of `n` draws with probability `p` each, in 0..=1.
    ///
    /// The terms are built outwards from the mode by their ratio and divided by their sum, so
    /// that no factorial is needed: t(k+1)/t(k) = (n−k)/(k+1) · p/(1−p).
    pub(super) fn new(n: u64, p: f64) -> Self {
        if p <= 0.0 || p >= 1.0 {
            let certain = if p <= 0.0 { 0 } else { n };
            return Self { first: certain, probabilities: vec![1.0] };
        }
        let odds = p / (1.0 - p);
        let mode = (((n + 1) as f64) * p).floor().min(n as f64) as u64;
        let ratio_up = |k: u64| (n - k) as f64 / (k + 1) as f64 * odds;
        let mut below = Vec::new();
        let (mut k, mut term) = (mode, 1.0);
        while k > 0 {
            k -= 1;
            term /= ratio_up(k);
            if term < NEGLIGIBLE {
                break;
            }
            below.push(term);
        }
        let first = mode - below.len() as u64;
        let mut probabilities: Vec<f64> = below.into_iter().rev().collect();
        probabilities.push(1.0);
        (k, term) = (mode, 1.0);
        while k < n {
            term *= ratio_up(k);
            k += 1;
            if term < NEGLIGIBLE {
                break;
            }
            probabilities.push(term);
        }
        let total: f64 = probabilities.iter().sum();
        for probability in &mut probabilities {
            *probability /= total;
        }
        Self { first, probabilities }
    }

    /// Of exactly k successes.
    pub(super) fn exactly(&self, k: u64) -> f64 {
        let index = k.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.probabilities.get(index)).copied().unwrap_or(0.0)
    }

    /// Of at least k successes.
    pub(super) fn at_least(&self, k: u64) -> f64 {
        let skip = usize::try_from(k.saturating_sub(self.first)).unwrap_or(usize::MAX);
        // From the small end, so that small terms are not lost beside large ones.
        self.probabilities.iter().skip(skip).rev().sum::<f64>().min(1.0)
    }

    /// The smallest k with at least `level` of the probability at or below it.
    fn quantile(&self, level: f64) -> u64 {
        let mut sum = 0.0;
        for (k, probability) in (self.first..).zip(&self.probabilities) {
            sum += probability;
            if sum >= level {
                return k;
            }
        }
        self.first + self.probabilities.len() as u64 - 1
    }
}

/// The ranks (1 = smallest) between which the q-quantile of the population lies with at least
/// 95 %, at most 2.5 % on either side; `None` on a side where the sample does not reach so far.
///
/// The l-th smallest value is above the quantile when fewer than l of the n values are below it,
/// so l is the largest rank with P(B ≤ l−1) ≤ 2.5 %, and u the smallest with P(B ≥ u) ≤ 2.5 %
/// (David and Nagaraja, *Order Statistics*, 3rd ed., 7.1).
pub(super) fn quantile_ranks(n: u64, q: f64) -> (Option<u64>, Option<u64>) {
    let mean = n as f64 * q;
    let variance = mean * (1.0 - q);
    if variance > SUM_UP_TO_VARIANCE {
        let half = Z_95 * variance.sqrt();
        let (low, high) = ((mean - half).floor(), (mean + half).ceil() + 1.0);
        return ((low >= 1.0).then_some(low as u64), (high <= n as f64).then_some(high as u64));
    }
    let binomial = Binomial::new(n, q);
    // P(B ≤ k) < 2.5 % for every k below the quantile, so l − 1 = quantile − 1.
    let low = binomial.quantile(0.025);
    let high = binomial.quantile(0.975) + 1;
    ((low >= 1).then_some(low), (high <= n).then_some(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C(10, k) / 1024, added by hand: 1, 10, 45, 120, 210, 252, ...
    #[test]
    fn ten_coins() {
        let coins = Binomial::new(10, 0.5);
        assert!((coins.exactly(5) - 252.0 / 1024.0).abs() < 1e-15);
        assert!((coins.at_least(8) - 56.0 / 1024.0).abs() < 1e-15);
        assert!((coins.at_least(0) - 1.0).abs() < 1e-15);
        assert_eq!(coins.exactly(11), 0.0);
        assert_eq!(coins.at_least(11), 0.0);
    }

    #[test]
    fn certain_outcomes() {
        assert_eq!(Binomial::new(7, 0.0).exactly(0), 1.0);
        assert_eq!(Binomial::new(7, 1.0).at_least(7), 1.0);
        assert_eq!(Binomial::new(7, 1.0).exactly(6), 0.0);
    }

    /// The textbook interval of the median: of 10 values it is the 2nd to the 9th, which holds it
    /// with 1 − 2 · 11/1024 = 97.9 %; of 5 there is none.
    #[test]
    fn ranks_of_a_median() {
        assert_eq!(quantile_ranks(10, 0.5), (Some(2), Some(9)));
        assert_eq!(quantile_ranks(5, 0.5), (None, None));
        assert_eq!(quantile_ranks(6, 0.5), (Some(1), Some(6)));
    }

    /// The two ways meet where one gives way to the other.
    #[test]
    fn sum_and_normal_agree_for_many_values() {
        let below = (SUM_UP_TO_VARIANCE / 0.25) as u64;
        let (low, high) = quantile_ranks(below, 0.5);
        let (low_normal, high_normal) = quantile_ranks(below + 8, 0.5);
        assert!(low.unwrap().abs_diff(low_normal.unwrap()) < 8);
        assert!(high.unwrap().abs_diff(high_normal.unwrap()) < 12);
    }
}
