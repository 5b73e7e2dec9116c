//! The tables of docs/models.md, and that no model gets worse than they say.
//!
//! With `$BRAID_MODELS_DOCUMENT` set, they are written instead (`make reproduce-document`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Scratch;

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";
const HEAD: &str = "| series | rows | mean | median | null: average | null: striping | claims |\n";
/// Half of the last digit of a mean, as it is written.
const ROUNDING: f64 = 0.000_501;

/// What the document says of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Promise {
    mean: f64,
    missing: u64,
    held: u64,
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// So many digits after the point, or a dash.
fn score(value: &Value) -> String {
    value.as_f64().map_or_else(|| "—".to_owned(), |value| format!("{value:.3}"))
}

/// Four digits in the row's unit, or millions of it.
fn quantity(value: &Value, unit: &Value) -> String {
    let Some(value) = value.as_f64() else { return "—".to_owned() };
    let (value, prefix) = match text_of(unit) {
        "B/s" if value >= 1e6 => (value / 1e6, "M"),
        _ => (value, ""),
    };
    let digits = (3.0 - value.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.digits$} {prefix}{}", text_of(unit))
}

/// A cell of Markdown.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('_', "\\_").replace('<', "&lt;")
}

fn tables(output: &Value) -> String {
    let list = |name: &str| output[name].as_array().cloned().unwrap_or_default();
    let (files, rows, claims) = (list("files"), list("rows"), list("claims"));
    let mut text = format!("{HEAD}|---|--:|--:|--:|--:|--:|--:|\n");
    for file in &files {
        let (scored, missing) = (&file["rows_scored"], file["rows_missing"].as_u64());
        let all = scored.as_u64().zip(missing).map_or(0, |(scored, missing)| scored + missing);
        let _ = writeln!(
            text,
            "| {} | {scored} of {all} | {} | {} | {} | {} | {} of {} |",
            text_of(&file["file"]),
            score(&file["mean"]),
            score(&file["median"]),
            score(&file["null_means"]["average"]),
            score(&file["null_means"]["striping"]),
            file["claims_held"],
            file["claims_published"],
        );
    }
    text += "\n| devices | held out | in view | off by | because |\n|---|--:|--:|--:|---|\n";
    for one in list("off_by") {
        let percent = one["percent"].as_u64().map_or("—".to_owned(), |of| format!("{of} %"));
        let (held_out, in_view) = (&one["rows_held_out"], &one["rows_in_view"]);
        let grounds = one["grounds"].as_str().unwrap_or("no row was published");
        let devices = text_of(&one["devices"]);
        let _ = writeln!(text, "| {devices} | {held_out} | {in_view} | {percent} | {grounds} |");
    }
    for file in &files {
        let _ = writeln!(text, "\n### {}\n", text_of(&file["file"]));
        text += "| row | role | published | model | score |\n|---|---|--:|--:|--:|\n";
        for row in rows.iter().filter(|row| row["file"] == file["file"]) {
            let unit = &row["unit"];
            let model = match &row["reason"] {
                Value::String(why) => cell(why),
                _ => quantity(&row["model"], unit),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {model} | {} |",
                cell(text_of(&row["id"])),
                if row["held_out"] == true { "held out" } else { text_of(&row["role"]) },
                quantity(&row["published"], unit),
                score(&row["score"]),
            );
        }
        text += "\n| claim | in print | in the model | compared |\n|---|---|---|---|\n";
        for claim in claims.iter().filter(|claim| claim["file"] == file["file"]) {
            let holds = |value: &Value| if value == true { "holds" } else { "fails" };
            let seen = claim["compared"].as_str().or(claim["reason"].as_str()).unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                cell(text_of(&claim["id"])),
                holds(&claim["holds_in_print"]),
                if claim["compared"].is_null() { "undecided" } else { holds(&claim["holds"]) },
                cell(seen),
            );
        }
    }
    text
}

/// What the first table of the document promises, by file.
fn promises(tables: &str) -> BTreeMap<String, Promise> {
    let (_, rows) = tables.split_once(HEAD).expect("the document has the table of files");
    let rows = rows.lines().skip(1).take_while(|line| line.starts_with('|'));
    let promise = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let pair = |text: &str| {
            let (part, all) = text.split_once(" of ").expect("N of M");
            [part, all].map(|text| text.parse::<u64>().expect("a number"))
        };
        let [scored, all] = pair(cells[2]);
        let [held, _] = pair(cells[7]);
        // No mean is promised where no row has a value.
        let mean = cells[3].parse().unwrap_or(f64::INFINITY);
        (cells[1].to_owned(), Promise { mean, missing: all - scored, held })
    };
    rows.map(promise).collect()
}

/// Where the models are worse than what was promised, a sentence each.
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

/// Every constant of every profile, with its source.
fn constants(scratch: &Scratch) -> String {
    let list = scratch.run(&["model", "list", "--json"]).ok().json();
    let mut text = String::new();
    for profile in list["profiles"].as_array().expect("a list of profiles") {
        let name = text_of(&profile["name"]);
        let shown = scratch.run(&["model", "show", name, "--json"]).ok().json();
        let (label, kind) = (text_of(&shown["label"]), text_of(&shown["kind"]));
        let _ = writeln!(text, "\n### {name}: {label} ({kind})\n");
        text += "| constant | value | source |\n|---|--:|---|\n";
        for constant in shown["constants"].as_array().expect("a list of constants") {
            let (name, source) = (text_of(&constant["name"]), text_of(&constant["source"]));
            let _ = writeln!(text, "| {name} | {} | {} |", constant["value"], cell(source));
        }
    }
    text
}

#[test]
fn the_document_is_kept() {
    let scratch = Scratch::new();
    let output = scratch.run(&["lab", "reproduce", "--json"]).ok().json();
    let tables = format!("{}\n## Constants\n{}", tables(&output), constants(&scratch));
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

/// What is printed under predictions and advice is what the published rows say of their kinds of devices.
#[test]
fn what_predictions_are_off_by_is_said_by_all_alike() {
    let scratch = Scratch::new();
    let computed = scratch.run(&["lab", "reproduce", "--json"]).ok().json();
    let of = |devices: &str| {
        let mut all = computed["off_by"].as_array().into_iter().flatten();
        let one = all.find(|one| one["devices"] == devices).expect("its devices").clone();
        (one["grounds"].as_str().expect("its grounds").to_owned(), one["percent"].clone())
    };
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (profile, devices) in [("rally2", "USB sticks"), ("sata-7200", "disks")] {
        let (grounds, percent) = of(devices);
        let advice =
            scratch.run(&["advise", &format!("{profile}*2"), "--workload", "seq-read"]).ok();
        assert!(flat(&advice.out).contains(&grounds), "{grounds}:\n{}", advice.out);
        let one = format!("model({profile}, size=1G)");
        let (two, folder) =
            (format!("two=raid0(chunk=64K, {one}, {one})"), format!("of-{profile}"));
        let campaign = ["model", "predict", "quick", "--baseline", &one, "--subject", &two];
        let words: Vec<&str> = campaign.into_iter().chain(["--output", &folder]).collect();
        let said = scratch.run(&words).ok();
        assert!(flat(&said.out).contains(&grounds), "{grounds}:\n{}", said.out);
        let report = scratch.read(&format!("{folder}/report.json"));
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let said = &report["prediction"];
        assert_eq!((&said["error_percent"], &said["grounds"]), (&percent, &grounds.into()));
    }
}

#[test]
fn what_is_worse_than_the_document_is_found() {
    let text = |mean: &str, rows: &str, held: &str| {
        let row = format!("| a-series | {rows} | {mean} | 0.1 | — | 0.3 | {held} |\n");
        promises(&format!("{HEAD}|---|\n{row}\n| row |\n"))
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
