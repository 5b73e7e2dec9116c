//! Over the time of a trial: what happened when, such as the moment a member failed.

use super::cells::is_suspect;
use super::pivot::{MOST_SERIES, evenly};
use super::{Context, section as make_section};
use crate::metric::Metric;
use crate::report::model::{Axis, Block, Chart, Event, LineSeries, Plot, Point, Section};
use crate::report::units::{Scale, title};
use crate::store::{Outcome, StoredTrial};

/// Workloads that get charts.
const MOST_WORKLOADS: usize = 6;
/// Points of a line; neighbours are averaged beyond.
const POINTS: usize = 400;
/// What is drawn, where the tool has it.
const METRICS: [Metric; 4] =
    [Metric::Throughput, Metric::Iops, Metric::LatencyMean, Metric::LatencyMax];

/// Charts of workloads in which something happened first, then of the others.
pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    let analysis = context.analysis;
    let first_trials = |work: usize| -> Vec<(usize, &StoredTrial)> {
        let cells = analysis.row(work).iter().filter(|cell| cell.is_usable());
        let trial = |cell: &crate::analysis::Cell| {
            let mut trials = cell.trials.iter().map(|index| &context.results.trials[*index]);
            let good = |trial: &&StoredTrial| {
                trial.outcome == Outcome::Ok && !trial.measured.series.is_empty()
            };
            Some((cell.subject, trials.find(good)?))
        };
        cells.filter_map(trial).collect()
    };
    let mut works: Vec<(usize, Vec<(usize, &StoredTrial)>)> = (0..analysis.workloads.len())
        .map(|work| (work, first_trials(work)))
        .filter(|(_, trials)| !trials.is_empty())
        .collect();
    works.sort_by_key(|(_, trials)| trials.iter().all(|(_, trial)| trial.events.is_empty()));
    let blocks: Vec<Block> = works
        .iter()
        .take(MOST_WORKLOADS)
        .flat_map(|(work, trials)| METRICS.iter().flat_map(|m| charts(context, *work, trials, *m)))
        .collect();
    let mut lead = "Each line is the first repetition of a subject that went well.".to_owned();
    if works.len() > MOST_WORKLOADS {
        lead += &format!(" {} workloads more have a course.", works.len() - MOST_WORKLOADS);
    }
    make_section("over-time", "Over time", lead, blocks)
}

/// A line, and where it is from.
struct Course<'a> {
    subject: usize,
    trial: &'a StoredTrial,
    points: &'a [(u64, f64)],
    suspect: bool,
}

/// The lines of one metric. Where something was done to the array each subject has a chart of its
/// own, because it happened at other times.
fn charts(
    context: &Context<'_>,
    work: usize,
    trials: &[(usize, &StoredTrial)],
    metric: Metric,
) -> Vec<Block> {
    let courses: Vec<Course<'_>> = trials
        .iter()
        .filter_map(|(subject, trial)| {
            let series = trial.measured.series.iter().find(|series| series.metric == metric)?;
            let points = series.points.as_slice();
            let suspect = is_suspect(context.analysis.cell(work, *subject));
            (points.len() > 1).then_some(Course { subject: *subject, trial, points, suspect })
        })
        .collect();
    let largest = courses.iter().flat_map(|course| course.points.iter().map(|(_, value)| *value));
    let scale = Scale::of(metric, largest.filter(|value| value.is_finite()).fold(0.0, f64::max));
    let eventful = trials.iter().any(|(_, trial)| !trial.events.is_empty());
    courses
        .chunks(if eventful { 1 } else { evenly(courses.len(), MOST_SERIES) })
        .map(|lines| {
            let events = lines.iter().flat_map(|course| &course.trial.events);
            let mut name = format!("{}: {} over time", context.label(work), title(metric));
            if let [course] = lines {
                name = format!("{name}, {}", context.subject(course.subject));
            }
            Block::Chart(Chart {
                id: "course".to_owned(),
                title: name,
                note: String::new(),
                plot: Plot::Lines {
                    x: Axis {
                        label: "time since the start".to_owned(),
                        unit: "s".to_owned(),
                        ..Axis::default()
                    },
                    y: Axis {
                        label: title(metric).to_owned(),
                        unit: scale.unit.to_owned(),
                        ..Axis::default()
                    },
                    series: lines
                        .iter()
                        .map(|course| LineSeries {
                            name: context.subject(course.subject).to_owned(),
                            points: thinned(course, scale, metric),
                            steps: false,
                        })
                        .collect(),
                    events: events
                        .filter(|(at, _)| at.is_finite())
                        .map(|(at, what)| Event { x: *at, label: what.clone() })
                        .collect(),
                },
            })
        })
        .collect()
}

/// At most [`POINTS`] points: the mean of neighbours, or the largest of them where peaks are what
/// counts.
fn thinned(course: &Course<'_>, scale: Scale, metric: Metric) -> Vec<Point> {
    let Course { points, suspect, .. } = *course;
    let group = points.len().div_ceil(POINTS).max(1);
    points
        .chunks(group)
        .filter_map(|group| {
            let values = || group.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
            let count = values().count();
            let (last, _) = group.last()?;
            let value = match metric {
                Metric::LatencyMax => values().fold(0.0, f64::max),
                _ => values().sum::<f64>() / count as f64,
            };
            (count > 0).then(|| Point {
                x: *last as f64 / 1000.0,
                y: scale.apply(value),
                interval: None,
                suspect,
            })
        })
        .collect()
}
