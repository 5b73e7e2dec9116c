//! `braid lab reproduce` as a person and a script meet it, and the scores that docs/models.md promises.

#[path = "../common/mod.rs"]
mod common;
mod document;

use common::Scratch;
use serde_json::{Value, json};

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

fn scratch(text: &str) -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("mine.toml"), text).expect("a file");
    scratch
}

fn one<'v>(list: &'v Value, id: &str) -> &'v Value {
    let found = list.as_array().and_then(|list| list.iter().find(|one| one["id"] == id));
    found.unwrap_or_else(|| panic!("{id} is not in {list}"))
}

#[test]
fn json_has_every_row_and_every_claim() {
    let output = Scratch::new().run(&["lab", "reproduce", "--json"]).ok().json();
    assert_eq!(output["output_version"], 1);
    let (rows, claims) = (output["rows"].as_array(), output["claims"].as_array());
    let (rows, claims) = (rows.expect("a list"), claims.expect("a list"));
    assert_eq!((rows.len(), claims.len()), (157, 40));
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
    assert!(claims.iter().all(|claim| claim["id"].is_string() && claim["holds"].is_boolean()));
    let mean = |file: &Value| {
        let of_file = |row: &&Value| row["file"] == file["file"] && row["role"] == "prediction";
        let scores = rows.iter().filter(of_file).filter_map(|row| row["score"].as_f64());
        let scores: Vec<f64> = scores.collect();
        scores.iter().sum::<f64>() / scores.len() as f64
    };
    let files = output["files"].as_array().expect("a list");
    assert_eq!(files.len(), 5);
    for file in files {
        assert!((file["mean"].as_f64().expect("a number") - mean(file)).abs() < 1e-12, "{file}");
        assert!(file["null_means"]["average"].is_number(), "{file}");
    }
}

#[test]
fn a_file_of_ones_own_is_judged_the_same_way() {
    let scratch = scratch(SMALL);
    let output = scratch.run(&["lab", "reproduce", "mine.toml", "--json"]).ok().json();
    let smell = one(&output["rows"], "two.smell");
    assert_eq!((&smell["model"], &smell["score"]), (&Value::Null, &Value::Null));
    assert!(smell["reason"].as_str().is_some_and(|why| !why.is_empty()), "{smell}");
    let claims = &output["claims"];
    // Of a probe and of a row to be predicted nothing stands in for the model.
    for undecided in ["c.probe", "c.smell"] {
        let claim = one(claims, undecided);
        assert_eq!((&claim["holds"], &claim["compared"]), (&json!(false), &Value::Null), "{claim}");
        assert_eq!(claim["holds_in_print"], true, "{claim}");
        assert!(claim["reason"].as_str().is_some_and(|why| why.contains("no value of two.")));
    }
    let wrong = one(claims, "c.wrong-in-print");
    assert_eq!((&wrong["holds"], &wrong["holds_in_print"]), (&json!(false), &json!(false)));
    let file = &output["files"][0];
    assert_eq!(file["passed_over"][0]["id"], "two.room");
    assert_eq!((&file["file"], &file["claims_published"]), (&json!("mine"), &json!(3)));
    assert_eq!(
        file["rows_missing"].as_u64().zip(file["rows_scored"].as_u64()).map(|(a, b)| a + b),
        Some(2)
    );

    let text = scratch.run(&["lab", "reproduce", "mine.toml"]).ok().out;
    for part in [
        "Two sticks",
        "two.smell",
        "36.0 MB/s",
        "3.00 1/s",
        "c.smell",
        "undecided",
        "1 passed over",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

/// As many rows, arrays and claims as somebody likes, under other names.
#[test]
fn more_rows_are_more_rows() {
    let more = include_str!("../../testdata/published/raid-levels-2hdd.toml");
    let more =
        more.replace("2hdd.", "again.").replace(".p1.", ".p7.").replace("[source]", "[other]");
    let scratch = scratch(&more);
    let files = ["lab", "reproduce", "mine.toml", "raid-levels-2hdd", "--json"];
    let output = scratch.run(&files).ok().json();
    let [mine, built_in] = [0, 1].map(|at| output["files"][at].clone());
    for key in ["mean", "median", "rows_scored", "claims_held", "null_means"] {
        assert_eq!(mine[key], built_in[key], "{key}");
    }
    assert_eq!(output["rows"].as_array().map(Vec::len), Some(2 * 96));
}

#[test]
fn a_page_has_charts_and_every_row_and_goes_over_nothing() {
    let scratch = scratch(SMALL);
    scratch.run(&["lab", "reproduce", "--html", "page.html"]).ok();
    let page = String::from_utf8(scratch.read("page.html")).expect("text");
    for part in
        ["<svg", "2hdd.raid1.p3.cp-tree", "rapiddisk.c.fs-cost", "cruzer.c.interleave", "</html>"]
    {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    for outside in ["<script", "src=\"http", "href=\"http"] {
        assert!(!page.contains(outside), "{outside:?} is in the page");
    }
    scratch
        .run(&["lab", "reproduce", "--html", "page.html"])
        .fails(3, &["page.html is there already", "next:"]);
    scratch
        .run(&["lab", "reproduce", "--html", "p.html", "--json"])
        .fails(2, &["cannot be used with"]);
}

#[test]
fn what_is_no_such_file_is_refused() {
    let scratch = scratch("[[measurement]]\nid = \"x\"\n");
    scratch
        .run(&["lab", "reproduce", "nothing"])
        .fails(2, &["\"nothing\" is neither a file", ", rapiddisk", "raid-levels-2hdd"]);
    scratch
        .run(&["lab", "reproduce", "mine.toml"])
        .fails(2, &["mine.toml: measurement \"x\"", "next:"]);
    scratch.run(&["lab", "reproduce", "."]).fails(2, &["cannot read ."]);
    std::fs::write(scratch.join("bytes.toml"), [0xff, 0xfe]).expect("a file");
    scratch.run(&["lab", "reproduce", "bytes.toml"]).fails(2, &["cannot read bytes.toml"]);
    let predicate = SMALL.replace("f('two.probe') > 1", "f('two.probe') > ) 1");
    std::fs::write(scratch.join("claim.toml"), predicate).expect("a file");
    scratch.run(&["lab", "reproduce", "claim.toml"]).fails(
        2,
        &["claim.toml: claim \"c.probe\": predicate: line 1, column 18", "a value is expected"],
    );
}

/// What a file says never acts on a terminal or in a page.
#[test]
fn hostile_texts_are_shown() {
    let hostile = SMALL.replace("Two sticks", "\\u001b[2J<script>alert(1)</script>");
    let hostile = hostile.replace("two.smell", "two.<b>\\u001b]0;x");
    let scratch = scratch(&hostile);
    let text = scratch.run(&["lab", "reproduce", "mine.toml"]).ok().out;
    assert!(!text.contains('\u{1b}') && text.contains("<script>"), "{text}");
    scratch.run(&["lab", "reproduce", "mine.toml", "--html", "page.html"]).ok();
    let page = String::from_utf8(scratch.read("page.html")).expect("text");
    assert!(!page.contains("<script>") && !page.contains("two.<b>") && !page.contains('\u{1b}'));
}
