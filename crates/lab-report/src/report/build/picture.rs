//! The picture that the question asks for: what a failure costs, what a factor does, or each subject
//! in percent of the baseline.

use super::factors::{self, MOST_SERIES, bar};
use super::{Context, cells, health};
use crate::analysis::Standing;
use crate::report::model::{Axis, BarSeries, Chart, Datum, Gap, Plot};
use crate::report::units::title;
use braid_lab::metric::Metric;

/// More subjects than this are not drawn one by one.
const MOST_SUBJECTS: usize = 8;
/// Groups of bars.
const MOST_KINDS: usize = 8;

/// The picture; `None` where there is nothing to draw.
pub(super) fn of(context: &Context<'_>) -> Option<Chart> {
    if let Some(chart) = health::picture(context) {
        return Some(chart);
    }
    let compared = || context.effects.iter().flatten();
    if context.analysis.subjects > MOST_SUBJECTS || compared().next().is_none() {
        let told = context.factors.first().map(factors::chart);
        let told = told.map(|chart| Chart { id: "answer".to_owned(), ..chart });
        return told.or_else(|| of_effects(context)).or_else(|| of_numbers(context));
    }
    of_effects(context)
}

fn of_effects(context: &Context<'_>) -> Option<Chart> {
    let name = context.baseline_name()?;
    let others = (0..context.analysis.subjects).filter(|s| !context.analysis.is_baseline(*s));
    let series: Vec<BarSeries> = others
        .take(MOST_SERIES)
        .map(|subject| BarSeries {
            name: context.subject(subject).to_owned(),
            values: context
                .effects
                .iter()
                .take(MOST_KINDS)
                .map(|effects| match effects.iter().find(|one| one.subject == subject) {
                    Some(one) => bar(&one.effect, 100.0, one.standing != Standing::Ok),
                    None => Datum::Gap(Gap::NoBaseline),
                })
                .collect(),
        })
        .collect();
    let mut drawn = series.iter().flat_map(|series| &series.values);
    drawn.any(|datum| datum.value().is_some()).then(|| Chart {
        id: "answer".to_owned(),
        title: format!("Speed in percent of {name}"),
        note: "The line is the baseline; above it is faster.".to_owned(),
        plot: Plot::Bars {
            axis: Axis {
                label: format!("percent of {name}"),
                unit: "%".to_owned(),
                ..Axis::default()
            },
            categories: context.kinds.iter().take(MOST_KINDS).map(|k| k.name.clone()).collect(),
            series: series.clone(),
            mark: Some(100.0),
        },
    })
}

/// The numbers themselves, of the metric that most workloads have.
fn of_numbers(context: &Context<'_>) -> Option<Chart> {
    let analysis = context.analysis;
    let first: Metric = analysis.workloads.first()?.headline;
    let works: Vec<usize> = (0..analysis.workloads.len())
        .filter(|work| analysis.workloads[*work].headline == first)
        .take(MOST_KINDS)
        .collect();
    let scale = cells::scale_of(works.iter().flat_map(|work| analysis.row(*work)), first);
    let series: Vec<BarSeries> = (0..analysis.subjects)
        .take(MOST_SERIES)
        .map(|subject| BarSeries {
            name: context.subject(subject).to_owned(),
            values: works
                .iter()
                .map(|work| cells::datum(analysis.cell(*work, subject), first, scale))
                .collect(),
        })
        .collect();
    let mut drawn = series.iter().flat_map(|series| &series.values);
    drawn.any(|datum| datum.value().is_some()).then(|| Chart {
        id: "answer".to_owned(),
        title: format!("{} by workload", title(first)),
        note: cells::note_on_better(first),
        plot: Plot::Bars {
            axis: Axis {
                label: title(first).to_owned(),
                unit: scale.unit.to_owned(),
                ..Axis::default()
            },
            categories: works.iter().map(|work| context.label(*work).to_owned()).collect(),
            series: series.clone(),
            mark: None,
        },
    })
}
