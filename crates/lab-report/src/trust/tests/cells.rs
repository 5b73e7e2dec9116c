use super::*;

/// A lab whose `single` has these throughputs, in the order of its repetitions.
fn repeated(rates: &[f64]) -> Lab {
    let mut lab = Lab::new();
    let first = lab.trials[0].clone();
    lab.trials = rates
        .iter()
        .zip(1..)
        .map(|(rate, repetition)| {
            let mut trial = StoredTrial { number: repetition, repetition, ..first.clone() };
            set(&mut trial, Metric::Throughput, rate * 1e6);
            set(&mut trial, Metric::Iops, *rate);
            trial
        })
        .collect();
    lab
}

#[test]
fn repetitions_that_only_fall_drift() {
    let of = |rates: &[f64]| repeated(rates).found("unsteady-repetitions");
    let finding = of(&[100.0, 96.0, 92.0, 88.0, 85.0]).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("falls from repetition to repetition, by 16 %"), "{finding:?}");
    // Four in order are one of twelve by chance, five with a swap one of twelve too.
    assert_eq!(of(&[100.0, 96.0, 92.0, 88.0]), None);
    assert_eq!(of(&[100.0, 92.0, 96.0, 88.0, 85.0]), None);
    // Six with one swap are not chance any more.
    assert!(of(&[100.0, 92.0, 96.0, 88.0, 85.0, 80.0]).is_some());
    // In order, but next to nothing.
    assert_eq!(of(&[100.0, 99.0, 98.0, 97.0, 96.0]), None);
}

/// Of six and seven, the most disorder that chance gives in at most 5 % is still a drift.
#[test]
fn the_limits_are_those_that_can_be_attained() {
    let of = |rates: &[f64]| repeated(rates).found("unsteady-repetitions");
    // Two pairs of neighbours changed places: 3.3 %.
    let finding = of(&[80.0, 70.0, 110.0, 100.0, 120.0, 130.0]).unwrap();
    assert!(finding.why.contains("rises from repetition to repetition"), "{finding:?}");
    assert_eq!(of(&[80.0, 70.0, 110.0, 100.0, 101.0, 99.0]), None);
    // Squares of rank differences of 12: 4.8 %.
    assert!(of(&[108.0, 100.0, 104.0, 120.0, 112.0, 116.0, 124.0]).is_some());
}

/// Fourteen repetitions rise, and the last is a fifth of them: the line falls, they do not.
#[test]
fn one_repetition_far_off_is_no_drift() {
    let mut rates: Vec<f64> = (101..=114).map(f64::from).collect();
    rates.push(20.0);
    assert_eq!(repeated(&rates).found("unsteady-repetitions"), None);
}

/// How many of all orders of n values have which sum of squared rank differences: by the ranks that
/// are taken, position by position.
fn orders(n: usize) -> BTreeMap<usize, u64> {
    let mut by_taken = BTreeMap::from([(0_usize, BTreeMap::from([(0, 1)]))]);
    for position in 0..n {
        let mut next: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
        for (taken, sums) in &by_taken {
            for rank in (0..n).filter(|rank| taken & (1 << rank) == 0) {
                let into = next.entry(taken | 1 << rank).or_default();
                for (sum, count) in sums {
                    *into.entry(sum + position.abs_diff(rank).pow(2)).or_default() += count;
                }
            }
        }
        by_taken = next;
    }
    by_taken.into_values().next().unwrap()
}

/// Chance gives the limit in at most 5 % of all orders, and the next weaker order in more.
#[test]
fn the_limits_of_order_are_exact() {
    use crate::trust::steady::{BY_CHANCE, least_order};
    for (n, squares) in BY_CHANCE {
        let by_sum = orders(n);
        let all: u64 = by_sum.values().sum();
        assert_eq!(all, (1..=n as u64).product::<u64>());
        // Both directions are alike.
        let chance = |most: usize| 2 * by_sum.range(..=most).map(|(_, n)| n).sum::<u64>();
        let squares = squares as usize;
        let (next, _) = by_sum.range(squares + 1..).next().unwrap();
        assert!(by_sum.contains_key(&squares), "{n}: nothing has this sum");
        assert!(chance(squares) * 20 <= all, "{n}: {} of {all}", chance(squares));
        assert!(chance(*next) * 20 > all, "{n}: the next is chance as well");
        let order = 1.0 - 6.0 * squares as f64 / (n.pow(3) - n) as f64;
        assert!((least_order(n).unwrap() - order).abs() < 1e-12);
    }
    assert_eq!(least_order(4), None);
    assert!((least_order(11).unwrap() - 0.6198).abs() < 1e-4);
}

/// Beyond the table: for 20 values 1.96/√19 = 0.45.
#[test]
fn many_repetitions_need_less_order() {
    let rates: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i) + 5.0 * f64::from(i % 3)).collect();
    assert!(repeated(&rates).found("unsteady-repetitions").is_some());
    let scattered: Vec<f64> = (0..20).map(|i| 100.0 + 10.0 * f64::from(i % 2)).collect();
    assert_eq!(repeated(&scattered).found("unsteady-repetitions"), None);
}

#[test]
fn repetitions_far_apart_are_doubted() {
    let of = |rates: &[f64]| repeated(rates).found("unsteady-repetitions");
    assert_eq!(of(&[100.0, 80.0, 129.0]), None);
    let finding = of(&[100.0, 78.0, 132.0]).unwrap();
    assert!(finding.why.contains("scatters over 3 repetitions, by 26 %"), "{finding:?}");
    // One wild of five is passed over, two are not.
    assert_eq!(of(&[100.0, 99.0, 101.0, 30.0, 102.0]), None);
    assert!(of(&[100.0, 30.0, 101.0, 35.0, 102.0]).is_some());
    assert_eq!(of(&[100.0]), None);
}

#[test]
fn one_repetition_is_remarked_and_still_ok() {
    let lab = repeated(&[100.0]);
    let verdict = lab.judge().of("single", &lab.workload.label()).cloned().unwrap();
    assert_eq!(verdict.standing, Standing::Ok);
    assert_eq!(verdict.findings[0].rule, "few-repetitions");
    assert_eq!(verdict.findings[0].standing, Remark);
    assert_eq!(repeated(&[100.0, 101.0]).found("few-repetitions"), None);
}

#[test]
fn failures_beside_numbers_are_doubted() {
    let mut lab = Lab::new();
    lab.trials[1].outcome = Outcome::Failed("fio met I/O errors".into());
    let finding = lab.found("failed-trials").unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("1 of 3 repetitions failed"), "{finding:?}");
    assert!(finding.why.contains("fio met I/O errors"), "{finding:?}");
    // What cannot be done at all has not failed.
    lab.trials[1].outcome = Outcome::Impossible("too small".into());
    assert_eq!(lab.found("failed-trials"), None);
}

#[test]
fn numbers_of_two_kernels_are_not_compared() {
    let mut lab = Lab::new();
    lab.add("other", Source::Stack("/dev/sdb".into()), &["sdb"]);
    // Trials 1 to 3 are of `single`, 4 to 6 of `other`.
    lab.sessions.push(session(1004, "Linux 7"));
    for subject in ["single", "other"] {
        let finding = lab.found_about(subject, "mixed-environment").unwrap();
        assert_eq!(finding.standing, Suspect);
        assert!(finding.why.contains("kernel: Linux 6 and Linux 7"), "{finding:?}");
    }
    lab.sessions[1] = session(1004, "Linux 6");
    assert_eq!(lab.found("mixed-environment"), None);
    // A session that nothing was measured in does not count.
    lab.sessions[1] = session(9000, "Linux 7");
    assert_eq!(lab.found("mixed-environment"), None);
}
