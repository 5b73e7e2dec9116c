//! The tables of docs/models.md, and that no model gets worse than they say.
//!
//! With `$BRAID_MODELS_DOCUMENT` set, they are written instead (`make reproduce-document`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use braid_model::{Constant, profile, profile_names};
use braid_predict::off::EVIDENCE;
use braid_reproduce::{COPIES, Judged, Models, Table, built_in, tables};

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";
const HEAD: &str = "| series ";
/// Half of the last digit of a mean, as it is written.
const ROUNDING: f64 = 0.000_501;

/// The promise of the document for a file.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Promise {
    mean: f64,
    missing: u64,
    held: u64,
}

/// Returns the promises in the first table of the document, by file.
fn promises(tables: &str) -> BTreeMap<String, Promise> {
    let (_, rows) = tables.split_once(HEAD).expect("the document has the table of files");
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    let promise = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let pair = |text: &str| {
            let (part, all) = text.split_once(" of ").expect("N of M");
            [part, all].map(|text| text.parse::<u64>().expect("a number"))
        };
        let [scored, all] = pair(cells[2]);
        let [held, _] = pair(cells[8]);
        // No mean is promised where no row has a value.
        let mean = cells[3].parse().unwrap_or(f64::INFINITY);
        (cells[1].to_owned(), Promise { mean, missing: all - scored, held })
    };
    rows.map(promise).collect()
}

/// Returns a sentence for each promise that the models do not keep.
fn worse(promised: &BTreeMap<String, Promise>, now: &BTreeMap<String, Promise>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, was) in promised {
        let Some(is) = now.get(name) else {
            found.push(format!("{name} is not judged any more"));
            continue;
        };
        if is.mean > was.mean + ROUNDING {
            found.push(format!(
                "{name}: off by {:.3} in the mean, promised is {:.3}",
                is.mean, was.mean
            ));
        }
        if is.missing > was.missing {
            found.push(format!(
                "{name}: {} rows without a value, promised are {}",
                is.missing, was.missing
            ));
        }
        if is.held < was.held {
            found.push(format!("{name}: {} claims hold, promised are {}", is.held, was.held));
        }
    }
    found
}

/// A constant: its name, its value, its source.
type Named = (String, f64, String);

/// Every constant of every profile, with its source, those of dd's copies, and those that a series has of its devices.
fn constants() -> String {
    let profiles = profile_names().map(|name| {
        let profile = profile(name).expect("it is named");
        let constant = |one: &Constant| (one.name.clone(), one.value, one.source.clone());
        let constants = profile.constants.iter().map(constant).collect();
        (format!("{name}: {} ({})", profile.label, profile.kind.name()), constants)
    });
    let copies = COPIES.map(|(name, value, source)| (name.to_owned(), value, source.to_owned()));
    let title = "`make reproduce` alone: dd on a Xeon quad core of 3.1 GHz, RAM disk".to_owned();
    let all = profiles.chain([(title, copies.to_vec())]).chain(of_series());
    let section = |(title, constants): (String, Vec<Named>)| {
        let rows = constants
            .into_iter()
            .map(|(name, value, source)| vec![name, format!("{value:?}"), cell(&source)]);
        format!("\n### {title}\n\n{}", Table::new("constant|#value|source".split('|'), rows))
    };
    all.map(section).collect()
}

/// The constants in which the devices of the series differ from the profiles that they are like.
fn of_series() -> Vec<(String, Vec<Named>)> {
    let mut all = Vec::new();
    for study in built_in() {
        for device in &study.devices {
            let Some(own) = &device.profile else { continue };
            let like = device.facts.text("profile.like").expect("it is like a profile");
            let others = profile(like).expect("it is named").constants;
            let differing = own.constants.iter().filter(|one| !others.contains(one));
            let rows = differing.map(|one| (one.name.clone(), one.value, one.source.clone()));
            let title = format!("{} of {}: else like {like}", device.name, study.name);
            all.push((title, rows.collect()));
        }
    }
    all
}

/// A cell of Markdown whose text has no marks.
fn cell(text: &str) -> String {
    text.replace('*', "\\*").replace('_', "\\_").replace('<', "&lt;")
}

#[test]
fn the_document_is_kept() {
    let judged: Vec<Judged> = built_in().iter().map(|study| Judged::of(study, &Models)).collect();
    let tables = format!("{}\n## Constants\n{}", tables(&judged, &EVIDENCE), constants());
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let told = std::env::var_os("BRAID_MODELS_DOCUMENT").map(PathBuf::from);
    let path = told.clone().unwrap_or(committed);
    let text = std::fs::read_to_string(&path).expect("the document can be read");
    let (before, rest) = text.split_once(BEGIN).expect("the document has a place for the tables");
    let (documented, after) = rest.split_once(END).expect("the tables have an end");
    if told.is_some() {
        let text = format!("{before}{BEGIN}{tables}{END}{after}");
        return std::fs::write(&path, text).expect("the document can be written");
    }
    let worse = worse(&promises(documented), &promises(&tables));
    assert!(
        worse.is_empty(),
        "the models are worse than docs/models.md says:\n  {}",
        worse.join("\n  ")
    );
    let differs = documented.lines().zip(tables.lines()).find(|(old, new)| old != new);
    assert!(
        documented == tables,
        "the tables of docs/models.md are not of these models, first in {differs:?}\n\
         next: make reproduce-document"
    );
}

#[test]
fn what_is_worse_than_the_document_is_found() {
    let text = |mean: &str, rows: &str, held: &str| {
        let row = format!("| a-series | {rows} | {mean} | 0.1 | 0.2 | — | 0.3 | {held} |\n");
        promises(&format!("{HEAD}| rows |\n|---|\n{row}\n| row |\n"))
    };
    let promised = text("0.100", "4 of 4", "5 of 6");
    let promise = Promise { mean: 0.1, missing: 0, held: 5 };
    assert_eq!(promised, BTreeMap::from([("a-series".to_owned(), promise)]));
    for fine in [text("0.100", "4 of 4", "5 of 6"), text("0.020", "5 of 5", "6 of 6")] {
        assert_eq!(worse(&promised, &fine), [""; 0]);
    }
    for (now, says) in [
        (text("0.101", "4 of 4", "5 of 6"), "off by 0.101 in the mean, promised is 0.100"),
        (text("0.090", "3 of 4", "5 of 6"), "1 rows without a value"),
        (text("0.090", "4 of 4", "4 of 6"), "4 claims hold, promised are 5"),
        (text("—", "0 of 4", "5 of 6"), "off by inf"),
        (BTreeMap::new(), "is not judged any more"),
    ] {
        let found = worse(&promised, &now);
        assert!(found.iter().any(|one| one.contains(says)), "{says}: {found:?}");
    }
}
