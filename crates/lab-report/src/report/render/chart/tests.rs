use super::*;
use crate::report::model::{
    Axis, BarSeries, Block, Cell, Datum, Gap, LineSeries, Point, Report, Row, Section, Spread,
    Table,
};

fn axis(label: &str, unit: &str) -> Axis {
    Axis { label: label.into(), unit: unit.into(), ..Axis::default() }
}

fn bars() -> Chart {
    Chart {
        id: "small".into(),
        title: "A < B".into(),
        note: "One bar.".into(),
        plot: Plot::Bars {
            axis: axis("Throughput", "MiB/s"),
            categories: vec!["read".into(), "write".into()],
            series: vec![BarSeries {
                name: "disk".into(),
                values: vec![
                    Datum::Value(Spread {
                        value: 200.0,
                        low: 150.0,
                        high: 250.0,
                        points: vec![250.0],
                        suspect: false,
                    }),
                    Datum::Gap(Gap::Invalid),
                ],
            }],
            mark: Some(100.0),
        },
    }
}

fn lines(points: &[(f64, f64)], steps: bool) -> Chart {
    let points =
        points.iter().map(|&(x, y)| Point { x, y, interval: None, suspect: false }).collect();
    Chart {
        id: "line".into(),
        title: "Line".into(),
        note: String::new(),
        plot: Plot::Lines {
            x: axis("Time", "s"),
            y: axis("Requests", "1/s"),
            series: vec![LineSeries { name: "disk".into(), points, steps }],
            events: vec![],
        },
    }
}

fn inline(chart: &Chart) -> String {
    render_svg(chart, &Palette::default(), Frame::Inline)
}

#[test]
fn a_small_chart() {
    insta::assert_snapshot!(inline(&bars()), @r##"
    <svg class="chart" viewBox="0 0 480 121" font-family="sans-serif" role="img" aria-label="A &lt; B">
    <title>A &lt; B</title>
    <desc>One bar.</desc>
    <rect x="0" y="4" width="11" height="11" opacity="0.8" fill="#143AA1"/>
    <text x="16" y="9.5" dy=".5ex" font-size="12.1" fill="#1A1D21">disk</text>
    <polyline points="43.6,25 43.6,79" fill="none" stroke="#DFE3E8" stroke-width="1"/>
    <polyline points="123.7,25 123.7,79" fill="none" stroke="#DFE3E8" stroke-width="1"/>
    <polyline points="203.8,25 203.8,79" fill="none" stroke="#DFE3E8" stroke-width="1"/>
    <polyline points="283.9,25 283.9,79" fill="none" stroke="#DFE3E8" stroke-width="1"/>
    <polyline points="363.9,25 363.9,79" fill="none" stroke="#DFE3E8" stroke-width="1"/>
    <polyline points="444,25 444,79" fill="none" stroke="#DFE3E8" stroke-width="1"/>
    <polyline points="43.6,25 43.6,79" fill="none" stroke="#5B6470" stroke-width="1"/>
    <text x="43.6" y="90" dy=".5ex" text-anchor="middle" font-size="10.9" fill="#5B6470">0</text>
    <text x="123.7" y="90" dy=".5ex" text-anchor="middle" font-size="10.9" fill="#5B6470">50</text>
    <text x="203.8" y="90" dy=".5ex" text-anchor="middle" font-size="10.9" font-weight="bold" fill="#5B6470">100</text>
    <text x="283.9" y="90" dy=".5ex" text-anchor="middle" font-size="10.9" fill="#5B6470">150</text>
    <text x="363.9" y="90" dy=".5ex" text-anchor="middle" font-size="10.9" fill="#5B6470">200</text>
    <text x="444" y="90" dy=".5ex" text-anchor="middle" font-size="10.9" fill="#5B6470">250</text>
    <text x="243.8" y="110" dy=".5ex" text-anchor="middle" font-size="10.9" fill="#5B6470">Throughput (MiB/s)</text>
    <text x="35.6" y="38.5" dy=".5ex" text-anchor="end" font-size="12.1" fill="#1A1D21">read</text>
    <rect x="43.6" y="30.5" width="320.3" height="16" opacity="0.8" fill="#143AA1"/>
    <polyline points="283.9,38.5 444,38.5" fill="none" stroke="#FFFFFF" stroke-width="3.4"/>
    <polyline points="283.9,33 283.9,44" fill="none" stroke="#FFFFFF" stroke-width="3.4"/>
    <polyline points="444,33 444,44" fill="none" stroke="#FFFFFF" stroke-width="3.4"/>
    <polyline points="283.9,38.5 444,38.5" fill="none" stroke="#1A1D21" stroke-width="1.4"/>
    <polyline points="283.9,33 283.9,44" fill="none" stroke="#1A1D21" stroke-width="1.4"/>
    <polyline points="444,33 444,44" fill="none" stroke="#1A1D21" stroke-width="1.4"/>
    <circle cx="444" cy="35.5" r="2.2" fill="#FFFFFF"/>
    <circle cx="444" cy="35.5" r="1.5" fill="#1A1D21"/>
    <text x="480" y="38.5" dy=".5ex" text-anchor="end" font-size="10.9" fill="#1A1D21">200</text>
    <text x="35.6" y="65.5" dy=".5ex" text-anchor="end" font-size="12.1" fill="#1A1D21">write</text>
    <text x="47.6" y="65.5" dy=".5ex" font-size="9.9" fill="#5B6470">invalid</text>
    <text x="480" y="65.5" dy=".5ex" text-anchor="end" font-size="9.9" fill="#5B6470">—</text>
    <g stroke-dasharray="5 3">
    <polyline points="203.8,25 203.8,79" fill="none" stroke="#1A1D21" stroke-width="1.3"/>
    </g>
    <g class="tips" fill="none" pointer-events="all">
    <rect x="43.6" y="30.5" width="400.4" height="16"><title>read, disk: 200 [150, 250] MiB/s</title></rect>
    </g>
    </svg>
    "##);
}

#[test]
fn a_line_breaks_where_nothing_was_measured() {
    let chart = lines(&[(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 1.0)], false);
    let svg = inline(&chart);
    let line = svg.split("class=\"line\"").nth(1).unwrap().split("</g>").next().unwrap();
    insta::assert_snapshot!(line.trim(), @r##"
    >
    <polyline points="33.7,157.5 141.7,45" fill="none" stroke="#143AA1" stroke-width="2"/>
    <polyline points="357.9,45 466,157.5" fill="none" stroke="#143AA1" stroke-width="2"/>
    "##);
}

#[test]
fn alone_it_has_a_title_a_size_and_a_ground() {
    let svg = render_svg(&bars(), &Palette::default(), Frame::Alone);
    let head: Vec<&str> = svg.lines().take(6).collect();
    insta::assert_snapshot!(head.join("\n"), @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="504" height="179" viewBox="-12 -46 504 179" font-family="sans-serif" role="img" aria-label="A &lt; B">
    <title>A &lt; B</title>
    <desc>One bar.</desc>
    <rect x="-12" y="-46" width="504" height="179" fill="#FFFFFF"/>
    <text x="0" y="-17" font-size="15" font-weight="bold" fill="#1A1D21">A &lt; B</text>
    <rect x="0" y="4" width="11" height="11" opacity="0.8" fill="#143AA1"/>
    "##);
    let (_, body) = svg.split_once("</text>").unwrap();
    assert!(inline(&bars()).ends_with(body.trim_start()), "the same drawing");
}

/// A report that draws these series, a chart for each list, of these subjects.
fn report_of(subjects: &[&str], charts: &[&[&str]]) -> Report {
    let cell = |text: &str| Cell { text: text.into(), ..Cell::default() };
    let row = |name: &&str| Row { cells: vec![cell(name)], total: false };
    let series = |name: &&str| BarSeries { name: (*name).into(), values: Vec::new() };
    let chart = |names: &&[&str]| {
        Block::Chart(Chart {
            plot: Plot::Bars {
                axis: Axis::default(),
                categories: Vec::new(),
                series: names.iter().map(series).collect(),
                mark: None,
            },
            ..bars()
        })
    };
    Report {
        subjects: Table { rows: subjects.iter().map(row).collect(), ..Table::default() },
        sections: vec![Section {
            id: "s".into(),
            title: String::new(),
            lead: String::new(),
            is_detail: false,
            blocks: charts.iter().map(chart).collect(),
        }],
        ..Report::default()
    }
}

#[test]
fn a_name_has_the_same_colour_in_all_charts() {
    let subjects = ["not drawn", "single", "stripe"];
    let palette = Palette::of(&report_of(&subjects, &[&["stripe", "single"], &["disk"]]));
    assert_eq!(palette.places(&["single", "stripe", "disk"]), [0, 1, 2]);
    assert_eq!(palette.places(&["disk", "stripe"]), [2, 1]);
    // One that is not known takes a place that is free; two alike stay two.
    assert_eq!(palette.places(&["new", "single", "stripe"]), [2, 0, 1]);
    assert_eq!(palette.places(&["stripe", "stripe"]), [1, 2]);
    let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let names: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut places = palette.places(&names);
    places.sort_unstable();
    assert_eq!(places, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_subject_looks_the_same_beside_any_others() {
    let many: Vec<String> = (0..12).map(|n| format!("subject {n}")).collect();
    let names: Vec<&str> = many.iter().map(String::as_str).collect();
    let palette = Palette::of(&report_of(&names, &[&names[..6], &names[6..], &["reads"]]));
    let whole = palette.places(&names);
    for chosen in [[0, 8], [8, 1], [3, 11], [9, 1]] {
        let places = palette.places(&chosen.map(|index| names[index]));
        assert_eq!(places, chosen.map(|index| whole[index]));
        // Where the colour is the same, the rest is not.
        let looks = places.iter().map(|place| (place % 8, colours::is_light(*place)));
        assert_eq!(looks.collect::<std::collections::HashSet<_>>().len(), 2, "{places:?}");
    }
}

fn texts(svg: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(svg).unwrap();
    let nodes = tree.descendants().filter(|node| node.has_tag_name("text"));
    nodes.filter_map(|node| Some(node.text()?.trim().to_owned())).collect()
}

#[test]
fn a_single_series_is_named() {
    assert_eq!(texts(&inline(&bars()))[0], "disk");
    assert_eq!(texts(&inline(&lines(&[(0.0, 1.0)], false)))[0], "disk");
    let mut nameless = bars();
    if let Plot::Bars { series, .. } = &mut nameless.plot {
        series[0].name.clear();
    }
    assert_eq!(texts(&inline(&nameless))[0], "0", "an axis comes first");
}

#[test]
fn what_is_suspect_looks_so() {
    let mut chart = bars();
    let plain = inline(&chart);
    if let Plot::Bars { series, .. } = &mut chart.plot {
        let spread =
            Spread { value: 200.0, low: 200.0, high: 200.0, points: vec![], suspect: true };
        series[0].values = vec![Datum::Value(spread), Datum::Gap(Gap::Invalid)];
    }
    let svg = inline(&chart);
    let said = texts(&svg);
    assert!(said.contains(&"⚠ 200".to_owned()) && said.contains(&"invalid".to_owned()), "{said:?}");
    assert!(said.contains(&"⚠ suspect".to_owned()), "{said:?}");
    assert!(svg.contains("read, disk: 200 MiB/s, suspect"), "{svg}");
    let stripes = |svg: &str| svg.matches("stroke=\"#FFFFFF\" stroke-width=\"2.4\"").count();
    assert_eq!(stripes(&plain), 0);
    assert!(stripes(&svg) > 20, "{}", stripes(&svg));

    let mut chart = lines(&[(0.0, 1.0), (1.0, 2.0)], false);
    assert!(!inline(&chart).contains("#FFFFFF"));
    if let Plot::Lines { series, .. } = &mut chart.plot {
        series[0].points[1].suspect = true;
    }
    let svg = inline(&chart);
    // One hole in the line, one in the legend.
    assert_eq!(svg.matches("fill=\"#FFFFFF\"").count(), 2, "{svg}");
    assert!(texts(&svg).contains(&"⚠ suspect".to_owned()));
    assert!(svg.contains("disk, 1.00 s: 2.00 1/s, suspect"), "{svg}");
}

#[test]
fn lines_of_a_second_round_of_colours_have_other_markers_and_dashes() {
    use super::canvas::Marker;
    for place in 0..8 {
        assert_ne!(Marker::of(place), Marker::of(place + 8));
        let dashed = legend::Key::Dashed;
        assert_ne!(dashed.dashes(place), dashed.dashes(place + 8));
        assert_eq!(legend::Key::Line.dashes(place), "");
    }
}

#[test]
fn the_page_has_a_twin_for_every_colour() {
    let style = include_str!("../page.css");
    let plain = [colours::INK, colours::SOFT, colours::RULE, colours::PAPER];
    for colour in plain.into_iter().chain(colours::SERIES) {
        for kind in ["fill", "stroke"] {
            let rule = format!(".chart [{kind}=\"{}\"]", colour);
            assert!(style.contains(&rule), "no {rule}");
        }
    }
}

#[test]
fn a_long_line_is_small() {
    let points: Vec<(f64, f64)> =
        (0..200_000).map(|n| (f64::from(n), f64::from(n * 7919 % 1000))).collect();
    let svg = inline(&lines(&points, false));
    assert!(svg.len() < 60_000, "{}", svg.len());
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
