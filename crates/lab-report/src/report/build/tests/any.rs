//! Whatever comes in: names, gaps, sizes.

use super::*;

#[test]
fn hostile_names_stay_words() {
    let evil = "<script>alert(1)</script>\\u001b[31m\\u202e|`' =cmd()";
    let plan = SMALL
        .replace("\"stripe\"", &format!("\"{evil}\""))
        .replace("\"stripes\"", &format!("\"{evil}\""));
    let results = results(&campaign(&plan), |_, workload, _| headline(workload, 1e6));
    let report = report_of(&results);
    check(&report);
    let page = crate::report::render::render_html(&report).unwrap();
    assert!(!page.contains("<script>alert"));
    assert_eq!(cell(&report, "subjects", "<script>", "lies on").tone, Tone::Plain);
}

/// The real tools' parameters, labels and headlines, and the largest campaigns that there are.
#[test]
fn every_preset_makes_a_report() {
    for preset in braid_lab::preset::PRESETS {
        let modelled = !preset.modelled.is_empty();
        let mut choices = braid_lab::preset::Choices { modelled, ..Default::default() };
        if preset.compares_stacks() {
            choices.baseline = Some("/dev/sda".to_owned());
            choices.subjects = vec![("stripe".to_owned(), "raid0(/dev/sda, /dev/sdb)".to_owned())];
        }
        let campaign = preset.campaign(&choices).unwrap();
        let results = results(&campaign, |subject, workload, repetition| {
            let seed =
                [subject.name.len() as u64, workload.label().len() as u64, repetition.into()];
            let rate = 50e6 * noise(0.2, &seed);
            let numbers = fixture::measured(&[
                (Metric::Throughput, rate),
                (Metric::Iops, rate / 4096.0),
                (Metric::Seconds, 60.0 * 50e6 / rate),
                (Metric::LatencyP99, 4e12 / rate),
            ]);
            Given::All(numbers, Vec::new())
        });
        let report = report_of(&results);
        check(&report);
        assert!(!report.answer.is_empty() && report.answer.len() <= 3, "{:?}", report.answer);
        // What has not settled has no number to be drawn.
        assert!(report.picture.is_some() || campaign.rounds, "{}", preset.name);
        assert!(!report.table.rows.is_empty(), "{}", preset.name);
        if std::env::var("SHOW_PRESET").is_ok_and(|name| name == preset.name) {
            println!("{}", text_of(&report));
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    /// Whatever is missing, failed, zero or absurd, there is a report and it keeps its rules.
    #[test]
    fn any_results_make_a_report(seed in proptest::prelude::any::<u64>(), repetitions in 1_u32..8) {
        let mut plan = campaign(STICKS);
        plan.repetitions = repetitions;
        let mut counter = 0;
        let results = results(&plan, |_, workload, _| {
            counter += 1;
            let dice = braid_seed::mix(&[seed, counter]);
            match dice % 11 {
                0 => Given::Failed("bad luck"),
                1 => Given::Impossible("never"),
                2 => Given::Nothing,
                3 => headline(workload, 0.0),
                4 => headline(workload, 1e99),
                5 => headline(workload, -1.0),
                6 => Given::All(braid_lab::metric::Measured::default(), vec![(f64::NAN, "?".into())]),
                7 => Given::All(
                    fixture::with_course(fixture::measured(&[]), &[(0, 5), (u64::MAX, 1)], 1e300, 2),
                    vec![(1.0, "an event".into())],
                ),
                _ => headline(workload, 1e6 * (1 + dice % 97) as f64),
            }
        });
        check(&report_of(&results));
    }
}
