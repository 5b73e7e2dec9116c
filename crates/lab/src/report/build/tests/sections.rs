//! Which tables and charts a campaign gets, and their numbers.

use super::*;

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
    assert!(row_of(&report, title, "cp-cached").ends_with(&["5.00", "111"]));
    // What dd moved is a rate beside it.
    assert_eq!(section_of(&report, "numbers").blocks.len(), 2);
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
    let value = |column: usize| values[0][column].value().unwrap().value;
    let (one, three) = (value(0), value(2));
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

/// A declaration for each number of buses, as the six-stick study has it: the names differ and
/// the arrays are the same.
#[test]
fn one_bus_is_compared_with_two_whatever_they_are_called() {
    let plan = r#"
name = "buses"
repetitions = 6
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
name = "narrow"
stack = "raid0(chunk={chunk}, {members})"
members = 2
chunk = ["64K", "128K"]
buses = 1
baseline = true
[[subject]]
name = "wide"
stack = "raid0(chunk={chunk}, {members})"
members = 2
chunk = ["64K", "128K"]
buses = 2
order = ["alternate", "grouped"]
[[job]]
tool = "meter"
"#;
    let results = results(&campaign(plan), |subject, workload, _| {
        let wide = subject.dimensions.get("buses") == Some(&Value::Count(2));
        headline(workload, if wide { 50e6 } else { 40e6 })
    });
    let report = report_of(&results);
    check(&report);
    let title = "sequential read 1M: throughput in percent of 1 bus";
    assert_eq!(
        row_of(&report, title, "chunk 128K"),
        ["chunk 128K, 2 members", "100", "125", "125"]
    );
    let table = report.tables().find(|table| table.title == title).unwrap();
    let heads: Vec<&str> = table.columns.iter().map(|column| column.heading.as_str()).collect();
    assert_eq!(heads, ["array", "1 bus [%]", "2 buses, alternate [%]", "2 buses, grouped [%]"]);
}

/// More subjects than fit across a table stand down it, and only the fastest are drawn.
#[test]
fn many_subjects_stay_readable() {
    let mut plan = String::from("name = \"many\"\nrepetitions = 2\n[[job]]\ntool = \"meter\"\n");
    for index in 0..30 {
        plan += &format!("[[subject]]\nname = \"s{index}\"\npath = \"/dev/x{index}\"\n");
        plan += if index == 0 { "baseline = true\n" } else { "" };
    }
    let results = results(&campaign(&plan), |subject, workload, _| {
        let index: f64 = subject.name[1..].parse().unwrap();
        headline(workload, 1e6 * (1.0 + index))
    });
    let report = report_of(&results);
    check(&report);
    assert_eq!(row_of(&report, "meter: throughput", "s29"), ["s29", "28.6", "3000", "3000"]);
    assert_eq!(row_of(&report, "meter: throughput", "s0")[2], "100");
    let bars = report.charts().find(|chart| chart.id == "percent-bars").unwrap();
    let Plot::Bars { series, .. } = &bars.plot else { panic!("{bars:?}") };
    let drawn: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(drawn, ["s23", "s24", "s25", "s26", "s27", "s28", "s29"]);
}

/// The set-up is told once, by the commands, each on a line; sizes are in the unit of their column.
#[test]
fn subjects_are_told_in_a_line_each() {
    let results = two_disks();
    let report = report_of(&results);
    let heads: Vec<&str> =
        report.subjects.columns.iter().map(|column| column.heading.as_str()).collect();
    assert_eq!(heads, ["subject", "kind", "source", "members", "size [GiB]", "notes"]);
    let mut small = results.clone();
    small.facts[0].size_bytes = Some(190 << 20);
    small.trials[0].commands = vec!["# until no pass runs: a".to_owned(), "b".to_owned()];
    let report = report_of(&small);
    assert_eq!(report.subjects.columns[4].heading, "size [MiB]");
    let sizes: Vec<_> = report.subjects.rows.iter().map(|row| &row.cells[4]).collect();
    assert_eq!((sizes[0].text.as_str(), sizes[0].number), ("190", Some(190.0)));
    for (size, facts) in sizes.iter().zip(&small.facts) {
        let mebibytes = facts.size_bytes.map(|bytes| bytes as f64 / 1_048_576.0);
        assert_eq!(size.number, mebibytes, "{size:?}");
    }
    let lines = |row: &crate::report::model::Row| row.cells[2].text == "# until no pass runs: a\nb";
    assert!(report.commands.rows.iter().any(lines), "{:?}", report.commands.rows);
}
