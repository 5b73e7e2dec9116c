//! Questions to a predictor and what it is shown, the meaning of `f`, and what counts as held.

use std::cell::RefCell;

use braid_reproduce::{
    Asked, Check, Decision, Judgement, NotModelled, Predictor, Role, Study, all, any, is, judge,
    judge_by, parse,
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

/// The study with a claim for each number below `claims`, whose text is the number.
fn study(claims: usize) -> Study {
    let claim = |at| format!("[[claim]]\nid = \"c{at}\"\npredicate = \"{at}\"\n");
    let claims: String = (0..claims).map(claim).collect();
    parse("study.toml", &format!("{STUDY}{claims}")).expect("a study")
}

/// disk1: 110, disk2: 330, the pair: 205; nothing by an unknown tool or of a data sheet.
#[derive(Default)]
struct Known {
    asked: RefCell<Vec<(String, String)>>,
}

impl Predictor for Known {
    fn predict(&self, study: &Study, asked: &Asked) -> Result<f64, NotModelled> {
        assert!(study.rows.iter().all(|row| row.role != Role::Prediction), "it is judged on these");
        self.asked.borrow_mut().push((asked.id.clone(), asked.subject.clone()));
        match (asked.tool.as_str(), asked.subject.as_str()) {
            ("dd", "disk1") => Ok(110.0),
            ("dd", "disk2") => Ok(330.0),
            ("dd", "pair") => Ok(205.0),
            (tool, subject) => Err(NotModelled(format!("nothing is known of {tool} on {subject}"))),
        }
    }
}

fn judged(checks: &[Check]) -> Judgement {
    judged_by(checks, &Known::default())
}

fn judged_by(checks: &[Check], predictor: &dyn Predictor) -> Judgement {
    let check = |text: &str| checks.get(text.parse::<usize>().expect("a number")).copied();
    judge_by(&study(checks.len()), predictor, &check)
}

/// Claims that an id has this value.
macro_rules! means {
    ($($id:literal: $value:expr,)+) => {
        [$(($id, (|f| Ok(is(f($id)?).at_least($value).at_most($value))) as Check)),+]
    };
}

#[test]
fn f_means_what_it_says() {
    for (id, check) in means! {
        "x.disk1.read": 110.0,
        "x.pair.probe": 205.0,
        "x.disk1.read.iops": 11.0,
        "x.disk1.read.seconds": 1000.0 / 110.0,
        "x.disk2.read.seconds": 3000.0 / 330.0,
        "x.disk1.alone.seconds": 110.0,
        // Both devices, each under its own conditions; also where one of them has no row.
        "x.average.read": 220.0,
        "x.average.read.iops": 22.0,
        "x.average.read.seconds": (1000.0 / 110.0 + 3000.0 / 330.0) / 2.0,
        "x.average.alone": 220.0,
        // Its own row, of which a model has the mean of the devices.
        "x.average.printed": 220.0,
        // What stands in.
        "x.bus.sheet": 1000.0,
        "x.disk1.context": 1000.0,
    } {
        let claim = &judged(&[check]).claims[0];
        assert!(claim.in_model.holds(), "{id}: {:?}", claim.in_model);
    }
    let undecided = means! {
        "x.pair.unknown": 0.0,
        "x.pair.hidden": 0.0,
        "x.disk2.calibration": 0.0,
        "x.nothing": 0.0,
        "x.pair.read.seconds": 0.0,
        "x.disk1.alone.iops": 0.0,
        "x.pair.probe.iops": 0.0,
    };
    let reasons = [
        "nothing is known of unknown on pair",
        "nothing is known of unknown on pair",
        "nothing is known of unknown on disk2",
        "no row and no probe has this id",
        "neither size nor bs and count",
        "is a time, no rate",
        "has no bs",
    ];
    for ((id, check), why) in undecided.into_iter().zip(reasons) {
        match &judged(&[check]).claims[0].in_model {
            Decision::Undecided(said) => {
                assert!(said.id == id && said.why.contains(why), "{id}: {said}");
            }
            other => panic!("{id}: {other:?}"),
        }
    }
}

#[test]
fn claims_count_when_they_hold_in_print_or_are_only_said() {
    let judgement = judged(&[
        |f| Ok(is(f("x.pair.read")?).above(f("x.disk1.read")?)),
        |f| Ok(is(f("x.pair.read")?).above(202.0)),
        |f| Ok(is(f("x.pair.probe")?).above(300.0)),
        |f| Ok(is(f("x.pair.hidden")?).above(0.0)),
        |f| Ok(is(f("x.bus.sheet")?).above(f("x.pair.read")?)),
        |f| {
            let average = f("x.average.read")?;
            any([220.0, 200.0].map(|one| Ok(is(average).at_least(one).at_most(one))))
        },
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

/// Claims are known by their texts; one that no function is for is listed, and counts nowhere.
#[test]
fn a_claim_without_a_function_is_not_judged() {
    let known: Check = |f| Ok(is(f("x.pair.read")?).above(1.0));
    let study = study(3);
    let judgement =
        judge_by(&study, &Known::default(), &|text: &str| (text == "1").then_some(known));
    assert_eq!((judgement.claims.len(), judgement.held()), (1, (1, 1)));
    let listed: Vec<&str> = judgement.not_judged.iter().map(|claim| &*claim.id).collect();
    assert_eq!(listed, ["c0", "c2"]);
    let judgement = judge(&study, &Known::default());
    assert_eq!((judgement.claims.len(), judgement.not_judged.len()), (0, 3));
    // The text of a series' claim in a file of another name, whose rows are not there.
    let text = "f('adata.raid0-64k.rndrd.iops') > 1000";
    let other = parse("o.toml", &format!("{STUDY}[[claim]]\nid = \"c\"\npredicate = \"{text}\"\n"));
    let judgement = judge(&other.expect("a study"), &Known::default());
    assert_eq!((judgement.claims.len(), judgement.held()), (1, (0, 1)));
    assert!(matches!(judgement.claims[0].in_model, Decision::Undecided(_)));
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
    let often: Check = |f| {
        let sum = || Ok(f("x.average.read")? + f("x.pair.probe")?);
        all((0..9).map(|_| Ok(is(sum()?).above(0.0))))
    };
    judged_by(&[often], &known);
    let mut asked = known.asked.into_inner();
    assert!(asked.iter().all(|(_, subject)| subject != "average"), "{asked:?}");
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), count);
}

/// A comparison that failed is told with its numbers and names.
#[test]
fn what_was_compared_is_told() {
    let checks: [(Check, &str); 5] = [
        (|f| Ok(is(1.4).at_most(f("x.pair.read")? / 112.0).at_most(1.75)), "1.4 <= 1.83 <= 1.75"),
        (
            |f| {
                all([1.0, 2.0].map(|n| {
                    let rate = f("x.disk1.read")?;
                    Ok(is(rate).above(n * 100.0).of(&format!("n = {n}, w = 'a'")))
                }))
            },
            "110 > 200 (n = 2, w = 'a')",
        ),
        (
            |f| {
                let middle = is(f("x.disk1.read")?).below(100.0);
                Ok(is(1.0).at_most(1.0).and(middle).and(is(2.0).at_least(2.0)))
            },
            "110 < 100",
        ),
        (|_| Ok(is(0.00001).above(1e9)), "1e-5 > 1e9"),
        (|_| any([3.0, 2.0].map(|n| Ok(is(1.0).at_least(n).below(9.0)))), "1 >= 2"),
    ];
    for (check, told) in checks {
        match &judged(&[check]).claims[0].in_model {
            Decision::Fails(seen) => assert_eq!(seen, told),
            other => panic!("{told}: {other:?}"),
        }
    }
}

#[test]
fn a_value_that_is_none_is_no_value() {
    struct Says(f64);
    impl Predictor for Says {
        fn predict(&self, _: &Study, _: &Asked) -> Result<f64, NotModelled> {
            Ok(self.0)
        }
    }
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let check: Check = |f| Ok(is(f("x.pair.read")?).below(1e9));
        let judgement = judged_by(&[check], &Says(value));
        assert!(judgement.rows.iter().all(|row| row.score.is_none()), "{value}");
        assert!(!judgement.claims[0].in_model.holds(), "{value}");
    }
}
