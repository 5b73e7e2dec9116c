//! Over the time of a trial: what happened when, such as the moment a member failed.

use super::charts::{axis, is_suspect, lines};
use super::{Context, section};
use crate::analysis::Cell;
use crate::report::model::{Block, Chart, Event, Point, Section, Series, Shape};
use crate::report::units::{Scale, title};
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, StoredTrial};

/// Workloads that get charts.
const MOST_WORKLOADS: usize = 6;
/// Points of a line; neighbours are averaged beyond.
const POINTS: usize = 400;
/// A subject's trial, and the points of one metric of it.
type Course<'a> = (usize, &'a StoredTrial, &'a [(u64, f64)]);

/// Charts of workloads in which something happened first, then of the others: the rate, and how long
/// the longest request took.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let analysis = context.analysis;
    let first_trial = |cell: &Cell| -> Option<(usize, &StoredTrial)> {
        let good = |trial: &&StoredTrial| {
            trial.outcome == Outcome::Ok && !trial.measured.series.is_empty()
        };
        let mut trials = cell.trials.iter().map(|index| &context.results.trials[*index]);
        Some((cell.subject, trials.find(good)?))
    };
    let mut works: Vec<(usize, Vec<(usize, &StoredTrial)>)> = (0..analysis.workloads.len())
        .map(|work| {
            let usable = analysis.row(work).iter().filter(|cell| cell.is_usable());
            (work, usable.filter_map(first_trial).collect())
        })
        .filter(|(_, trials): &(usize, Vec<_>)| !trials.is_empty())
        .collect();
    works.sort_by_key(|(_, trials)| trials.iter().all(|(_, trial)| trial.events.is_empty()));
    let blocks = works.iter().take(MOST_WORKLOADS).flat_map(|(work, trials)| {
        let rate = match analysis.workloads[*work].headline {
            Metric::Iops => Metric::Iops,
            _ => Metric::Throughput,
        };
        [rate, Metric::LatencyMax].map(|metric| charts(context, *work, trials, metric))
    });
    let blocks: Vec<Block> = blocks.flatten().collect();
    let mut lead = "Each line is the first repetition of a subject that went well.".to_owned();
    if works.len() > MOST_WORKLOADS {
        lead += &format!(" {} workloads more have a course.", works.len() - MOST_WORKLOADS);
    }
    let has_events = context.results.trials.iter().any(|trial| !trial.events.is_empty());
    section("over-time", "Over time", lead, !has_events, blocks)
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
            (series.points.len() > 1).then_some((*subject, *trial, series.points.as_slice()))
        })
        .collect();
    let values = courses.iter().flat_map(|(_, _, points)| points.iter().map(|(_, value)| *value));
    let scale = Scale::of(metric, values.filter(|value| value.is_finite()).fold(0.0, f64::max));
    let line = |(subject, _, points): &Course<'_>| Series {
        name: context.subject(*subject).to_owned(),
        points: thinned(points, scale, metric, is_suspect(context.analysis.cell(work, *subject))),
    };
    let heading = format!("{}: {} over time", context.label(work), title(metric));
    let axes = (axis("measured time", "s"), axis(title(metric), scale.unit));
    if trials.iter().all(|(_, trial)| trial.events.is_empty()) {
        return lines("course", &heading, "", axes, &courses.iter().map(line).collect::<Vec<_>>());
    }
    let tool = context.analysis.workloads[work].workload.tool();
    let ramp_s = tool.map_or(0.0, |tool| tool.ramp_s(context.results.campaign.ramp_s));
    let eventful = courses.iter().map(|course| {
        let (events, note) = place_events(course.1.events.iter(), ramp_s);
        Block::Chart(Chart {
            id: "course".to_owned(),
            title: format!("{heading}, {}", context.subject(course.0)),
            note,
            shape: Shape::Lines,
            x: axes.0.clone(),
            y: axes.1.clone(),
            series: vec![line(course)],
            mark: None,
            events,
        })
    });
    eventful.collect()
}

/// Events on the axis of a course, which begins when the ramp is over: theirs began with the tool.
/// Earlier events have no place on it and stand beside the chart.
fn place_events<'e>(
    events: impl Iterator<Item = &'e (f64, String)>,
    ramp_s: f64,
) -> (Vec<Event>, String) {
    let (mut drawn, mut before) = (Vec::new(), Vec::new());
    for (at, what) in events.filter(|(at, _)| at.is_finite()) {
        match at - ramp_s {
            x if x >= 0.0 => drawn.push(Event { x, label: what.clone() }),
            x => before.push(format!("{what} ({:.1} s earlier)", -x)),
        }
    }
    let note = match before.is_empty() {
        true => String::new(),
        false => format!("Before the measured time: {}.", before.join(", ")),
    };
    (drawn, note)
}

/// At most [`POINTS`] points: the mean of neighbours, or the largest of them where peaks are what
/// counts.
fn thinned(points: &[(u64, f64)], scale: Scale, metric: Metric, suspect: bool) -> Vec<Point> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stand_where_the_course_shows_them() {
        let events = [
            (0.3, "recovery began".to_owned()),
            (4.0, "recovery ended".to_owned()),
            (5.7, "check began".to_owned()),
            (f64::NAN, "never".to_owned()),
        ];
        let (drawn, note) = place_events(events.iter(), 4.0);
        let places: Vec<(f64, &str)> = drawn.iter().map(|e| (e.x, e.label.as_str())).collect();
        assert_eq!(places[0], (0.0, "recovery ended"));
        assert!((places[1].0 - 1.7).abs() < 1e-9 && places.len() == 2, "{places:?}");
        assert_eq!(note, "Before the measured time: recovery began (3.7 s earlier).");
        let (drawn, note) = place_events(events.iter(), 0.0);
        assert_eq!((drawn.len(), note.as_str()), (3, ""));
    }
}
