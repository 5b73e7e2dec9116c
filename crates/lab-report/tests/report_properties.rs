//! Any text and any number go through every renderer without breaking its format.

#[path = "fixtures/report.rs"]
mod fixture;

use braid_lab_report::report::model::{
    Axis, Block, Cell, Chart, Event, Point, Report, Row, Section, Series, Shape, Table, Tone,
    TrustBox, TrustReason,
};
use braid_lab_report::report::render::chart::{Palette, render_svg};
use braid_lab_report::report::render::{
    TidyRow, render_html, render_markdown, render_terminal, write_csv, write_xlsx,
};
use proptest::prelude::*;

/// Texts with everything that means something somewhere.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            proptest::sample::select(vec![
                "<",
                ">",
                "&",
                "\"",
                "'",
                "|",
                "`",
                "\\",
                "*",
                "{{",
                "{%",
                "%}",
                "]]>",
                "<!--",
                "=",
                "@",
                "\u{0}",
                "\u{1b}[2J",
                "\u{202e}",
                "\u{fffe}",
                "\n",
                "\r\n",
                "\t",
                "é",
                "磁",
                "💾",
                " ",
                "</svg>",
                "</style>",
                "</details>",
                "~~",
                "__",
                "#",
                "- ",
                "1. ",
                "a",
                "https://x.y",
            ]),
            0..12,
        )
        .prop_map(|parts| parts.concat()),
    ]
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -1e6..1e6, 2 => 0.0..1.0, 1 => any::<f64>(), 1 => Just(0.0)]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    (
        any_text(),
        any_text(),
        any::<bool>(),
        proptest::collection::vec((any_number(), any_text()), 0..3),
    )
        .prop_map(|(label, unit, log, ticks)| Axis { label, unit, log, ticks })
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let interval = proptest::option::of((any_number(), any_number()));
    // Also at the places of groups.
    let place = prop_oneof![any_number(), (0..4_u8).prop_map(f64::from)];
    let point = (place, any_number(), interval, any::<bool>())
        .prop_map(|(x, y, interval, suspect)| Point { x, y, interval, suspect });
    let series = (any_text(), proptest::collection::vec(point, 0..60))
        .prop_map(|(name, points)| Series { name, points });
    let event = (any_number(), any_text()).prop_map(|(x, label)| Event { x, label });
    (
        prop_oneof![Just(Shape::Bars), Just(Shape::Lines), Just(Shape::Marks)],
        any_axis(),
        any_axis(),
        proptest::collection::vec(series, 0..11),
        proptest::option::of(any_number()),
        proptest::collection::vec(event, 0..6),
    )
        .prop_map(|(shape, x, y, series, mark, events)| Chart {
            shape,
            x,
            y,
            series,
            mark,
            events,
            ..Chart::default()
        })
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let tones = proptest::sample::select(vec![
        Tone::Plain,
        Tone::Baseline,
        Tone::Better,
        Tone::Worse,
        Tone::Same,
        Tone::Suspect,
        Tone::Invalid,
        Tone::Missing,
    ]);
    let ends = proptest::option::of((any_number(), any_number()));
    let number = proptest::option::of(any_number());
    (any_text(), any_text(), number, ends, tones)
        .prop_map(|(text, detail, number, ends, tone)| Cell { text, detail, number, ends, tone })
}

fn any_report() -> impl Strategy<Value = Report> {
    let rows = proptest::collection::vec(
        (proptest::collection::vec(any_cell(), 2), any::<bool>())
            .prop_map(|(cells, total)| Row { cells, total }),
        0..4,
    );
    let texts = || proptest::collection::vec(any_text(), 6);
    let charts = proptest::collection::vec(any_chart(), 0..4);
    (texts(), texts(), rows, charts, any::<bool>()).prop_map(
        |(texts, more, rows, charts, is_detail)| {
            let table = |id: &str| Table {
                id: id.into(),
                title: texts[0].clone(),
                note: texts[1].clone(),
                columns: vec![fixture::column(&texts[2], false), fixture::column(&texts[3], true)],
                rows: rows.clone(),
            };
            let mut charts = charts.into_iter().enumerate().map(|(index, chart)| Chart {
                id: format!("chart-{index}"),
                title: texts[index].clone(),
                note: more[index].clone(),
                ..chart
            });
            let picture = charts.next();
            let mut blocks = vec![Block::Table(table("one"))];
            blocks.extend(charts.map(Block::Chart));
            Report {
                title: more[0].clone(),
                question: more[1].clone(),
                subtitle: more[2].clone(),
                answer: more.clone(),
                picture,
                table: table("answer"),
                trust: TrustBox {
                    reasons: vec![TrustReason {
                        tone: Tone::Suspect,
                        rule: more[3].clone(),
                        why: more[4].clone(),
                        action: more[5].clone(),
                        cells: more.clone(),
                    }],
                    ..TrustBox::default()
                },
                sections: vec![Section {
                    id: "s".into(),
                    title: texts[4].clone(),
                    lead: texts[5].clone(),
                    is_detail,
                    blocks,
                }],
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn charts_are_xml_that_says_the_texts(report in any_report()) {
        let palette = Palette::of(&report);
        for chart in report.charts() {
            let svg = render_svg(chart, &palette);
            let tree = roxmltree::Document::parse(&svg).map_err(|error| {
                TestCaseError::fail(format!("{error}\n{svg}"))
            })?;
            for node in tree.descendants().filter(roxmltree::Node::is_element) {
                let name = node.tag_name().name();
                prop_assert!(
                    ["svg", "title", "text", "rect", "circle", "polyline", "polygon"].contains(&name),
                    "{name}"
                );
                for attribute in node.attributes() {
                    prop_assert!(!attribute.value().contains("NaN"), "{svg}");
                    prop_assert!(!attribute.value().contains("inf"), "{svg}");
                }
            }
        }
    }

    #[test]
    fn pages_have_no_element_of_a_texts_making(report in any_report()) {
        let page = render_html(&report).unwrap();
        let lower = page.to_lowercase();
        for harmful in ["<script", "<img", "<iframe", "onerror=\"", "javascript:", "<!--"] {
            prop_assert!(!lower.contains(harmful), "{harmful}");
        }
        prop_assert_eq!(lower.matches("</style>").count(), 1);
        prop_assert_eq!(lower.matches("<svg").count(), report.charts().count());
        prop_assert_eq!(lower.matches("</svg>").count(), report.charts().count());
        prop_assert_eq!(lower.matches("<table").count(), lower.matches("</table>").count());
        prop_assert_eq!(lower.matches("<details").count(), lower.matches("</details>").count());
        prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
    }

    #[test]
    fn other_formats_hold_any_text(report in any_report()) {
        let markdown = render_markdown(&report).unwrap();
        prop_assert!(!markdown.chars().any(|c| c.is_control() && c != '\n'));
        for line in markdown.lines().filter(|line| line.starts_with('|')) {
            let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
            prop_assert_eq!(bars, 3, "{}", line);
        }
        let terminal = render_terminal(&report, false, "report.html");
        prop_assert!(!terminal.chars().any(|c| c.is_control() && c != '\n'));
    }
}

proptest! {
    // A workbook is some ten thousand bytes to deflate.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn workbooks_hold_any_text(report in any_report(), texts in proptest::collection::vec(any_text(), 5)) {
        let rows = [TidyRow {
            dimensions: vec![(texts[0].clone(), texts[1].clone()), (texts[0].clone(), texts[1].clone())],
            metric: texts[2].clone(),
            value: 1.0,
            unit: texts[3].clone(),
            trial: 1,
            repetition: 0,
            verdict: texts[4].clone(),
        }];
        let book = write_xlsx(&report, &rows).unwrap();
        prop_assert_eq!(&book[..2], b"PK");
        let mut csv = Vec::new();
        write_csv(&rows, &mut csv).unwrap();
        prop_assert!(csv.ends_with(b"\r\n"));
    }
}
