//! The laboratory's statistics against SciPy, NumPy and statsmodels. The vectors are in
//! `testdata/stats`, with the script that made them and the versions it used.
//!
//! Tolerance: 1e-12 relative where both sides compute the same formula; where SciPy had to draw,
//! the bounds are four standard deviations of its drawing.

use std::path::Path;

use braid_lab::stats::{
    Histogram, IntervalKind, PairedTest, Percentile, TestMethod, compare_runs, estimate, holm,
    judge_window, mann_whitney, median, outliers, sign_flip, spread, wilcoxon_signed_rank,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

fn vectors<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/stats").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<T> = serde_json::from_str(&text).unwrap();
    assert!(!rows.is_empty(), "{name} holds nothing to compare with");
    rows
}

#[track_caller]
fn assert_close(ours: f64, theirs: f64, name: &str) {
    let allowed = 1e-12 * ours.abs().max(theirs.abs()).max(1.0);
    assert!((ours - theirs).abs() <= allowed, "{name}: {ours} and not {theirs}");
}

/// Within both, give or take the last digits.
#[track_caller]
fn assert_between(ours: f64, bounds: [f64; 2], name: &str) {
    let margin = 1e-12 * ours.abs();
    let inside = bounds[0] - margin <= ours && ours <= bounds[1] + margin;
    assert!(inside, "{name}: {ours} is not within {bounds:?}");
}

#[derive(Deserialize)]
struct MedianRow {
    name: String,
    values: Vec<f64>,
    median: f64,
    exact: Option<[f64; 2]>,
    low_between: Option<[f64; 2]>,
    high_between: Option<[f64; 2]>,
}

#[test]
fn intervals_of_medians_are_the_limit_of_resampling() {
    let (mut enumerated, mut drawn) = (0, 0);
    for row in vectors::<MedianRow>("median.json") {
        let ours = estimate(&row.values).unwrap();
        assert_close(ours.median, row.median, &row.name);
        assert_eq!(median(&row.values), Some(ours.median));
        if let Some([low, high]) = row.exact {
            assert_close(ours.low, low, &row.name);
            assert_close(ours.high, high, &row.name);
            enumerated += 1;
        }
        if let Some((low, high)) = row.low_between.zip(row.high_between) {
            assert_eq!(ours.kind, IntervalKind::Bootstrap95);
            assert_between(ours.low, low, &row.name);
            assert_between(ours.high, high, &row.name);
            drawn += 1;
        } else {
            assert_eq!(ours.kind, IntervalKind::Range(row.values.len()));
        }
    }
    assert!(enumerated >= 20 && drawn >= 45, "{enumerated} {drawn}");
}

#[derive(Deserialize)]
struct SpreadRow {
    name: String,
    values: Vec<f64>,
    mad: f64,
    mean: f64,
    sd: Option<f64>,
    cv: Option<f64>,
    outliers: Vec<usize>,
    scores: Vec<f64>,
}

#[test]
fn spreads_and_outliers() {
    let mut found = 0;
    for row in vectors::<SpreadRow>("spread.json") {
        let ours = spread(&row.values).unwrap();
        assert_close(ours.median_absolute_deviation, row.mad, &row.name);
        assert_close(ours.mean, row.mean, &row.name);
        assert_eq!(ours.standard_deviation.is_some(), row.sd.is_some(), "{}", row.name);
        if let Some((ours, theirs)) = ours.standard_deviation.zip(row.sd) {
            assert_close(ours, theirs, &row.name);
        }
        if let Some((ours, theirs)) = ours.coefficient_of_variation.zip(row.cv) {
            assert_close(ours, theirs, &row.name);
        }
        let named = outliers(&row.values).unwrap();
        let indices: Vec<usize> = named.iter().map(|outlier| outlier.index).collect();
        assert_eq!(indices, row.outliers, "{}", row.name);
        for (outlier, score) in named.iter().zip(&row.scores) {
            assert_close(outlier.modified_z, *score, &row.name);
        }
        found += named.len();
    }
    assert!(found >= 10, "only {found} outliers in all samples");
}

#[derive(Deserialize)]
struct PairedRow {
    name: String,
    differences: Vec<f64>,
    sign_flip: f64,
    exact: bool,
    wilcoxon: Option<f64>,
}

#[test]
fn paired_tests() {
    let mut by_ranks = 0;
    for row in vectors::<PairedRow>("paired.json") {
        let ours = sign_flip(&row.differences).unwrap();
        assert_eq!(PairedTest::SignFlip.run(&row.differences).unwrap(), ours);
        if row.exact {
            assert_eq!(ours.method, TestMethod::Exact, "{}", row.name);
            assert_close(ours.p_value, row.sign_flip, &row.name);
        } else {
            let theirs = row.sign_flip;
            let deviation = |draws: f64| (theirs * (1.0 - theirs) / draws).sqrt();
            let drawn = match ours.method {
                TestMethod::Exact => 0.0,
                TestMethod::MonteCarlo(draws) => deviation(f64::from(draws)),
            };
            let allowed = 4.0 * (drawn + deviation(400_000.0)) + 1e-4;
            assert!((ours.p_value - theirs).abs() <= allowed, "{}: {ours:?} {theirs}", row.name);
        }
        if let Some(theirs) = row.wilcoxon {
            let ours = wilcoxon_signed_rank(&row.differences).unwrap();
            assert_eq!(ours.method, TestMethod::Exact);
            assert_close(ours.p_value, theirs, &row.name);
            by_ranks += 1;
        }
    }
    assert!(by_ranks >= 45, "{by_ranks}");
}

#[derive(Deserialize)]
struct IndependentRow {
    name: String,
    a: Vec<f64>,
    b: Vec<f64>,
    p: f64,
    low_between: Option<[f64; 2]>,
    high_between: Option<[f64; 2]>,
}

#[test]
fn independent_samples() {
    let mut ratios = 0;
    for row in vectors::<IndependentRow>("independent.json") {
        let ours = mann_whitney(&row.a, &row.b).unwrap();
        assert_eq!(ours.method, TestMethod::Exact);
        assert_close(ours.p_value, row.p, &row.name);
        assert_close(mann_whitney(&row.b, &row.a).unwrap().p_value, row.p, &row.name);
        let runs = compare_runs(&row.a, &row.b).unwrap();
        assert_eq!(runs.test, ours);
        if let Some((low, high)) = row.low_between.zip(row.high_between) {
            assert_eq!(runs.percent.kind, IntervalKind::Bootstrap95);
            assert_between(runs.percent.low / 100.0, low, &row.name);
            assert_between(runs.percent.high / 100.0, high, &row.name);
            ratios += 1;
        }
    }
    assert!(ratios >= 8, "{ratios}");
}

#[derive(Deserialize)]
struct HolmRow {
    name: String,
    p: Vec<f64>,
    adjusted: Vec<f64>,
}

#[test]
fn adjusted_p_values() {
    for row in vectors::<HolmRow>("holm.json") {
        let ours = holm(&row.p).unwrap();
        assert_eq!(ours.len(), row.adjusted.len());
        for (ours, theirs) in ours.into_iter().zip(row.adjusted) {
            assert_close(ours, theirs, &row.name);
        }
    }
}

#[derive(Deserialize)]
struct RanksRow {
    count: u32,
    q: f64,
    value: f64,
    low: f64,
    high: f64,
}

/// The requests took 1, 2, 3, ... ns, so that each is its own rank.
#[test]
fn intervals_of_quantiles() {
    for row in vectors::<RanksRow>("ranks.json") {
        let bins = (1..=u64::from(row.count)).map(|value| (value, 1));
        let histogram = Histogram::from_bins(bins).unwrap();
        let name = format!("{} of {}", row.q, row.count);
        let Percentile::Supported { value, low, high, count } =
            histogram.percentile(row.q).unwrap()
        else {
            panic!("{name} is not supported");
        };
        assert_eq!((value, low, high), (row.value, row.low, row.high), "{name}");
        assert_eq!(count, u64::from(row.count), "{name}");
    }
}

#[derive(Deserialize)]
struct SlopeRow {
    name: String,
    values: Vec<f64>,
    average: f64,
    range: f64,
    slope: f64,
}

#[test]
fn slopes_of_windows() {
    for row in vectors::<SlopeRow>("slope.json") {
        let window = judge_window(&row.values, 3).unwrap();
        assert_eq!((window.first, window.rounds), (3, row.values.len()));
        assert_close(window.average, row.average, &row.name);
        assert_close(window.range, row.range, &row.name);
        assert_close(window.slope, row.slope, &row.name);
    }
}
