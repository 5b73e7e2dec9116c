use proptest::prelude::*;

use super::*;

mod refusals;
mod shapes;
mod significance;
mod study;
mod tables;
mod tails;

/// Values for repetitions 0, 1, 2, ...
fn repetitions(values: &[f64]) -> ByRepetition {
    (0..).zip(values.iter().copied()).collect()
}

#[test]
fn medians_of_odd_and_even_counts() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
}

/// 100, 110, 90: the middle is 100 and the interval is the range, called that.
#[test]
fn three_repetitions_have_a_range() {
    let estimate = estimate(&[100.0, 110.0, 90.0]).unwrap();
    assert_eq!((estimate.median, estimate.low, estimate.high), (100.0, 90.0, 110.0));
    assert_eq!(estimate.kind, IntervalKind::Range(3));
}

/// For 1..=9 the chance that a resampled median is at most k is that of at least 5 of 9 draws
/// being at most k: 0.1 % for 1, 3.0 % for 2. So the 2.5 % quantile is 2, and by symmetry the
/// 97.5 % quantile is 8.
#[test]
fn nine_repetitions_have_the_bootstrap_interval_that_theory_gives() {
    let values: Vec<f64> = (1..=9).map(f64::from).collect();
    let estimate = estimate(&values).unwrap();
    assert_eq!((estimate.median, estimate.low, estimate.high), (5.0, 2.0, 8.0));
    assert_eq!(estimate.kind, IntervalKind::Bootstrap95);
}

/// A value against a baseline of 100 in each repetition.
fn against_100(values: &[f64]) -> BaselinePercent {
    let baseline = repetitions(&vec![100.0; values.len()]);
    compare_with_baseline(&repetitions(values), &[&baseline]).unwrap()
}

#[test]
fn a_verdict_needs_the_whole_interval_on_one_side() {
    let verdict = |values: &[f64]| against_100(values).verdict;
    assert_eq!(verdict(&[99.0, 101.0, 120.0]), Verdict::NotDistinguishable);
    assert_eq!(verdict(&[90.0, 80.0, 99.0]), Verdict::Below);
    assert_eq!(verdict(&[101.0, 180.0, 200.0]), Verdict::Above);
    assert_eq!(verdict(&[100.0, 180.0, 200.0]), Verdict::NotDistinguishable);
    assert_eq!(verdict(&[500.0]), Verdict::NotDistinguishable);
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(1e-3..1e12_f64, 1..20)
}

/// The chance that a median of n independent values lies between two of them, counted in coins:
/// what the bootstrap's "95 %" comes to for odd n (even ones interpolate). `docs/statistics.md`
/// prints these.
#[test]
fn real_confidence_of_the_bootstrap_interval() {
    for (n, low, percent) in [(7, 2, 87.5), (9, 2, 96.1), (11, 3, 93.5), (15, 4, 96.5)] {
        let values: Vec<f64> = (1..=n).map(f64::from).collect();
        let found = estimate(&values).unwrap();
        assert_eq!((found.low, found.high), (f64::from(low), f64::from(n + 1 - low)), "{n}");
        // Outside when fewer than `low` of the n coins fall on one side.
        let mut ways = 1.0;
        let mut outside = 0.0;
        for k in 0..low {
            outside += ways;
            ways *= f64::from(n - k) / f64::from(k + 1);
        }
        let real = 100.0 * (1.0 - 2.0 * outside / f64::from(n).exp2());
        assert!((real - percent).abs() < 0.05, "{n}: {real}");
    }
}

#[test]
fn confidence_of_a_range() {
    let of = |n: usize| IntervalKind::Range(n).confidence();
    assert_eq!([of(0), of(1), of(2), of(3), of(5)], [0.0, 0.0, 0.5, 0.75, 0.9375]);
    assert_eq!(IntervalKind::Bootstrap95.confidence(), 0.95);
}

proptest! {
    #[test]
    fn the_interval_holds_the_median_and_lies_in_the_range(values in values()) {
        let estimate = estimate(&values).unwrap();
        prop_assert!(estimate.holds(estimate.median));
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(0.0, f64::max);
        prop_assert!(smallest <= estimate.low && estimate.high <= largest);
    }

    /// Doubling is exact in floating point, so nothing may change but the scale.
    #[test]
    fn scale_does_not_matter(values in values(), power in 0_i32..20) {
        let factor = f64::from(power).exp2();
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        prop_assert_eq!(estimate(&scaled).unwrap(), estimate(&values).unwrap().scaled(factor));
    }

    #[test]
    fn order_does_not_matter(values in values()) {
        let mut turned = values.clone();
        turned.reverse();
        prop_assert_eq!(estimate(&turned), estimate(&values));
    }
}
