//! What cannot be computed is refused, and nothing undefined leaves.

use super::*;

#[test]
fn undefined_input_has_no_estimate() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(median(&[1.0, bad]), None);
        assert_eq!(estimate(&[bad, 1.0]), None);
        let (bad_one, one) = (repetitions(&[bad]), repetitions(&[1.0]));
        assert!(compare_with_baseline(&bad_one, &[&one]).is_err());
        assert!(compare_with_baseline(&one, &[&bad_one]).is_err());
        let refused = spread(&[1.0, bad]).unwrap_err();
        assert!(matches!(refused, StatsError::NotFinite { position: 2, .. }), "{refused}");
        assert!(outliers(&[bad]).is_err());
        assert!(sign_flip(&[bad]).is_err() && wilcoxon_signed_rank(&[bad]).is_err());
        assert!(mann_whitney(&[1.0], &[bad]).is_err() && compare_runs(&[bad], &[1.0]).is_err());
        assert!(
            judge_window(&[bad], 0).is_err() && find_steady_state(&repetitions(&[bad; 5])).is_err()
        );
    }
}

#[test]
fn nothing_is_refused_by_name() {
    let message = spread(&[]).unwrap_err().to_string();
    assert_eq!(message, "spread: there are no values; measure at least one repetition first");
    assert!(sign_flip(&[]).is_err() && mann_whitney(&[], &[1.0]).is_err());
    assert!(matches!(judge_window(&[0.0; 5], 0), Err(StatsError::AllZero { .. })));
    assert!(matches!(judge_window(&[-1.0], 0), Err(StatsError::OutOfRange { .. })));
}

#[test]
fn contests_that_cannot_be_held() {
    let (one, zero) = (repetitions(&[1.0, 2.0]), repetitions(&[1.0, 0.0]));
    let nothing = ByRepetition::new();
    let of = |subjects: &[&ByRepetition], alpha| {
        find_winner(subjects, Better::Higher, PairedTest::SignFlip, alpha).unwrap_err()
    };
    assert_eq!(of(&[&one], 0.05), StatsError::TooFewSubjects { have: 1 });
    assert!(matches!(of(&[&one, &zero], 0.05), StatsError::OutOfRange { .. }));
    assert!(matches!(of(&[&one, &nothing], 0.05), StatsError::Empty { .. }));
    assert!(matches!(of(&[&one, &one], 1.0), StatsError::BadParameter { .. }));
    assert!(judge_runs(&[], f64::NAN).is_err());
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
            prop_assert!(found.relative_width().is_finite());
        }
        if let Ok(found) = spread(&values) {
            let optional = [found.relative_deviation, found.standard_deviation,
                found.coefficient_of_variation];
            prop_assert!(all_finite(&[found.mean, found.median_absolute_deviation]));
            prop_assert!(optional.into_iter().flatten().all(f64::is_finite));
        }
        if let Ok(found) = outliers(&values) {
            prop_assert!(found.iter().all(|outlier| all_finite(&[outlier.value, outlier.modified_z])));
        }
        if let Ok(found) = compare_runs(&values, &more) {
            prop_assert!(all_finite(&[found.percent.median, found.percent.low, found.percent.high]));
            prop_assert!(found.percent.holds(found.percent.median));
        }
        if let Ok(found) = compare_with_baseline(&repetitions(&values), &[&repetitions(&more)]) {
            prop_assert!(all_finite(&[found.paired.median, found.paired.low, found.paired.high]));
        }
        if let Ok(found) = judge_window(&values, 0) {
            prop_assert!(all_finite(&[found.average, found.range, found.slope]));
        }
        for test in [PairedTest::SignFlip, PairedTest::Wilcoxon] {
            if let Ok(found) = test.run(&values) {
                prop_assert!(found.p_value > 0.0 && found.p_value <= 1.0);
            }
        }
        let subjects = [repetitions(&values), repetitions(&more)];
        for test in [PairedTest::SignFlip, PairedTest::Wilcoxon] {
            let subjects = [&subjects[0], &subjects[1]];
            if let Ok(found) = find_winner(&subjects, Better::Lower, test, 0.05) {
                let pair = found.comparisons[0];
                prop_assert!(pair.ties <= pair.repetitions && found.smallest_adjusted_p > 0.0);
            }
        }
    }
}
