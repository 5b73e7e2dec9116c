use super::*;
use crate::report::model::{Axis, Block, Point, Report, Section, Series};

fn axis(label: &str, unit: &str) -> Axis {
    Axis { label: label.into(), unit: unit.into(), ..Axis::default() }
}

fn series(name: &str, points: &[(f64, f64)]) -> Series {
    let points = points.iter().map(|&(x, y)| Point { x, y, ..Point::default() });
    Series { name: name.into(), points: points.collect() }
}

/// A bar with an interval, and a group without one.
fn bars() -> Chart {
    let mut disk = series("disk", &[(0.0, 200.0)]);
    disk.points[0].interval = Some((150.0, 250.0));
    Chart {
        id: "small".into(),
        title: "A < B".into(),
        x: Axis { ticks: vec![(0.0, "read".into()), (1.0, "write".into())], ..Axis::default() },
        y: axis("Throughput", "MiB/s"),
        series: vec![disk],
        mark: Some(100.0),
        ..Chart::default()
    }
}

fn lines(points: &[(f64, f64)]) -> Chart {
    Chart {
        title: "Line".into(),
        shape: Shape::Lines,
        x: axis("Time", "s"),
        y: axis("Requests", "1/s"),
        series: vec![series("disk", points)],
        ..Chart::default()
    }
}

fn drawn(chart: &Chart) -> String {
    render_svg(chart, &Palette::default())
}

#[test]
fn a_small_chart() {
    let svg = drawn(&bars());
    assert!(svg.trim() == include_str!("tests/bars.svg").trim(), "bars.svg is to be:\n{svg}");
}

#[test]
fn a_line_breaks_where_nothing_was_measured() {
    let chart = lines(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 1.0)]);
    let svg = drawn(&chart);
    let parts: Vec<&str> =
        svg.lines().filter(|line| line.contains("#143AA1\" stroke-width=\"2\"")).collect();
    // The key of the legend, and a line on each side of the gap.
    assert_eq!(parts.len(), 3, "{parts:?}");
    assert_eq!(svg.matches("<circle").count(), 1 + 4);
}

#[test]
fn a_name_has_the_same_colour_in_all_charts() {
    let chart = |names: &[&str]| {
        Block::Chart(Chart {
            series: names.iter().map(|name| series(name, &[])).collect(),
            ..Chart::default()
        })
    };
    let blocks = vec![chart(&["single", "stripe"]), chart(&["disk"])];
    let section = Section {
        id: "s".into(),
        title: String::new(),
        lead: String::new(),
        is_detail: false,
        blocks,
    };
    let palette = Palette::of(&Report { sections: vec![section], ..Report::default() });
    let places = |names: &[&'static str]| palette.places(names.iter().copied());
    assert_eq!(places(&["single", "stripe", "disk"]), [0, 1, 2]);
    assert_eq!(places(&["disk", "stripe"]), [2, 1]);
    // Two alike stay two.
    assert_eq!(places(&["stripe", "stripe"]), [1, 2]);
    let mut all = places(&["a", "b", "c", "d", "e", "f", "g", "h"]);
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
    assert_eq!(places(&["x"; 20]).len(), 20);
}

fn texts(svg: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(svg).unwrap();
    let nodes = tree.descendants().filter(|node| node.has_tag_name("text"));
    nodes.filter_map(|node| Some(node.text()?.trim().to_owned())).collect()
}

#[test]
fn a_single_series_is_named() {
    assert_eq!(texts(&drawn(&bars()))[0], "disk");
    assert_eq!(texts(&drawn(&lines(&[(0.0, 1.0)])))[0], "disk");
    let mut nameless = bars();
    nameless.series[0].name.clear();
    assert_eq!(texts(&drawn(&nameless))[0], "0", "an axis comes first");
}

#[test]
fn what_is_suspect_looks_so() {
    let mut chart = bars();
    assert!(!drawn(&chart).contains("fill-opacity=\"0.25\""));
    chart.series[0].points[0].suspect = true;
    let svg = drawn(&chart);
    let said = texts(&svg);
    assert!(said.contains(&"⚠ 200".to_owned()) && said.contains(&"—".to_owned()), "{said:?}");
    assert!(said.contains(&"⚠ suspect".to_owned()), "{said:?}");
    assert!(svg.contains("read, disk: 200 [150, 250] MiB/s, suspect"), "{svg}");
    // The bar, and what it is in the legend.
    assert_eq!(svg.matches("fill-opacity=\"0.25\"").count(), 2);

    let mut chart = lines(&[(0.0, 1.0), (1.0, 2.0)]);
    let hollow =
        |svg: &str| svg.matches("<circle").count() - svg.matches("fill=\"#143AA1\"").count();
    assert_eq!(hollow(&drawn(&chart)), 0);
    chart.series[0].points[1].suspect = true;
    let svg = drawn(&chart);
    assert_eq!(hollow(&svg), 2, "{svg}");
    assert!(texts(&svg).contains(&"⚠ suspect".to_owned()));
    assert!(svg.contains("disk, 1.00 s: 2.00 1/s, suspect"), "{svg}");
}

#[test]
fn eight_lines_can_be_told_without_colours() {
    use super::canvas::{Canvas, dashes};
    let looks = (0..8).map(|place| {
        let mut canvas = Canvas::default();
        canvas.marker((0.0, 0.0), place, "", false, "");
        (canvas.body, dashes(place))
    });
    assert_eq!(looks.collect::<std::collections::HashSet<_>>().len(), 8);
}

#[test]
fn the_page_has_a_twin_for_every_colour() {
    let style = include_str!("../page.css");
    let plain = [colours::INK, colours::SOFT, colours::RULE, colours::PAPER];
    for colour in plain.into_iter().chain(colours::SERIES) {
        for kind in ["fill", "stroke"] {
            let rule = format!(".chart [{kind}=\"{colour}\"]");
            assert!(style.contains(&rule), "no {rule}");
        }
    }
}

#[test]
fn a_text_is_cut_to_its_room() {
    use super::canvas::{fit, text_width};
    let name = "/dev/disk/by-id/usb-SanDisk_Extreme_Pro_55AE_012345678";
    let cut = fit(name, 12.0, 150.0);
    assert!(text_width(&cut, 12.0) <= 150.0 && cut.contains('…'), "{cut}");
    assert!(text_width(&cut, 12.0) > 120.0, "{cut}");
    assert_eq!(fit("sda", 12.0, 150.0), "sda");
    assert_eq!(fit("sda", 12.0, 0.0).chars().count(), 1);
}

#[test]
fn marks_are_not_joined_and_each_is_drawn() {
    let points: Vec<(f64, f64)> = (0..40).map(|n| (f64::from(n), 1.0 + f64::from(n % 7))).collect();
    let marks = drawn(&Chart { shape: Shape::Marks, ..lines(&points) });
    let joined = drawn(&lines(&points));
    // One of them is the legend's.
    assert_eq!(marks.matches("<circle").count(), points.len() + 1);
    assert!(joined.matches("<circle").count() < points.len());
    let strokes = |svg: &str| {
        svg.lines().filter(|line| line.contains("<polyline") && line.contains("#143AA1")).count()
    };
    assert_eq!((strokes(&marks), strokes(&joined)), (0, 2));
}
