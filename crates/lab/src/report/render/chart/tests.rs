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
    <svg class="chart" viewBox="0 0 4800 1210" font-family="sans-serif" role="img" aria-label="A &lt; B">
    <title>A &lt; B</title>
    <desc>One bar.</desc>
    <g>
    <rect x="0" y="40" width="110" height="110" opacity="0.8" fill="#143AA1" stroke="none"/>
    </g>
    <g>
    <text x="160" y="95" dy="0.5ex" text-anchor="start" font-size="121" fill="#1A1D21">
    disk
    </text>
    </g>
    <g>
    <polyline fill="none" stroke="#DFE3E8" stroke-width="10" points="436,250 436,790 "/>
    <polyline fill="none" stroke="#DFE3E8" stroke-width="10" points="1236,250 1236,790 "/>
    <polyline fill="none" stroke="#DFE3E8" stroke-width="10" points="2037,250 2037,790 "/>
    <polyline fill="none" stroke="#DFE3E8" stroke-width="10" points="2838,250 2838,790 "/>
    <polyline fill="none" stroke="#DFE3E8" stroke-width="10" points="3639,250 3639,790 "/>
    <polyline fill="none" stroke="#DFE3E8" stroke-width="10" points="4440,250 4440,790 "/>
    <polyline fill="none" stroke="#5B6470" stroke-width="10" points="436,250 436,790 "/>
    </g>
    <g>
    <text x="436" y="900" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470">
    0
    </text>
    <text x="1236" y="900" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470">
    50
    </text>
    <text x="2037" y="900" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470" font-weight="bold">
    100
    </text>
    <text x="2838" y="900" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470">
    150
    </text>
    <text x="3639" y="900" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470">
    200
    </text>
    <text x="4440" y="900" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470">
    250
    </text>
    <text x="2438" y="1100" dy="0.5ex" text-anchor="middle" font-size="109" fill="#5B6470">
    Throughput (MiB/s)
    </text>
    </g>
    <g>
    <text x="356" y="385" dy="0.5ex" text-anchor="end" font-size="121" fill="#1A1D21">
    read
    </text>
    </g>
    <g>
    <rect x="436" y="305" width="3203" height="160" opacity="0.8" fill="#143AA1" stroke="none"/>
    <polyline fill="none" stroke="#FFFFFF" stroke-width="34" points="2838,385 4440,385 "/>
    <polyline fill="none" stroke="#FFFFFF" stroke-width="34" points="2838,330 2838,440 "/>
    <polyline fill="none" stroke="#FFFFFF" stroke-width="34" points="4440,330 4440,440 "/>
    <polyline fill="none" stroke="#1A1D21" stroke-width="14" points="2838,385 4440,385 "/>
    <polyline fill="none" stroke="#1A1D21" stroke-width="14" points="2838,330 2838,440 "/>
    <polyline fill="none" stroke="#1A1D21" stroke-width="14" points="4440,330 4440,440 "/>
    <circle cx="4440" cy="355" r="22" fill="#FFFFFF" stroke="none" stroke-width="1"/>
    <circle cx="4440" cy="355" r="15" fill="#1A1D21" stroke="none" stroke-width="1"/>
    <text x="4800" y="385" dy="0.5ex" text-anchor="end" font-size="109" fill="#1A1D21">
    200
    </text>
    </g>
    <g>
    <text x="356" y="655" dy="0.5ex" text-anchor="end" font-size="121" fill="#1A1D21">
    write
    </text>
    </g>
    <g>
    <text x="476" y="655" dy="0.5ex" text-anchor="start" font-size="99" fill="#5B6470">
    invalid
    </text>
    <text x="4800" y="655" dy="0.5ex" text-anchor="end" font-size="99" fill="#5B6470">
    —
    </text>
    </g>
    <g stroke-dasharray="50 30">
    <polyline fill="none" stroke="#1A1D21" stroke-width="13" points="2037,250 2037,790 "/>
    </g>
    <g class="tips" fill="none" pointer-events="all">
    <rect x="436" y="305" width="4004" height="160"><title>read, disk: 200 [150, 250] MiB/s</title></rect>
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
    <polyline fill="none" stroke="#143AA1" stroke-width="20" points="337,1575 1417,450 "/>
    <polyline fill="none" stroke="#143AA1" stroke-width="20" points="3579,450 4660,1575 "/>
    "##);
}

#[test]
fn alone_it_has_a_title_a_size_and_a_ground() {
    let svg = render_svg(&bars(), &Palette::default(), Frame::Alone);
    let head: Vec<&str> = svg.lines().take(6).collect();
    insta::assert_snapshot!(head.join("\n"), @r##"
    <svg xmlns="http://www.w3.org/2000/svg" width="504" height="179" viewBox="-120 -460 5040 1790" font-family="sans-serif" role="img" aria-label="A &lt; B">
    <title>A &lt; B</title>
    <desc>One bar.</desc>
    <rect x="-50%" y="-50%" width="200%" height="200%" fill="#FFFFFF"/>
    <text x="0" y="-170" font-size="150" font-weight="bold" fill="#1A1D21">A &lt; B</text>
    <g>
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
    let plain = [colours::INK, colours::SOFT, colours::RULE, colours::PAPER, colours::EMPTY];
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
