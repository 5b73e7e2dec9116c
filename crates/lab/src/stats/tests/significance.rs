//! Tests, adjustments and winners.

use std::cmp::Ordering;

use super::*;

/// Four pairs all one way: 2 of 16 signs are as extreme. That is all four can ever say.
#[test]
fn four_pairs_cannot_be_significant() {
    let result = sign_flip(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!((result.p_value, result.smallest_p), (0.125, 0.125));
    assert_eq!(result.method, TestMethod::Exact);
    assert_eq!(wilcoxon_signed_rank(&[1.0, 2.0, 3.0, 4.0]).unwrap(), result);
}

/// Sums of ±1 ±2 ±3: 6, 4, 2, 0, 0, -2, -4, -6. At least 4 in size: 4 of 8.
#[test]
fn sign_flips_by_hand() {
    assert_eq!(sign_flip(&[-1.0, 2.0, 3.0]).unwrap().p_value, 0.5);
    assert_eq!(sign_flip(&[1.0, 2.0, -3.0]).unwrap().p_value, 1.0);
    // Zeros favour no side and add no pair.
    assert_eq!(sign_flip(&[0.0, -1.0, 0.0, 2.0, 3.0]).unwrap().p_value, 0.5);
    let still = sign_flip(&[0.0; 5]).unwrap();
    assert_eq!((still.p_value, still.smallest_p), (1.0, 1.0));
}

/// Where counting ends and drawing begins, both are near each other and the drawn one is honest
/// about its floor of one in 10,000.
#[test]
fn drawing_takes_over_where_counting_ends() {
    let differences: Vec<f64> = (1..=25).map(|i| (f64::from(i) * 7.3).sin() + 0.25).collect();
    let counted = sign_flip(&differences[..24]).unwrap();
    let drawn = sign_flip(&differences).unwrap();
    assert_eq!(counted.method, TestMethod::Exact);
    assert_eq!(drawn.method, TestMethod::MonteCarlo(9_999));
    assert!((counted.p_value - drawn.p_value).abs() < 0.1, "{counted:?} {drawn:?}");
    assert_eq!(sign_flip(&differences).unwrap(), drawn);
    let clear = sign_flip(&[1.0; 200]).unwrap();
    assert_eq!((clear.p_value, clear.smallest_p), (1e-4, 1e-4));
    let mixed: Vec<f64> = (0..101).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let ranks = wilcoxon_signed_rank(&mixed).unwrap();
    assert_eq!((ranks.method, ranks.p_value), (TestMethod::MonteCarlo(9_999), 1.0));
}

/// A wild repetition drowns the others in the sum; by ranks it is only the largest of eight.
#[test]
fn ranks_withstand_one_wild_repetition() {
    let differences = [0.10, 0.11, 0.12, 0.13, 0.14, 0.15, 0.16, -5.0];
    let (sum, ranks) =
        (sign_flip(&differences).unwrap(), wilcoxon_signed_rank(&differences).unwrap());
    // Ranks 8 against 28: sums up to 8 of 1..=8 with a sign: 25 of 256, twice.
    assert_eq!(ranks.p_value, 50.0 / 256.0);
    assert_eq!(sum.p_value, 1.0);
}

/// 1, 2, 3 against 4, 5, 6: one of 20 choices on either side.
#[test]
fn three_against_three() {
    let result = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
    assert_eq!((result.p_value, result.smallest_p), (0.1, 0.1));
    let same = mann_whitney(&[5.0; 3], &[5.0; 4]).unwrap();
    assert_eq!((same.p_value, same.smallest_p), (1.0, 1.0));
}

#[test]
fn many_independent_values_are_drawn() {
    let a: Vec<f64> = (0..41).map(f64::from).collect();
    let far: Vec<f64> = a.iter().map(|x| x + 100.0).collect();
    let near: Vec<f64> = a.iter().map(|x| x + 0.5).collect();
    let clear = mann_whitney(&a, &far).unwrap();
    assert_eq!((clear.method, clear.p_value), (TestMethod::MonteCarlo(9_999), 2e-4));
    assert_eq!(clear.smallest_p, 2e-4);
    assert!(mann_whitney(&a, &near).unwrap().p_value > 0.5);
    // Every draw is a tie, which is as extreme.
    assert_eq!(mann_whitney(&[1.0; 41], &[1.0; 41]).unwrap().p_value, 1.0);
}

/// 0.01 · 4 = 0.04; 0.02 · 3 = 0.06; 0.03 · 2 = 0.06; 0.9.
#[test]
fn holm_by_hand() {
    let adjusted = holm(&[0.02, 0.9, 0.01, 0.03]).unwrap();
    for (ours, expected) in adjusted.iter().zip([0.06, 0.9, 0.04, 0.06]) {
        assert!((ours - expected).abs() < 1e-15, "{adjusted:?}");
    }
    assert!(holm(&[]).unwrap().is_empty());
    assert!(matches!(holm(&[0.5, 1.5]), Err(StatsError::OutOfRange { position: 2, .. })));
    assert!(holm(&[f64::NAN]).is_err());
}

#[test]
fn repetitions_that_a_winner_needs() {
    let needed = |comparisons| repetitions_needed(comparisons, 0.05).unwrap();
    assert_eq!([1, 3, 6, 10, 45].map(needed), [6, 7, 8, 9, 11]);
    assert_eq!(repetitions_needed(0, 0.05).unwrap(), 6);
    assert_eq!(repetitions_needed(usize::MAX, 5e-324).unwrap(), 1_139);
    assert!(repetitions_needed(1, 0.0).is_err());
}

fn contest(subjects: &[&[f64]], better: Better, test: PairedTest) -> Contest {
    let subjects: Vec<ByRepetition> = subjects.iter().map(|values| repetitions(values)).collect();
    let subjects: Vec<&ByRepetition> = subjects.iter().collect();
    find_winner(&subjects, better, test, 0.05).unwrap()
}

const SLOW: [f64; 8] = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0, 97.0, 100.5];

fn times(factor: f64) -> Vec<f64> {
    SLOW.iter().map(|value| value * factor).collect()
}

#[test]
fn a_clear_winner_of_three() {
    for test in [PairedTest::SignFlip, PairedTest::Wilcoxon] {
        let found = contest(&[&SLOW, &times(2.0), &times(1.2)], Better::Higher, test);
        assert_eq!((found.leader, &found.standing), (1, &Standing::Winner(1)));
        assert_eq!((found.comparisons.len(), found.repetitions), (3, 8));
        // All three at 2/256, the smallest; three comparisons.
        assert_eq!(found.smallest_p, 2.0 / 256.0);
        assert_eq!(found.smallest_adjusted_p, 6.0 / 256.0);
        assert!(found.comparisons.iter().all(|pair| pair.adjusted_p == 6.0 / 256.0));
        assert!(found.can_decide());
        assert_eq!((found.comparisons[0].larger, found.comparisons[0].ties), (Ordering::Less, 0));
        let found = contest(&[&SLOW, &times(2.0), &times(1.2)], Better::Lower, test);
        assert_eq!(found.standing, Standing::Winner(0));
    }
}

/// Twice as fast in all four repetitions, and still: no test of four can say so.
#[test]
fn four_repetitions_name_no_winner_and_say_why() {
    let subjects = [&SLOW[..4], &times(2.0)[..4], &times(3.0)[..4]];
    let found = contest(&subjects, Better::Higher, PairedTest::SignFlip);
    assert_eq!(found.standing, Standing::Undecided(vec![2, 0, 1]));
    assert_eq!((found.smallest_p, found.smallest_adjusted_p), (0.125, 0.375));
    assert!(!found.can_decide());
    assert_eq!((found.repetitions, found.repetitions_needed), (4, 7));
}

/// Six repetitions are enough for two subjects (3.1 %) and not for three (9.4 %).
#[test]
fn the_comparisons_count() {
    let two = [&SLOW[..6], &times(2.0)[..6]];
    let found = contest(&two, Better::Higher, PairedTest::SignFlip);
    assert_eq!((found.standing.clone(), found.can_decide()), (Standing::Winner(1), true));
    let three = [&SLOW[..6], &times(2.0)[..6], &times(3.0)[..6]];
    let found = contest(&three, Better::Higher, PairedTest::SignFlip);
    assert!(found.comparisons.iter().all(|pair| pair.p_value < 0.05 && pair.adjusted_p > 0.05));
    assert_eq!(found.standing, Standing::Undecided(vec![2, 0, 1]));
    assert!(!found.can_decide());
}

/// Two that trade places, one far behind: the set at the top is the two.
#[test]
fn a_tie_at_the_top_is_a_set() {
    let swinging: Vec<f64> =
        (0..8).map(|i| SLOW[i] * if i % 2 == 0 { 2.02 } else { 1.98 }).collect();
    let found = contest(&[&SLOW, &swinging, &times(2.0)], Better::Higher, PairedTest::SignFlip);
    let Standing::Undecided(set) = &found.standing else { panic!("{found:?}") };
    let mut sorted = set.clone();
    sorted.sort_unstable();
    assert_eq!((sorted, set[0]), (vec![1, 2], found.leader));
    assert!(found.can_decide());
}

/// Ten repetitions of one, but only two in common: nothing can be said about this pair.
#[test]
fn a_winner_must_have_met_the_others() {
    let full = repetitions(&[200.0; 10]);
    let other = repetitions(&[100.0; 10]);
    let rare = ByRepetition::from([(0, 50.0), (99, 60.0)]);
    let never = ByRepetition::from([(77, 10.0)]);
    let found =
        find_winner(&[&full, &other, &rare, &never], Better::Higher, PairedTest::SignFlip, 0.05);
    let found = found.unwrap();
    assert_eq!(found.standing, Standing::Undecided(vec![0, 2, 3]));
    assert_eq!((found.repetitions, found.smallest_adjusted_p), (0, 1.0));
    let apart = found.comparisons.iter().find(|pair| (pair.left, pair.right) == (0, 3)).unwrap();
    assert_eq!((apart.repetitions, apart.larger, apart.p_value), (0, Ordering::Equal, 1.0));
}

/// Six repetitions, and in one of them both have the same number: it tells nothing, so five are
/// left, and five are too few.
#[test]
fn an_exact_tie_is_no_repetition() {
    let mut other = times(2.0);
    other[3] = SLOW[3];
    for test in [PairedTest::SignFlip, PairedTest::Wilcoxon] {
        let found = contest(&[&SLOW[..6], &other[..6]], Better::Higher, test);
        assert_eq!((found.repetitions, found.ties, found.repetitions_needed), (5, 1, 6));
        assert!(!found.can_decide());
        let found = contest(&[&SLOW[..7], &other[..7]], Better::Higher, test);
        assert_eq!((found.repetitions, found.ties), (6, 1));
        assert_eq!(found.standing, Standing::Winner(1));
    }
}

/// The second is faster in 14 of 15 repetitions, and in one the first is a hundred times as fast:
/// the sum of the logarithms is on its side, the ranks (15 against 105) are on the other's.
#[test]
fn ranks_decide_in_their_own_direction() {
    let first = [100.0; 15];
    let mut second: Vec<f64> = (1..=15).map(|i| 100.0 + f64::from(i)).collect();
    second[7] = 1.0;
    let by_ranks = contest(&[&first, &second], Better::Higher, PairedTest::Wilcoxon);
    assert!((by_ranks.comparisons[0].p_value - 0.008).abs() < 0.001, "{by_ranks:?}");
    assert_eq!(by_ranks.comparisons[0].larger, Ordering::Less);
    assert_eq!((by_ranks.leader, &by_ranks.standing), (1, &Standing::Winner(1)));
    let by_sizes = contest(&[&first, &second], Better::Higher, PairedTest::SignFlip);
    assert_eq!(by_sizes.comparisons[0].larger, Ordering::Greater);
    assert_eq!(by_sizes.standing, Standing::Undecided(vec![1, 0]));
}

/// The leader by medians loses every pair it shares with the other: it cannot be called better.
#[test]
fn a_leader_that_loses_its_pairs_is_no_winner() {
    let mut leader = repetitions(&[100.0; 8]);
    leader.extend((100..120).map(|repetition| (repetition, 300.0)));
    let found = find_winner(
        &[&leader, &repetitions(&[200.0; 8])],
        Better::Higher,
        PairedTest::SignFlip,
        0.05,
    )
    .unwrap();
    assert_eq!(found.leader, 0);
    assert!(found.comparisons[0].adjusted_p < 0.05);
    assert_eq!(found.standing, Standing::Undecided(vec![0, 1]));
}

#[test]
fn two_runs_differ_when_interval_and_test_agree() {
    let runs = [
        compare_runs(&SLOW, &times(1.5)).unwrap(),
        compare_runs(&SLOW, &times(1.001)).unwrap(),
        compare_runs(&SLOW[..3], &times(1.5)[..3]).unwrap(),
    ];
    assert_eq!(runs[0].percent.kind, IntervalKind::Bootstrap95);
    assert_eq!((runs[2].percent.kind, runs[2].repetitions), (IntervalKind::Range(3), (3, 3)));
    assert!((runs[0].percent.median - 150.0).abs() < 1e-9);
    // 98 · 1.5 / 103 and 103 · 1.5 / 98.
    assert!((runs[2].percent.low - 142.718_447).abs() < 1e-6);
    assert!((runs[2].percent.high - 157.653_061).abs() < 1e-6);
    let judged = judge_runs(&runs, 0.05).unwrap();
    let verdicts: Vec<Verdict> = judged.iter().map(|run| run.verdict).collect();
    // Three against three: the ranges lie apart, yet 1 in 10 is no proof.
    assert_eq!(
        verdicts,
        [Verdict::Above, Verdict::NotDistinguishable, Verdict::NotDistinguishable]
    );
    assert!((judged[0].adjusted_p - 3.0 * runs[0].test.p_value).abs() < 1e-15);
}

/// Four against four, fully apart: 2 of 70 choices. Enough for one cell, not for one of two.
#[test]
fn cells_of_two_runs_are_counted() {
    let apart = compare_runs(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).unwrap();
    let verdicts = |runs: &[RunComparison]| -> Vec<Verdict> {
        judge_runs(runs, 0.05).unwrap().iter().map(|run| run.verdict).collect()
    };
    assert_eq!(verdicts(&[apart]), [Verdict::Above]);
    assert_eq!(verdicts(&[apart, apart]), [Verdict::NotDistinguishable; 2]);
}

fn differences() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-3_i32..8).prop_map(|d| f64::from(d) / 4.0), 1..30)
}

proptest! {
    #[test]
    fn a_test_depends_on_neither_order_nor_sign_nor_scale(values in differences(), seed in 0_u64..99) {
        for test in [PairedTest::SignFlip, PairedTest::Wilcoxon] {
            let result = test.run(&values).unwrap();
            prop_assert!(result.smallest_p <= result.p_value && result.p_value <= 1.0);
            if result.method == TestMethod::Exact {
                let mut other: Vec<f64> = values.iter().map(|d| d * -1024.0).collect();
                crate::rng::SplitMix64::new(seed).shuffle(&mut other);
                let other = test.run(&other).unwrap();
                prop_assert!((other.p_value - result.p_value).abs() < 1e-12);
            }
        }
    }

    /// Counting in halves against counting one by one.
    #[test]
    fn counting_in_halves_counts_all(values in prop::collection::vec(-4_i32..9, 1..11)) {
        let total: i32 = values.iter().sum();
        let as_extreme = (0..1_u32 << values.len())
            .filter(|signs| {
                let signed = |(i, value): (usize, &i32)| if signs >> i & 1 == 1 { -value } else { *value };
                let sum: i32 = values.iter().enumerate().map(signed).sum();
                sum.abs() >= total.abs()
            })
            .count();
        let floats: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
        let expected = as_extreme as f64 / f64::from(1_u32 << values.len());
        prop_assert!((sign_flip(&floats).unwrap().p_value - expected).abs() < 1e-12);
    }

    #[test]
    fn holm_keeps_the_order_and_only_raises(p in prop::collection::vec(0.0_f64..=1.0, 0..30)) {
        let adjusted = holm(&p).unwrap();
        for (i, (p_i, adjusted_i)) in p.iter().zip(&adjusted).enumerate() {
            prop_assert!(p_i <= adjusted_i && *adjusted_i <= 1.0);
            prop_assert!(*adjusted_i <= p_i * p.len() as f64 + 1e-12 || adjusted.iter().any(|a| a == adjusted_i));
            for (p_j, adjusted_j) in p.iter().zip(&adjusted).skip(i) {
                prop_assert!(p_i > p_j || adjusted_i <= adjusted_j);
            }
        }
    }

    /// Swapping the runs turns the ratio round.
    #[test]
    fn two_runs_are_symmetrical(
        a in prop::collection::vec(1.0_f64..1e3, 1..12),
        b in prop::collection::vec(1.0_f64..1e3, 1..12),
    ) {
        let (there, back) = (compare_runs(&a, &b).unwrap(), compare_runs(&b, &a).unwrap());
        prop_assert_eq!(there.test, back.test);
        prop_assert!(there.percent.holds(there.percent.median));
        prop_assert!((there.percent.median * back.percent.median / 1e4 - 1.0).abs() < 1e-9);
        prop_assert!((there.percent.low * back.percent.high / 1e4 - 1.0).abs() < 1e-9);
    }
}
