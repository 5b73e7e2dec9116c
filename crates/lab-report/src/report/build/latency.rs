//! How long requests took: distributions, and percentiles where the sample supports them.

use super::cells;
use super::cells::evenly;
use super::factors::MOST_SERIES;
use super::{Context, section};
use crate::analysis::{Cell as Measured, Standing, merged_latencies};
use crate::report::model::{
    Axis, Block, Cell, Chart, LineSeries, Plot, Point, Row, Section, Table, Tone,
};
use crate::report::units::{Scale, ends};
use crate::stats::{Histogram, estimate};
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, StoredTrial};

/// Workloads that get a chart.
const MOST_CHARTS: usize = 6;
/// Points of a line.
const POINTS: usize = 200;
/// The percentiles of the table.
const PERCENTILES: [(f64, &str); 5] =
    [(0.5, "50 %"), (0.95, "95 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];

/// What the subjects' requests of one workload and direction took.
struct Latencies {
    work: usize,
    op: &'static str,
    /// By subject.
    histograms: Vec<(usize, Histogram)>,
}

/// Charts of the most telling workloads, and a table of all.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let analysis = context.analysis;
    let mut all: Vec<Latencies> = Vec::new();
    for work in 0..analysis.workloads.len() {
        for op in ["read", "write"] {
            let histograms: Vec<(usize, Histogram)> = analysis
                .row(work)
                .iter()
                .filter_map(|cell| {
                    let merged = merged_latencies(context.results, cell, Some(op))?;
                    Some((cell.subject, merged))
                })
                .collect();
            if !histograms.is_empty() {
                all.push(Latencies { work, op, histograms });
            }
        }
    }
    let mut blocks = Vec::new();
    for index in most_telling(&all) {
        blocks.extend(chart(context, &all[index]));
    }
    if !all.is_empty() {
        blocks.push(Block::Table(percentiles(context, &all)));
    }
    let left = all.len().saturating_sub(MOST_CHARTS);
    let mut lead =
        "A curve takes all repetitions of a cell together, request by request. A percentile \
                    is the median of the repetitions'."
            .to_owned();
    if left > 0 {
        lead += &format!(
            " Drawn are the {MOST_CHARTS} workloads in which subjects differ most; {left} more are in \
             the table."
        );
    }
    section("latencies", "Latency", lead, true, blocks)
}

/// Where subjects differ most in the 99 % latency, in the campaign's order.
fn most_telling(all: &[Latencies]) -> Vec<usize> {
    let difference = |histograms: &[(usize, Histogram)]| {
        let tails: Vec<f64> =
            histograms.iter().filter_map(|(_, histogram)| histogram.percentile(0.99)).collect();
        let (low, high) = tails
            .iter()
            .fold((f64::MAX, 0.0_f64), |(low, high), tail| (low.min(*tail), high.max(*tail)));
        if tails.len() > 1 && low > 0.0 { high / low } else { 1.0 }
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| {
        difference(&all[*b].histograms).total_cmp(&difference(&all[*a].histograms))
    });
    order.truncate(MOST_CHARTS);
    order.sort_unstable();
    order
}

fn chart(context: &Context<'_>, latencies: &Latencies) -> Vec<Block> {
    let Latencies { work, op, histograms } = latencies;
    let usable: Vec<&(usize, Histogram)> = histograms
        .iter()
        .filter(|(subject, _)| context.analysis.cell(*work, *subject).is_usable())
        .collect();
    let slowest = usable.iter().filter_map(|(_, histogram)| histogram.max_ns()).max().unwrap_or(0);
    let scale = Scale::of(Metric::LatencyMean, slowest as f64 / 10.0);
    let line = |(subject, histogram): &&(usize, Histogram)| LineSeries {
        name: context.subject(*subject).to_owned(),
        points: histogram
            .cumulative(POINTS)
            .into_iter()
            // A logarithmic axis has no place for 0.
            .filter(|point| point.value_ns > 0)
            .map(|point| Point {
                x: scale.apply(point.value_ns as f64),
                y: point.at_most * 100.0,
                interval: None,
                suspect: cells::is_suspect(context.analysis.cell(*work, *subject)),
            })
            .collect(),
        steps: true,
    };
    usable
        .chunks(evenly(usable.len(), MOST_SERIES))
        .map(|usable| {
            Block::Chart(Chart {
                id: "latency".to_owned(),
                title: format!("{}: latency of {op}s", context.label(*work)),
                note: "How many of the requests took at most so long. Left is better.".to_owned(),
                plot: Plot::Lines {
                    x: Axis {
                        label: "latency".to_owned(),
                        unit: scale.unit.to_owned(),
                        log: true,
                        ticks: Vec::new(),
                    },
                    y: Axis {
                        label: "requests".to_owned(),
                        unit: "%".to_owned(),
                        ..Axis::default()
                    },
                    series: usable.iter().map(line).collect(),
                    events: Vec::new(),
                },
            })
        })
        .collect()
}

fn percentiles(context: &Context<'_>, all: &[Latencies]) -> Table {
    let mut columns =
        vec![cells::column("workload"), cells::column("subject"), cells::numbers("requests")];
    columns.extend(PERCENTILES.iter().map(|(_, name)| cells::numbers_in(name, "ms")));
    columns.push(cells::numbers_in("slowest", "ms"));
    let mut rows: Vec<Row> = Vec::new();
    for Latencies { work, op, histograms } in all {
        for (subject, histogram) in histograms {
            let measured = context.analysis.cell(*work, *subject);
            let standing = if measured.is_usable() { measured.standing } else { Standing::Invalid };
            let mark = |cell: Cell| match cell.tone {
                Tone::Missing => cell,
                tone => Cell {
                    number: cell.number.filter(|_| standing != Standing::Invalid),
                    tone: cells::tone_of(standing, tone),
                    ..cell
                },
            };
            let name = format!("{}, {op}s", context.label(*work));
            let mut line = vec![
                cells::words(name),
                cells::words(context.subject(*subject)),
                mark(cells::number(histogram.total().to_string(), histogram.total() as f64)),
            ];
            let parts = latencies_by_trial(context, measured, op);
            line.extend(PERCENTILES.iter().map(|(q, _)| mark(percentile(&parts, *q))));
            let slowest = histogram.max_ns().unwrap_or(0) as f64;
            line.push(mark(cells::number(in_ms(slowest), slowest / 1e6)));
            rows.push(cells::row(line));
        }
    }
    Table {
        id: "percentiles".to_owned(),
        title: "Percentiles of the latency".to_owned(),
        note: format!(
            "Under a percentile is from where to where it lies in the repetitions. {}",
            cells::UNSUPPORTED
        ),
        columns,
        rows,
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
