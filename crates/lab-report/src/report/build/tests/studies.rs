//! Studies of several factors, and those of two disks.

use super::*;

#[test]
fn the_two_disk_study_reads_well() {
    let text = text_of(&report_of(&two_disks()));
    assert!(text.trim() == include_str!("two_disks.txt").trim(), "two_disks.txt is to be:\n{text}");
}

#[test]
fn a_study_is_answered_by_factor() {
    let report = report_of(&sticks());
    check(&report);
    let ids: Vec<&str> = report.sections.iter().map(|section| section.id.as_str()).collect();
    for id in ["by-members", "by-chunk", "by-iodepth", "numbers", "latencies"] {
        assert!(ids.contains(&id), "no {id} in {ids:?}");
    }
    let said = report.answer.join(" ");
    assert!(said.contains("Members, against 1: reads with 3 are 3.0"), "{said}");
    let chart = report.charts().find(|chart| chart.title == "What members does").unwrap();
    let ideal = chart.series.iter().find(|line| line.name == "ideal").unwrap();
    let points: Vec<(f64, f64)> = ideal.points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]);
    // Chunk by members, as studies print it.
    let crossed = report.tables().find(|table| table.id == "crossed").unwrap();
    assert_eq!((crossed.columns.len(), crossed.rows.len()), (4, 2), "{crossed:?}");
}

/// One of eighty-five subjects is no table for a terminal: levels are.
#[test]
fn many_subjects_are_told_by_level() {
    let plan = STICKS.replace("\"64K\", \"128K\"", "\"4K\", \"16K\", \"64K\", \"128K\", \"1M\"");
    let results = results(&campaign(&plan), |_, workload, _| headline(workload, 1e6));
    let report = report_of(&results);
    check(&report);
    assert_eq!(report.table.columns[0].heading, "what");
    let text = crate::report::render::render_terminal(&report, false, "report.html");
    assert!(text.lines().count() <= 45, "{text}");
}
