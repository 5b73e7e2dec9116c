//! Over a number of the workload: depth, size of a request, processes, and any other that a tool
//! has.

use super::cells;
use super::dims::{as_number, name_of};
use super::pivot::{Head, MOST_SERIES, Pivot, evenly, not_drawn};
use super::{Context, charts_first};
use crate::metric::Metric;
use crate::report::model::{Axis, Block, Chart, LineSeries, Plot, Point, Section};
use crate::report::units::{Scale, title};

/// More families than this are left to the tables.
const MOST_FAMILIES: usize = 8;
/// Dimensions that have a section of their own.
const KNOWN: [&str; 4] = ["iodepth", "block_size", "bs", "processes"];

/// Requests per second and latency over the depth, and against each other.
pub(super) fn depth(context: &Context<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    for pivot in pivots(context, "iodepth") {
        for metric in [Metric::Iops, Metric::LatencyP99] {
            blocks.extend(shown(&pivot.of_metric(metric)));
        }
        if !pivot.of_metric(Metric::Iops).has_numbers() {
            blocks.extend(shown(&pivot));
        }
        blocks.extend(latency_by_requests(&pivot));
    }
    let lead = "More requests at once keep a device busier, until only the waiting grows.";
    charts_first("depth", "Depth", lead.to_owned(), blocks)
}

/// Throughput over the size of a request.
pub(super) fn sizes(context: &Context<'_>) -> Option<Section> {
    let mut blocks = over(context, "block_size");
    blocks.extend(over(context, "bs"));
    let lead = "Small requests show the cost of each, large ones what a device carries.";
    charts_first("sizes", "Size of a request", lead.to_owned(), blocks)
}

/// From one process to many.
pub(super) fn processes(context: &Context<'_>) -> Option<Section> {
    let lead = "All processes run at once; a rate is of all together, a time ends with the last.";
    charts_first("processes", "Processes at once", lead.to_owned(), over(context, "processes"))
}

/// Every other number that varies.
pub(super) fn others(context: &Context<'_>) -> Option<Section> {
    let numeric = |name: &String| {
        let works = &context.analysis.workloads;
        let mut values = works.iter().filter_map(|work| work.dimensions.get(name));
        values.all(|value| as_number(value).is_some())
    };
    let mut names = context.varying_of_workloads();
    names.retain(|name| !KNOWN.contains(&name.as_str()) && numeric(name));
    let blocks = names.iter().flat_map(|name| over(context, name)).collect();
    charts_first("parameters", "Other parameters", String::new(), blocks)
}

fn over(context: &Context<'_>, dimension: &str) -> Vec<Block> {
    pivots(context, dimension).iter().flat_map(shown).collect()
}

/// A table and its lines, or bars where lines make no sense.
fn shown(pivot: &Pivot<'_>) -> Vec<Block> {
    if !pivot.has_numbers() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Table(pivot.table("sweep"))];
    blocks.extend(pivot.lines("sweep-lines"));
    blocks
}

/// One for each family of workloads that differ in this dimension only: its values down, subjects
/// across.
pub(super) fn pivots<'a>(context: &Context<'a>, dimension: &str) -> Vec<Pivot<'a>> {
    let analysis = context.analysis;
    let families = context.workload_families(dimension).into_iter();
    let pivot = |family: super::dims::Family| {
        let pivot = Pivot {
            title: family.title,
            rows_are: name_of(dimension),
            columns_are: "subject".to_owned(),
            rows: family.members.iter().map(|(value, _)| Head::of(dimension, value)).collect(),
            columns: (0..analysis.subjects)
                .map(|subject| Head::word(context.subject(subject)))
                .collect(),
            cells: family
                .members
                .iter()
                .map(|(_, work)| analysis.row(*work).iter().map(Some).collect())
                .collect(),
            metric: analysis.workloads[family.members[0].1].headline,
        };
        pivot.trimmed()
    };
    families.filter_map(pivot).take(MOST_FAMILIES).collect()
}

/// Latency against requests per second, where the requests support it; a line for each subject from the smallest depth on: the
/// knee is where more depth only makes requests wait.
fn latency_by_requests(pivot: &Pivot<'_>) -> Vec<Block> {
    let largest = |metric: Metric| pivot.of_metric(metric).scale();
    let (requests, latency): (Scale, Scale) = (largest(Metric::Iops), largest(Metric::LatencyP99));
    let line = |column: usize| LineSeries {
        name: pivot.columns[column].name.clone(),
        points: pivot
            .cells
            .iter()
            .filter_map(|row| {
                let cell = row[column].filter(|cell| cell.is_usable())?;
                let x = requests.apply(cell.get(Metric::Iops)?.median);
                let y = latency.apply(cell.get(Metric::LatencyP99)?.median);
                (x > 0.0 && y > 0.0).then_some(Point {
                    x,
                    y,
                    interval: None,
                    suspect: cells::is_suspect(cell),
                })
            })
            .collect(),
        steps: false,
    };
    let (series, short): (Vec<LineSeries>, Vec<LineSeries>) =
        (0..pivot.columns.len()).map(line).partition(|line| line.points.len() > 1);
    let note = format!(
        "Each point is a depth, the smallest first. Right is faster, down is quicker to answer.{}",
        not_drawn(&short)
    );
    let axis = |metric: Metric, scale: Scale| Axis {
        label: title(metric).to_owned(),
        unit: scale.unit.to_owned(),
        log: true,
        ticks: Vec::new(),
    };
    let charts = series.chunks(evenly(series.len(), MOST_SERIES)).map(|series| {
        Block::Chart(Chart {
            id: "latency-by-requests".to_owned(),
            title: format!("{}: 99 % latency against requests per second", pivot.title),
            note: note.clone(),
            plot: Plot::Lines {
                x: axis(Metric::Iops, requests),
                y: axis(Metric::LatencyP99, latency),
                series: series.to_vec(),
                events: Vec::new(),
            },
        })
    });
    charts.collect()
}
