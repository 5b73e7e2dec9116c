//! Student's distribution against mpmath, a printed table, and the two cases that have a formula.

use serde::Deserialize;

use crate::stats::student::Student;

#[derive(Deserialize)]
struct Row {
    freedom: f64,
    t: f64,
    above: f64,
}

/// Returns the difference of two values relative to the second.
fn apart(ours: f64, theirs: f64) -> f64 {
    (ours / theirs - 1.0).abs()
}

/// Values of 40 digits, made by `testdata/stats/make_vectors.py`.
#[test]
fn probabilities_and_quantiles_are_those_of_mpmath() {
    let rows = include_str!("../../../testdata/stats/student.json");
    let rows: Vec<Row> = serde_json::from_str(rows).unwrap();
    assert!(rows.len() > 150, "{}", rows.len());
    for Row { freedom, t, above } in rows {
        let student = Student::new(freedom).unwrap();
        let ours = student.above(t);
        assert!(apart(ours, above) < 1e-11, "above {t} of {freedom}: {ours} and not {above}");
        assert!(apart(student.above(-t), 1.0 - above) < 1e-12, "above −{t} of {freedom}");
        // A probability near ½ says little of a value near 0.
        if (1e-12..0.43).contains(&above) {
            let ours = student.quantile_above(above);
            assert!(apart(ours, t) < 1e-10, "{above} of {freedom}: {ours} and not {t}");
        }
    }
}

/// Fisher and Yates, Statistical Tables (1938), table III: probabilities of both tails together.
#[test]
fn quantiles_are_those_of_the_printed_table() {
    for (freedom, of_20, of_5, of_1) in [
        (1.0, 3.078, 12.706, 63.657),
        (2.0, 1.886, 4.303, 9.925),
        (5.0, 1.476, 2.571, 4.032),
        (10.0, 1.372, 2.228, 3.169),
        (30.0, 1.310, 2.042, 2.750),
        (120.0, 1.289, 1.980, 2.617),
        (f64::INFINITY, 1.282, 1.960, 2.576),
    ] {
        let student = Student::new(freedom).unwrap();
        for (tails, printed) in [(0.20, of_20), (0.05, of_5), (0.01, of_1)] {
            let ours = student.quantile_above(tails / 2.0);
            assert!((ours - printed).abs() < 6e-4, "{freedom}, {tails}: {ours} and not {printed}");
        }
    }
}

/// One degree of freedom is Cauchy's distribution, and two have a root.
#[test]
fn one_and_two_degrees_have_a_formula() {
    let (one, two) = (Student::new(1.0).unwrap(), Student::new(2.0).unwrap());
    for t in [0.0_f64, 1e-9, 0.1, 1.0, 3.0, 1e4, 1e80] {
        let cauchy = (1.0_f64 / t).atan() / std::f64::consts::PI;
        assert!(apart(one.above(t), cauchy) < 1e-13, "{t}");
        let hypot = (t * t + 2.0).sqrt();
        assert!(apart(two.above(t), 1.0 / (hypot * (hypot + t))) < 1e-13, "{t}");
    }
}

#[test]
fn nothing_is_undefined() {
    for freedom in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        assert!(Student::new(freedom).is_none(), "{freedom}");
    }
    for freedom in [1e-3, 0.3, 1.0, 17.0, 1e5, 1e9, f64::MAX, f64::INFINITY] {
        let student = Student::new(freedom).unwrap();
        for t in [0.0, f64::MIN_POSITIVE, 1e-3, 1.0, 38.0, 1e10, 1e200, f64::MAX, f64::INFINITY] {
            assert!((0.0..=0.5).contains(&student.above(t)), "{freedom}, {t}");
            assert!((0.5..=1.0).contains(&student.above(-t)), "{freedom}, −{t}");
        }
    }
}
