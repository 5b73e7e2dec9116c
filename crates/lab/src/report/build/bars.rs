//! Bars with intervals: percent of the baseline over all workloads, and the numbers themselves by
//! kind of workload.

use super::cells;
use super::pivot::{Head, MOST_CATEGORIES, MOST_SERIES, Pivot, evenly, is_planned};
use super::{Context, section as make_section};
use crate::analysis::{Cell, Standing, State, find_kinds};
use crate::metric::{Better, Metric};
use crate::report::model::{Axis, BarSeries, Block, Chart, Datum, Gap, Plot, Section, Spread};

/// So many subjects are drawn all; of more only the fastest, with the baselines.
const ALL_UP_TO: usize = 16;

/// More charts than this are left to the tables.
const MOST_CHARTS: usize = 16;

/// The charts.
pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    let mut blocks = percents(context);
    for kind in find_kinds(context.analysis) {
        for pivot in pivots(context, &kind.workloads, &kind.name) {
            blocks.extend(pivot.bars("bars"));
        }
    }
    let left_out = blocks.len().saturating_sub(MOST_CHARTS);
    blocks.truncate(MOST_CHARTS);
    let all = context.analysis.subjects;
    let mut lead = "A thin line spans the interval, and each dot is a repetition.".to_owned();
    if all > ALL_UP_TO {
        lead += &format!(" Of {all} subjects the fastest and the baselines are drawn.");
    }
    if left_out > 0 {
        lead += &format!(
            " {left_out} further charts would not be readable side by side; their numbers are in \
             the tables above."
        );
    }
    make_section("side-by-side", "Side by side", lead, blocks)
}

/// The subjects that are drawn, in their order.
fn drawn_subjects(context: &Context<'_>) -> Vec<usize> {
    let analysis = context.analysis;
    if analysis.subjects <= ALL_UP_TO {
        return (0..analysis.subjects).collect();
    }
    let mean_gain = |subject: usize| {
        let cells = (0..analysis.workloads.len()).map(|work| analysis.cell(work, subject));
        let gains: Vec<f64> = cells.filter_map(|cell| Some(cell.gain()?.median.ln())).collect();
        gains.iter().sum::<f64>() / gains.len() as f64
    };
    let mut ranked: Vec<(usize, f64)> = (0..analysis.subjects)
        .filter(|subject| !analysis.is_baseline(*subject))
        .map(|subject| (subject, mean_gain(subject)))
        .filter(|(_, gain)| gain.is_finite())
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(MOST_SERIES.saturating_sub(analysis.baselines.len()).max(1));
    let mut drawn: Vec<usize> = ranked.into_iter().map(|(subject, _)| subject).collect();
    drawn.extend(&analysis.baselines);
    drawn.sort_unstable();
    drawn
}

/// Workloads of a kind by subjects, a pivot for each metric.
fn pivots<'a>(context: &Context<'a>, workloads: &[usize], name: &str) -> Vec<Pivot<'a>> {
    let mut metrics: Vec<Metric> = Vec::new();
    for work in workloads {
        let metric = context.analysis.workloads[*work].headline;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let analysis = context.analysis;
    let subjects = drawn_subjects(context);
    metrics
        .into_iter()
        .map(|metric| {
            let of_metric: Vec<usize> = workloads
                .iter()
                .copied()
                .filter(|work| analysis.workloads[*work].headline == metric)
                .collect();
            Pivot {
                title: name.to_owned(),
                rows_are: "workload".to_owned(),
                columns_are: "subject".to_owned(),
                rows: of_metric.iter().map(|work| Head::word(context.label(*work))).collect(),
                columns: subjects
                    .iter()
                    .map(|subject| Head::word(context.subject(*subject)))
                    .collect(),
                cells: of_metric
                    .iter()
                    .map(|work| subjects.iter().map(|s| Some(analysis.cell(*work, *s))).collect())
                    .collect(),
                metric,
            }
        })
        .filter(Pivot::has_numbers)
        .collect()
}

/// Each subject's percent of the baseline, rates and times apart.
fn percents(context: &Context<'_>) -> Vec<Block> {
    let analysis = context.analysis;
    let Some(baseline) = context.baseline_name() else { return Vec::new() };
    let mut charts = Vec::new();
    for better in [Better::Higher, Better::Lower] {
        let workloads: Vec<usize> = (0..analysis.workloads.len())
            .filter(|work| analysis.workloads[*work].headline.better() == better)
            .filter(|work| analysis.row(*work).iter().any(|cell| is_compared(context, cell)))
            .collect();
        let mut subjects = drawn_subjects(context);
        subjects.retain(|subject| !analysis.is_baseline(*subject));
        for subjects in subjects.chunks(evenly(subjects.len(), MOST_SERIES)) {
            for workloads in workloads.chunks(evenly(workloads.len(), MOST_CATEGORIES)) {
                charts.extend(percent_chart(context, &baseline, better, subjects, workloads));
            }
        }
    }
    charts
}

/// Whether it was measured to be compared with the baseline, whatever came out.
fn is_compared(context: &Context<'_>, cell: &Cell) -> bool {
    cell.state == State::Measured && !context.analysis.is_baseline(cell.subject)
}

fn percent_chart(
    context: &Context<'_>,
    baseline: &str,
    better: Better,
    subjects: &[usize],
    workloads: &[usize],
) -> Option<Block> {
    let spread = |work: usize, subject: usize| {
        let cell = context.analysis.cell(work, subject);
        let Some(ratio) = cell.ratio.as_ref() else {
            let has_number = cell.is_usable();
            return Datum::Gap(if has_number {
                Gap::NoBaseline
            } else {
                cells::gap(cell, cell.headline)
            });
        };
        let paired = ratio.paired;
        Datum::Value(Spread {
            value: paired.median,
            low: paired.low,
            high: paired.high,
            points: Vec::new(),
            suspect: context.analysis.standing_against_baseline(cell) == Standing::Suspect,
        })
    };
    let series: Vec<BarSeries> = subjects
        .iter()
        .map(|subject| BarSeries {
            name: context.subject(*subject).to_owned(),
            values: workloads.iter().map(|work| spread(*work, *subject)).collect(),
        })
        .filter(is_planned)
        .collect();
    let (what, note) = match better {
        Better::Lower => ("Time", "Below 100 is faster than the baseline."),
        _ => ("Rate", "Above 100 is faster than the baseline."),
    };
    let mut drawn = series.iter().flat_map(|series| &series.values).filter_map(Datum::value);
    drawn.next().is_some().then(|| {
        Block::Chart(Chart {
            id: "percent-bars".to_owned(),
            title: format!("{what} in percent of {baseline}"),
            note: note.to_owned(),
            plot: Plot::Bars {
                axis: Axis {
                    label: format!("percent of {baseline}"),
                    unit: "%".to_owned(),
                    ..Axis::default()
                },
                categories: workloads.iter().map(|w| context.label(*w).to_owned()).collect(),
                series,
                mark: Some(100.0),
            },
        })
    })
}
