//! The laboratory's statistics against SciPy, NumPy and statsmodels. The vectors are in
//! `testdata/stats`, with the script that made them and the versions it used.
//!
//! Tolerance: 1e-12 relative where both sides compute the same formula; 1e-9 for quantiles of
//! Student's distribution, which both find by iteration.

use std::path::Path;

use braid_lab_report::stats::{
    ByRepetition, Effect, Histogram, estimate, holm, judge_window, median,
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
fn assert_within(ours: f64, theirs: f64, part: f64, name: &str) {
    let allowed = part * ours.abs().max(theirs.abs());
    assert!((ours - theirs).abs() <= allowed, "{name}: {ours} and not {theirs}");
}

#[track_caller]
fn assert_close(ours: f64, theirs: f64, name: &str) {
    let allowed = 1e-12 * ours.abs().max(theirs.abs()).max(1.0);
    assert!((ours - theirs).abs() <= allowed, "{name}: {ours} and not {theirs}");
}

#[derive(Deserialize)]
struct MedianRow {
    name: String,
    values: Vec<f64>,
    median: f64,
    low: f64,
    high: f64,
}

#[test]
fn medians_and_ranges() {
    for row in vectors::<MedianRow>("median.json") {
        let ours = estimate(&row.values).unwrap();
        assert_close(ours.median, row.median, &row.name);
        assert_eq!((ours.low, ours.high, ours.count), (row.low, row.high, row.values.len()));
        assert_eq!(median(&row.values), Some(ours.median));
    }
}

#[derive(Deserialize)]
struct EffectRow {
    name: String,
    subject: Vec<f64>,
    other: Vec<f64>,
    ratio: f64,
    low: f64,
    high: f64,
    p: f64,
    sd: f64,
}

fn repetitions(values: &[f64]) -> ByRepetition {
    (1..).zip(values.iter().copied()).collect()
}

#[test]
fn effects_are_students() {
    let rows = vectors::<EffectRow>("effect.json");
    assert!(rows.len() >= 40, "{}", rows.len());
    for row in rows {
        let ours = Effect::of(&repetitions(&row.subject), &repetitions(&row.other)).unwrap();
        assert_within(ours.ratio, row.ratio, 1e-12, &row.name);
        assert_within(ours.log_sd, row.sd, 1e-9, &row.name);
        // A cauchy's interval may span hundreds of decades: its ends are compared as logarithms.
        assert_within(ours.low.ln(), row.low.ln(), 1e-8, &row.name);
        assert_within(ours.high.ln(), row.high.ln(), 1e-8, &row.name);
        assert_within(ours.p_value, row.p, 1e-7, &row.name);
    }
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
        let ours = holm(&row.p);
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
}

/// The requests took 1, 2, 3, ... ns, so that each is its own rank.
#[test]
fn quantiles_of_requests() {
    for row in vectors::<RanksRow>("ranks.json") {
        let bins = (1..=u64::from(row.count)).map(|value| (value, 1));
        let histogram = Histogram::from_bins(bins).unwrap();
        let found = histogram.percentile(row.q);
        assert_eq!(found, Some(row.value), "{} of {}", row.q, row.count);
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
