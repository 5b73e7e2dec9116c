//! `braid-reproduce` as a person and a script meet it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// One device, an array of two, and one more array with a tool that no model knows.
const SMALL: &str = r#"
[source]
title = "Two sticks"
[[device]]
name = "stick"
kind = "usb-flash"
[[device]]
name = "bus"
kind = "bus"
[[array]]
name = "pair"
level = "raid0"
members = ["stick", "stick"]
[[measurement]]
id = "one.read"
subject = "stick"
tool = "dd-read"
params = { bs = 4096 }
metric = "mb_per_s"
norm_value = 20e6
norm_unit = "B/s"
role = "calibration"
[[measurement]]
id = "bus.rate"
subject = "bus"
tool = "datasheet"
metric = "mb_per_s"
norm_value = 60000000
norm_unit = "B/s"
role = "context"
[[measurement]]
id = "two.read"
subject = "pair"
tool = "dd-read"
params = { bs = 4096 }
metric = "mb_per_s"
norm_value = 36e6
norm_low = 35.5e6
norm_high = 36.5e6
norm_unit = "B/s"
role = "prediction"
[[measurement]]
id = "two.smell"
subject = "pair"
tool = "nose"
metric = "odours_per_s"
norm_value = 3
norm_unit = "1/s"
role = "prediction"
[[measurement]]
id = "two.room"
subject = "pair"
tool = "df"
metric = "bytes"
norm_value = 4e9
norm_unit = "B"
role = "prediction"
[[probe]]
id = "two.probe"
subject = "pair"
tool = "nose"
metric = "odours_per_s"
[[claim]]
id = "c.bus"
predicate = "f('two.read') < f('bus.rate')"
[[claim]]
id = "c.probe"
predicate = "f('two.probe') > 1"
[[claim]]
id = "c.smell"
predicate = "f('two.smell') > 1"
[[claim]]
id = "c.wrong-in-print"
predicate = "f('one.read') > 1e9"
"#;

/// A folder with a file `mine.toml`.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("mine.toml"), text).expect("a file");
    folder
}

/// Runs the program in a folder: its status, output, and errors.
fn run(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_braid-reproduce"));
    let output = program.args(words).current_dir(folder).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let status = output.status.code().expect("it exits");
    (status, text(output.stdout), text(output.stderr))
}

fn told(folder: &Path, words: &[&str]) -> String {
    let (status, out, err) = run(folder, words);
    assert_eq!((status, &*err), (0, ""), "{words:?}");
    out
}

fn json_of(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&told(folder, words)).expect("JSON")
}

fn one<'v>(list: &'v Value, id: &str) -> &'v Value {
    let found = list.as_array().and_then(|list| list.iter().find(|one| one["id"] == id));
    found.unwrap_or_else(|| panic!("{id} is not in {list}"))
}

#[test]
fn json_has_every_row_and_every_claim() {
    let output = json_of(folder("").path(), &["--json"]);
    assert_eq!(output["output_version"], 1);
    let (rows, claims) = (output["rows"].as_array(), output["claims"].as_array());
    let (rows, claims) = (rows.expect("a list"), claims.expect("a list"));
    assert_eq!((rows.len(), claims.len()), (186, 40));
    for row in rows {
        assert!(row["id"].is_string() && row["published"].as_f64() > Some(0.0), "{row}");
        assert!(["B/s", "s", "1/s"].iter().any(|unit| row["unit"] == *unit), "{row}");
        assert!(row["model"].is_number() == row["score"].is_number(), "{row}");
        assert!(row["model"].is_null() == row["reason"].is_string(), "{row}");
        if let Some(model) = row["model"].as_f64() {
            let off = (model / row["published"].as_f64().expect("a number")).ln().abs();
            let score = row["score"].as_f64().expect("a number");
            assert!(score == 0.0 || (score - off).abs() < 1e-12, "{row}");
        }
    }
    assert!(claims.iter().all(|claim| claim["judged"] == true && claim["id"].is_string()));
    assert!(claims.iter().all(|claim| claim["holds"].is_boolean()));
    let mean = |file: &Value| {
        let of_file = |row: &&Value| row["file"] == file["file"] && row["role"] == "prediction";
        let scores = rows.iter().filter(of_file).filter_map(|row| row["score"].as_f64());
        let scores: Vec<f64> = scores.collect();
        scores.iter().sum::<f64>() / scores.len() as f64
    };
    let files = output["files"].as_array().expect("a list");
    assert_eq!(files.len(), 9);
    for file in files {
        assert!((file["mean"].as_f64().expect("a number") - mean(file)).abs() < 1e-12, "{file}");
        assert!(file["null_means"]["average"].is_number(), "{file}");
    }
}

/// The worth of the models, series by series: the mean score, and the claims held of those published.
#[test]
fn scores_and_claims_are_these() {
    let output = json_of(folder("").path(), &["--json"]);
    let files = output["files"].as_array().expect("a list");
    let seen: Vec<_> = files
        .iter()
        .map(|file| {
            let mean = format!("{:.3}", file["mean"].as_f64().expect("a number"));
            let counts = [
                "rows_scored",
                "rows_missing",
                "claims_held",
                "claims_published",
                "claims_not_judged",
            ]
            .map(|key| file[key].as_u64().expect("a count"));
            (file["file"].as_str().expect("a name"), mean, counts)
        })
        .collect();
    let expected = [
        ("raid-levels-2hdd", "0.091", [48, 0, 2, 5, 0]),
        ("rally2-raid0", "0.050", [4, 0, 5, 6, 0]),
        ("adata-4x-raid0", "0.127", [3, 0, 5, 5, 0]),
        ("cruzer-6x-raid0", "0.012", [2, 0, 13, 14, 0]),
        ("rapiddisk", "0.057", [4, 0, 9, 9, 0]),
        ("md-wiki-2disks", "0.178", [8, 0, 0, 0, 0]),
        ("raid0-3x200gb", "0.102", [2, 0, 0, 0, 0]),
        ("hdparm-raid1-raid5", "0.156", [3, 0, 0, 0, 0]),
        ("verbatim-2x-raid0", "0.235", [2, 0, 0, 0, 0]),
    ];
    assert_eq!(seen, expected.map(|(file, mean, counts)| (file, mean.to_owned(), counts)));
}

#[test]
fn a_file_of_ones_own_is_judged_the_same_way() {
    let folder = folder(SMALL);
    let output = json_of(folder.path(), &["mine.toml", "--json"]);
    let smell = one(&output["rows"], "two.smell");
    assert_eq!((&smell["model"], &smell["score"]), (&Value::Null, &Value::Null));
    assert!(smell["reason"].as_str().is_some_and(|why| !why.is_empty()), "{smell}");
    let file = &output["files"][0];
    assert_eq!(file["passed_over"][0]["id"], "two.room");
    assert_eq!((&file["file"], &file["claims_published"]), (&json!("mine"), &json!(0)));
    assert_eq!(
        file["rows_missing"].as_u64().zip(file["rows_scored"].as_u64()).map(|(a, b)| a + b),
        Some(2)
    );
    // No claim of it has a function.
    assert_eq!(file["claims_not_judged"], 4);
    for id in ["c.bus", "c.probe", "c.smell", "c.wrong-in-print"] {
        let claim = one(&output["claims"], id);
        assert_eq!((&claim["judged"], &claim["holds"]), (&json!(false), &Value::Null), "{claim}");
        assert!(claim["predicate"].as_str().is_some_and(|text| text.contains("f('")), "{claim}");
    }

    let text = told(folder.path(), &["mine.toml"]);
    for part in [
        "Two sticks",
        "two.smell",
        "36.00 MB/s",
        "3.000 1/s",
        "claims not judged: 4.",
        "Claims not judged, for which there is no function: 4.",
        "* c.smell: `f('two.smell') > 1`",
        "1 passed over",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

/// A claim is known by its text, in whatever file it stands, and asks for the rows of that file.
#[test]
fn a_claim_of_the_series_is_judged_in_any_file() {
    let series = include_str!("../src/series/adata-4x-raid0.toml");
    let folder = folder(&series.replace("> 1000\"", "> 1001\""));
    let output = json_of(folder.path(), &["mine.toml", "--json"]);
    let file = &output["files"][0];
    let counts = ["claims_held", "claims_published", "claims_not_judged"].map(|key| &file[key]);
    assert_eq!(counts, [&json!(4), &json!(4), &json!(1)]);
    assert_eq!(one(&output["claims"], "adata.c.1000rps")["judged"], false);
}

/// A copy of a series under other names scores as the series does.
#[test]
fn more_rows_are_more_rows() {
    let more = include_str!("../src/series/raid-levels-2hdd.toml");
    let more =
        more.replace("2hdd.", "again.").replace(".p1.", ".p7.").replace("title = ", "name = ");
    let folder = folder(&more);
    let output = json_of(folder.path(), &["mine.toml", "raid-levels-2hdd", "--json"]);
    let [mine, built_in] = [0, 1].map(|at| output["files"][at].clone());
    for key in ["mean", "median", "rows_scored", "null_means"] {
        assert_eq!(mine[key], built_in[key], "{key}");
    }
    assert_eq!(
        (&mine["claims_not_judged"], &built_in["claims_not_judged"]),
        (&json!(6), &json!(0))
    );
    assert_eq!(output["rows"].as_array().map(Vec::len), Some(2 * 96));
}

#[test]
fn what_is_no_such_file_is_refused() {
    let folder = folder("[[measurement]]\nid = \"x\"\n");
    std::fs::write(folder.path().join("bytes.toml"), [0xff, 0xfe]).expect("a file");
    for (words, says) in [
        (["nothing"], ["\"nothing\" is neither a file", ", rapiddisk"]),
        (["mine.toml"], ["mine.toml: measurement \"x\"", "next:"]),
        (["."], ["cannot read .", "next:"]),
        (["bytes.toml"], ["cannot read bytes.toml", "next:"]),
        (["--html"], ["\"--html\" is not an option", "next:"]),
    ] {
        let (status, out, err) = run(folder.path(), &words);
        assert_eq!((status, &*out), (2, ""), "{words:?}");
        assert!(says.iter().all(|part| err.contains(part)), "{words:?}: {err}");
    }
    assert!(told(folder.path(), &["--help"]).starts_with("Usage: braid-reproduce"));
}

/// Texts of a file never act on a terminal.
#[test]
fn hostile_texts_are_shown() {
    let hostile = SMALL.replace("Two sticks", "\\u001b[2J<script>alert(1)</script>");
    let hostile = hostile.replace("two.smell", "two.<b>\\u001b]0;x");
    let text = told(folder(&hostile).path(), &["mine.toml"]);
    assert!(!text.contains('\u{1b}') && text.contains("<script>"), "{text}");
    let (_, _, err) = run(
        folder(&SMALL.replace("two.read", "\\u001b[2J").replace("36e6", "0")).path(),
        &["mine.toml"],
    );
    assert!(!err.contains('\u{1b}') && err.contains("is not above 0"), "{err}");
}
