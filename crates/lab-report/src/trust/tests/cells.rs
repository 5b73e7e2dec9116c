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
    // Fewer than five are not judged, and of five one pair of neighbours may have changed places.
    assert_eq!(of(&[100.0, 96.0, 92.0, 88.0]), None);
    assert!(of(&[100.0, 92.0, 96.0, 88.0, 85.0]).is_some());
    assert_eq!(of(&[100.0, 88.0, 96.0, 92.0, 85.0]), None);
    // In order, but next to nothing.
    assert_eq!(of(&[100.0, 99.0, 98.0, 97.0, 96.0]), None);
    let rising = of(&[80.0, 70.0, 110.0, 100.0, 120.0, 130.0]).unwrap();
    assert!(rising.why.contains("rises from repetition to repetition"), "{rising:?}");
}

/// Fourteen repetitions rise, and the last is a fifth of them: the line falls, they do not.
#[test]
fn one_repetition_far_off_is_no_drift() {
    let mut rates: Vec<f64> = (101..=114).map(f64::from).collect();
    rates.push(20.0);
    assert_eq!(repeated(&rates).found("unsteady-repetitions"), None);
}

/// Statement of `docs/trust.md`: repetitions that only scatter are called a drift in about 5 of 100 cells.
#[test]
fn equal_repetitions_rarely_drift() {
    const CELLS: usize = 2_000;
    let mut rng = braid_seed::Rng::new(1);
    let mut unit = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    for count in [5, 7, 12] {
        // Like a bell, and with one in five at little more than half.
        for disturbed in [0.0, 0.2] {
            let mut alarms = 0;
            for _ in 0..CELLS {
                let mut one = || {
                    let bell = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
                    let lost = if unit() < disturbed { 40.0 } else { 0.0 };
                    100.0 + 15.0 * bell - lost
                };
                let values: Vec<f64> = (0..count).map(|_| one().max(1.0)).collect();
                alarms += usize::from(crate::trust::steady::drifts(&values).is_some());
            }
            println!("{count} repetitions, {disturbed} disturbed: {alarms} of {CELLS} drift");
            assert!(alarms * 100 <= 6 * CELLS, "{alarms} of {CELLS}, {count} repetitions");
        }
    }
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
