//! Bars with intervals: percent of the baseline over all workloads, and the numbers themselves by
//! kind of workload.

use super::pivot::{Head, MOST_CATEGORIES, MOST_SERIES, Pivot};
use super::{Context, section as make_section};
use crate::analysis::find_kinds;
use crate::metric::{Better, Metric};
use crate::report::model::{Axis, BarSeries, Block, Chart, Plot, Section, Spread};

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
    let mut lead = "A thin line spans the interval, and each dot is a repetition.".to_owned();
    if left_out > 0 {
        lead += &format!(
            " {left_out} further charts would not be readable side by side; their numbers are in \
             the tables above."
        );
    }
    make_section("side-by-side", "Side by side", lead, blocks)
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
                columns: (0..analysis.subjects)
                    .map(|subject| Head::word(context.subject(subject)))
                    .collect(),
                cells: of_metric
                    .iter()
                    .map(|work| analysis.row(*work).iter().map(Some).collect())
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
            .filter(|work| analysis.row(*work).iter().any(|cell| cell.ratio.is_some()))
            .collect();
        let subjects: Vec<usize> =
            (0..analysis.subjects).filter(|subject| !analysis.is_baseline(*subject)).collect();
        for subjects in subjects.chunks(MOST_SERIES) {
            for workloads in workloads.chunks(MOST_CATEGORIES) {
                charts.extend(percent_chart(context, &baseline, better, subjects, workloads));
            }
        }
    }
    charts
}

fn percent_chart(
    context: &Context<'_>,
    baseline: &str,
    better: Better,
    subjects: &[usize],
    workloads: &[usize],
) -> Option<Block> {
    let spread = |work: usize, subject: usize| {
        let ratio = context.analysis.cell(work, subject).ratio.as_ref()?;
        let paired = ratio.paired;
        Some(Spread {
            value: ratio.point,
            // Under a drift the ratio of the medians may lie outside the interval of the pairs.
            low: paired.low.min(ratio.point),
            high: paired.high.max(ratio.point),
            points: Vec::new(),
        })
    };
    let series: Vec<BarSeries> = subjects
        .iter()
        .map(|subject| BarSeries {
            name: context.subject(*subject).to_owned(),
            values: workloads.iter().map(|work| spread(*work, *subject)).collect(),
        })
        .filter(|series| series.values.iter().any(Option::is_some))
        .collect();
    let (what, note) = match better {
        Better::Lower => ("Time", "Below 100 is faster than the baseline."),
        _ => ("Rate", "Above 100 is faster than the baseline."),
    };
    (!series.is_empty()).then(|| {
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
