//! Values that cannot be computed are refused, and no undefined number is returned.

use super::*;

#[test]
fn undefined_input_has_no_estimate() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!((median(&[1.0, bad]), estimate(&[bad, 1.0])), (None, None));
        let (bad_one, one) = (repetitions(&[bad]), repetitions(&[1.0]));
        assert_eq!((Effect::of(&bad_one, &one), Effect::of(&one, &bad_one)), (None, None));
        assert_eq!((effect::mean_and_deviation(&[1.0, bad]), scatter(&[1.0, bad])), (None, None));
        assert!(
            judge_window(&[bad], 0).is_none()
                && find_steady_state(&repetitions(&[bad; 5])).is_none()
        );
    }
    assert_eq!(Effect::of(&repetitions(&[0.0]), &repetitions(&[1.0])), None);
    assert_eq!(Effect::of(&repetitions(&[-1.0]), &repetitions(&[1.0])), None);
    assert_eq!((Effect::of_logarithms(&[]), scatter(&[1.0])), (None, None));
}

#[test]
fn nothing_and_no_work_are_no_window() {
    for values in [&[][..], &[0.0; 5], &[-1.0], &[1.0, -1.0, 1.0], &[1e101]] {
        assert_eq!(judge_window(values, 0), None, "{values:?}");
    }
    assert_eq!(find_steady_state(&repetitions(&[0.0; 5])), None);
    assert!(judge_window(&[0.0, 1e100], 0).is_some());
}

/// Any double at all, the edges often.
fn wild() -> impl Strategy<Value = Vec<f64>> {
    let edges = prop::sample::select(vec![
        0.0,
        -0.0,
        5e-324,
        1e-100,
        1e100,
        1e101,
        -1e100,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
        1.0,
    ]);
    prop::collection::vec(prop_oneof![prop::num::f64::ANY, edges, 1e-100_f64..1e100], 0..30)
}

fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_undefined_leaves(values in wild(), more in wild()) {
        if let Some(found) = estimate(&values) {
            prop_assert!(all_finite(&[found.median, found.low, found.high]));
        }
        if let Some(found) = Effect::of(&repetitions(&values), &repetitions(&more)) {
            prop_assert!(all_finite(&[found.ratio, found.log_sd]) && found.ratio > 0.0);
            prop_assert!(found.p_value > 0.0 && found.p_value <= 1.0);
            prop_assert!(found.low <= found.ratio && found.ratio <= found.high);
        }
        if let Some(found) = judge_window(&values, 0) {
            prop_assert!(all_finite(&[found.average, found.range, found.slope, found.slope_p]));
        }
    }
}
