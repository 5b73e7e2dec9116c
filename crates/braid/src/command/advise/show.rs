//! Advice as a sentence, a table of at most ten rows, curves, and JSON.

use braid_lab_report::report::model::{
    Axis, Block, Cell, Chart, Column, Point, Report, Row, Section, Series, Shape, Table,
};
use braid_predict::advise::{Candidate, ERROR_90, Limit, Need};
use braid_stack::ByteSize;
use serde_json::json;

use super::Advice;
use crate::control::OUTPUT_VERSION;

/// A table of layouts that differ in more than their chunk.
const MOST_ROWS: usize = 10;

pub(super) fn report(advice: &Advice) -> Report {
    let mut shown: Vec<&Candidate> = Vec::new();
    for one in &advice.ranked {
        let is_new = |other: &&Candidate| {
            other.level != one.level || other.members.len() != one.members.len()
        };
        if shown.len() < MOST_ROWS && shown.iter().all(is_new) {
            shown.push(one);
        }
    }
    Report {
        title: format!("Advice for {}", advice.workload),
        answer: answer(advice),
        table: table(advice, &shown),
        sections: curves(advice).into_iter().collect(),
        ..Report::default()
    }
}

fn answer(advice: &Advice) -> Vec<String> {
    let best = &advice.ranked[0];
    let alone = advice.ranked.iter().find(|one| one.level.is_none());
    let times = alone.filter(|_| best.level.is_some()).map(|alone| {
        format!(
            ", {:.1} times one member alone",
            best.outcome.rate() / alone.outcome.rate().max(1.0)
        )
    });
    let (low, high) = interval(best.outcome.rate());
    let mut answer = vec![format!(
        "Take {}: {} predicted ({} to {}){}; {}.",
        name(advice, best),
        rate(best.outcome.rate()),
        rate(low),
        rate(high),
        times.unwrap_or_default(),
        reason(best),
    )];
    answer.push(format!("It holds {}; {}.", size(best.capacity), loss(best)));
    if let Some(life) = best.life {
        let amplification = best.amplification.unwrap_or(1.0);
        answer.push(format!(
            "Each byte written programs {amplification:.1}; a member is worn after {} of such writes.",
            size(life as u64)
        ));
    }
    answer.extend(create(best).map(|line| format!("Next: {line}")));
    answer
}

/// The layout in words.
fn name(advice: &Advice, one: &Candidate) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for index in &one.members {
        let name = advice.offers[*index].name.as_str();
        match names.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += 1,
            None => names.push((name, 1)),
        }
    }
    let members: Vec<_> = names.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    match (one.level, one.chunk) {
        (None, _) => format!("{} alone", names[0].0),
        (Some(level), Some(chunk)) => {
            format!("{} of {} with chunks of {}", level.name(), members.join(", "), ByteSize(chunk))
        }
        (Some(level), None) => format!("{} of {}", level.name(), members.join(", ")),
    }
}

fn reason(one: &Candidate) -> String {
    match &one.limit {
        Limit::Bus(bus) => format!("the bus {bus} is at its limit"),
        Limit::Rewrites { unit, amplification } => {
            format!(
                "each write rewrites a unit of {}: {amplification:.0} times the bytes",
                ByteSize(*unit)
            )
        }
        Limit::Members => "all members are at work all the time".to_owned(),
        Limit::Waiting(share) => format!("members are at work {:.0} % of the time", share * 100.0),
    }
}

fn loss(one: &Candidate) -> String {
    match (one.losses, one.level) {
        (0, None) => "if it fails, all is lost".to_owned(),
        (0, _) => "if one member fails, all is lost".to_owned(),
        (1, _) => "one member may fail".to_owned(),
        (losses, _) => format!("{losses} members may fail"),
    }
}

fn create(one: &Candidate) -> Option<String> {
    let level = one.level?;
    let chunk = one.chunk.map_or(String::new(), |chunk| format!(" --chunk {}", ByteSize(chunk)));
    let members = one.members.iter().map(|index| format!("MEMBER{}", index + 1));
    let members = members.collect::<Vec<_>>().join(" ");
    Some(format!("braid create NAME --level {}{chunk} {members}", level.name()))
}

fn interval(rate: f64) -> (f64, f64) {
    (rate * (-ERROR_90).exp(), rate * ERROR_90.exp())
}

fn rate(rate: f64) -> String {
    match rate {
        rate if rate < 0.995e6 => format!("{:.0} kB/s", rate / 1e3),
        rate if rate < 9.95e6 => format!("{:.2} MB/s", rate / 1e6),
        rate => format!("{:.0} MB/s", rate / 1e6),
    }
}

fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        bytes if bytes >= 1e12 => format!("{:.1} TB", bytes / 1e12),
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.0} MB", bytes / 1e6),
    }
}

fn latency(one: &Candidate) -> Option<f64> {
    let has = !one.outcome.latencies_ns.is_empty();
    has.then(|| one.outcome.percentile_ns(99.0) as f64 / 1e6)
}

fn table(advice: &Advice, shown: &[&Candidate]) -> Table {
    let heading = |heading: &str, numeric: bool| Column { heading: heading.to_owned(), numeric };
    let text = |text: String| Cell { text, ..Cell::default() };
    // Through the page cache nobody waits for a request.
    let has_latency = shown.iter().any(|one| latency(one).is_some());
    let row = |one: &&Candidate| {
        let (low, high) = interval(one.outcome.rate());
        let mb = |rate: f64| match rate / 1e6 {
            mb if mb < 1.0 => format!("{mb:.3}"),
            mb => format!("{mb:.1}"),
        };
        let speed = Cell {
            detail: format!("{} to {}", mb(low), mb(high)),
            number: Some(one.outcome.rate() / 1e6),
            ..text(mb(one.outcome.rate()))
        };
        let level = one.level.map_or("alone", braid_level::Level::name);
        let mut cells = vec![
            text(level.to_owned()),
            text(one.members.len().to_string()),
            text(one.chunk.map_or(String::new(), |chunk| ByteSize(chunk).to_string())),
            speed,
        ];
        if has_latency {
            cells.push(text(latency(one).map_or(String::new(), |ms| format!("{ms:.1}"))));
        }
        cells.extend([size(one.capacity), one.losses.to_string(), reason(one)].map(text));
        Row { cells, total: false }
    };
    let mut columns = vec![
        heading("level", false),
        heading("members", true),
        heading("chunk", true),
        heading("MB/s", true),
        heading("room", true),
        heading("may fail", true),
        heading("why not more", false),
    ];
    if has_latency {
        columns.insert(4, heading("p99 ms", true));
    }
    Table {
        id: "layouts".to_owned(),
        title: format!("Predicted for {}", advice.workload),
        note: format!(
            "All numbers are predicted from profiles, none is measured. Intervals: nine of ten published \
             measurements, which the models were made with, lie within {:.0} % of what these say. Each level \
             with its best chunk.",
            (ERROR_90.exp() - 1.0) * 100.0
        ),
        columns,
        rows: shown.iter().map(row).collect(),
    }
}

/// Throughput against the chunk, for each level with as many members as the best has.
fn curves(advice: &Advice) -> Option<Section> {
    let best = &advice.ranked[0];
    let count = best.members.len();
    let mut series: Vec<Series> = Vec::new();
    for one in advice.ranked.iter().filter(|one| one.members.len() == count) {
        let (Some(level), Some(chunk)) = (one.level, one.chunk) else { continue };
        let x = chunk as f64 / 1024.0;
        let point = Point { x, y: one.outcome.rate() / 1e6, ..Point::default() };
        match series.iter_mut().find(|known| known.name == level.name()) {
            // Orders over buses: the better one, which comes first.
            Some(known) if known.points.iter().any(|point| point.x == x) => {}
            Some(known) => known.points.push(point),
            None => series.push(Series { name: level.name().to_owned(), points: vec![point] }),
        }
    }
    series.iter_mut().for_each(|one| one.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    if series.is_empty() {
        return None;
    }
    let tick = |chunk: &u64| (*chunk as f64 / 1024.0, ByteSize(*chunk).to_string());
    let chart = Chart {
        id: "chunks".to_owned(),
        title: format!("Predicted throughput of {count} members by chunk"),
        shape: Shape::Lines,
        x: Axis {
            label: "chunk".to_owned(),
            log: true,
            ticks: super::CHUNKS.iter().map(tick).collect(),
            ..Axis::default()
        },
        y: Axis { label: "predicted".to_owned(), unit: "MB/s".to_owned(), ..Axis::default() },
        series,
        ..Chart::default()
    };
    Some(Section {
        id: "curves".to_owned(),
        title: "Chunks".to_owned(),
        lead: String::new(),
        is_detail: false,
        blocks: vec![Block::Chart(chart)],
    })
}

pub(super) fn json(advice: &Advice) -> serde_json::Value {
    let layout = |one: &Candidate| {
        let (low, high) = interval(one.outcome.rate());
        json!({
            "level": one.level.map_or("single", braid_level::Level::name),
            "chunk": one.chunk,
            "members": one.members.iter().map(|index| &advice.offers[*index].name).collect::<Vec<_>>(),
            "buses": one.members.iter().map(|index| &advice.offers[*index].bus).collect::<Vec<_>>(),
            "predicted_bytes_per_s": one.outcome.rate(),
            "predicted_low": low,
            "predicted_high": high,
            "predicted_latency_ms_p99": latency(one),
            "capacity": one.capacity,
            "members_that_may_fail": one.losses,
            "write_amplification": one.amplification,
            "bytes_until_worn": one.life,
            "why": reason(one),
        })
    };
    let need = match advice.need {
        Need::Capacity => "capacity",
        Need::Redundancy => "redundancy",
        Need::Throughput => "throughput",
        Need::Latency => "latency",
        Need::Price => "price",
    };
    json!({
        "output_version": OUTPUT_VERSION,
        "workload": advice.workload,
        "need": need,
        "answer": answer(advice),
        "create": create(&advice.ranked[0]),
        "layouts": advice.ranked.iter().map(layout).collect::<Vec<_>>(),
    })
}
