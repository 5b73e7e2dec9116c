//! What limits the numbers of a report, as sentences.

use super::Analysis;
use crate::campaign::{Op, Source};
use crate::stats::BOOTSTRAP_FROM;
use crate::store::{Session, StoredTrial};
use crate::tool::{Metric, Sample};

/// An interval wider than this part of its median is named.
const WIDE: f64 = 0.5;
/// A trial shorter than this is named.
const SHORT_S: f64 = 5.0;

pub(super) fn write_caveats(
    analysis: &Analysis,
    sessions: &[Session],
    trials: &[(StoredTrial, Vec<Sample>)],
) -> Vec<String> {
    let campaign = &analysis.campaign;
    let mut caveats = Vec::new();
    let (good, all) = analysis.progress;
    if good < all {
        caveats.push(format!(
            "{} of {all} trials are missing or failed; run the campaign into the same directory to complete it.",
            all - good
        ));
    }
    caveats.extend(on_repetitions(analysis));
    if campaign.runtime_s < SHORT_S {
        caveats.push(format!(
            "A trial measured {} s. That shows large differences; caches, garbage collection and heat \
             need minutes to show.",
            campaign.runtime_s
        ));
    }
    caveats.push(format!(
        "Only the first {:#} of each subject are used{}: what fits a device's cache is measured in it.",
        campaign.region,
        if campaign.fill { ", and are written once before" } else { "" }
    ));
    caveats.extend(on_regions(trials));
    if campaign.jobs.iter().any(|job| job.op.0.contains(&Op::Write)) {
        caveats.push("A write trial ends with a flush, and the flush's time counts.".to_owned());
    }
    caveats.extend(on_paths(campaign.subjects.iter().map(|subject| &subject.source)));
    caveats.extend(on_sessions(sessions));
    caveats.extend(on_wide_intervals(analysis));
    caveats.extend(on_busy_tool(analysis, trials));
    caveats
}

/// A smaller region is seeked over in less time.
fn on_regions(trials: &[(StoredTrial, Vec<Sample>)]) -> Option<String> {
    let regions: std::collections::BTreeMap<&str, u64> =
        trials.iter().map(|(trial, _)| (trial.subject.as_str(), trial.region_bytes)).collect();
    let (smallest, largest) = (regions.values().min()?, regions.values().max()?);
    if smallest == largest {
        return None;
    }
    let sizes: Vec<String> = regions
        .iter()
        .map(|(subject, bytes)| format!("{subject} {:#}", braid_stack::ByteSize(*bytes)))
        .collect();
    Some(format!(
        "The subjects were used to differing extents, because some are smaller than the region: {}. \
         Set region to the smallest.",
        sizes.join(", ")
    ))
}

fn on_repetitions(analysis: &Analysis) -> Option<String> {
    let n = analysis.campaign.repetitions as usize;
    if n == 1 {
        let text = "With one repetition nothing is known about the spread; take at least three.";
        return Some(text.to_owned());
    }
    if n >= BOOTSTRAP_FROM {
        return None;
    }
    let chance = 2.0 * 0.5_f64.powi(n as i32);
    let comparisons = analysis
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .filter(|row| row.ratio.is_some())
        .count();
    Some(format!(
        "With {n} repetitions an interval is the range, smallest to largest, and the true median \
         lies outside the range of {n} with a chance of {:.0} %. So \"likely faster\" and \"likely \
         slower\" are hints: among {comparisons} comparisons of equal subjects some {:.0} would be called \
         that. From {BOOTSTRAP_FROM} repetitions on intervals are 95 %.",
        chance * 100.0,
        chance * comparisons as f64
    ))
}

fn on_paths<'a>(sources: impl Iterator<Item = &'a Source>) -> Option<String> {
    let kinds: std::collections::BTreeSet<&str> = sources.map(Source::kind).collect();
    (kinds.contains("path") && kinds.len() > 1).then(|| {
        "Subjects of kind path are opened by the tool itself, the others are reached through NBD: the \
         difference includes the export."
            .to_owned()
    })
}

fn on_sessions(sessions: &[Session]) -> Option<String> {
    let (last, earlier) = sessions.split_last()?;
    let differences = earlier.iter().find_map(|session| {
        let found = session.environment.differences(&last.environment);
        (!found.is_empty()).then_some(found)
    })?;
    Some(format!(
        "The campaign was measured in {} sessions on differing systems ({}): do not compare across them.",
        sessions.len(),
        differences.join("; ")
    ))
}

fn on_wide_intervals(analysis: &Analysis) -> Option<String> {
    let wide: Vec<String> = analysis
        .groups
        .iter()
        .flat_map(|group| group.rows.iter().map(move |row| (group, row)))
        .filter(|(_, row)| row.get(Metric::Throughput).is_some_and(|e| e.relative_width() > WIDE))
        .map(|(group, row)| format!("{} ({})", row.subject, group.workload))
        .collect();
    let cells: usize = analysis.groups.iter().map(|group| group.rows.len()).sum();
    let names = match wide.len() {
        0 => return None,
        1..=4 => wide.join("; "),
        many => format!("{many} of {cells} cells"),
    };
    Some(format!(
        "Unsteady, the interval is wider than half of the median: {names}. Something else used the \
         machine, or the trials were too short."
    ))
}

/// A tool that uses its core up measures itself.
fn on_busy_tool(analysis: &Analysis, trials: &[(StoredTrial, Vec<Sample>)]) -> Option<String> {
    let sum = |samples: &[Sample]| -> f64 {
        let cpu = [Metric::ToolCpuUser, Metric::ToolCpuSystem];
        samples.iter().filter(|s| cpu.contains(&s.metric)).map(|s| s.value).sum()
    };
    let busy = trials.iter().filter(|(_, samples)| sum(samples) > 90.0).count();
    (busy > 0 && analysis.progress.0 > 0).then(|| {
        format!(
            "In {busy} of {} trials the tool used more than 90 % of its core: there the tool may be the limit, \
             and a subject may be faster than its number.",
            trials.len()
        )
    })
}
