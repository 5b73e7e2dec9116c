//! Advice as text, as a page and as JSON: the tables and charts of the laboratory's reports.

use std::fmt::Write;

use braid_lab_report::report::model::{
    Axis, Block, Cell, Chart, Column, Point, Report, Row, Section, Series, Shape, Table, Tone,
};
use braid_lab_report::report::render::render_terminal;
use braid_stack::ByteSize;
use serde_json::{Value, json};

use super::advice::{Advice, Beside, time};
use braid_service::control::CurvePoint;

/// Characters of a whole bar on a terminal.
const BAR: usize = 40;

/// Formats for each cache its description, the conclusion, a table, and bars.
pub(super) fn text(volume: &str, advices: &[Advice<'_>], is_coloured: bool) -> String {
    let mut text = String::new();
    for advice in advices {
        let report = Report {
            title: title(advice),
            subtitle: subtitle(advice),
            answer: advice.answer.clone(),
            table: table(advice),
            ..Report::default()
        };
        let more = format!("`braid cache advise {volume} --json`; `--html FILE` draws the curves");
        text += &render_terminal(&report, is_coloured, &more);
        text += &bars(advice);
    }
    text
}

/// Hits by size, of the policy that the cache has.
fn bars(advice: &Advice<'_>) -> String {
    let mut text = String::new();
    for (index, point) in advice.own().enumerate() {
        if index == 0 {
            let _ = writeln!(text, "\nhits of {}, by size:", point.policy);
        }
        let eighths = (point.hit_percent() / 100.0 * (BAR * 8) as f64).round() as usize;
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let bar = "█".repeat(eighths / 8) + part;
        let is_now = Some(point.size_bytes) == advice.now().map(|now| now.size_bytes);
        let _ = writeln!(
            text,
            "{:>10} {bar:<BAR$} {:>5.1} %{}",
            format!("{:#}", ByteSize(point.size_bytes)),
            point.hit_percent(),
            if is_now { "  now" } else { "" }
        );
    }
    text
}

/// All caches on one page.
pub(super) fn report(volume: &str, advices: &[Advice<'_>]) -> Report {
    let section = |(index, advice): (usize, &Advice<'_>)| Section {
        id: format!("cache-{index}"),
        title: title(advice),
        lead: [subtitle(advice), advice.answer.join(" ")].join(". "),
        is_detail: false,
        blocks: vec![Block::Chart(chart(index, advice)), Block::Table(table(advice))],
    };
    Report {
        title: format!("{volume}: what another cache would hit"),
        answer: advices.iter().filter_map(|advice| advice.answer.first().cloned()).collect(),
        sections: advices.iter().enumerate().map(section).collect(),
        ..Report::default()
    }
}

fn title(advice: &Advice<'_>) -> String {
    advice.cache().cache.clone()
}

/// Describes the cache and its history.
fn subtitle(advice: &Advice<'_>) -> String {
    let cache = advice.cache();
    let mut text = format!("{}, {:#}", cache.policy, ByteSize(cache.size_bytes));
    if let Some(hits) = cache.hit_percent() {
        let _ = write!(text, "; {} reads, {hits:.1} % of them hits", cache.counts.reads);
    }
    if let Some(origin) = cache.origin_read_us {
        let _ = write!(text, "; the origin takes {} for a read", time(origin as f64 / 1e3));
    }
    text
}

/// A row for each size, a column for each policy.
fn table(advice: &Advice<'_>) -> Table {
    let points = &advice.curve.points;
    let sizes: Vec<&[CurvePoint]> = points.chunk_by(|a, b| a.size_bytes == b.size_bytes).collect();
    let Some(first) = sizes.first() else { return Table::default() };
    let column = |heading: &str| Column { heading: heading.to_owned(), numeric: true };
    let policies = first.iter().map(|point| column(&point.policy));
    let row = |points: &&[CurvePoint]| {
        let size = points.first().map_or(0, |point| point.size_bytes);
        let head = Cell { text: format!("{:#}", ByteSize(size)), ..Cell::default() };
        let cells = points.iter().map(|point| cell(advice, point));
        Row { cells: std::iter::once(head).chain(cells).collect(), total: false }
    };
    Table {
        id: String::new(),
        title: "Of a hundred reads of blocks, how many hit".to_owned(),
        note: "Beside it, how much less 1,000 reads would wait for the origin than they do now; − is more"
            .to_owned(),
        columns: std::iter::once(Column { heading: "size".to_owned(), numeric: false })
            .chain(policies)
            .collect(),
        rows: sizes.iter().map(row).collect(),
    }
}

fn cell(advice: &Advice<'_>, point: &CurvePoint) -> Cell {
    let is_now = advice.now().is_some_and(|now| std::ptr::eq(now, point));
    let (hits, error) = (point.hit_percent(), point.error_percent());
    let tone = match advice.beside(point) {
        _ if is_now => Tone::Baseline,
        Beside::Better => Tone::Better,
        Beside::Worse => Tone::Worse,
        Beside::Alike => Tone::Same,
    };
    let saved = advice.saved_ms(point).filter(|_| !is_now);
    let detail = match saved {
        Some(saved) if saved < 0.0 => format!("−{}", time(saved)),
        Some(saved) => format!("+{}", time(saved)),
        None => String::new(),
    };
    Cell {
        text: format!("{hits:.1} %"),
        detail,
        number: Some(hits),
        ends: Some((hits - error, hits + error)),
        tone,
    }
}

/// A line for each policy.
fn chart(index: usize, advice: &Advice<'_>) -> Chart {
    let points = &advice.curve.points;
    let mut series: Vec<Series> = Vec::new();
    for point in points {
        let (hits, error) = (point.hit_percent(), point.error_percent());
        let drawn = Point {
            x: point.size_bytes as f64,
            y: hits,
            interval: Some((hits - error, hits + error)),
            suspect: !advice.is_sound,
        };
        match series.iter_mut().find(|one| one.name == point.policy) {
            Some(one) => one.points.push(drawn),
            None => series.push(Series { name: point.policy.clone(), points: vec![drawn] }),
        }
    }
    let tick =
        |point: &CurvePoint| (point.size_bytes as f64, format!("{:#}", ByteSize(point.size_bytes)));
    Chart {
        id: format!("hits-{index}"),
        title: "Hits by size".to_owned(),
        note: "Bars at the points: two standard errors of the sample.".to_owned(),
        shape: Shape::Lines,
        x: Axis {
            label: "size of the cache".to_owned(),
            unit: String::new(),
            log: true,
            ticks: advice.own().map(tick).collect(),
        },
        y: Axis { label: "hits".to_owned(), unit: "%".to_owned(), ..Axis::default() },
        series,
        ..Chart::default()
    }
}

pub(super) fn json(advice: &Advice<'_>) -> Value {
    let point = |point: &CurvePoint| {
        json!({
            "policy": point.policy,
            "size_bytes": point.size_bytes,
            "hit_percent": point.hit_percent(),
            "error_percent": point.error_percent(),
            "wait_ms_per_1000_reads": advice.wait_ms(point),
            "saved_ms_per_1000_reads": advice.saved_ms(point),
            "filled": point.filled,
            "sampled_reads": point.sampled_reads,
        })
    };
    json!({
        "cache": advice.cache(),
        "block_reads": advice.curve.block_reads,
        "sound": advice.is_sound,
        "answer": advice.answer,
        "points": advice.curve.points.iter().map(point).collect::<Vec<_>>(),
    })
}
