use proptest::prelude::*;

use super::*;

mod effects;
mod refusals;
mod shapes;
mod student;
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

/// 100, 110, 90: the middle is 100 and the ends are those of the repetitions.
#[test]
fn repetitions_have_a_range() {
    let found = estimate(&[100.0, 110.0, 90.0]).unwrap();
    assert_eq!(found, Estimate { median: 100.0, low: 90.0, high: 110.0, count: 3 });
}

proptest! {
    #[test]
    fn order_does_not_matter(values in prop::collection::vec(1e-3..1e12_f64, 1..20)) {
        let mut turned = values.clone();
        turned.reverse();
        prop_assert_eq!(estimate(&turned), estimate(&values));
        let found = estimate(&values).unwrap();
        prop_assert!(found.low <= found.median && found.median <= found.high);
    }
}
