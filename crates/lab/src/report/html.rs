//! The page. The template escapes everything; only the charts, which escape their own text, go
//! in as they are.

use std::path::Path;

use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use super::charts::{draw_latency, draw_ratio, draw_throughput};
use super::svg::series;
use super::units;
use crate::analysis::{Analysis, Group, Row};
use crate::error::LabError;
use crate::stats::{Estimate, IntervalKind, Verdict};
use crate::tool::Metric;
use crate::world::shell_word;

const TEMPLATE: &str = include_str!("page.html");

/// The whole page.
///
/// # Errors
///
/// When the template does not fit the data, which is a mistake in this program.
pub fn render_html(analysis: &Analysis, results_dir: &Path) -> Result<String, LabError> {
    let mut engine = Environment::new();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_template("page", TEMPLATE)?;
    let started = analysis.started_unix_s.map(|(first, _)| units::date(first));
    let page = engine.get_template("page")?.render(context! {
        campaign => analysis.campaign,
        started,
        hint => (analysis.campaign.repetitions as usize) < crate::stats::BOOTSTRAP_FROM,
        done => analysis.progress.0,
        planned => analysis.progress.1,
        summaries => summaries(analysis),
        sharing => analysis.sharing,
        caveats => analysis.caveats,
        failures => analysis.failures,
        subjects => subject_views(analysis),
        environment => environment_rows(analysis),
        ratio_chart => draw_ratio(analysis),
        throughput_charts => analysis.groups.iter().map(draw_throughput).collect::<Vec<_>>(),
        latency_chart => draw_latency(analysis),
        groups => analysis.groups.iter().map(group_view).collect::<Vec<_>>(),
        commands => analysis.commands,
        results_dir => shell_word(&results_dir.display().to_string()),
        results_campaign => shell_word(&results_dir.join("campaign.toml").display().to_string()),
        destroy_flags => destroy_flags(analysis),
        version => env!("CARGO_PKG_VERSION"),
    })?;
    Ok(page)
}

/// One sentence for each subject but the baseline.
fn summaries(analysis: &Analysis) -> Vec<SummaryView> {
    let subjects = analysis.campaign.subjects.iter().enumerate();
    subjects
        .filter(|(_, subject)| !subject.baseline)
        .map(|(index, subject)| {
            let rows: Vec<(&Group, &Row)> = analysis
                .groups
                .iter()
                .filter_map(|group| Some((group, group.rows.get(index)?)))
                .collect();
            let ratios =
                || rows.iter().filter_map(|(group, row)| Some((group, row.ratio.as_ref()?)));
            let count = |verdict| ratios().filter(|(_, ratio)| ratio.verdict() == verdict).count();
            let middle = |ratio: &crate::stats::Ratio| ratio.percent.median;
            let extreme = |verdict, sign: f64| {
                ratios()
                    .filter(|(_, ratio)| ratio.verdict() == verdict)
                    .max_by(|a, b| (middle(a.1) * sign).total_cmp(&(middle(b.1) * sign)))
                    .map(|(group, ratio)| {
                        format!("{} % ({})", units::percent_number(middle(ratio)), group.workload)
                    })
            };
            SummaryView {
                name: subject.name.clone(),
                class: series(index),
                faster: count(Verdict::Above),
                slower: count(Verdict::Below),
                same: count(Verdict::NotDistinguishable),
                best: extreme(Verdict::Above, 1.0),
                worst: extreme(Verdict::Below, -1.0),
            }
        })
        .collect()
}

#[derive(Serialize)]
struct SummaryView {
    name: String,
    class: String,
    faster: usize,
    slower: usize,
    same: usize,
    best: Option<String>,
    worst: Option<String>,
}

#[derive(Serialize)]
struct SubjectView {
    name: String,
    class: String,
    baseline: bool,
    kind: &'static str,
    source: String,
    size: String,
    members: Vec<(String, String)>,
    serve_command: Option<String>,
}

fn subject_views(analysis: &Analysis) -> Vec<SubjectView> {
    let subjects = analysis.campaign.subjects.iter().enumerate();
    subjects
        .map(|(index, subject)| {
            let facts = analysis.subjects.iter().find(|facts| facts.name == subject.name);
            let size = facts.and_then(|facts| facts.size_bytes);
            SubjectView {
                name: subject.name.clone(),
                class: series(index),
                baseline: subject.baseline,
                kind: subject.source.kind(),
                source: subject.source.to_string(),
                size: size.map_or_else(
                    || "—".to_owned(),
                    |bytes| format!("{:#}", braid_stack::ByteSize(bytes)),
                ),
                members: facts.map_or_else(Vec::new, |facts| {
                    let placed = facts.members.iter();
                    placed.map(|m| (m.member.clone(), m.place.describe())).collect()
                }),
                serve_command: facts.and_then(|facts| facts.serve_command.clone()),
            }
        })
        .collect()
}

fn environment_rows(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let Some(environment) = &analysis.environment else {
        return Vec::new();
    };
    let tools: Vec<String> = environment.tools.iter().map(|(_, version)| version.clone()).collect();
    let mut rows = vec![
        ("Host", environment.host.clone()),
        ("Kernel", environment.kernel.clone()),
        ("Processor", format!("{}, {} cores usable", environment.cpu, environment.cores)),
        ("Memory", format!("{:#}", braid_stack::ByteSize(environment.memory_bytes))),
        (
            "Virtual machine",
            if environment.virtualised { "yes" } else { "not that it says" }.to_owned(),
        ),
        ("Tools", tools.join(", ")),
        ("Laboratory", format!("braid {}", environment.laboratory)),
    ];
    if let Some(governor) = &environment.governor {
        rows.insert(3, ("Frequency governor", governor.clone()));
    }
    rows
}

/// A median and, under it, its interval.
#[derive(Serialize)]
struct Numbers {
    median: String,
    interval: Option<String>,
}

impl Numbers {
    fn plain(text: &str) -> Self {
        Self { median: text.to_owned(), interval: None }
    }

    fn of(estimate: &Estimate, write: impl Fn(f64) -> String) -> Self {
        let interval = (estimate.kind != IntervalKind::Range(1))
            .then(|| units::span(&write(estimate.low), &write(estimate.high)));
        Self { median: write(estimate.median), interval }
    }
}

#[derive(Serialize)]
struct GroupView {
    label: String,
    rows: Vec<RowView>,
}

#[derive(Serialize)]
struct RowView {
    subject: String,
    class: String,
    repetitions: usize,
    throughput: Numbers,
    iops: Numbers,
    p50: Numbers,
    p99: Numbers,
    p999: Numbers,
    cpu: Numbers,
    percent: Numbers,
    verdict: &'static str,
    verdict_class: &'static str,
}

fn group_view(group: &Group) -> GroupView {
    let rows = group.rows.iter().enumerate().map(|(index, row)| row_view(row, index)).collect();
    GroupView { label: group.workload.label(), rows }
}

fn row_view(row: &Row, index: usize) -> RowView {
    let cell = |metric, write: fn(f64) -> String| {
        row.get(metric).map_or_else(|| Numbers::plain("—"), |e| Numbers::of(&e, write))
    };
    let (percent, verdict, verdict_class) = match &row.ratio {
        None if row.baseline && !row.throughputs.is_empty() => {
            (Numbers::plain("100"), "baseline", "same")
        }
        None => (Numbers::plain("—"), "not measured", "same"),
        Some(ratio) => {
            let verdict = ratio.verdict();
            let class = match verdict {
                Verdict::Above => "up",
                Verdict::Below => "down",
                Verdict::NotDistinguishable => "same",
            };
            (Numbers::of(&ratio.percent, units::percent_number), units::verdict(ratio), class)
        }
    };
    RowView {
        subject: row.subject.clone(),
        class: series(index),
        repetitions: row.throughputs.len(),
        throughput: cell(Metric::Throughput, units::mib_per_s),
        iops: cell(Metric::Iops, units::count),
        p50: cell(Metric::LatencyP50, units::time),
        p99: cell(Metric::LatencyP99, units::time),
        p999: cell(Metric::LatencyP999, units::time),
        cpu: cell(Metric::ServerCpu, units::time),
        percent,
        verdict,
        verdict_class,
    }
}

/// The flags with which the campaign may run again.
fn destroy_flags(analysis: &Analysis) -> String {
    crate::safety::plan_overwrites(&analysis.campaign)
        .iter()
        .map(|path| format!(" --destroy {}", shell_word(path)))
        .collect()
}
