//! What a predictor is asked and shown, what `f` means, and what counts as held.

use std::cell::RefCell;

use braid_published::{
    Condition, Decision, Judgement, NotModelled, Predictor, Role, Study, judge, parse,
};

const STUDY: &str = r#"
device = [
  { name = "disk1", kind = "hdd" }, { name = "disk2", kind = "hdd" },
  { name = "average", kind = "hdd", derived = true }, { name = "bus", kind = "bus" },
]
array = [{ name = "pair", level = "raid1", members = ["disk1", "disk2"] }]
probe = [
  { id = "x.pair.probe", subject = "pair", tool = "dd", metric = "mb_per_s" },
  { id = "x.pair.unknown", subject = "pair", tool = "unknown", metric = "mb_per_s" },
]
[[measurement]]
id = "x.disk1.read"
subject = "disk1"
tool = "dd"
params = { bs = 10, count = 100 }
metric = "mb_per_s"
norm_value = 100
norm_unit = "B/s"
role = "calibration"
[[measurement]]
id = "x.disk2.read"
subject = "disk2"
tool = "dd"
params = { bs = 10, size = 3000 }
metric = "mb_per_s"
norm_value = 300
norm_unit = "B/s"
role = "calibration"
[[measurement]]
id = "x.disk1.alone"
subject = "disk1"
tool = "dd"
metric = "seconds"
norm_value = 7
norm_unit = "s"
role = "calibration"
[[measurement]]
id = "x.average.printed"
subject = "average"
tool = "dd"
metric = "mb_per_s"
norm_value = 250
norm_unit = "B/s"
role = "context"
[[measurement]]
id = "x.pair.read"
subject = "pair"
tool = "dd"
params = { bs = 10 }
metric = "mb_per_s"
norm_value = 200
norm_low = 190
norm_high = 210
norm_unit = "B/s"
role = "prediction"
[[measurement]]
id = "x.pair.hidden"
subject = "pair"
tool = "unknown"
metric = "mb_per_s"
norm_value = 200
norm_unit = "B/s"
role = "prediction"
[[measurement]]
id = "x.bus.sheet"
subject = "bus"
tool = "datasheet"
metric = "mb_per_s"
norm_value = 1000
norm_unit = "B/s"
role = "calibration"
[[measurement]]
id = "x.disk1.context"
subject = "disk1"
tool = "unknown"
metric = "mb_per_s"
norm_value = 1000
norm_unit = "B/s"
role = "context"
[[measurement]]
id = "x.disk2.calibration"
subject = "disk2"
tool = "unknown"
metric = "mb_per_s"
norm_value = 1000
norm_unit = "B/s"
role = "calibration"
"#;

fn study(predicates: &[&str]) -> Study {
    let claim = |(at, predicate): (usize, &&str)| {
        format!("[[claim]]\nid = \"{at}\"\npredicate = \"{predicate}\"\n")
    };
    let claims: String = predicates.iter().enumerate().map(claim).collect();
    parse("study.toml", &format!("{STUDY}{claims}")).expect("a study")
}

/// disk1: 110, disk2: 330, the pair: 205; nothing by an unknown tool or of a data sheet.
#[derive(Default)]
struct Known {
    asked: RefCell<Vec<(String, String)>>,
}

impl Predictor for Known {
    fn predict(&self, study: &Study, condition: &Condition<'_>) -> Result<f64, NotModelled> {
        assert!(study.rows.iter().all(|row| row.role != Role::Prediction), "it is judged on these");
        self.asked.borrow_mut().push((condition.id.to_owned(), condition.subject.to_owned()));
        match (condition.tool, condition.subject) {
            ("dd", "disk1") => Ok(110.0),
            ("dd", "disk2") => Ok(330.0),
            ("dd", "pair") => Ok(205.0),
            (tool, subject) => Err(NotModelled(format!("nothing is known of {tool} on {subject}"))),
        }
    }
}

fn judged(predicates: &[&str]) -> Judgement {
    judge(&study(predicates), &Known::default())
}

#[test]
fn f_means_what_it_says() {
    for holds in [
        "f('x.disk1.read') == 110 and f('x.pair.probe') == 205",
        "f('x.disk1.read.iops') == 11",
        "f('x.disk1.read.seconds') == 1000 / 110",
        "f('x.disk2.read.seconds') == 3000 / 330",
        "f('x.disk1.alone.seconds') == 110",
        // Both devices, each under its own conditions; also where one of them has no row.
        "f('x.average.read') == 220 and f('x.average.read.iops') == 22",
        "f('x.average.read.seconds') == (1000 / 110 + 3000 / 330) / 2",
        "f('x.average.alone') == 220",
        // Its own row, of which a model has the mean of the devices.
        "f('x.average.printed') == 220",
        // What stands in.
        "f('x.bus.sheet') == 1000 and f('x.disk1.context') == 1000",
    ] {
        let claim = &judged(&[holds]).claims[0];
        assert!(claim.in_model.holds(), "{holds}: {:?}", claim.in_model);
    }
    for (text, why) in [
        ("f('x.pair.unknown') > 0", "nothing is known of unknown on pair"),
        ("f('x.pair.hidden') > 0", "nothing is known of unknown on pair"),
        ("f('x.disk2.calibration') > 0", "nothing is known of unknown on disk2"),
        ("f('x.nothing') > 0", "no row and no probe has this id"),
        ("f('x.pair.read.seconds') > 0", "neither size nor bs and count"),
        ("f('x.disk1.alone.iops') > 0", "is a time, no rate"),
        ("f('x.pair.probe.iops') > 0", "has no bs"),
        ("1 / 0 > 0", "division by zero"),
    ] {
        match &judged(&[text]).claims[0].in_model {
            Decision::Undecided(reason) => {
                assert!(reason.to_string().contains(why), "{text}: {reason}")
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn claims_count_when_they_hold_in_print_or_are_only_said() {
    let judgement = judged(&[
        "f('x.pair.read') > f('x.disk1.read')",
        "f('x.pair.read') > 202",
        "f('x.pair.probe') > 300",
        "f('x.pair.hidden') > 0",
        "f('x.bus.sheet') > f('x.pair.read')",
        "f('x.average.read') == 220 or f('x.average.read') == 200",
    ]);
    let seen: Vec<_> = judgement
        .claims
        .iter()
        .map(|claim| (claim.is_published(), claim.in_model.holds()))
        .collect();
    let expected =
        [(true, true), (false, true), (true, false), (true, false), (true, true), (true, true)];
    assert_eq!(seen, expected);
    assert_eq!(judgement.held(), (3, 5));
    let taken: Vec<&[String]> =
        judgement.claims.iter().map(|claim| claim.taken.as_slice()).collect();
    assert_eq!(taken[4], ["x.bus.sheet"]);
    assert!(taken.iter().enumerate().all(|(at, taken)| at == 4 || taken.is_empty()), "{taken:?}");
}

#[test]
fn rows_have_scores_or_reasons() {
    let judgement = judged(&[]);
    let row = |id: &str| judgement.rows.iter().find(|row| row.id == id).expect("a row");
    assert_eq!(row("x.pair.read").score, Some(0.0));
    assert_eq!(row("x.disk1.read").score, Some(1.1f64.ln()));
    let average = row("x.average.printed");
    assert_eq!((&average.model, average.score), (&Ok(220.0), Some((220f64 / 250.0).ln().abs())));
    let hidden = row("x.pair.hidden");
    let why = hidden.model.as_ref().expect_err("an unknown tool").to_string();
    assert_eq!((hidden.score, why.as_str()), (None, "nothing is known of unknown on pair"));
    let summary = judgement.predictions().expect("one has a score");
    assert_eq!((summary.scored, judgement.missing(), summary.mean), (1, 1, 0.0));
    let calibration = judgement.summary(|role| matches!(role, Role::Calibration(_)));
    let calibration = calibration.expect("three have scores");
    // 0.0953 twice, and 110 s instead of 7.
    assert_eq!(calibration.scored, 3);
    assert!((calibration.median - 1.1f64.ln()).abs() < 1e-12);
    assert!((calibration.mean - (2.0 * 1.1f64.ln() + (110f64 / 7.0).ln()) / 3.0).abs() < 1e-12);
    assert_eq!(
        judgement.worst().map(|(row, score)| (row.id.as_str(), score)),
        Some(("x.pair.read", 0.0))
    );
}

#[test]
fn a_predictor_is_asked_once_and_never_of_what_is_derived() {
    let known = Known::default();
    judge(&study(&["all(f('x.average.read') + f('x.pair.probe') > 0 for n in range(9))"]), &known);
    let mut asked = known.asked.into_inner();
    assert!(asked.iter().all(|(_, subject)| subject != "average"), "{asked:?}");
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), count);
}

/// What failed, with its numbers and names; also of values that nobody would read.
#[test]
fn what_was_compared_is_told() {
    let twice =
        (0..40).map(|at| format!("for x{} in ((x{at}, x{at}),)", at + 1)).collect::<Vec<_>>();
    let large = format!("all(f('x.pair.read') < 1 for x0 in (1,) {})", twice.join(" "));
    for (text, told) in [
        ("1.4 <= f('x.pair.read') / 112 <= 1.75", "1.4 <= 1.83 <= 1.75"),
        (
            "all(f('x.disk1.read') > n * 100 for n in (1, 2) for w in ('a',))",
            "110 > 200 (n = 2, w = 'a')",
        ),
        ("1 == 1 and f('x.disk1.read') < 100 and 2 == 2", "110 < 100"),
        ("[1] * 0 == 1 if False else 0.00001 > 1e9", "1e-05 > 1e9"),
    ] {
        match &judged(&[text]).claims[0].in_model {
            Decision::Fails(seen) => assert_eq!(seen, told),
            other => panic!("{text}: {other:?}"),
        }
    }
    match &judged(&[&large]).claims[0].in_model {
        Decision::Fails(seen) => {
            assert!(seen.starts_with("205 < 1 (x0 = 1, ") && seen.len() < 4000, "{seen}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_that_is_none_is_no_value() {
    struct Says(f64);
    impl Predictor for Says {
        fn predict(&self, _: &Study, _: &Condition<'_>) -> Result<f64, NotModelled> {
            Ok(self.0)
        }
    }
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let judgement = judge(&study(&["f('x.pair.read') < 1e9"]), &Says(value));
        assert!(judgement.rows.iter().all(|row| row.score.is_none()), "{value}");
        assert!(!judgement.claims[0].in_model.holds(), "{value}");
    }
}
