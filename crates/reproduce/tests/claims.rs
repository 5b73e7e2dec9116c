//! The functions of claims against their texts, which Python evaluates: with the published figures, and with figures
//! drawn around them, so that each claim both holds and fails.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use braid_reproduce::{Claim, NoValue, Study, Unit, built_in, check};
use braid_seed::Rng;
use serde_json::json;

/// Evaluates each text with each table of values: a list of lists of truth values. `f` has no value but those given.
const PYTHON: &str = r#"
import json, sys
task = json.load(sys.stdin)
out = []
for values in task["values"]:
    out.append([bool(eval(text, {"f": values.__getitem__})) for text in task["texts"]])
json.dump(out, sys.stdout)
"#;

type Values = BTreeMap<String, f64>;

/// Returns what Python makes of the texts; `None` without Python, which is said.
fn python(texts: &[String], values: &[Values]) -> Option<Vec<Vec<bool>>> {
    let mut python = Command::new("python3");
    let started = python.args(["-c", PYTHON]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut python = match started {
        Ok(python) => python,
        Err(error) => {
            println!("skipped: python3 does not start: {error}");
            return None;
        }
    };
    let task = json!({ "texts": texts, "values": values }).to_string();
    let mut input = python.stdin.take().expect("its input is a pipe");
    // What is said is read only after all was given: it is small.
    let given = std::thread::spawn(move || input.write_all(task.as_bytes()));
    let output = python.wait_with_output().expect("it ends");
    given.join().expect("no panic").expect("it reads all");
    assert!(output.status.success(), "python3 failed");
    Some(serde_json::from_slice(&output.stdout).expect("it says JSON"))
}

/// All that a claim may ask for: the figures of rows, some for probes, and what follows from them by other names.
fn figures(studies: &[Study]) -> Values {
    let mut values = Values::new();
    for study in studies {
        values.extend(study.probes.iter().map(|probe| (probe.asked.id.clone(), 2e7)));
        for row in &study.rows {
            let (id, published) = (&row.asked.id, row.published);
            values.insert(id.clone(), published);
            if row.asked.unit == Unit::BytesPerSecond {
                values.insert(format!("{id}.iops"), published / 65536.0);
                values.insert(format!("{id}.seconds"), 1e9 / published);
            }
            if row.asked.subject == "disk1" {
                let other = study.row(&id.replace("disk1", "disk2")).map(|row| row.published);
                let mean = published.midpoint(other.unwrap_or(published));
                values.insert(id.replace("disk1", "disk-average"), mean);
            }
        }
    }
    values
}

#[test]
fn functions_say_what_python_makes_of_the_texts() {
    let studies = built_in();
    let claims: Vec<Claim> = studies.into_iter().flat_map(|study| study.claims).collect();
    let published = figures(&built_in());
    let mut rng = Rng::new(20_261_127);
    let mut rounds = vec![published.clone()];
    // Factors up to 1.01, 1.1, 2 and 20, up and down.
    for most in [0.01, 0.1, 0.7, 3.0] {
        for _ in 0..60 {
            let mut around = |(id, value): (&String, &f64)| {
                let part = rng.below(2001) as f64 / 1000.0 - 1.0;
                (id.clone(), value * (part * most).exp())
            };
            rounds.push(published.iter().map(&mut around).collect());
        }
    }
    // What holds up to some count of devices: rates that grow with the count, a little bent.
    for bend in 0..40 {
        let bent = |(id, value): (&String, &f64)| {
            let count = id.rsplit_once(".n").and_then(|(_, count)| count.parse::<f64>().ok());
            let grown = count.map_or(*value, |n| 8e6 * n.powf(0.8 + f64::from(bend) / 160.0));
            (id.clone(), grown)
        };
        rounds.push(published.iter().map(bent).collect());
    }
    let texts: Vec<String> = claims.iter().map(|claim| claim.predicate.clone()).collect();
    assert_eq!(texts.len(), 40);
    let ours = |values: &Values| -> Vec<bool> {
        let figure = |id: &str| {
            values.get(id).copied().ok_or_else(|| NoValue { id: id.to_owned(), why: String::new() })
        };
        let holds =
            |text: &String| check(text).expect("its function")(&figure).map(|one| one.holds);
        texts.iter().map(|text| holds(text).unwrap_or_else(|why| panic!("{text}: {why}"))).collect()
    };
    let ours: Vec<Vec<bool>> = rounds.iter().map(ours).collect();
    for (at, claim) in claims.iter().enumerate() {
        let held = ours.iter().filter(|round| round[at]).count();
        assert!((1..ours.len()).contains(&held), "{} holds {held} times", claim.id);
    }
    let Some(theirs) = python(&texts, &rounds) else { return };
    for (round, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        for (at, claim) in claims.iter().enumerate() {
            assert_eq!(ours[at], theirs[at], "{} in round {round}", claim.id);
        }
    }
    assert_eq!(theirs.len(), rounds.len());
}

/// A claim has no value where a figure that it asks for has none: each names the figure.
#[test]
fn a_missing_figure_is_named() {
    for study in built_in() {
        for claim in &study.claims {
            let none = |id: &str| Err(NoValue { id: id.to_owned(), why: "none".to_owned() });
            let why = check(&claim.predicate).expect("its function")(&none).expect_err("no value");
            assert!(claim.predicate.contains("f('") && why.to_string().ends_with("none"), "{why}");
        }
    }
}
