//! The files of a report, read back by programs that did not write them.

#[path = "fixtures/report.rs"]
mod fixture;
#[path = "fixtures/python.rs"]
mod python;

use std::fs;
use std::path::{Path, PathBuf};

use braid_lab::LabError;
use braid_lab::environment::read_environment;
use braid_lab::matrix::{Planned, parse_campaign};
use braid_lab::store::{Results, Session, Times};
use braid_lab_report::analysis::analyse;
use braid_lab_report::report::model::{Block, Chart, Point, Report, Section, Shape};
use braid_lab_report::report::render::{Formats, TidyRow, Written, render_terminal, write_report};
use braid_lab_report::report::{build_report, report_data};
use serde_json::{Value, json};

/// Writes a report whose data does not matter.
fn write_to(
    dir: &Path,
    report: &Report,
    samples: &[TidyRow],
    formats: Formats,
) -> Result<Written, LabError> {
    write_report(report, &json!({}), samples, dir, &formats)
}

fn write(name: &str, report: &Report, samples: &[TidyRow], formats: Formats) -> PathBuf {
    let dir = python::directory(name);
    write_to(&dir, report, samples, formats).unwrap();
    dir
}

#[test]
fn every_file_is_there_and_none_is_a_draft() {
    let dir = tempfile::tempdir().unwrap();
    let report = fixture::everything();
    let all = write_to(dir.path(), &report, &fixture::samples(50), Formats::ALL).unwrap();
    let mut found = Vec::new();
    for dir in [dir.path(), &dir.path().join("charts")] {
        let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        found.extend(files.filter(|path| path.is_file()));
    }
    let mut named = all.files.clone();
    found.sort();
    named.sort();
    assert_eq!(found, named);
    assert_eq!(all.html.as_deref(), Some(dir.path().join("report.html").as_path()));
    assert_eq!(named.len(), 5 + report.charts().count());
    for file in &named {
        assert!(fs::metadata(file).unwrap().len() > 0, "{}", file.display());
    }
}

#[test]
fn only_what_is_asked_for_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let formats = Formats { json: true, ..Formats::NONE };
    let written = write_to(dir.path(), &fixture::everything(), &[], formats).unwrap();
    assert_eq!(written.files, [dir.path().join("report.json")]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn an_error_names_the_file_and_leaves_no_draft() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("report.json")).unwrap();
    let formats = Formats { json: true, ..Formats::NONE };
    let error = write_to(dir.path(), &Report::default(), &[], formats).unwrap_err();
    assert!(error.to_string().contains("report.json"), "{error}");
}

#[test]
fn an_id_is_no_way_out_of_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut report = fixture::everything();
    for section in &mut report.sections {
        for block in &mut section.blocks {
            if let Block::Chart(chart) = block {
                chart.id = "../../escaped".into();
            }
        }
    }
    let formats = Formats { svg: true, ..Formats::NONE };
    let error = write_to(&dir.path().join("in"), &report, &[], formats).unwrap_err();
    assert!(error.to_string().contains("../../escaped"), "{error}");
    assert!(!dir.path().join("escaped.svg").exists());
}

/// A campaign of which nothing has been measured.
fn planned() -> Results {
    let text = "name = \"planned\"\nrepetitions = 2\nruntime_s = 1\nregion = \"16M\"\n\
                [[subject]]\nname = \"one | two\"\nbaseline = true\nstack = \"model(usb-flash, size=64M, bus=usb2:0)\"\n\
                [[subject]]\nname = \"other\"\nstack = \"model(usb-flash, size=64M, bus=usb2:0)\"\n\
                [[job]]\ntool = \"fio\"\nop = [\"read\", \"write\"]\n\
                pattern = \"seq\"\n";
    let campaign = parse_campaign(text, "planned.toml").unwrap();
    let session = Session {
        started_unix_s: 1_700_000_000,
        ended_unix_s: None,
        environment: read_environment(Vec::new()),
        times: Times::default(),
    };
    Results {
        planned: Planned::of(&campaign),
        facts: Vec::new(),
        sessions: vec![session],
        trials: Vec::new(),
    }
}

#[test]
fn json_is_data_and_says_its_version() {
    let results = planned();
    let analysis = analyse(&results);
    let dir = python::directory("json");
    let report = build_report(&analysis, &results, &dir);
    let data = report_data(&report, &analysis, &results, &dir);
    let formats = Formats { json: true, ..Formats::NONE };
    write_report(&report, &data, &[], &dir, &formats).unwrap();
    let text = fs::read_to_string(dir.join("report.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json, data, "something is missing or changed");
    assert_eq!(json["output_version"], 4);
    assert_eq!(json["campaign"], "planned");
    assert_eq!(json["subjects"][0]["name"], "one | two");
    assert_eq!(json["trials"], json!({ "done": 0, "planned": 8 }));
    let cells = json["cells"].as_array().unwrap();
    let states: Vec<&Value> = cells.iter().map(|cell| &cell["state"]).collect();
    assert_eq!(states, [&json!("not_yet"); 4]);
    // The page is no part of it.
    assert_eq!(json.get("sections"), None);
}

#[test]
fn samples_as_csv_are_the_same_texts() {
    let rows = fixture::hostile_samples();
    let dir = write("csv", &Report::default(), &rows, Formats { csv: true, ..Formats::NONE });
    let Some(read) =
        python::run("fixtures/read_back.py", &[Path::new("csv"), &dir.join("samples.csv")])
    else {
        return;
    };
    let lines: Vec<Vec<String>> = serde_json::from_value(read).unwrap();
    assert_eq!(lines.len(), rows.len() + 1);
    let columns = rows.len() + 1 + 6;
    for (line, row) in lines[1..].iter().zip(&rows) {
        assert_eq!(line.len(), columns);
        assert_eq!(line[0], row.dimensions[0].1);
        let at = lines[0].iter().position(|head| *head == row.dimensions[1].0).unwrap();
        assert_eq!(line[at], row.dimensions[1].1);
        let fixed = &line[columns - 6..];
        assert_eq!(fixed[0], row.metric);
        assert_eq!(fixed[1].parse::<f64>().unwrap(), row.value);
        assert_eq!((&fixed[2], &fixed[5]), (&row.unit, &row.verdict));
    }
}

#[test]
fn markdown_is_read_as_it_was_written() {
    for (name, report) in [("md", fixture::campaign()), ("md-hostile", fixture::everything())] {
        let dir = write(name, &report, &[], Formats { markdown: true, ..Formats::NONE });
        let Some(read) =
            python::run("fixtures/read_back.py", &[Path::new("md"), &dir.join("report.md")])
        else {
            return;
        };
        let headings = read["headings"].as_array().unwrap();
        assert_eq!(headings[0], python::shown(&report.title));
        let shown = || report.sections.iter().filter(|section| !section.is_detail);
        for section in &report.sections {
            let heading = json!(python::shown(&section.title));
            assert_eq!(headings.contains(&heading), !section.is_detail, "{name}: {heading}");
        }
        let tables = read["tables"].as_array().unwrap();
        let written = std::iter::once(&report.table).chain(shown().flat_map(Section::tables));
        for (table, seen) in written.zip(tables) {
            let rows = seen.as_array().unwrap();
            assert_eq!(rows.len(), table.rows.len() + 1, "{name}, {}", table.id);
            for (row, seen) in table.rows.iter().zip(&rows[1..]) {
                assert_eq!(
                    seen.as_array().unwrap().len(),
                    table.columns.len(),
                    "{name}, {}",
                    table.id
                );
                for (cell, seen) in row.cells.iter().zip(seen.as_array().unwrap()) {
                    let text = python::shown(&format!("{} {}", cell.text, cell.detail));
                    let seen =
                        seen.as_str().unwrap().trim_start_matches(['▲', '▼', '≈', '⚠', '✕', ' ']);
                    assert_eq!(seen, text, "{name}, {}", table.id);
                }
            }
        }
        let elements = read["elements"].as_object().unwrap();
        let pictures = 1 + shown().flat_map(Section::charts).count();
        assert_eq!(elements.get("img").cloned().unwrap_or(json!(0)), pictures);
        for harmful in ["script", "a", "em em", "del"] {
            assert_eq!(elements.get(harmful), None, "{name}: {harmful}");
        }
    }
}

fn cell(sheet: &Value, row: usize, column: usize) -> &Value {
    let cells = sheet["cells"].as_array().unwrap();
    let found = cells.iter().find(|cell| cell[0] == row && cell[1] == column);
    found.unwrap_or_else(|| panic!("no cell {row}, {column}"))
}

fn read_workbook(name: &str, report: &Report, samples: &[TidyRow]) -> Option<Value> {
    let dir = write(name, report, samples, Formats { xlsx: true, ..Formats::NONE });
    let read =
        python::run("fixtures/read_back.py", &[Path::new("xlsx"), &dir.join("report.xlsx")])?;
    for (name, sheet) in read["sheets"].as_object().unwrap() {
        assert!(name.chars().count() <= 31, "{name}");
        assert_eq!(sheet["formulas"], json!([]), "{name}: formulas");
        for chart in sheet["charts"].as_array().unwrap() {
            for series in chart["series"].as_array().unwrap() {
                assert!(
                    series["name"].as_str().unwrap().contains('!'),
                    "a name that is no reference"
                );
            }
        }
    }
    Some(read)
}

/// The text in the cell that a reference such as `'a sheet'!$B$23` names.
fn text_at(sheet: &Value, reference: &Value) -> String {
    let reference = reference.as_str().unwrap();
    let (_, place) = reference.rsplit_once("!$").unwrap();
    let (letters, row) = place.split_once('$').unwrap();
    let column = letters.bytes().fold(0, |sum, letter| sum * 26 + usize::from(letter - b'A') + 1);
    cell(sheet, row.parse().unwrap(), column)[3].as_str().unwrap().to_owned()
}

/// An axis of values begins at zero, so that lengths can be compared, and holds every interval.
fn check_ends(chart: &Chart, axes: &Value) {
    // Of bars that lie on their side the values are on the axis that comes second too.
    let ends = &axes[1]["ends"];
    let highest = chart.points().flat_map(Point::reach).fold(0.0, f64::max);
    let [low, high] = [&ends[0], &ends[1]].map(|end| end.as_f64().unwrap());
    assert!(low == 0.0 || chart.y.log, "{}: from {low}", chart.id);
    assert!((highest..=highest * 1.5).contains(&high), "{}: {highest} of {high}", chart.id);
}

/// The ends of an interval are numbers in columns of their own.
fn check_interval(
    sheet: &Value,
    header: usize,
    (row, column): (usize, usize),
    (low, high): (f64, f64),
) {
    for (column, head, end) in [(column, "low", low), (column + 1, "high", high)] {
        assert_eq!(cell(sheet, header, column)[3], head);
        let seen = cell(sheet, row, column);
        assert_eq!(seen[2], "n");
        // The format keeps 16 digits.
        let apart = (seen[3].as_f64().unwrap() / end - 1.0).abs();
        assert!(apart < 1e-14, "{seen} for {end}");
    }
}

#[test]
fn the_workbook_has_numbers_texts_and_charts() {
    let report = fixture::campaign();
    let samples = fixture::samples(200);
    let Some(read) = read_workbook("xlsx", &report, &samples) else { return };
    let sheets = &read["sheets"];
    assert_eq!(read["names"][0], "summary");
    assert_eq!(cell(&sheets["summary"], 1, 1)[3], report.title.as_str());
    let ids = report.sections.iter().map(|section| section.id.as_str());
    let names: Vec<&str> = ["summary", "answer"].into_iter().chain(ids).collect();
    assert_eq!(read["names"].as_array().unwrap()[..names.len()], *json!(names).as_array().unwrap());

    // Under its note stands the header.
    let answer = &sheets["answer"];
    assert_eq!(cell(answer, 5, 1)[3], "raid0 64K");
    assert_eq!(cell(answer, 5, 2)[3].as_f64(), Some(1.92));
    check_interval(answer, 2, (5, 3), report.table.rows[2].cells[1].ends.unwrap());

    // Here under title and note.
    let table = &sheets["levels"];
    assert_eq!(cell(table, 4, 1)[3], "sequential read 1M");
    // Three columns of a number with an interval, and one more where another has words.
    let percent = cell(table, 4, 10);
    assert_eq!(
        (&percent[2], percent[3].as_f64(), &percent[4]),
        (&json!("n"), Some(195.0), &json!("0"))
    );
    assert_ne!(percent[5], Value::Null, "better has a colour");
    let Some(Block::Table(shown)) = report.sections[0].blocks.first() else { panic!("no table") };
    check_interval(table, 3, (4, 11), shown.rows[0].cells[4].ends.unwrap());
    assert_eq!(cell(table, 15, 3)[3], "—");
    assert!(table["widths"].as_array().unwrap().iter().any(|width| width.as_f64() > Some(20.0)));

    let in_order = read["names"].as_array().unwrap().iter();
    let charts: Vec<&Value> = in_order
        .flat_map(|name| sheets[name.as_str().unwrap()]["charts"].as_array().unwrap())
        .collect();
    assert_eq!(charts.len(), report.charts().count());
    assert!(charts.iter().all(|chart| chart["legend"] == true), "every chart says whose it is");
    let data = &sheets["chart data"];
    let bars = charts.iter().find(|chart| chart["kind"] == "BarChart").unwrap();
    let (mark, series) = bars["series"].as_array().unwrap().split_last().unwrap();
    assert!(series.iter().all(|series| series["intervals"] == true));
    // 100 % is a bar beside the others.
    assert_eq!((&mark["intervals"], text_at(data, &mark["name"])), (&json!(false), "100 %".into()));
    // The first category on top, the values with their name below.
    let (names, values) = (&bars["axes"][0], &bars["axes"][1]);
    assert_eq!((&names["title"], &names["reversed"]), (&Value::Null, &json!(true)));
    assert_eq!(text_at(data, &values["title"]), "Of the single disk (%)");
    assert_eq!((&values["reversed"], &values["crosses"]), (&json!(false), &json!("max")));
    let lines = &sheets["test-0"]["charts"];
    assert_eq!(lines[0]["kind"], "ScatterChart");
    assert_eq!(lines[0]["axes"][0]["log"].as_f64(), Some(10.0));
    assert!(lines[0]["axes"].as_array().unwrap().iter().all(|axis| axis["title"].is_string()));
    for (chart, seen) in report.charts().zip(&charts) {
        let is_lines = chart.shape == Shape::Lines;
        assert_eq!(seen["kind"], if is_lines { "ScatterChart" } else { "BarChart" });
        check_ends(chart, &seen["axes"]);
    }
    // What happened to an array is a line in the picture of its course.
    let series = sheets["behaviour"]["charts"][0]["series"].as_array().unwrap();
    let names: Vec<String> = series.iter().map(|one| text_at(data, &one["name"])).collect();
    assert!(names.contains(&"member fails at 175 s".to_owned()), "{names:?}");
    assert_eq!(names.len(), 2 + 4);

    for (name, sheet) in sheets.as_object().unwrap() {
        assert_eq!(sheet["paper"]["orientation"], "landscape", "{name}");
        assert_eq!(sheet["paper"]["pages_wide"].as_u64(), Some(1), "{name}");
        assert_eq!(sheet["paper"]["pages_high"].as_u64(), Some(0), "{name}");
    }

    let commands = cell(&sheets["how"], 4, 3);
    assert_eq!(
        (&commands[3], &commands[6]),
        (&json!(fixture::commands_table().rows[0].cells[2].text), &json!(true))
    );

    let tidy = &sheets["samples"];
    assert_eq!(cell(tidy, 1, 1)[3], "subject");
    assert_eq!(cell(tidy, 2, 6)[3].as_f64(), Some(samples[0].value));
    assert_eq!(cell(tidy, 201, 8)[3].as_u64(), Some(u64::from(samples[199].trial)));
    assert_eq!(tidy["frozen"], "A2");
}

#[test]
fn hostile_texts_are_texts_in_the_workbook() {
    let samples = fixture::hostile_samples();
    let report = fixture::everything();
    let Some(read) = read_workbook("xlsx-hostile", &report, &samples) else { return };
    let names = read["names"].as_array().unwrap();
    let tidy = &read["sheets"]["samples"];
    for (row, text) in
        fixture::HOSTILE.iter().enumerate().filter(|(_, text)| !text.trim().is_empty())
    {
        let seen = cell(tidy, row + 2, 1);
        assert_eq!(seen[2], "s", "{text}");
        assert_eq!(python::shown(seen[3].as_str().unwrap()), python::shown(text));
    }
    let lower: std::collections::HashSet<String> =
        names.iter().map(|name| name.as_str().unwrap().to_lowercase()).collect();
    assert_eq!(lower.len(), names.len());
}

#[test]
fn pictures_are_drawn() {
    for (name, report) in
        [("pictures", fixture::campaign()), ("pictures-hostile", fixture::everything())]
    {
        let mut report = report;
        // Two sections hold each kind of chart of the campaign.
        report.sections.drain(2..report.sections.len() - 1);
        let dir = write(name, &report, &[], Formats { svg: true, ..Formats::NONE });
        for chart in report.charts() {
            let svg = fs::read_to_string(dir.join(format!("charts/{}.svg", chart.id))).unwrap();
            let tree = roxmltree::Document::parse(&svg)
                .unwrap_or_else(|error| panic!("{}: {error}", chart.id));
            let root = tree.root_element();
            assert_eq!(root.attribute("role"), Some("img"));
            let title = root.children().find(|node| node.has_tag_name("title")).is_some()
                || root.descendants().any(|node| node.tag_name().name() == "title");
            assert!(title, "{}", chart.id);
            let foreign = |node: roxmltree::Node<'_, '_>| {
                matches!(
                    node.tag_name().name(),
                    "script" | "image" | "a" | "use" | "img" | "foreignObject"
                ) || node.attributes().any(|attribute| attribute.name().contains("href"))
                    || node.attributes().any(|attribute| attribute.name().starts_with("on"))
            };
            assert!(!root.descendants().any(foreign), "{}", chart.id);

            let shapes = ["rect", "polyline", "polygon", "circle"];
            let drawn = root.descendants().filter(|node| shapes.contains(&node.tag_name().name()));
            let colours: std::collections::HashSet<&str> = drawn
                .flat_map(|node| [node.attribute("fill"), node.attribute("stroke")])
                .flatten()
                .collect();
            // The ground, the grid, and its foot at least.
            assert!(colours.len() > 2, "{} is blank: {colours:?}", chart.id);
            let ground = root.children().find(|node| node.has_tag_name("rect")).unwrap();
            let size = |name| ground.attribute(name).unwrap();
            let ground = [size("x"), size("y"), size("width"), size("height")].join(" ");
            assert_eq!(Some(ground.as_str()), root.attribute("viewBox"), "{}", chart.id);
        }
    }
}

#[test]
fn the_terminal_gets_words_and_no_commands() {
    let plain = render_terminal(&fixture::everything(), false, "report.html");
    assert!(!plain.contains('\u{1b}') && !plain.contains('\u{7}') && !plain.contains('\u{202e}'));
    let report = fixture::campaign();
    let plain = render_terminal(&report, false, "report.html");
    assert!(plain.contains(&report.answer[0]));
    assert!(plain.contains("▲ 1.92 "), "{plain}");
    assert!(plain.contains("⚠ In 96 cells the repetitions differ"), "{plain}");
    assert!(plain.ends_with("everything: report.html\n"), "{plain}");
    // Details are in the page.
    assert!(!plain.contains("tar: unpack a source tree"), "{plain}");
    let coloured = render_terminal(&report, true, "report.html");
    assert!(coloured.contains("\u{1b}["));
}

#[test]
fn the_terminal_shows_one_screen() {
    let report = fixture::large();
    assert_eq!((report.table.rows.len(), report.sections.len()), (40, 10));
    let text = render_terminal(&report, false, "report.html");
    assert!(text.lines().count() <= 45, "{} lines:\n{text}", text.lines().count());
    assert!(text.contains("… 1 more doubt: report.html"), "{text}");
    assert!(text.contains("more rows: report.html"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}
