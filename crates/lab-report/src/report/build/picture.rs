//! The picture that the question asks for: what a failure costs, what a factor does, or each subject
//! beside the baseline.

use super::charts::{self, MOST_SERIES};
use super::{Context, cells, factors, health};
use crate::analysis::Cell;
use crate::report::model::{Chart, Series};
use crate::report::units::title;
use braid_lab::metric::Metric;

/// Groups of bars.
const MOST_KINDS: usize = 8;

/// The picture; `None` where there is nothing to draw.
pub(super) fn of(context: &Context<'_>) -> Option<Chart> {
    let of_study =
        || context.factors.first().filter(|_| context.is_study()).and_then(factors::chart);
    let chart = health::picture(context)
        .or_else(of_study)
        .or_else(|| of_effects(context))
        .or_else(|| of_numbers(context))?;
    Some(Chart { id: "picture".to_owned(), ..chart })
}

fn of_effects(context: &Context<'_>) -> Option<Chart> {
    let name = context.baseline_name()?;
    let others = (0..context.analysis.subjects).filter(|s| !context.analysis.is_baseline(*s));
    let series = others.take(MOST_SERIES).map(|subject| {
        let points = (0..).map(f64::from).zip(&context.effects).take(MOST_KINDS);
        let points = points.filter_map(|(x, effects)| {
            let one = effects.iter().find(|one| one.subject == subject)?;
            Some(charts::of_effect(x, &one.effect, one.standing))
        });
        Series { name: context.subject(subject).to_owned(), points: points.collect() }
    });
    let chart = charts::bars(
        &format!("How many times as fast as {name}"),
        context.kinds.iter().take(MOST_KINDS).map(|kind| kind.name.clone()),
        charts::axis(&format!("times {name}"), ""),
        series.collect(),
    )?;
    let note = "The line is the baseline; right of it is faster.".to_owned();
    Some(Chart { note, mark: Some(1.0), ..chart })
}

/// The numbers themselves, of the first metric that there are numbers of.
fn of_numbers(context: &Context<'_>) -> Option<Chart> {
    let analysis = context.analysis;
    let is_usable = |work: &usize| analysis.row(*work).iter().any(Cell::is_usable);
    let with_numbers = (0..analysis.workloads.len()).find(is_usable)?;
    let metric: Metric = analysis.workloads[with_numbers].headline;
    let works: Vec<usize> = (0..analysis.workloads.len())
        .filter(|work| analysis.workloads[*work].headline == metric)
        .take(MOST_KINDS)
        .collect();
    let scale = cells::scale_of(works.iter().flat_map(|work| analysis.row(*work)), metric);
    let series = (0..analysis.subjects).take(MOST_SERIES).map(|subject| {
        let points = (0..).map(f64::from).zip(&works).filter_map(|(x, work)| {
            charts::of_cell(x, analysis.cell(*work, subject), metric, scale)
        });
        Series { name: context.subject(subject).to_owned(), points: points.collect() }
    });
    let chart = charts::bars(
        &format!("{} by workload", title(metric)),
        works.iter().map(|work| context.label(*work).to_owned()),
        charts::axis(title(metric), scale.unit),
        series.collect(),
    )?;
    Some(Chart { note: cells::note_on_better(metric), ..chart })
}
