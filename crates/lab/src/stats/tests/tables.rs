//! Percent of a baseline, cell by cell and in tables.

use super::*;

#[test]
fn a_repetitions_baseline_is_the_mean_of_its_disks() {
    let (a, b) = (repetitions(&[100.0, 200.0, 300.0]), repetitions(&[300.0, 400.0]));
    assert_eq!(average_baselines(&[&a, &b]), repetitions(&[200.0, 300.0]));
    assert_eq!(average_baselines(&[&a]), a);
    assert!(average_baselines(&[]).is_empty());
}

/// The disks slow down to a half and the stripe with them: the pairs say 150 % each time.
#[test]
fn pairs_of_a_drifting_machine() {
    let (one, two) = (repetitions(&[90.0, 45.0, 60.0]), repetitions(&[110.0, 55.0, 140.0]));
    let stripe = repetitions(&[150.0, 75.0, 150.0]);
    let percent = compare_with_baseline(&stripe, &[&one, &two]).unwrap();
    let paired = percent.paired;
    assert_eq!((paired.median, paired.low, paired.high), (150.0, 150.0, 150.0));
    assert_eq!((percent.pairs, percent.unpaired), (3, 0));
    assert_eq!(percent.verdict, Verdict::Above);
}

#[test]
fn repetitions_of_one_side_only_are_counted_and_left_out() {
    let subject = ByRepetition::from([(0, 50.0), (1, 60.0), (2, 1.0)]);
    let baseline = ByRepetition::from([(1, 100.0), (0, 100.0), (5, 1.0), (6, 1.0)]);
    let percent = compare_with_baseline(&subject, &[&baseline]).unwrap();
    assert_eq!((percent.paired.median, percent.pairs, percent.unpaired), (55.0, 2, 3));
    assert_eq!((percent.paired.low, percent.paired.high), (50.0, 60.0));
    assert_eq!(percent.verdict, Verdict::Below);
    let none = compare_with_baseline(&subject, &[&ByRepetition::from([(9, 1.0)])]);
    assert!(matches!(none, Err(StatsError::NoPairs { .. })), "{none:?}");
    assert!(matches!(compare_with_baseline(&subject, &[]), Err(StatsError::NoPairs { .. })));
}

/// Twelve repetitions, a half each 1 % above and 1 % below.
#[test]
fn an_interval_that_holds_100_decides_nothing() {
    let subject: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { 99.0 } else { 101.0 }).collect();
    let percent =
        compare_with_baseline(&repetitions(&subject), &[&repetitions(&[100.0; 12])]).unwrap();
    assert_eq!(percent.verdict, Verdict::NotDistinguishable);
    assert_eq!(percent.paired.kind, IntervalKind::Bootstrap95);
    assert_eq!(percent.paired.median, 100.0);
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The table in the module's header.
#[test]
fn the_table_of_the_header() {
    let rows = [
        ("write".to_owned(), [159.0, 159.0, 125.0, 241.0].map(Some).to_vec()),
        ("copy".to_owned(), [4.0, 5.0, 5.0, 5.0].map(Some).to_vec()),
    ];
    let table = percent_table(&names(&["disk 1", "disk 2", "stripe", "mirror"]), &rows, &[0, 1]);
    let table = table.unwrap();
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    let percents: Vec<Vec<f64>> = table
        .rows
        .iter()
        .map(|row| row.cells.iter().map(|cell| tenth(cell.unwrap().percent)).collect())
        .collect();
    assert_eq!(percents, [[100.0, 100.0, 78.6, 151.6], [88.9, 111.1, 111.1, 111.1]]);
    assert_eq!(
        table.rows.iter().map(|row| row.baseline).collect::<Vec<_>>(),
        [Some(159.0), Some(4.5)]
    );
    let below: Vec<(f64, f64, f64)> = table
        .summaries
        .iter()
        .map(|summary| summary.unwrap())
        .map(|s| (s.total.value, tenth(s.total.percent), tenth(s.mean_percent)))
        .collect();
    assert_eq!(below[2..], [(130.0, 79.5, 94.9), (246.0, 150.5, 131.3)]);
}

/// A row that one disk of the baseline lacks has no percents and is in no sum.
#[test]
fn a_row_without_its_baseline_is_not_summed() {
    let rows = [
        ("read".to_owned(), vec![Some(10.0), Some(10.0), Some(5.0)]),
        ("write".to_owned(), vec![Some(10.0), None, Some(20.0)]),
    ];
    let table = percent_table(&names(&["a", "b", "stripe"]), &rows, &[0, 1]).unwrap();
    assert_eq!(table.rows[1].baseline, None);
    assert_eq!(table.rows[1].cells, [None, None, None]);
    let summary = table.summaries[2].unwrap();
    assert_eq!((summary.rows, summary.total.value, summary.total.percent), (1, 5.0, 50.0));
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let columns = names(&["a", "b"]);
    let row = |cells: &[Option<f64>]| [("read".to_owned(), cells.to_vec())];
    let of = |row: &[(String, Vec<Option<f64>>)], baselines: &[usize]| {
        percent_table(&columns, row, baselines).unwrap_err()
    };
    let good = row(&[Some(1.0), Some(2.0)]);
    let short = of(&row(&[Some(1.0)]), &[0]);
    assert!(matches!(short, StatsError::BadShape { position: 1, columns: 2, .. }), "{short}");
    assert!(matches!(of(&good, &[2]), StatsError::BadShape { position: 3, .. }));
    assert!(matches!(of(&good, &[]), StatsError::Empty { .. }));
    let zero = of(&row(&[Some(0.0), Some(2.0)]), &[0]);
    assert!(matches!(zero, StatsError::OutOfRange { .. }), "{zero}");
    let below = of(&row(&[Some(1.0), Some(-2.0)]), &[0]);
    assert!(matches!(below, StatsError::OutOfRange { position: 2, .. }), "{below}");
}

proptest! {
    #[test]
    fn a_percent_does_not_depend_on_the_unit(
        values in prop::collection::vec((1.0_f64..1e6, 1.0_f64..1e6), 1..20),
        power in -20_i32..20,
    ) {
        let factor = f64::from(power).exp2();
        let percent = |factor: f64| {
            let (a, b): (Vec<f64>, Vec<f64>) =
                values.iter().map(|(a, b)| (a * factor, b * factor)).unzip();
            compare_with_baseline(&repetitions(&a), &[&repetitions(&b)]).unwrap()
        };
        prop_assert_eq!(percent(factor).paired, percent(1.0).paired);
    }
}
