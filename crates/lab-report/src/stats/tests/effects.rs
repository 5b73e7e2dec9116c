//! Effects: by hand, by properties, and how often they err.

use super::*;
use braid_seed::Rng;

fn against_100(values: &[f64]) -> Effect {
    Effect::of(&repetitions(values), &repetitions(&vec![100.0; values.len()])).unwrap()
}

/// Logarithms ln 2 − d, ln 2 and ln 2 + d: mean ln 2, deviation d, and t of two degrees is 4.302653.
#[test]
fn by_hand() {
    let d: f64 = 0.1;
    let effect = against_100(&[200.0 * (-d).exp(), 200.0, 200.0 * d.exp()]);
    assert!((effect.ratio - 2.0).abs() < 1e-12 && (effect.log_sd - d).abs() < 1e-12);
    let reach = 4.302_652_73 * d / 3.0_f64.sqrt();
    assert!((effect.high / effect.ratio - reach.exp()).abs() < 1e-6, "{effect:?}");
    assert!((effect.ratio / effect.low - reach.exp()).abs() < 1e-6, "{effect:?}");
    assert_eq!(effect.pairs, 3);
}

#[test]
fn a_drift_cancels_out() {
    let drifting = |factor: f64| -> ByRepetition {
        (1..=8).map(|rep| (rep, factor * 100.0 / f64::from(rep))).collect()
    };
    let effect = Effect::of(&drifting(1.5), &drifting(1.0)).unwrap();
    assert!((effect.ratio - 1.5).abs() < 1e-12 && effect.low > 1.49, "{effect:?}");
}

#[test]
fn only_repetitions_that_both_have_count() {
    let one: ByRepetition = [(1, 10.0), (2, 20.0), (5, 30.0)].into();
    let other: ByRepetition = [(2, 10.0), (3, 10.0), (5, 15.0)].into();
    let effect = Effect::of(&one, &other).unwrap();
    assert!(effect.pairs == 2 && (effect.ratio - 2.0).abs() < 1e-12, "{effect:?}");
    assert_eq!(Effect::of(&one, &[(7, 1.0)].into()), None);
}

/// One repetition has a ratio, and nothing says how sure it is.
#[test]
fn one_pair_proves_nothing() {
    let effect = against_100(&[500.0]);
    assert!((effect.ratio - 5.0).abs() < 1e-12);
    assert_eq!((effect.low, effect.high, effect.p_value), (effect.ratio, effect.ratio, 1.0));
    assert!(!effect.has_interval() && effect.at_most_apart().is_none());
    assert_eq!(effect.pairs_to_tell(2.0, 0.0, 0.05), None);
}

/// Three equal numbers do not prove that the fourth is equal: noise is never taken for nothing.
#[test]
fn equal_repetitions_have_an_interval() {
    let effect = against_100(&[100.0; 3]);
    assert!(effect.low < 1.0 && effect.high > 1.0 && effect.p_value == 1.0, "{effect:?}");
    assert!(effect.at_most_apart().unwrap() < 0.003);
    // Whole seconds: 4, 4, 4 against 5, 5, 5 are apart, and not by more digits than were printed.
    let seconds = Effect::of(&repetitions(&[5.0; 3]), &repetitions(&[4.0; 3])).unwrap();
    assert!(seconds.p_value < 0.001 && seconds.low < 1.2475, "{seconds:?}");
}

#[test]
fn how_far_apart_two_may_be() {
    let effect = Effect { ratio: 1.0, low: 0.98, high: 1.01, pairs: 5, log_sd: 0.01, p_value: 0.5 };
    assert!((effect.at_most_apart().unwrap() - (1.0 / 0.98 - 1.0)).abs() < 1e-12);
}

/// With 5 % noise and a true difference of 10 % six pairs find it in some 80 of 100 cases.
#[test]
fn what_a_proof_takes_is_what_it_takes() {
    let effect = Effect { log_sd: 0.05 * 2.0_f64.sqrt(), ..against_100(&[90.0, 100.0, 111.0]) };
    let needed = effect.pairs_to_tell(1.10, 0.0, 0.05).unwrap();
    let mut rng = Rng::new(7);
    let found = (0..2_000)
        .filter(|_| {
            let pair = |_| 0.10_f64.ln_1p() + normal(&mut rng) * 0.05 * 2.0_f64.sqrt();
            let pairs: Vec<f64> = (0..needed).map(pair).collect();
            Effect::of_logarithms(&pairs).unwrap().p_value <= 0.05
        })
        .count();
    assert!((1_500..1_800).contains(&found), "{needed} pairs find it in {found} of 2000");
    assert_eq!(effect.pairs_to_tell(1.0001, 0.0, 0.05), None, "more than anybody measures");
}

/// The plan has as many repetitions as the statistics want, for as many kinds of work as anybody has.
#[test]
fn enough_repetitions_are_planned() {
    let effect = Effect { log_sd: 0.05 * 2.0_f64.sqrt(), ..against_100(&[90.0, 100.0, 111.0]) };
    for questions in 1..=1000_u32 {
        let wanted = effect.pairs_to_tell(1.2, 0.0, 0.05 / f64::from(questions)).unwrap();
        let planned = braid_lab::plan::repetitions_to_plan(questions as usize);
        assert_eq!(planned as usize, wanted, "{questions} kinds of work");
    }
}

/// Without a drift: a change of 0.35 with an error of √(0.0025 + 0.01), and one degree of freedom, which is
/// Cauchy's distribution.
#[test]
fn two_runs_by_hand() {
    let runs = [vec![0.0, 0.1], vec![0.3, 0.5]];
    let none = Drift { deviation: 0.0, freedom: 30.0 };
    let effect = Effect::between_runs(&runs, none, 0.0).unwrap();
    let (change, error) = (0.35_f64, 0.0125_f64.sqrt());
    assert!((effect.ratio - change.exp()).abs() < 1e-12, "{effect:?}");
    let p_value = 0.5 - (change / error).atan() / std::f64::consts::PI;
    assert!((effect.p_value - p_value).abs() < 1e-9, "{effect:?} and not {p_value}");
    assert!((effect.high.ln() - change - 12.706_205 * error).abs() < 1e-5, "{effect:?}");
    // A threshold asks for more.
    let beyond = Effect::between_runs(&runs, none, 0.2).unwrap();
    assert!(beyond.p_value > effect.p_value && beyond.low == effect.low);
    let alone = Effect::between_runs(&[vec![0.0], vec![0.3, 0.5]], none, 0.0).unwrap();
    assert!(!alone.has_interval() && alone.p_value == 1.0);
    // Three things that are the same moved by 0, 0.1 and 0.2: twice 0.01, less the noise of none.
    let same = [0.0, 0.1, 0.2].map(|moved| [vec![0.0; 3], vec![moved; 3]]);
    let drift = Drift::of_the_same(&same.each_ref()).unwrap();
    assert!((drift.deviation - 0.02_f64.sqrt()).abs() < 1e-12 && drift.freedom == 2.0);
}

/// A standard normal number (Box and Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let mut unit = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos()
}

/// The logarithm of a repetition's noise.
type Noise = fn(&mut Rng, u32) -> f64;

/// Noise as storage has it: even, skewed by a slow repetition now and then, drifting, and in steps.
fn noises() -> [(&'static str, Noise); 4] {
    [
        ("normal", |rng, _| 0.05 * normal(rng)),
        ("one in five disturbed", |rng, _| {
            0.03 * normal(rng) - if rng.index(5) == 0 { 0.5 } else { 0.0 }
        }),
        ("drifting", |rng, rep| 0.05 * normal(rng) - 0.1 * f64::from(rep)),
        ("in steps of 2 %", |rng, _| (0.03 * normal(rng) * 50.0).round() / 50.0),
    ]
}

/// Statement of `docs/statistics.md`: for two equal subjects the interval excludes 1 in at most 5.5 of 100
/// campaigns, for all kinds of noise, from three repetitions on.
#[test]
fn of_equal_subjects_an_interval_errs_in_five_of_a_hundred() {
    const CAMPAIGNS: usize = 4_000;
    for (name, noise) in noises() {
        for repetitions in [3_u32, 5, 8] {
            let mut rng = Rng::new(u64::from(repetitions));
            let wrong = (0..CAMPAIGNS)
                .filter(|_| {
                    let mut one = |_: u32| -> ByRepetition {
                        (0..repetitions).map(|r| (r, 100.0 * noise(&mut rng, r).exp())).collect()
                    };
                    let (a, b) = (one(0), one(1));
                    let effect = Effect::of(&a, &b).unwrap();
                    let outside = effect.low > 1.0 || effect.high < 1.0;
                    assert_eq!(outside, effect.p_value <= 0.05, "{effect:?}");
                    outside
                })
                .count();
            let percent = 100.0 * wrong as f64 / CAMPAIGNS as f64;
            println!("{name}, {repetitions} repetitions: {percent:.1} %");
            assert!(percent <= 6.0, "{name}, {repetitions} repetitions: {percent} %");
        }
    }
}

proptest! {
    /// Doubling is exact in floating point, so nothing may change with the unit.
    #[test]
    fn the_unit_does_not_matter(
        values in prop::collection::vec((1e-3..1e12_f64, 1e-3..1e12_f64), 1..20), power in 0_i32..20,
    ) {
        let factor = f64::from(power).exp2();
        let (a, b): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let scaled = |values: &[f64]| repetitions(&values.iter().map(|v| v * factor).collect::<Vec<_>>());
        let one = Effect::of(&repetitions(&a), &repetitions(&b)).unwrap();
        prop_assert_eq!(Effect::of(&scaled(&a), &scaled(&b)).unwrap(), one);
        prop_assert!(one.low <= one.ratio && one.ratio <= one.high);
    }

    /// Seen from the other side it is the inverse, as sure as before.
    #[test]
    fn the_other_side_says_the_same(
        values in prop::collection::vec((1.0..1e6_f64, 1.0..1e6_f64), 1..20),
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let one = Effect::of(&repetitions(&a), &repetitions(&b)).unwrap();
        let other = Effect::of(&repetitions(&b), &repetitions(&a)).unwrap();
        for (x, y) in [(one.ratio, other.ratio), (one.low, other.high), (one.high, other.low)] {
            prop_assert!((x * y - 1.0).abs() < 1e-6, "{:?} {:?}", one, other);
        }
        prop_assert!((one.p_value - other.p_value).abs() < 1e-9);
    }

    #[test]
    fn adjusted_values_are_larger_and_keep_the_order(p in prop::collection::vec(0.0..1.0_f64, 0..30)) {
        let adjusted = holm(&p);
        for (index, (own, raised)) in p.iter().zip(&adjusted).enumerate() {
            prop_assert!(raised >= own && *raised <= 1.0);
            for (other, other_raised) in p.iter().zip(&adjusted).skip(index) {
                prop_assert!(own > other || raised <= other_raised);
            }
        }
    }
}
