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
    let finding = of(&[100.0, 80.0, 131.0]).unwrap();
    assert!(finding.why.contains("the interval is 51 % of the median"), "{finding:?}");
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
