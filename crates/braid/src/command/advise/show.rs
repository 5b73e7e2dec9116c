//! Advice as a table of at most ten rows, curves, and JSON.

use braid_lab_report::report::model::{
    Axis, Block, Cell, Chart, Column, Point, Report, Row, Section, Series, Shape, Table, Tone,
    TrustBox, TrustReason,
};
use braid_predict::Workload;
use braid_predict::advise::{CHUNKS, Candidate, Need};
use braid_predict::off::off_by_kinds;
use braid_stack::ByteSize;
use serde_json::json;

use super::Advice;
use super::answer::{answer, create, name, reason, short};
use super::beside::Beside;
use super::members::Members;
use super::words::{rate, ratio, size, sum};
use braid_service::control::OUTPUT_VERSION;

/// A table of layouts that differ in more than their chunk.
const MOST_ROWS: usize = 10;

pub(super) fn report(advice: &Advice) -> Report {
    let shown = shown(advice);
    Report {
        title: format!("Advice for {}", advice.words),
        answer: answer(advice),
        table: table(advice, &shown),
        trust: trust(advice, shown.len()),
        sections: curves(advice).into_iter().collect(),
        ..Report::default()
    }
}

/// Rows of the table: without layouts that an earlier one equals or beats in everything, and always with one member alone,
/// with which the answer compares.
fn shown(advice: &Advice) -> Vec<&Candidate> {
    let mut shown: Vec<&Candidate> = Vec::new();
    let mut alone = None;
    for one in advice.distinct() {
        if one.level.is_none() && alone.is_none() {
            alone = Some(one);
        }
        if one.measured.is_some() || !shown.iter().any(|other| other.has_all_of(one)) {
            shown.push(one);
        }
    }
    shown.truncate(MOST_ROWS);
    if let Some(alone) = alone.filter(|_| !shown.iter().any(|one| one.level.is_none())) {
        shown.truncate(MOST_ROWS - 1);
        shown.push(alone);
    }
    shown
}

/// Why this may not be believed.
fn doubts(advice: &Advice) -> impl Iterator<Item = String> {
    let best = &advice.ranked[0];
    let assumed = best.members.iter().filter(|index| {
        let constants = &advice.members.offers[**index].profile.constants;
        let is_assumed = |source: &str| source.starts_with("not measured");
        let mut rates = constants.iter().filter(|one| one.name == "write_rate");
        best.outcome.written > 0 && rates.any(|one| is_assumed(&one.source))
    });
    let names: Vec<_> = assumed.map(|index| advice.members.offers[*index].name.as_str()).collect();
    let assumed = (!names.is_empty() && best.measured.is_none()).then(|| {
        format!("how fast {} are written is assumed, as their fit only read", names.join(", "))
    });
    // An error for other layouts also applies to layouts that were not measured.
    let others = advice.ranked.iter().find(|one| one.differs());
    let others = others.filter(|_| best.measured.is_none()).and_then(|one| {
        let measured = one.measured?;
        let (rate, expected) = (rate(measured.rate), rate(measured.expected));
        Some(format!("{} was measured at {rate}, and {expected} were predicted", name(advice, one)))
    });
    let unmeasured = advice.unmeasured.clone();
    unmeasured.into_iter().chain(others).chain(assumed).chain(advice.members.doubts.iter().cloned())
}

fn trust(advice: &Advice, shown: usize) -> TrustBox {
    let reason = |why: String| {
        let (rule, action) = (String::new(), String::new());
        TrustReason { tone: Tone::Suspect, rule, why, action, cells: Vec::new() }
    };
    let reasons = doubts(advice).map(reason).collect();
    let [ok, suspect, invalid] = advice.standings;
    match advice.ranked.iter().any(|one| one.measured.is_some()) {
        true => {
            let missing = shown.saturating_sub(ok + suspect + invalid);
            TrustBox { ok, suspect, invalid, missing, reasons, is_predicted: false }
        }
        false => TrustBox { ok: shown, is_predicted: true, reasons, ..TrustBox::default() },
    }
}

fn latency(one: &Candidate) -> Option<f64> {
    one.latency_ns().map(|ns| ns / 1e6)
}

/// A column of the table: its heading, whether it has numbers, and its cell of a layout.
type Of<'a> = (String, bool, Box<dyn Fn(&Candidate) -> Cell + 'a>);

fn text(text: String) -> Cell {
    Cell { text, ..Cell::default() }
}

/// A rate and its interval, in bytes a second.
fn speed(rate: f64, (low, high): (f64, f64)) -> Cell {
    let mb = |rate: f64| match rate / 1e6 {
        mb if mb < 1.0 => format!("{mb:.3}"),
        mb if mb < 99.95 => format!("{mb:.1}"),
        mb => format!("{mb:.0}"),
    };
    let detail = format!("{} to {}", mb(low), mb(high));
    Cell { detail, number: Some(rate / 1e6), ..text(mb(rate)) }
}

/// Returns the columns of price and power, and of throughput per each.
fn cost_columns(advice: &Advice) -> Vec<Of<'_>> {
    fn cost<'a>(
        heading: String,
        of: impl Fn(&Candidate) -> f64 + 'a,
        shown: fn(f64) -> String,
    ) -> Of<'a> {
        let cell = move |number| Cell { number: Some(number), ..text(shown(number)) };
        (heading, true, Box::new(move |one| cell(of(one))))
    }
    let Members { prices, watts, .. } = &advice.members;
    let mut columns = Vec::new();
    if let Some(prices) = prices {
        let price = |one: &Candidate| prices.sum(&one.members);
        let unit = if prices.unit.is_empty() { "price" } else { &prices.unit };
        let tb = move |one: &Candidate| price(one) / (one.capacity as f64 / 1e12);
        let each = move |one: &Candidate| one.rate() / 1e6 / price(one);
        columns.push(cost(unit.to_owned(), price, sum));
        columns.push(cost(format!("MB/s per {unit}"), each, ratio));
        columns.push(cost(format!("{unit} per TB"), tb, ratio));
    }
    if let Some(watts) = watts {
        let drawn = |one: &Candidate| watts.sum(&one.members);
        let each = move |one: &Candidate| one.rate() / 1e6 / drawn(one);
        columns.push(cost("W".to_owned(), drawn, sum));
        columns.push(cost("MB/s per W".to_owned(), each, ratio));
    }
    columns
}

/// Returns the columns of these layouts.
fn columns<'a>(advice: &'a Advice, shown: &[&Candidate]) -> Vec<Of<'a>> {
    fn column<'a>(heading: &str, numeric: bool, of: impl Fn(&Candidate) -> Cell + 'a) -> Of<'a> {
        (heading.to_owned(), numeric, Box::new(of))
    }
    let layout = |one: &Candidate| {
        let chunk = one.chunk.map_or(String::new(), |chunk| format!(", {}", ByteSize(chunk)));
        text(short(advice, one) + &chunk)
    };
    let predicted = |one: &Candidate| {
        let rate = one.measured.map_or(one.outcome.rate(), |measured| measured.expected);
        speed(rate, one.interval(rate))
    };
    let measured = |one: &Candidate| match one.measured {
        Some(measured) => speed(measured.rate, measured.range),
        None => text("–".to_owned()),
    };
    let p99 = |one: &Candidate| text(latency(one).map_or(String::new(), |ms| format!("{ms:.1}")));
    let mut columns = vec![column("layout", false, layout)];
    match is_measured(shown) {
        true => columns.extend([
            column("predicted MB/s", true, predicted),
            column("measured MB/s", true, measured),
        ]),
        false => columns.push(column("MB/s", true, predicted)),
    }
    if shown.iter().any(|one| latency(one).is_some()) {
        columns.push(column("p99 ms", true, p99));
    }
    columns.push(column("room", true, |one| text(size(one.capacity))));
    columns.push(column("may fail", true, |one| text(one.losses.to_string())));
    let costs = cost_columns(advice);
    // The answer has that of the best.
    if costs.is_empty() && shown.iter().any(|one| reason(one) != reason(shown[0])) {
        columns.push(column("why not more", false, |one| text(reason(one))));
    }
    columns.extend(costs);
    columns
}

fn is_measured(shown: &[&Candidate]) -> bool {
    shown.iter().any(|one| one.measured.is_some())
}

fn table(advice: &Advice, shown: &[&Candidate]) -> Table {
    let columns = columns(advice, shown);
    let row = |one: &&Candidate| Row {
        cells: columns.iter().map(|(_, _, of)| of(one)).collect(),
        total: false,
    };
    let (title, measured) = match is_measured(shown) {
        false => ("Predicted", "All numbers are predicted from profiles, none is measured."),
        true => (
            "Predicted and measured",
            "Measured: the median, the lowest and the highest repetition, and p99 where there is one; all else is \
             predicted.",
        ),
    };
    Table {
        id: "layouts".to_owned(),
        title: title.to_owned(),
        note: format!(
            "{measured} Intervals are what predictions are off by: {}. Each level with its best chunk; what another layout does as well with as much room, redundancy and no more members is left \
             out.",
            off_by_kinds(advice.members.offers.iter().map(|offer| &offer.profile.kind)).grounds
        ),
        rows: shown.iter().map(row).collect(),
        columns: columns
            .into_iter()
            .map(|(heading, numeric, _)| Column { heading, numeric })
            .collect(),
    }
}

/// Throughput against the chunk, for each level with as many members as the best has; or latency, if that is what
/// is needed, and of a trace, whose throughput is its own.
fn by_chunk(advice: &Advice) -> Option<Chart> {
    let best = &advice.ranked[0];
    let count = best.members.len();
    let is_asked = advice.need == Need::Latency || matches!(advice.workload, Workload::Trace(_));
    let by_time = is_asked && !best.outcome.latencies_ns.is_empty();
    let (what, unit) = if by_time { ("p99", "ms") } else { ("throughput", "MB/s") };
    let mut series: Vec<Series> = Vec::new();
    for one in advice.ranked.iter().filter(|one| one.members.len() == count) {
        let (Some(level), Some(chunk)) = (one.level, one.chunk) else { continue };
        let x = chunk as f64 / 1024.0;
        let y = if by_time { one.outcome.percentile_ns(99.0) as f64 } else { one.outcome.rate() };
        let point = Point { x, y: y / 1e6, ..Point::default() };
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
    Some(Chart {
        id: "chunks".to_owned(),
        title: format!("Predicted {what} of {count} members by chunk"),
        shape: Shape::Lines,
        x: Axis {
            label: "chunk".to_owned(),
            log: true,
            ticks: CHUNKS.iter().map(tick).collect(),
            ..Axis::default()
        },
        y: Axis { label: "predicted".to_owned(), unit: unit.to_owned(), ..Axis::default() },
        series,
        ..Chart::default()
    })
}

/// Returns the section with the properties on which the best layout depends.
fn curves(advice: &Advice) -> Option<Section> {
    let charts = by_chunk(advice).into_iter().chain(advice.beside.iter().map(|one| {
        let points = one.points.iter().map(|(bytes, y)| Point {
            x: *bytes as f64 / 1024.0,
            y: *y,
            ..Point::default()
        });
        let tick = |(bytes, _): &(u64, f64)| (*bytes as f64 / 1024.0, ByteSize(*bytes).to_string());
        Chart {
            id: one.id.to_owned(),
            title: one.title.to_owned(),
            shape: Shape::Lines,
            x: Axis {
                label: one.label.to_owned(),
                log: true,
                ticks: one.points.iter().map(tick).collect(),
                ..Axis::default()
            },
            y: Axis { label: "predicted".to_owned(), unit: one.unit.to_owned(), ..Axis::default() },
            series: vec![Series { name: String::new(), points: points.collect() }],
            ..Chart::default()
        }
    }));
    let blocks: Vec<Block> = charts.map(Block::Chart).collect();
    (!blocks.is_empty()).then(|| Section {
        id: "curves".to_owned(),
        title: "What it depends on".to_owned(),
        lead: String::new(),
        is_detail: false,
        blocks,
    })
}

pub(super) fn json(advice: &Advice) -> serde_json::Value {
    let offers = &advice.members.offers;
    let layout = |one: &Candidate| {
        let (low, high) = one.interval(one.outcome.rate());
        let measured = one.measured.map(|measured| {
            json!({
                "bytes_per_s": measured.rate,
                "low": measured.range.0,
                "high": measured.range.1,
                "latency_ms_p99": measured.latency_ns.map(|ns| ns / 1e6),
                "predicted_of_this_part": measured.expected,
                "differs": one.differs(),
            })
        });
        let watts = advice.members.watts.as_ref().map(|watts| watts.sum(&one.members));
        json!({
            "level": one.level.map_or("single", braid_level::Level::name),
            "chunk": one.chunk,
            "members": one.members.iter().map(|index| &offers[*index].name).collect::<Vec<_>>(),
            "buses": one.members.iter().map(|index| &offers[*index].bus).collect::<Vec<_>>(),
            "predicted_bytes_per_s": one.outcome.rate(),
            "predicted_low": low,
            "predicted_high": high,
            "predicted_latency_ms_p99": latency(&Candidate { measured: None, ..one.clone() }),
            "measured": measured,
            "capacity": one.capacity,
            "members_that_may_fail": one.losses,
            "write_amplification": one.amplification,
            "bytes_until_worn": one.life,
            "why": reason(one),
            "price": one.price,
            "bytes_per_s_per_price": one.price.map(|price| one.rate() / price),
            "price_per_tb": one.price.map(|price| price / (one.capacity as f64 / 1e12)),
            "watts": watts,
            "bytes_per_s_per_watt": watts.map(|watts| one.rate() / watts),
        })
    };
    let depends = |one: &Beside| {
        let point = |(bytes, value): &(u64, f64)| json!({ "bytes": bytes, "value": value });
        let points = one.points.iter().map(point).collect::<Vec<_>>();
        json!({ "of": one.id, "unit": one.unit, "points": points })
    };
    let need = match advice.need {
        Need::Balanced => "balanced",
        Need::Capacity => "capacity",
        Need::Redundancy => "redundancy",
        Need::Throughput => "throughput",
        Need::Latency => "latency",
        Need::Price { .. } => "price",
    };
    json!({
        "output_version": OUTPUT_VERSION,
        "workload": advice.words,
        "need": need,
        "currency": advice.members.prices.as_ref().map(|prices| &prices.unit),
        "answer": answer(advice),
        "create": create(advice, &advice.ranked[0]),
        "doubts": doubts(advice).collect::<Vec<_>>(),
        "measure": advice.next,
        "depends_on": advice.beside.iter().map(depends).collect::<Vec<_>>(),
        "layouts": advice.ranked.iter().map(layout).collect::<Vec<_>>(),
    })
}
