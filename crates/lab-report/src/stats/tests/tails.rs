//! Percentiles and histograms.

use super::*;

#[test]
fn what_a_percentile_needs() {
    let needed = |q| values_needed(q).unwrap();
    assert_eq!(
        [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999].map(needed),
        [20, 100, 200, 1_000, 10_000, 100_000]
    );
    assert_eq!([0.1, 0.01].map(needed), [100, 1_000]);
    assert_eq!([0.0, 1.0, -0.1, f64::NAN].map(values_needed), [None; 4]);
}

#[test]
fn a_percentile_that_the_sample_does_not_reach_is_refused() {
    let bins = Histogram::from_bins((0..999).map(|value| (value, 1))).unwrap();
    assert_eq!(bins.percentile(0.99), None);
    assert!(bins.percentile(0.98).is_some());
    let one_bin = |requests| Histogram::from_bins([(5, requests)]).unwrap();
    assert_eq!(one_bin(999).percentile(0.99), None);
    assert_eq!(one_bin(1_000).percentile(0.99), Some(5.0));
}

/// Values 1 to 1,000 in bins of ten: the 990th is in the bin 990.
#[test]
fn percentiles_from_bins() {
    let bins = Histogram::from_bins((1..=1_000_u64).map(|v| (v.div_ceil(10) * 10, 1))).unwrap();
    assert_eq!(bins.percentile(0.99), Some(990.0));
    assert_eq!(bins.percentile(0.5), Some(500.0));
    assert_eq!((bins.min_ns(), bins.max_ns(), bins.total()), (Some(10), Some(1_000), 1_000));
}

/// 1,000 requests at 1 ms and 20 at 100 ms: the 99 % latency of all requests is 100 ms, that of the first run 1
/// ms; the mean over the two runs would be 50.5 ms.
#[test]
fn merging_adds_requests() {
    let (fast, slow) = ((1_000_000, 1_000), (100_000_000, 20));
    let all = Histogram::from_bins([fast, slow]).unwrap();
    assert_eq!(all.percentile(0.99), Some(100_000_000.0));
    assert_eq!(all.percentile(0.98), Some(1_000_000.0));
    assert!(Histogram::from_bins([]).unwrap().is_empty());
}

#[test]
fn bins_are_in_order_and_without_empty_ones() {
    let bins = Histogram::from_bins([(2_024, 1), (1_000, 1), (77, 0), (2_024, 2)]).unwrap();
    assert_eq!(bins.bins().collect::<Vec<_>>(), [(1_000, 1), (2_024, 3)]);
}

#[test]
fn too_many_requests_are_refused() {
    let full = Histogram::from_bins([(1, u64::MAX)]).unwrap();
    assert_eq!(Histogram::from_bins([(1, u64::MAX), (1, 1)]), None);
    assert_eq!(full.percentile(0.999), Some(1.0));
}

#[test]
fn nothing_has_no_percentile_and_no_curve() {
    let nothing = Histogram::default();
    assert_eq!(nothing.percentile(0.5), None);
    assert!(nothing.cumulative(100).is_empty());
    assert_eq!((nothing.min_ns(), nothing.max_ns()), (None, None));
}

#[test]
fn a_short_curve_is_whole() {
    let bins = Histogram::from_bins([(10, 1), (20, 2), (40, 1)]).unwrap();
    let points: Vec<(u64, f64)> =
        bins.cumulative(4).iter().map(|point| (point.value_ns, point.at_most)).collect();
    assert_eq!(points, [(10, 0.25), (20, 0.75), (40, 1.0)]);
    // The same holds if two bins are so close that they are one step.
    let close = Histogram::from_bins([(10, 1), (11, 1), (1_000, 8)]).unwrap();
    assert_eq!(close.cumulative(4).len(), 3);
}

/// A tail of a millionth keeps its points, because half of the points follow the latency.
#[test]
fn a_thinned_curve_keeps_its_tail() {
    let body = (1..=1_000_u64).map(|v| (1_000 + v, 1_000));
    let tail = (1..=100_u64).map(|v| (v * 1_000_000, 1));
    let bins = Histogram::from_bins(body.chain(tail)).unwrap();
    let points = bins.cumulative(100);
    assert!(points.len() <= 100);
    assert!(points.iter().filter(|point| point.value_ns >= 1_000_000).count() >= 15);
    assert!(points.iter().filter(|point| point.value_ns < 1_000_000).count() >= 45);
}

fn histogram() -> impl Strategy<Value = Histogram> {
    let bin = (prop_oneof![0_u64..50, 1_000_u64..10_000_000], 0_u64..400);
    prop::collection::vec(bin, 0..60).prop_map(|bins| Histogram::from_bins(bins).unwrap())
}

/// The share of requests up to a latency, on the curve drawn in steps.
fn height(points: &[CumulativePoint], value_ns: u64) -> f64 {
    points.iter().take_while(|point| point.value_ns <= value_ns).last().map_or(0.0, |p| p.at_most)
}

proptest! {
    #[test]
    fn a_merged_histogram_is_the_histogram_of_all(a in histogram(), b in histogram()) {
        let all = Histogram::from_bins(a.bins().chain(b.bins())).unwrap();
        prop_assert_eq!(&Histogram::from_bins(b.bins().chain(a.bins())).unwrap(), &all);
        prop_assert_eq!(all.total(), a.total() + b.total());
        prop_assert_eq!(all.max_ns(), a.max_ns().max(b.max_ns()));
    }

    #[test]
    fn percentiles_rise_and_are_what_they_say(bins in histogram()) {
        prop_assume!(!bins.is_empty());
        let mut before = 0.0;
        for q in [0.01, 0.1, 0.5, 0.9, 0.99, 0.999] {
            if let Some(value) = bins.percentile(q) {
                prop_assert!(before <= value);
                // The definition: a share of at least q has a latency up to this one, and a smaller share a
                // lower latency.
                let up_to = |v: f64| bins.bins().filter(|bin| bin.0 as f64 <= v).map(|bin| bin.1).sum::<u64>();
                let mark = bins.total() as f64 * q;
                prop_assert!(up_to(value) as f64 >= mark - 1e-6);
                prop_assert!((up_to(value - 0.5) as f64) < mark + 1e-6);
                before = value;
            }
        }
    }

    /// The promise of `cumulative`, at every bin.
    #[test]
    fn a_thinned_curve_is_nearly_the_whole_one(bins in histogram(), max in 0_usize..40) {
        let (thin, whole) = (bins.cumulative(max), bins.cumulative(usize::MAX));
        let max = max.max(4);
        prop_assert!(thin.len() <= max);
        prop_assert_eq!(thin.first(), whole.first());
        prop_assert_eq!(thin.last(), whole.last());
        for point in &whole {
            let gap = point.at_most - height(&thin, point.value_ns);
            prop_assert!((0.0..2.0 / max as f64 + 1e-12).contains(&gap), "{gap}");
        }
        prop_assert!(thin.is_sorted_by(|a, b| a.value_ns < b.value_ns && a.at_most < b.at_most));
    }
}
