//! Advice as a sentence, a table of at most ten rows, curves, and JSON.

use braid_lab_report::report::model::{
    Axis, Block, Cell, Chart, Column, Point, Report, Row, Section, Series, Shape, Table, Tone,
    TrustBox, TrustReason,
};
use braid_predict::advise::{CHUNKS, Candidate, Limit, Need};
use braid_predict::off::off_by_kinds;
use braid_predict::{What, Workload};
use braid_shell::shell_word;
use braid_stack::ByteSize;
use serde_json::json;

use super::Advice;
use super::beside::Beside;
use super::confirm::measured_part;
use super::words::{rate, size, time};
use crate::control::OUTPUT_VERSION;

/// A table of layouts that differ in more than their chunk.
const MOST_ROWS: usize = 10;
/// Of what a trace asks for: enough, as the last request takes its time.
const KEPT_UP: f64 = 0.97;

pub(super) fn report(advice: &Advice) -> Report {
    let mut shown = advice.distinct();
    shown.truncate(MOST_ROWS);
    Report {
        title: format!("Advice for {}", advice.words),
        answer: answer(advice),
        table: table(advice, &shown),
        trust: trust(advice, shown.len()),
        sections: curves(advice).into_iter().collect(),
        ..Report::default()
    }
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
    // Who errs about others errs about what was not measured, too.
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

/// The first layout in rank that survives a loss, where the best does not and is ahead by no more than predictions are
/// off: then the loss is a real difference and the speed is none.
fn twin(advice: &Advice, best: &Candidate) -> Option<String> {
    let is_as_fast = |one: &&Candidate| {
        one.measured.is_some() == best.measured.is_some()
            && one.rate() >= best.interval(best.rate()).0
    };
    let mut safe = advice.ranked.iter().filter(|one| best.losses == 0 && one.losses > 0);
    let twin = safe.find(is_as_fast)?;
    Some(format!(
        "But {} does {} and holds {}, and {}: the two differ by less than predictions are off.",
        name(advice, twin),
        rate(twin.rate()),
        size(twin.capacity),
        loss(twin)
    ))
}

fn answer(advice: &Advice) -> Vec<String> {
    let best = &advice.ranked[0];
    let reads_ahead = matches!(advice.workload.what(best.capacity), Some((What::ReadAhead, _)));
    let times = alone(advice, best).map(|alone| {
        // More than its members are: the layout also reads further ahead.
        let why = match reads_ahead && best.read_ahead > alone.read_ahead {
            true => format!(", which reads ahead by {} only", ByteSize(alone.read_ahead)),
            false => String::new(),
        };
        format!(", {:.1} times one member alone{why}", best.rate() / alone.rate().max(1.0))
    });
    let times = times.unwrap_or_default();
    let name = name(advice, best);
    let first = match best.measured {
        None => {
            let (low, high) = best.interval(best.outcome.rate());
            let (rate, low, high) = (rate(best.outcome.rate()), rate(low), rate(high));
            format!("Take {name}: {rate} predicted ({low} to {high}){times}; {}.", reason(best))
        }
        Some(one) => {
            let (low, high) = best.interval(one.expected);
            let (low, high, expected) = (rate(low), rate(high), rate(one.expected));
            let so = match best.differs() {
                true => format!(", which is not what was predicted: {expected} ({low} to {high})"),
                false => format!("; {expected} were predicted, and {}", reason(best)),
            };
            let (from, to) = (rate(one.range.0), rate(one.range.1));
            format!("Take {name}: {} measured ({from} to {to}){times}{so}.", rate(one.rate))
        }
    };
    let mut answer = vec![first, format!("It holds {}; {}.", size(best.capacity), loss(best))];
    answer.extend(twin(advice, best));
    answer.extend(kept_up(advice, best));
    if let Some(life) = best.life {
        let amplification = best.amplification.unwrap_or(1.0);
        answer.push(format!(
            "Each byte written programs {amplification:.1}; a member is worn after {} of such writes.",
            size(life as u64)
        ));
    }
    answer.extend(advice.beside.iter().map(|one| one.sentence.clone()));
    answer.extend(create(advice, best).map(|line| format!("Next: {line}")));
    let measure = "To measure it, and lose ALL THAT IS ON THE DEVICES";
    answer.extend(advice.next.iter().map(|line| format!("{measure}: {line}")));
    answer
}

/// Whether a layout does what a trace asks for in its time.
fn kept_up(advice: &Advice, one: &Candidate) -> Option<String> {
    let Workload::Trace(all) = &advice.workload else { return None };
    let (part, of) = match one.measured {
        Some(_) => (measured_part(all), "In its busiest seconds, which were measured, the trace"),
        None => (all.clone(), "The trace"),
    };
    let [first, .., last] = &part[..] else { return None };
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let bytes: u64 = part.iter().filter(|one| one.has_data()).map(|one| one.length).sum();
    // Without times it asks for all at once.
    let asked = (seconds > 0.0).then(|| bytes as f64 / seconds)?;
    let so = match one.rate() >= KEPT_UP * asked {
        true => "as fast as it asks for it",
        false => "slower than it asks for it",
    };
    let within = match (one.latency_ns(), alone(advice, one).and_then(Candidate::latency_ns)) {
        (None, _) => String::new(),
        (Some(ns), None) => format!(": p99 {}", time(ns)),
        (Some(ns), Some(alone)) => {
            format!(": p99 {}, of one member alone {}", time(ns), time(alone))
        }
    };
    Some(format!("{of} asks for {}, and that is done {so}{within}.", rate(asked)))
}

/// The best member alone, if `one` is more, and as much is known of both.
fn alone<'a>(advice: &'a Advice, one: &Candidate) -> Option<&'a Candidate> {
    let alone = advice.ranked.iter().find(|one| one.level.is_none())?;
    let alike = one.measured.is_some() == alone.measured.is_some();
    (alike && one.level.is_some()).then_some(alone)
}

/// The layout in words.
fn name(advice: &Advice, one: &Candidate) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for index in &one.members {
        let name = advice.members.offers[*index].name.as_str();
        match names.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += 1,
            None => names.push((name, 1)),
        }
    }
    let several = |(name, count): &(&str, usize)| match advice.is_real(one) {
        true => (*name).to_owned(),
        false => format!("{count} × {name}"),
    };
    let members: Vec<_> = names.iter().map(several).collect();
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
        Limit::Heads(share) => format!("heads on their way {:.0} % of the time", share * 100.0),
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

fn create(advice: &Advice, one: &Candidate) -> Option<String> {
    let level = one.level?;
    let chunk = one.chunk.map_or(String::new(), |chunk| format!(" --chunk {}", ByteSize(chunk)));
    let member = |index: &usize| match advice.members.devices[*index] {
        Some(_) => shell_word(&advice.members.offers[*index].name),
        None => format!("MEMBER{}", index + 1),
    };
    let members = one.members.iter().map(member);
    let members = members.collect::<Vec<_>>().join(" ");
    Some(format!("braid create NAME --level {}{chunk} {members}", level.name()))
}

fn latency(one: &Candidate) -> Option<f64> {
    one.latency_ns().map(|ns| ns / 1e6)
}

fn table(advice: &Advice, shown: &[&Candidate]) -> Table {
    let heading = |heading: &str, numeric: bool| Column { heading: heading.to_owned(), numeric };
    let text = |text: String| Cell { text, ..Cell::default() };
    let has_latency = shown.iter().any(|one| latency(one).is_some());
    let is_measured = shown.iter().any(|one| one.measured.is_some());
    let row = |one: &&Candidate| {
        let mb = |rate: f64| match rate / 1e6 {
            mb if mb < 1.0 => format!("{mb:.3}"),
            mb if mb < 99.95 => format!("{mb:.1}"),
            mb => format!("{mb:.0}"),
        };
        let speed = |rate: f64, (low, high): (f64, f64)| Cell {
            detail: format!("{} to {}", mb(low), mb(high)),
            number: Some(rate / 1e6),
            ..text(mb(rate))
        };
        let predicted = one.measured.map_or(one.outcome.rate(), |measured| measured.expected);
        let layout = match (one.level, one.members.len()) {
            (None, _) => "alone".to_owned(),
            (Some(level), count) => format!("{} × {count}", level.name()),
        };
        let chunk = one.chunk.map_or(String::new(), |chunk| format!(", {}", ByteSize(chunk)));
        let mut cells = vec![text(layout + &chunk), speed(predicted, one.interval(predicted))];
        if is_measured {
            let measured = |one: braid_predict::advise::Measured| speed(one.rate, one.range);
            cells.push(one.measured.map_or_else(|| text("–".to_owned()), measured));
        }
        if has_latency {
            cells.push(text(latency(one).map_or(String::new(), |ms| format!("{ms:.1}"))));
        }
        cells.extend([size(one.capacity), one.losses.to_string(), reason(one)].map(text));
        Row { cells, total: false }
    };
    let mut columns = vec![
        heading("layout", false),
        heading(if is_measured { "predicted MB/s" } else { "MB/s" }, true),
        heading("room", true),
        heading("may fail", true),
        heading("why not more", false),
    ];
    if has_latency {
        columns.insert(2, heading("p99 ms", true));
    }
    if is_measured {
        columns.insert(2, heading("measured MB/s", true));
    }
    let measured = match is_measured {
        false => "All numbers are predicted from profiles, none is measured.",
        true => {
            "Measured: the median, the lowest and the highest of five repetitions, and p99 where there is one; \
             all else is predicted."
        }
    };
    Table {
        id: "layouts".to_owned(),
        title: match is_measured {
            false => format!("Predicted for {}", advice.words),
            true => format!("Predicted and measured for {}", advice.words),
        },
        note: format!(
            "{measured} Intervals are what predictions are off by: {}. Each level with its best chunk.",
            off_by_kinds(advice.members.offers.iter().map(|offer| &offer.profile.kind)).grounds
        ),
        columns,
        rows: shown.iter().map(row).collect(),
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

/// What the best depends on.
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
        })
    };
    let depends = |one: &Beside| {
        let point = |(bytes, value): &(u64, f64)| json!({ "bytes": bytes, "value": value });
        let points = one.points.iter().map(point).collect::<Vec<_>>();
        json!({ "of": one.id, "unit": one.unit, "points": points })
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
        "workload": advice.words,
        "need": need,
        "answer": answer(advice),
        "create": create(advice, &advice.ranked[0]),
        "doubts": doubts(advice).collect::<Vec<_>>(),
        "measure": advice.next,
        "depends_on": advice.beside.iter().map(depends).collect::<Vec<_>>(),
        "layouts": advice.ranked.iter().map(layout).collect::<Vec<_>>(),
    })
}
