use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::analysis::analyse;
use crate::analysis::{Finding, Judgement, Standing};
use crate::campaign::Health;
use crate::fixture::{self, Given, campaign, headline, noise, results};
use crate::matrix::plan_workloads;
use crate::metric::Metric;
use crate::report::model::{Axis, Plot, Table, Tone};
use crate::settings::Value;
use braid_stack::ByteSize;

fn report_of(results: &Results) -> Report {
    build_report(&analyse(results), results, Path::new("results"))
}

/// The report as text: every sentence and table, and of the charts what is drawn.
fn text_of(report: &Report) -> String {
    let mut text = format!("# {}\n{}\n\n", report.title, report.subtitle);
    for sentence in &report.answer {
        writeln!(text, "> {sentence}").unwrap();
    }
    let trust = &report.trust;
    writeln!(
        text,
        "\ntrust: {} ok, {} suspect, {} invalid, {} missing",
        trust.ok, trust.suspect, trust.invalid, trust.missing
    )
    .unwrap();
    for reason in &trust.reasons {
        writeln!(text, "  {:?} {}: {} ({:?})", reason.tone, reason.rule, reason.why, reason.cells)
            .unwrap();
    }
    for section in &report.sections {
        writeln!(text, "\n## {} [{}]", section.title, section.id).unwrap();
        for block in &section.blocks {
            match block {
                Block::Table(table) => text += &table_of(table),
                Block::Chart(chart) => {
                    writeln!(text, "chart {}: {} ({})", chart.id, chart.title, drawn(&chart.plot))
                        .unwrap();
                }
            }
        }
    }
    for note in &report.notes {
        writeln!(text, "- {note}").unwrap();
    }
    text
}

fn drawn(plot: &Plot) -> String {
    match plot {
        Plot::Bars { categories, series, .. } => {
            format!("bars, {} x {}", categories.len(), series.len())
        }
        Plot::Lines { series, events, .. } => {
            let points: Vec<usize> = series.iter().map(|line| line.points.len()).collect();
            format!("lines, points {points:?}, {} events", events.len())
        }
        Plot::HeatMap { columns, rows, .. } => {
            format!("heat map, {} x {}", rows.len(), columns.len())
        }
    }
}

fn table_of(table: &Table) -> String {
    let mut text = format!("table {}: {}\n", table.id, table.title);
    let heads: Vec<&str> = table.columns.iter().map(|column| column.heading.as_str()).collect();
    writeln!(text, "  {}", heads.join(" | ")).unwrap();
    for row in &table.rows {
        assert_eq!(row.cells.len(), table.columns.len(), "{}", table.title);
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|cell| match cell.detail.as_str() {
                "" => cell.text.clone(),
                detail => format!("{} ({detail})", cell.text),
            })
            .collect();
        writeln!(text, "  {}{}", if row.total { "= " } else { "" }, cells.join(" | ")).unwrap();
    }
    text
}

const SMALL: &str = r#"
name = "stripes"
repetitions = 3
[[member]]
name = "a"
device = "/dev/sda"
[[member]]
name = "b"
device = "/dev/sdb"
[[subject]]
name = "single"
stack = "{a}"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, {members})"
[[job]]
tool = "meter"
op = ["read", "write"]
"#;

/// The two-disk study: times of tests by one and by two processes.
const TWO_DISKS: &str = r#"
name = "two disks"
repetitions = 6
[[subject]]
name = "disk 1"
path = "/dev/sda"
baseline = true
[[subject]]
name = "disk 2"
path = "/dev/sdb"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
unit = "seconds"
op = ["read", "write"]
processes = [1, 2]
"#;

fn two_disks() -> Results {
    results(&campaign(TWO_DISKS), |subject, workload, repetition| {
        let of_one = if workload.settings.word("op") == "read" { 100.0 } else { 200.0 };
        let factor = match subject.name.as_str() {
            "disk 1" => 0.9,
            "disk 2" => 1.1,
            _ => 0.5,
        };
        let drift = 1.0 + 0.01 * f64::from(repetition);
        headline(workload, of_one * factor * drift * f64::from(workload.setup.processes))
    })
}

/// One to three sticks, two chunks, one or two buses, two depths, latencies.
const STICKS: &str = r#"
name = "sticks"
repetitions = 2
[[member]]
name = "a"
device = "/dev/sda"
bus = "front"
[[member]]
name = "b"
device = "/dev/sdb"
bus = "back"
[[member]]
name = "c"
device = "/dev/sdc"
bus = "front"
[[subject]]
name = "single"
stack = "{a}"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk={chunk}, {members})"
members = [1, 2, 3]
chunk = ["64K", "128K"]
[[subject]]
name = "bus"
stack = "raid0(chunk=64K, {members})"
members = 2
buses = [1, 2]
[[job]]
tool = "meter"
pattern = "rand"
unit = "requests"
block_size = "4K"
iodepth = [1, 8]
[[job]]
tool = "meter"
block_size = ["64K", "1M"]
"#;

fn sticks() -> Results {
    results(&campaign(STICKS), |subject, workload, repetition| {
        let members = match subject.dimensions.get("members") {
            Some(Value::Count(members)) => *members as f64,
            _ => 1.0,
        };
        let depth = workload.settings.count("iodepth").unwrap_or(1) as f64;
        let rate = 20e6 * members * depth.sqrt() * noise(0.01, &[u64::from(repetition)]);
        let latency = 1e9 * depth / rate;
        let mut measured = fixture::measured(&[
            (Metric::Throughput, rate),
            (Metric::Iops, rate / 4096.0),
            (Metric::LatencyP99, latency * 4096.0),
        ]);
        measured = fixture::with_course(measured, &[(100_000, 980), (2_000_000, 40)], rate, 3);
        Given::All(measured, Vec::new())
    })
}

/// What every report keeps to, and that every renderer takes it.
fn check(report: &Report) {
    let mut ids: Vec<&str> = vec![&report.subjects.id, &report.commands.id];
    for section in &report.sections {
        ids.push(&section.id);
        assert!(!section.blocks.is_empty(), "{} is empty", section.id);
    }
    ids.extend(report.tables().map(|table| table.id.as_str()));
    ids.extend(report.charts().map(|chart| chart.id.as_str()));
    for id in &ids {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!id.is_empty() && id.chars().all(fits), "{id:?}");
    }
    let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    for table in report.tables().chain([&report.subjects, &report.commands]) {
        for row in &table.rows {
            assert_eq!(row.cells.len(), table.columns.len(), "{}", table.title);
            for cell in &row.cells {
                assert!(cell.number.is_none_or(f64::is_finite), "{}: {cell:?}", table.title);
                assert!((0.0..=1.0).contains(&cell.strength), "{}: {cell:?}", table.title);
                assert!(!(cell.tone == Tone::Invalid && cell.number.is_some()), "{cell:?}");
            }
        }
    }
    report.charts().for_each(check_chart);
    crate::report::render::render_html(report).unwrap();
    crate::report::render::render_json(report).unwrap();
    crate::report::render::render_markdown(report);
    crate::report::render::render_terminal(report, true);
}

fn check_chart(chart: &crate::report::model::Chart) {
    let fits = |value: &f64, axis: &Axis| value.is_finite() && (!axis.log || *value > 0.0);
    match &chart.plot {
        Plot::Bars { axis, categories, series, .. } => {
            assert!(categories.len() <= 8 && series.len() <= 8, "{}", chart.title);
            for series in series {
                assert_eq!(series.values.len(), categories.len());
                for bar in series.values.iter().flatten() {
                    assert!(bar.low <= bar.value && bar.value <= bar.high, "{bar:?}");
                    assert!(fits(&bar.low, axis) && fits(&bar.high, axis), "{bar:?}");
                }
            }
        }
        Plot::Lines { x, y, series, .. } => {
            assert!(series.len() <= 8 && !series.is_empty(), "{}", chart.title);
            for point in series.iter().flat_map(|line| &line.points) {
                assert!(fits(&point.x, x) && fits(&point.y, y), "{}: {point:?}", chart.title);
            }
        }
        Plot::HeatMap { columns, rows, values, .. } => {
            assert_eq!(values.len(), rows.len());
            assert!(values.iter().all(|row| row.len() == columns.len()));
            assert!(values.iter().flatten().flatten().all(|value| value.is_finite()));
        }
    }
}

fn section_of<'r>(report: &'r Report, id: &str) -> &'r Section {
    report.sections.iter().find(|section| section.id == id).unwrap_or_else(|| {
        let ids: Vec<&str> = report.sections.iter().map(|s| s.id.as_str()).collect();
        panic!("no section {id}, only {ids:?}")
    })
}

/// Texts of a row of the first table of this title, by how the row begins.
fn row_of<'r>(report: &'r Report, title: &str, first: &str) -> Vec<&'r str> {
    let table = report.tables().find(|table| table.title == title).unwrap_or_else(|| {
        let titles: Vec<&str> = report.tables().map(|table| table.title.as_str()).collect();
        panic!("no table {title}, only {titles:?}")
    });
    let row = table.rows.iter().find(|row| row.cells[0].text.starts_with(first)).unwrap();
    row.cells.iter().map(|cell| cell.text.as_str()).collect()
}

/// Standing and findings made up, so that the rules of trust have no say.
fn analyse_without_rules(results: &Results, invalid: &[(&str, &str)]) -> Analysis {
    let mut judgement = Judgement::default();
    for (subject, workload) in invalid {
        let finding = Finding {
            rule: "page-cache",
            standing: Standing::Invalid,
            why: "the tool read 10 GiB and the disk 1 MiB".to_owned(),
            action: "set direct".to_owned(),
        };
        let verdict =
            crate::trust::Verdict { standing: Standing::Invalid, findings: vec![finding] };
        judgement.cells.insert(((*subject).to_owned(), (*workload).to_owned()), verdict);
    }
    crate::analysis::analyse_judged(results, plan_workloads(&results.campaign), judgement)
}

#[test]
fn a_small_campaign_reads_well() {
    let results = results(&campaign(SMALL), |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let factor = if subject.name == "stripe" && reads { 1.9 } else { 1.0 };
        let seed = [u64::from(repetition), subject.name.len() as u64];
        headline(workload, 100e6 * factor * noise(0.02, &seed))
    });
    let report = report_of(&results);
    check(&report);
    insta::assert_snapshot!(text_of(&report));
}

#[test]
fn the_two_disk_study_reads_well() {
    let report = report_of(&two_disks());
    check(&report);
    insta::assert_snapshot!(text_of(&report));
}

/// Sums and percents as a study printed them: six tests of two disks alone and striped, in
/// seconds. Percents, sum and mean were worked out by hand.
#[test]
fn percents_sums_and_means_are_those_of_a_spreadsheet() {
    let plan = r#"
name = "study"
repetitions = 1
subject = [
  { name = "disk 1", path = "/dev/sda", baseline = true },
  { name = "disk 2", path = "/dev/sdb", baseline = true },
  { name = "stripe", stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)" },
]
job = [
  { tool = "bonnie" }, { tool = "dd", op = "write", filesystem = "ext4" }, { tool = "cp-read" },
  { tool = "cp-cached" }, { tool = "untar" }, { tool = "cp-tree" },
]
"#;
    let results = results(&campaign(plan), |subject, workload, _| {
        let times = match workload.tool.as_str() {
            "bonnie" => [428.0, 426.0, 391.0],
            "dd" => [159.0, 159.0, 125.0],
            "cp-read" => [195.0, 199.0, 158.0],
            "cp-cached" => [4.0, 5.0, 5.0],
            "untar" => [29.0, 27.0, 25.0],
            _ => [58.0, 57.0, 50.0],
        };
        let place = ["disk 1", "disk 2", "stripe"].iter().position(|name| *name == subject.name);
        let seconds = times[place.unwrap()];
        Given::Numbers(vec![
            (Metric::Seconds, seconds),
            (Metric::Throughput, 7_340_032_000.0 / seconds),
        ])
    });
    let report =
        build_report(&analyse_without_rules(&results, &[]), &results, Path::new("results"));
    check(&report);
    let title = "Times of the tests";
    assert_eq!(
        row_of(&report, title, "bonnie++ ")[1..],
        ["428", "100", "426", "99.8", "427", "391", "91.6"]
    );
    assert_eq!(
        row_of(&report, title, "sum")[1..],
        ["873", "100", "873", "100", "873", "754", "86.4"]
    );
    assert_eq!(row_of(&report, title, "mean of the percents")[7], "89.6");
    // A copy of 4.5 s that takes 5 s is 111 %.
    assert!(row_of(&report, title, "cp-cached, ext4").ends_with(&["5.00", "111"]));
    // What dd moved is a rate beside it.
    assert_eq!(section_of(&report, "numbers").blocks.len(), 2);
}

#[test]
fn a_winner_is_named_with_its_merits() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let factor = match (subject.name.as_str(), workload.settings.word("op")) {
            ("stripe", "read") => 3.1,
            ("stripe", _) => 0.5,
            _ => 1.0,
        };
        headline(
            workload,
            100e6 * factor * noise(0.01, &[subject.name.len() as u64, repetition.into()]),
        )
    });
    let report = report_of(&results);
    assert!(
        report.answer[0].starts_with("Take stripe: 3.1")
            && report.answer[0]
                .contains(" times as fast as single in sequential reads (95 % interval: 3."),
        "{}",
        report.answer[0]
    );
    assert!(
        report.answer[0].contains("but sequential writes are slower: "),
        "{}",
        report.answer[0]
    );
}

#[test]
fn a_baseline_may_win() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let factor = if subject.baseline { 1.0 } else { 0.5 };
        headline(workload, 100e6 * factor * noise(0.01, &[repetition.into()]))
    });
    let report = report_of(&results);
    assert!(report.answer[0].starts_with("Stay with single: "), "{}", report.answer[0]);
}

#[test]
fn equal_subjects_are_not_told_apart() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let seed = [subject.name.len() as u64, repetition.into()];
        headline(workload, 100e6 * noise(0.05, &seed))
    });
    let report = report_of(&results);
    assert!(report.answer[0].contains("cannot be told apart"), "{:?}", report.answer);
    assert!(!report.answer.iter().any(|sentence| sentence.starts_with("Take ")));
}

#[test]
fn an_invalid_number_is_shown_and_counts_for_nothing() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let factor = if subject.name == "stripe" && reads { 50.0 } else { 1.0 };
        headline(
            workload,
            100e6 * factor * noise(0.01, &[subject.name.len() as u64, repetition.into()]),
        )
    });
    let invalid = [("stripe", "sequential read 1M")];
    let report =
        build_report(&analyse_without_rules(&results, &invalid), &results, Path::new("results"));
    check(&report);
    assert!(report.answer.iter().all(|sentence| !sentence.contains("50")), "{:?}", report.answer);
    assert!(
        report.answer.iter().any(|said| said.contains("1 cannot be believed")),
        "{:?}",
        report.answer
    );
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    let (value, percent) = (&numbers.rows[0].cells[2], &numbers.rows[0].cells[3]);
    assert_eq!((value.tone, value.number), (Tone::Invalid, None));
    assert!(value.text.starts_with("47"), "{value:?}");
    assert_eq!((percent.text.as_str(), percent.detail.as_str()), ("—", "invalid"));
    assert_eq!(report.trust.invalid, 1);
    assert_eq!(report.trust.reasons[0].cells, ["stripe: sequential read 1M"]);
    let bars = report.charts().find(|chart| chart.title.starts_with("sequential reads")).unwrap();
    let Plot::Bars { series, .. } = &bars.plot else { panic!("{bars:?}") };
    assert_eq!(series.len(), 1, "the invalid bar is left out");
    // An invalid baseline leaves no percent at all.
    let invalid = [("single", "sequential read 1M")];
    let report =
        build_report(&analyse_without_rules(&results, &invalid), &results, Path::new("results"));
    check(&report);
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    let percent = &numbers.rows[0].cells[3];
    assert_eq!(percent.detail, "the baseline has no number that can be believed");
}

#[test]
fn what_is_unfinished_says_so_first() {
    let results = results(&campaign(SMALL), |_, workload, repetition| match repetition {
        1 => headline(workload, 100e6),
        _ => Given::Nothing,
    });
    let report = report_of(&results);
    check(&report);
    assert!(report.answer[0].starts_with("This is not finished: 4 of 12 trials"));
    assert!(
        report.answer[1].contains("in one repetition")
            || report.answer[1].contains("cannot be told apart"),
        "{:?}",
        report.answer
    );
}

#[test]
fn without_numbers_there_is_no_answer_and_no_section() {
    let plan = campaign(SMALL);
    for given in [|| Given::Failed("no such device"), || Given::Nothing, || Given::Impossible("no")]
    {
        let report = report_of(&results(&plan, |_, _, _| given()));
        check(&report);
        assert!(report.sections.iter().all(|section| section.id == "overview"), "{report:?}");
        let said = report.answer.join(" ");
        assert!(said.contains("Nothing has been measured, so there is no answer."), "{said}");
    }
    let failed = report_of(&results(&plan, |_, _, _| Given::Failed("no such device")));
    assert!(failed.answer.last().unwrap().ends_with("no such device"), "{:?}", failed.answer);
    assert_eq!(failed.trust.missing, 4);
    let mut never = results(&plan, |_, _, _| Given::Nothing);
    never.sessions.clear();
    never.facts.clear();
    check(&report_of(&never));
}

#[test]
fn one_subject_alone_has_numbers_and_no_percents() {
    let alone = SMALL
        .replace("baseline = true", "")
        .replace("[[subject]]\nname = \"stripe\"\nstack = \"raid0(chunk=64K, {members})\"\n", "");
    let results = results(&campaign(&alone), |_, workload, repetition| {
        headline(workload, 100e6 + f64::from(repetition))
    });
    let report = report_of(&results);
    check(&report);
    assert!(
        report.answer[0].starts_with("The best throughput of single is 95.4 MiB/s"),
        "{:?}",
        report.answer
    );
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    assert_eq!(numbers.columns.len(), 2);
    assert!(!report.sections.iter().any(|section| section.id == "overview"));
}

#[test]
fn a_campaign_over_members_chunks_buses_and_depths_has_all_of_it() {
    let report = report_of(&sticks());
    check(&report);
    let kinds = |id: &str| -> Vec<&str> {
        let blocks = section_of(&report, id).blocks.iter();
        let kind = |block: &Block| match block {
            Block::Table(_) => "table",
            Block::Chart(chart) => match chart.plot {
                Plot::Bars { .. } => "bars",
                Plot::Lines { .. } => "lines",
                Plot::HeatMap { .. } => "map",
            },
        };
        let mut kinds: Vec<&str> = blocks.map(kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds("members-and-chunks"), ["lines", "map", "table"]);
    assert_eq!(kinds("bus-comparison"), ["bars", "table"]);
    assert_eq!(kinds("depth"), ["lines", "table"]);
    assert_eq!(kinds("sizes"), ["lines", "table"]);
    assert_eq!(kinds("latencies"), ["lines", "table"]);
    assert_eq!(kinds("over-time"), ["lines"]);
    assert_eq!(row_of(&report, "random read 4K: scaling efficiency", "3"), ["3", "100", "100"]);
    let map = report.charts().find(|chart| chart.id == "chunk-members").unwrap();
    let Plot::HeatMap { rows, columns, values, .. } = &map.plot else { panic!("{map:?}") };
    assert_eq!((rows.join(" "), columns.join(" ")), ("64K 128K".to_owned(), "1 2 3".to_owned()));
    let (one, three) = (values[0][0].unwrap(), values[0][2].unwrap());
    assert!((three / one - 3.0).abs() < 0.01, "{values:?}");
    // 1020 requests in each of two repetitions: enough for 99 %, not for 99.9 %.
    let table = report.tables().find(|table| table.id == "percentiles").unwrap();
    let cells: Vec<&str> = table.rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(cells[2..6], ["2040", "0.100", "0.100", "2.000"]);
    assert_eq!(table.rows[0].cells[6].detail, "not supported: it takes 10000 requests");
    let knee = report.charts().find(|chart| chart.id == "latency-by-requests").unwrap();
    let Plot::Lines { x, y, .. } = &knee.plot else { panic!("{knee:?}") };
    assert!(x.log && y.log);
}

const FAULTS: &str = r#"
name = "faults"
repetitions = 6
[[subject]]
name = "mirror"
stack = "raid1(/dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
health = ["healthy", "degraded", "rebuilding", "scrubbing"]
[[job]]
tool = "meter"
health = "story"
"#;

#[test]
fn what_a_failure_does_is_told() {
    let results = results(&campaign(FAULTS), |_, workload, repetition| {
        let rate = match workload.setup.health {
            Health::Degraded => 60e6,
            Health::Rebuilding => 30e6,
            Health::Scrubbing => 80e6,
            _ => 100e6,
        } * noise(0.01, &[repetition.into()]);
        let events = match workload.setup.health {
            Health::Story => vec![(3.0, "member 2 failed".to_owned())],
            _ => Vec::new(),
        };
        let measured = fixture::measured(&[(Metric::Throughput, rate)]);
        Given::All(fixture::with_course(measured, &[], rate, 20), events)
    });
    let report = report_of(&results);
    check(&report);
    let title = "sequential read 1M: throughput in percent of healthy";
    assert_eq!(row_of(&report, title, "rebuilding"), ["rebuilding", "30.0"]);
    let course = &section_of(&report, "over-time").blocks[0];
    let Block::Chart(course) = course else { panic!("{course:?}") };
    let Plot::Lines { events, series, .. } = &course.plot else { panic!("{course:?}") };
    assert_eq!((events[0].x, events[0].label.as_str()), (3.0, "member 2 failed"));
    assert_eq!(series[0].points.len(), 20);
    assert!(course.title.contains("story"), "{}", course.title);
}

#[test]
fn rounds_that_settle_are_told_from_those_that_do_not() {
    let plan = r#"
name = "steady"
repetitions = 8
[[subject]]
name = "flash"
path = "/dev/sda"
[[job]]
tool = "meter"
op = "write"
pattern = ["seq", "rand"]
"#;
    let results = results(&campaign(plan), |_, workload, repetition| {
        let falling = workload.settings.word("pattern") == "rand";
        let rounds = f64::from(repetition);
        headline(workload, if falling { 100e6 / rounds } else { 50e6 + 100e6 / rounds.powi(4) })
    });
    let report = report_of(&results);
    check(&report);
    let table = report.tables().find(|table| table.id == "steady").unwrap();
    assert_eq!(table.rows[0].cells[2].text, "settled in rounds 3 to 7");
    assert_eq!(table.rows[1].cells[2].text, "not settled; measure more rounds");
}

#[test]
fn file_systems_and_options_are_compared() {
    let plan = r#"
name = "mounts"
repetitions = 6
[[subject]]
name = "disk"
path = "/dev/sda"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
filesystem = "ext4"
mount = ["", "sync"]
readahead = ["128K", "1M"]
"#;
    let results = results(&campaign(plan), |_, workload, repetition| {
        let sync = if workload.setup.mount == "sync" { 0.25 } else { 1.0 };
        let ahead = if workload.setup.readahead == Some(ByteSize(1 << 20)) { 2.0 } else { 1.0 };
        headline(workload, 100e6 * sync * ahead * noise(0.01, &[repetition.into()]))
    });
    let report = report_of(&results);
    check(&report);
    let title = "sequential read 1M, ext4, read-ahead 128K: throughput in percent of defaults";
    assert_eq!(row_of(&report, title, "sync"), ["sync", "25.0", "25.0"]);
    let title = "sequential read 1M, ext4: throughput";
    assert_eq!(row_of(&report, title, "1M")[0], "1M");
}

#[test]
fn hostile_names_stay_words() {
    let evil = "<script>alert(1)</script>\\u001b[31m\\u202e|`' =cmd()";
    let plan = SMALL
        .replace("\"stripe\"", &format!("\"{evil}\""))
        .replace("\"stripes\"", &format!("\"{evil}\""));
    let results = results(&campaign(&plan), |_, workload, _| headline(workload, 1e6));
    let report = report_of(&results);
    check(&report);
    let page = crate::report::render::render_html(&report).unwrap();
    assert!(!page.contains("<script>alert"));
    assert!(report.subjects.rows[1].cells[0].text.starts_with("<script>"));
}

#[test]
fn it_says_how_to_run_it_again() {
    let results = results(&campaign(SMALL), |_, workload, _| headline(workload, 1e6));
    let report = build_report(&analyse(&results), &results, Path::new("my results"));
    assert_eq!(
        report.again[0],
        "braid lab resume 'my results' --destroy /dev/sda --destroy /dev/sdb"
    );
    let reading = SMALL.replace("op = [\"read\", \"write\"]", "op = \"read\"");
    let mut reading = campaign(&reading);
    reading.fill = false;
    let reading = fixture::results(&reading, |_, workload, _| headline(workload, 1e6));
    assert!(!report_of(&reading).again[0].contains("--destroy"));
}

/// The real tools' parameters, labels and headlines, and the largest campaigns that there are.
#[test]
fn every_preset_makes_a_report() {
    for preset in crate::preset::PRESETS {
        let mut choices = crate::preset::Choices { modelled: true, ..Default::default() };
        if !preset.toml.contains("[[subject]]") {
            choices.modelled = false;
            choices.baseline = Some("/dev/sda".to_owned());
            choices.subjects = vec![("stripe".to_owned(), "raid0(/dev/sda, /dev/sdb)".to_owned())];
        }
        let campaign = preset.campaign(&choices).unwrap();
        let results = results(&campaign, |subject, workload, repetition| {
            let seed =
                [subject.name.len() as u64, workload.label().len() as u64, repetition.into()];
            let rate = 50e6 * noise(0.2, &seed);
            let numbers = fixture::measured(&[
                (Metric::Throughput, rate),
                (Metric::Iops, rate / 4096.0),
                (Metric::Seconds, 60.0 * 50e6 / rate),
                (Metric::SeekRate, rate / 1e6),
                (Metric::LatencyP99, 4e12 / rate),
            ]);
            Given::All(numbers, Vec::new())
        });
        let report = report_of(&results);
        check(&report);
        assert!(report.answer.len() > 1, "{}: {:?}", preset.name, report.answer);
        if std::env::var("SHOW_PRESET").is_ok_and(|name| name == preset.name) {
            println!("{}", text_of(&report));
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
    /// Whatever is missing, failed, zero or absurd, there is a report and it keeps its rules.
    #[test]
    fn any_results_make_a_report(seed in proptest::prelude::any::<u64>(), repetitions in 1_u32..8) {
        let mut plan = campaign(STICKS);
        plan.repetitions = repetitions;
        let mut counter = 0;
        let results = results(&plan, |_, workload, _| {
            counter += 1;
            let dice = crate::rng::mix(&[seed, counter]);
            match dice % 11 {
                0 => Given::Failed("bad luck"),
                1 => Given::Impossible("never"),
                2 => Given::Nothing,
                3 => headline(workload, 0.0),
                4 => headline(workload, 1e99),
                5 => headline(workload, -1.0),
                6 => Given::All(crate::metric::Measured::default(), vec![(f64::NAN, "?".into())]),
                7 => Given::All(
                    fixture::with_course(fixture::measured(&[]), &[(0, 5), (u64::MAX, 1)], 1e300, 2),
                    vec![(1.0, "an event".into())],
                ),
                _ => headline(workload, 1e6 * (1 + dice % 97) as f64),
            }
        });
        check(&report_of(&results));
    }
}

/// Run by hand: `cargo test --release -p braid-lab --lib many_samples -- --ignored --nocapture`.
#[test]
#[ignore = "prints times; run it in release by hand"]
fn many_samples_take_little_time() {
    let plan = r#"
name = "many"
repetitions = 10
subject = [
  { name = "a", path = "/dev/sda", baseline = true }, { name = "b", path = "/dev/sdb" },
  { name = "c", path = "/dev/sdc" }, { name = "d", path = "/dev/sdd" },
  { name = "e", path = "/dev/sde" }, { name = "f", path = "/dev/sdf" },
  { name = "g", path = "/dev/sdg" }, { name = "h", path = "/dev/sdh" },
]
[[job]]
tool = "meter"
op = ["read", "write"]
pattern = ["seq", "rand"]
block_size = ["4K", "16K", "64K", "256K", "1M"]
iodepth = [1, 2, 4, 8, 16]
"#;
    let plan = campaign(plan);
    let metrics = &crate::metric::METRICS[..13];
    let results = results(&plan, |subject, _, repetition| {
        let seed = [subject.name.as_bytes()[0].into(), repetition.into()];
        let number = |metric: &Metric| (*metric, 1e6 * noise(0.1, &seed));
        Given::Numbers(metrics.iter().map(number).collect())
    });
    let samples: usize = results.trials.iter().map(|t| t.measured.samples.len()).sum();
    let start = std::time::Instant::now();
    let analysis = analyse(&results);
    println!("{samples} samples, analysis {:?}", start.elapsed());
    let report = build_report(&analysis, &results, Path::new("results"));
    println!("with report of {} tables {:?}", report.tables().count(), start.elapsed());
    let rows = tidy_rows(&analysis, &results);
    println!("with {} rows {:?}", rows.len(), start.elapsed());
    assert_eq!(rows.len(), samples);
}
