//! The page as a browser shows it: every table's text, every chart drawn, nothing loaded, nothing
//! wider than the window, at the width of a desk and of a phone, light and dark. Screenshots stay in
//! `screenshots/` of the target directory's `tmp`.
//!
//! Needs Debian's chromium, chromium-driver and python3-selenium; without them it is skipped.

#[path = "fixtures/report.rs"]
mod fixture;
#[path = "fixtures/python.rs"]
mod python;

use braid_lab_report::report::model::{Chart, Report, Shape, Table, Tone};
use braid_lab_report::report::render::{Formats, write_report};
use serde_json::Value;

/// Opens the page of a report and checks what holds for any.
fn look(name: &str, report: &Report) -> Option<Value> {
    let dir = python::directory(name);
    let formats = Formats { html: true, ..Formats::NONE };
    let written = write_report(report, &Value::Null, &[], &dir, &formats).unwrap();
    let screenshots = python::directory("screenshots");
    let mut seen = python::run("browser/look.py", &[&written.html.unwrap(), &screenshots])?;
    check_paper(&seen["paper"], name);
    let seen = seen["screen"].take();
    for (width, seen) in seen.as_object().unwrap() {
        let at = format!("{name} at the width of a {width}");
        println!("{at}: loaded after {} ms", seen["loaded_after_ms"]);
        assert_eq!(seen["console"], Value::Array(vec![]), "{at}: console");
        assert_eq!(seen["requests"], Value::Array(vec![]), "{at}: requests");
        assert_eq!((&seen["scripts"], &seen["images"]), (&0.into(), &0.into()), "{at}");
        assert!(seen["overflow"].as_i64().unwrap() <= 0, "{at}: wider than the window");
        assert_ne!(seen["ground_light"], seen["ground_dark"], "{at}: there is no dark page");
        assert_eq!(seen["first"], serde_json::json!(opening(report)), "{at}: the order");
        check_folds(seen, report, &at);
        check_tables(seen, report, &at);
        check_charts(seen, report, &at);
    }
    Some(seen)
}

/// With what a page begins, in order.
fn opening(report: &Report) -> Vec<&'static str> {
    let has_doubts = report.trust.reasons.iter().any(|one| one.tone != Tone::Missing);
    let parts = [
        (!report.answer.is_empty(), "answer"),
        (has_doubts, "doubts"),
        (report.picture.is_some(), "picture"),
        (!report.table.rows.is_empty(), "table"),
    ];
    parts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, part)| part).collect()
}

/// Details are folded, and a click opens them, which takes no script.
fn check_folds(seen: &Value, report: &Report, at: &str) {
    let folds = seen["folds"].as_array().unwrap();
    for section in report.sections.iter().filter(|section| section.is_detail) {
        let id = format!("s-{}", section.id);
        let fold = folds.iter().find(|fold| fold["id"] == id.as_str());
        let fold = fold.unwrap_or_else(|| panic!("{at}: {id} cannot be folded"));
        assert_eq!((&fold["open"], &fold["shown"]), (&false.into(), &false.into()), "{at}: {id}");
    }
    if let Some(clicked) = seen["clicked"].as_object() {
        assert_eq!((&clicked["open"], &clicked["shown"]), (&true.into(), &true.into()), "{at}");
    }
    assert!(folds.is_empty() || seen["clicked"].is_object(), "{at}: nothing was opened");
    for link in seen["followed"].as_array().unwrap() {
        assert_eq!(link[1], true, "{at}: a link to what stays folded: {link}");
    }
}

/// Paper is wider than high, and what is on it is whole.
fn check_paper(seen: &Value, name: &str) {
    let sides: Vec<f64> = serde_json::from_value(seen["sheet"].clone()).unwrap();
    assert!(sides[0] > sides[1], "{name}: {sides:?}");
    assert_eq!(seen["beyond"], Value::Array(vec![]), "{name}: pixels beyond the sheet");
}

fn check_tables(seen: &Value, report: &Report, at: &str) {
    let tables = seen["tables"].as_array().unwrap();
    for table in report.tables() {
        let id = format!("t-{}", table.id);
        let seen = tables.iter().find(|seen| seen["id"] == id.as_str());
        check_table(seen.unwrap_or_else(|| panic!("{at}: no table {id}")), table, at);
    }
    assert_eq!(tables.len(), report.tables().count(), "{at}");
}

fn check_table(seen: &Value, table: &Table, at: &str) {
    assert_eq!(seen["spilt"], Value::Array(vec![]), "{at}, {}: texts over other cells", table.id);
    let heads: Vec<String> = table.columns.iter().map(|c| python::shown(&c.heading)).collect();
    assert_eq!(seen["head"], serde_json::json!(heads), "{at}, {}", table.id);
    let rows = seen["rows"].as_array().unwrap();
    assert_eq!(rows.len(), table.rows.len(), "{at}, {}", table.id);
    for (seen, row) in rows.iter().zip(&table.rows) {
        for (seen, cell) in seen.as_array().unwrap().iter().zip(&row.cells) {
            assert_eq!(seen["text"], python::shown(&cell.text), "{at}, {}", table.id);
            assert_eq!(seen["detail"], python::shown(&cell.detail), "{at}, {}", table.id);
        }
    }
}

/// The number of values that a chart must show.
fn values(chart: &Chart) -> usize {
    let is_drawn = |x: f64, y: f64| match chart.shape {
        Shape::Bars => chart.x.ticks.iter().any(|(place, _)| *place == x) && y.is_finite(),
        Shape::Lines | Shape::Marks => x.is_finite() && y.is_finite() && (!chart.y.log || y > 0.0),
    };
    let of_series = chart.series.iter().map(|series| {
        let drawn = series.points.iter().filter(|point| is_drawn(point.x, point.y)).count();
        // Of a long line some are marked.
        if chart.shape == Shape::Lines { drawn.min(10) } else { drawn }
    });
    let events = if chart.shape != Shape::Bars { chart.events.len() } else { 0 };
    of_series.sum::<usize>() + events
}

fn check_charts(seen: &Value, report: &Report, at: &str) {
    let charts = seen["charts"].as_array().unwrap();
    assert_eq!(charts.len(), report.charts().count(), "{at}");
    for (seen, chart) in charts.iter().zip(report.charts()) {
        let at = format!("{at}, chart {}", chart.id);
        assert_eq!(seen["id"], format!("c-{}", chart.id));
        assert_eq!(seen["role"], "img", "{at}");
        let label = seen["label"].as_str().unwrap();
        assert_eq!(python::shown(label), python::shown(&chart.title), "{at}");
        let size: Vec<f64> = serde_json::from_value(seen["box"].clone()).unwrap();
        assert!(size[0] > 200.0 && size[1] > 40.0, "{at}: {size:?}");
        // Nor so small that it is not read, nor larger than the text around it.
        let smallest = seen["smallest_text"].as_f64().unwrap_or(11.0);
        assert!((10.0..=18.0).contains(&smallest), "{at}: texts of {smallest} px");
        let tips = seen["tips"].as_array().unwrap().len();
        assert!(tips >= values(chart), "{at}: {tips} values");
        assert!(seen["drawn"].as_u64().unwrap() > 0 || values(chart) == 0, "{at}: nothing drawn");
        assert_eq!(seen["outside"], Value::Array(vec![]), "{at}: texts outside of the picture");
    }
}

#[test]
fn a_campaign_is_read_as_it_was_written() {
    let report = fixture::campaign();
    let Some(all) = look("campaign", &report) else { return };
    let seen = &all["desk"];
    assert_eq!(seen["answer"][0], report.answer[0].as_str());
    let tables = seen["tables"].as_array().unwrap();
    let percents = tables.iter().find(|table| table["id"] == "t-percent-of-single").unwrap();
    let cell = |row: usize, column: usize| &percents["rows"][row][column];
    // What colour says, words say as well.
    assert_eq!(cell(0, 3)["says"], "(better than the baseline)");
    assert_eq!(cell(1, 6)["says"], "(worse than the baseline)");
    assert_eq!(cell(0, 5)["says"], "(invalid)");
    assert_eq!(cell(0, 1)["says"], "");
    for (width, seen) in all.as_object().unwrap() {
        for table in seen["tables"].as_array().unwrap() {
            if !["t-subjects", "t-commands"].contains(&table["id"].as_str().unwrap()) {
                assert_eq!(table["hidden"], 0, "{width}: the first number of {}", table["id"]);
            }
            let hint = table["hint"].as_str().unwrap();
            assert!(hint.contains("gradient"), "{width}: no hint at the edge of {}", table["id"]);
        }
    }
    // Commands can be copied: each is a line of its own.
    let table = fixture::commands_table();
    let commands = table.rows.iter().map(|row| row.cells[2].text.as_str());
    assert_eq!(seen["commands"], serde_json::json!(commands.collect::<Vec<_>>()));
    assert_eq!(seen["commands_keep"], serde_json::json!(["pre-wrap"]));
    assert_ne!(cell(0, 3)["colour"], cell(0, 1)["colour"]);
}

#[test]
fn three_subjects_are_answered_on_the_first_screen() {
    let Some(seen) = look("three", &fixture::three()) else { return };
    let end = seen["desk"]["opening_ends"].as_f64().unwrap();
    assert!(end > 300.0 && end <= 900.0, "answer, picture and table end at {end} of 900");
    // Nothing of the answer is beyond the right edge of its table.
    assert_eq!(seen["desk"]["tables"][0]["beyond"], 0);
}

#[test]
fn hostile_texts_are_texts() {
    let report = fixture::everything();
    let Some(seen) = look("everything", &report) else { return };
    assert_eq!(seen["desk"]["title"], "<script>alert(1)</script>: braid lab");
    assert_eq!(seen["desk"]["headings"][0], "<script>alert(1)</script>");
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let Some(seen) = look("empty", &Report::default()) else { return };
    assert_eq!(seen["phone"]["headings"], serde_json::json!(["Report"]));
}
