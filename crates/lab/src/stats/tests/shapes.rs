//! Spread, outliers, steadiness and fairness.

use super::*;

#[test]
fn spread_by_hand() {
    // Deviations from 4 are 3, 2, 0, 1, 6; from the mean of 4.4 the squares add up to 49.2.
    let found = spread(&[1.0, 2.0, 4.0, 5.0, 10.0]).unwrap();
    assert_eq!((found.median_absolute_deviation, found.relative_deviation), (2.0, Some(0.5)));
    assert_eq!(found.mean, 4.4);
    assert!((found.standard_deviation.unwrap() - (49.2_f64 / 4.0).sqrt()).abs() < 1e-12);
    let one = spread(&[7.0]).unwrap();
    assert_eq!((one.median_absolute_deviation, one.standard_deviation), (0.0, None));
    let below = spread(&[-9.0, -10.0, -11.0]).unwrap();
    assert_eq!((below.relative_deviation, below.coefficient_of_variation), (Some(0.1), Some(0.1)));
    let around_zero = spread(&[-1.0, 0.0, 1.0]).unwrap();
    assert_eq!(
        (around_zero.relative_deviation, around_zero.coefficient_of_variation),
        (None, None)
    );
}

/// Large values with a small spread: Σx² − n·mean² would have lost it.
#[test]
fn a_small_spread_of_large_values_survives() {
    let found = spread(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]).unwrap();
    assert_eq!(found.standard_deviation, Some(1.0));
}

#[test]
fn outliers_are_named_and_stay() {
    let values = [100.0, 101.0, 99.0, 100.5, 60.0, 99.5, 140.0];
    let indices: Vec<usize> = outliers(&values).unwrap().iter().map(|o| o.index).collect();
    assert_eq!(indices, [4, 6]);
    let found = outliers(&values).unwrap();
    assert!(found[0].modified_z < -3.5 && found[1].modified_z > 3.5);
    assert_eq!(found[0].value, 60.0);
    assert!(estimate(&values).unwrap().low < 100.0);
}

/// Two disturbed of seven, on the same side, pull the quartile up and hide behind Tukey's fence.
#[test]
fn two_of_seven_do_not_hide_each_other() {
    let values = [99.0, 99.5, 100.0, 100.5, 101.0, 140.0, 141.0];
    assert!(tukey_fences(&values).unwrap().high > 141.0);
    let indices: Vec<usize> = outliers(&values).unwrap().iter().map(|o| o.index).collect();
    assert_eq!(indices, [5, 6]);
}

/// With more than half equal the mean deviation stands in: one of five apart has z = 3.99, one of
/// four 3.19.
#[test]
fn equal_values_and_one_apart() {
    assert_eq!(outliers(&[4.0, 4.0, 4.0, 4.0, 5.0]).unwrap().len(), 1);
    assert!(outliers(&[4.0, 4.0, 4.0, 5.0]).unwrap().is_empty());
    assert!(outliers(&[4.0; 9]).unwrap().is_empty());
    assert!(outliers(&[4.0]).unwrap().is_empty());
}

#[test]
fn a_flat_series_is_steady_at_once() {
    let SteadyState::Steady(window) = find_steady_state(&[100.0; 5]).unwrap() else { panic!() };
    assert_eq!((window.first, window.rounds, window.average), (0, 5, 100.0));
    assert_eq!((window.range, window.slope), (0.0, 0.0));
}

/// A fresh device falls for three rounds; the window from the fourth is the first that holds.
#[test]
fn the_first_steady_window_is_found() {
    let rounds = [900.0, 600.0, 400.0, 205.0, 200.0, 198.0, 202.0, 199.0, 150.0];
    let SteadyState::Steady(window) = find_steady_state(&rounds).unwrap() else { panic!() };
    assert_eq!(window.first, 3);
    let SteadyState::NotSteady(window) = find_steady_state(&rounds[..7]).unwrap() else { panic!() };
    assert_eq!(window.first, 2);
    assert!(!window.range_is_steady() && !window.slope_is_steady());
    let short = find_steady_state(&rounds[..4]).unwrap();
    assert_eq!(short, SteadyState::TooShort { have: 4, needed: 5 });
}

/// Both limits are within: exactly 20 % and exactly 10 % pass, a little more does not.
#[test]
fn the_limits_belong_to_the_rule() {
    // Range 20 % without a slope.
    let range = |wide: f64| {
        judge_window(&[100.0 + wide, 100.0, 100.0 - 2.0 * wide, 100.0, 100.0 + wide], 0).unwrap()
    };
    assert!((range(20.0 / 3.0).range - 0.2).abs() < 1e-12 && range(20.0 / 3.0).is_steady());
    assert!(!range(6.7).range_is_steady() && range(6.7).slope_is_steady());
    // A line of 10 % from end to end.
    let line = |step: f64| {
        judge_window(&[-2.0, -1.0, 0.0, 1.0, 2.0].map(|x| 100.0 + step * x), 0).unwrap()
    };
    assert!((line(2.5).slope - 0.1).abs() < 1e-12 && line(2.5).is_steady());
    assert!(!line(2.6).slope_is_steady() && line(2.6).range_is_steady());
    assert!((line(-2.6).slope + 0.104).abs() < 1e-12 && !line(-2.6).is_steady());
}

#[test]
fn shapes_of_one_trial() {
    let series = |of: fn(usize) -> f64| -> Vec<f64> { (0..50).map(of).collect() };
    // Single seconds swing by half, the slices do not.
    let swinging = series(|i| if i % 2 == 0 { 75.0 } else { 125.0 });
    assert!(matches!(check_within_trial(&swinging), Ok(TrialShape::Steady(_))));
    let falling = series(|i| 200.0 - 2.0 * i as f64);
    let Ok(TrialShape::Trending(window)) = check_within_trial(&falling) else { panic!() };
    assert!(window.slope < -0.1);
    let noisy = series(|i| if i / 10 % 2 == 0 { 80.0 } else { 120.0 });
    assert!(matches!(check_within_trial(&noisy), Ok(TrialShape::Noisy(_))));
    assert_eq!(check_within_trial(&[1.0; 9]), Ok(TrialShape::TooShort { have: 9, needed: 10 }));
    assert_eq!(check_within_trial(&[]), Ok(TrialShape::TooShort { have: 0, needed: 10 }));
    // 13 values: slices of 2, 3, 2, 3, 3, none lost.
    let uneven: Vec<f64> = (1..=13).map(f64::from).collect();
    let Ok(TrialShape::Trending(window)) = check_within_trial(&uneven) else { panic!() };
    assert_eq!(window.average, (1.5 + 4.0 + 6.5 + 9.0 + 12.0) / 5.0);
}

#[test]
fn fairness_by_hand() {
    let even = fairness(&[5.0; 4]).unwrap();
    assert_eq!((even.jain, even.min_to_max), (1.0, 1.0));
    let one = fairness(&[0.0, 8.0, 0.0, 0.0]).unwrap();
    assert_eq!((one.jain, one.min_to_max, one.least, one.most), (0.25, 0.0, 0, 1));
    // (1 + 2 + 3)² / (3 · 14)
    let three = fairness(&[1.0, 3.0, 2.0]).unwrap();
    assert!((three.jain - 36.0 / 42.0).abs() < 1e-15);
    assert_eq!((three.min_to_max, three.least, three.most), (1.0 / 3.0, 0, 1));
    let equals = fairness(&[3.0, 1.0, 1.0, 3.0]).unwrap();
    assert_eq!((equals.least, equals.most), (1, 0));
}

proptest! {
    #[test]
    fn fairness_has_its_bounds(shares in prop::collection::vec(0.0_f64..1e9, 1..40)) {
        prop_assume!(shares.iter().any(|share| *share > 0.0));
        let found = fairness(&shares).unwrap();
        prop_assert!(found.jain <= 1.0 && found.jain >= 1.0 / shares.len() as f64 - 1e-12);
        prop_assert!((0.0..=1.0).contains(&found.min_to_max));
    }

    #[test]
    fn spread_scales_and_does_not_care_for_order(
        values in prop::collection::vec(1.0_f64..1e6, 1..30), power in -9_i32..9,
    ) {
        let factor = f64::from(power).exp2();
        let mut scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        scaled.reverse();
        let (one, other) = (spread(&values).unwrap(), spread(&scaled).unwrap());
        prop_assert_eq!(one.median_absolute_deviation * factor, other.median_absolute_deviation);
        prop_assert_eq!(one.relative_deviation, other.relative_deviation);
        prop_assert_eq!(outliers(&values).unwrap().len(), outliers(&scaled).unwrap().len());
    }

    /// Turned round, what rose falls as much; the range stays.
    #[test]
    fn a_window_turned_round(values in prop::collection::vec(1.0_f64..1e6, 2..12)) {
        let turned: Vec<f64> = values.iter().rev().copied().collect();
        let (one, other) = (judge_window(&values, 0).unwrap(), judge_window(&turned, 0).unwrap());
        prop_assert!((one.slope + other.slope).abs() < 1e-9);
        prop_assert!((one.range - other.range).abs() < 1e-9);
    }
}
