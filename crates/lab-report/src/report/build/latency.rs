//! The latency of requests: distributions, and percentiles if the sample supports them.

use super::charts::{self, axis};
use super::{Context, cells, section};
use crate::analysis::{Cell as Measured, Standing, merged_latencies};
use crate::report::model::{Axis, Block, Cell, Point, Row, Section, Series, Table, Tone};
use crate::report::units::{Scale, ends};
use crate::stats::{Histogram, estimate};
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, StoredTrial};

/// Workloads that get a chart.
const MOST_CHARTS: usize = 6;
/// Points of a line.
const POINTS: usize = 200;
/// The percentiles of the table.
const PERCENTILES: [(f64, &str); 4] =
    [(0.5, "50 % [ms]"), (0.95, "95 % [ms]"), (0.99, "99 % [ms]"), (0.999, "99.9 % [ms]")];

/// The latencies of the subjects' requests of one workload and direction.
struct Latencies<'a> {
    op: &'static str,
    cells: Vec<(&'a Measured, Histogram)>,
}

/// Charts of the most telling workloads, and a table of all.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let works = 0..context.analysis.workloads.len();
    let all: Vec<Latencies<'_>> = works
        .flat_map(|work| ["read", "write"].map(|op| (work, op)))
        .map(|(work, op)| {
            let cells = context.analysis.row(work).iter();
            let of = |cell| Some((cell, merged_latencies(context.results, cell, Some(op))?));
            Latencies { op, cells: cells.filter_map(of).collect() }
        })
        .filter(|latencies| !latencies.cells.is_empty())
        .collect();
    let mut blocks: Vec<Block> =
        most_telling(&all).into_iter().flat_map(|index| chart(context, &all[index])).collect();
    if !all.is_empty() {
        blocks.push(Block::Table(percentiles(context, &all)));
    }
    let mut lead =
        "A curve takes all repetitions of a cell together, request by request. A percentile \
                    is the median of the repetitions'."
            .to_owned();
    let left = all.len().saturating_sub(MOST_CHARTS);
    if left > 0 {
        lead += &format!(
            " Drawn are the {MOST_CHARTS} workloads in which subjects differ most; {left} more are in \
             the table."
        );
    }
    section("latencies", "Latency", lead, true, blocks)
}

/// The workloads in which subjects differ most in the 99 % latency, in the campaign's order.
fn most_telling(all: &[Latencies<'_>]) -> Vec<usize> {
    let difference = |index: &usize| {
        let tails = || all[*index].cells.iter().filter_map(|(_, one)| one.percentile(0.99));
        let (low, high) = (tails().fold(f64::MAX, f64::min), tails().fold(0.0, f64::max));
        if low > 0.0 { high / low } else { 1.0 }
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    order.truncate(MOST_CHARTS);
    order.sort_unstable();
    order
}

fn chart(context: &Context<'_>, latencies: &Latencies<'_>) -> Vec<Block> {
    let usable = || latencies.cells.iter().filter(|(cell, _)| cell.is_usable());
    let slowest = usable().filter_map(|(_, histogram)| histogram.max_ns()).max().unwrap_or(0);
    let scale = Scale::of(Metric::LatencyMean, slowest as f64 / 10.0);
    let series = usable().map(|(cell, histogram)| Series {
        name: context.subject(cell.subject).to_owned(),
        points: histogram
            .cumulative(POINTS)
            .into_iter()
            // A logarithmic axis has no place for 0.
            .filter(|point| point.value_ns > 0)
            .map(|point| Point {
                x: scale.apply(point.value_ns as f64),
                y: point.at_most * 100.0,
                interval: None,
                suspect: charts::is_suspect(cell),
            })
            .collect(),
    });
    let series: Vec<Series> = series.collect();
    let Some((first, _)) = usable().next() else { return Vec::new() };
    charts::lines(
        "latency",
        &format!("{}: latency of {}s", context.label(first.workload), latencies.op),
        "How many of the requests took at most so long. Left is better.",
        (Axis { log: true, ..axis("latency", scale.unit) }, axis("requests", "%")),
        &series,
    )
}

fn percentiles(context: &Context<'_>, all: &[Latencies<'_>]) -> Table {
    let mut columns =
        vec![cells::column("workload"), cells::column("subject"), cells::numbers("requests")];
    columns.extend(PERCENTILES.iter().map(|(_, name)| cells::numbers(*name)));
    let of = |Latencies { op, cells }: &Latencies<'_>| -> Vec<Row> {
        let row = |(cell, histogram): &(&Measured, Histogram)| {
            let standing = if cell.is_usable() { cell.standing } else { Standing::Invalid };
            let mark = |shown: Cell| match shown.tone {
                Tone::Missing => shown,
                tone => Cell {
                    number: shown.number.filter(|_| standing != Standing::Invalid),
                    tone: cells::tone_of(standing, tone),
                    ..shown
                },
            };
            let total = histogram.total();
            let mut line = vec![
                cells::words(format!("{}, {op}s", context.label(cell.workload))),
                cells::words(context.subject(cell.subject)),
                mark(cells::number(total.to_string(), total as f64)),
            ];
            let parts = latencies_by_trial(context, cell, op);
            line.extend(PERCENTILES.iter().map(|(q, _)| mark(percentile(&parts, *q))));
            cells::row(line)
        };
        cells.iter().map(row).collect()
    };
    Table {
        id: "percentiles".to_owned(),
        title: "Percentiles of the latency".to_owned(),
        note: format!(
            "Under a percentile is from where to where it lies in the repetitions. {}",
            cells::UNSUPPORTED
        ),
        columns,
        rows: all.iter().flat_map(of).collect(),
    }
}

/// Milliseconds to the microsecond, for latencies of all sizes stand in one column.
fn in_ms(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 9.9995 => format!("{ms:.3}"),
        ms if ms < 99.995 => format!("{ms:.2}"),
        ms => format!("{ms:.0}"),
    }
}

/// The requests of each trial of a cell that counts.
fn latencies_by_trial(context: &Context<'_>, cell: &Measured, op: &str) -> Vec<Histogram> {
    let trials = cell.trials.iter().map(|index| &context.results.trials[*index]);
    let counts =
        |trial: &&StoredTrial| trial.outcome == Outcome::Ok && cell.counts(trial.repetition);
    let bins = |trial: &StoredTrial| {
        let of_op = trial.measured.latencies.iter().filter(|latencies| latencies.op == op);
        Histogram::from_bins(of_op.flat_map(|latencies| latencies.bins.iter().copied()))
    };
    trials.filter(counts).filter_map(bins).filter(|bins| !bins.is_empty()).collect()
}

/// The median of the repetitions' percentiles, if each of them has the requests for it.
fn percentile(parts: &[Histogram], q: f64) -> Cell {
    let values: Option<Vec<f64>> = parts.iter().map(|part| part.percentile(q)).collect();
    let Some(all) = values.and_then(|values| estimate(&values)) else { return cells::missing("") };
    Cell {
        detail: ends(&all, in_ms).unwrap_or_default(),
        ends: (all.count > 1).then_some((all.low / 1e6, all.high / 1e6)),
        ..cells::number(in_ms(all.median), all.median / 1e6)
    }
}
