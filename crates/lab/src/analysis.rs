//! Trials in, table out: for each workload and subject the estimates and the comparison with the
//! baseline. Pure; the renderers only draw what is here.

use std::collections::BTreeMap;

use crate::campaign::{Campaign, Pattern, Subject};
use crate::environment::Environment;
use crate::facts::note_on_sharing;
use crate::matrix::{Workload, plan_workloads};
use crate::stats::{Estimate, Ratio, compare, estimate};
use crate::store::{Outcome, Session, StoredTrial, SubjectFacts};
use crate::tool::{METRICS, Metric, Sample};

mod caveats;

/// Everything that a report says.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// What was to be measured.
    pub campaign: Campaign,
    /// The last session's environment.
    pub environment: Option<Environment>,
    /// When measuring began and last began, seconds since 1970.
    pub started_unix_s: Option<(u64, u64)>,
    /// The subjects as they were found.
    pub subjects: Vec<SubjectFacts>,
    /// Sentences about members on shared hardware, with the subject's name.
    pub sharing: Vec<(String, String)>,
    /// What limits the numbers, in sentences.
    pub caveats: Vec<String>,
    /// One for each workload.
    pub groups: Vec<Group>,
    /// Failed trials: number, subject, workload, reason.
    pub failures: Vec<(u32, String, String, String)>,
    /// Trials that went well, and all.
    pub progress: (usize, usize),
    /// One exact command for each cell that has run: subject, workload, command.
    pub commands: Vec<(String, String, String)>,
}

/// One workload over all subjects.
#[derive(Debug, Clone)]
pub struct Group {
    /// The workload.
    pub workload: Workload,
    /// One for each subject, in the campaign's order.
    pub rows: Vec<Row>,
}

/// One workload on one subject.
#[derive(Debug, Clone)]
pub struct Row {
    /// The subject's name.
    pub subject: String,
    /// Whether it is the baseline.
    pub baseline: bool,
    /// What was measured, by metric; empty while the cell has not run.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// The repetitions' throughputs in bytes per second, in order.
    pub throughputs: Vec<f64>,
    /// Throughput against the baseline; `None` for the baseline itself.
    pub ratio: Option<Ratio>,
    /// 99 % latency against the baseline, for which less is better.
    pub latency_ratio: Option<Ratio>,
}

impl Row {
    /// One estimate.
    pub fn get(&self, metric: Metric) -> Option<Estimate> {
        self.estimates.get(&metric).copied()
    }
}

impl Group {
    /// Whether requests per second say more than bytes per second: small or random requests.
    pub fn counts_requests(&self) -> bool {
        self.workload.pattern == Pattern::Rand && self.workload.block_size.0 <= 64 << 10
    }
}

/// One metric of the repetitions of one cell.
type ByRepetition = BTreeMap<u32, f64>;
/// Subject, workload and metric.
type Key = (String, String, Metric);

/// Makes the analysis.
pub fn analyse(
    campaign: &Campaign,
    trials: &[(StoredTrial, Vec<Sample>)],
    sessions: &[Session],
    subjects: &[SubjectFacts],
) -> Analysis {
    let values = index_samples(trials);
    let groups: Vec<Group> =
        plan_workloads(campaign).iter().map(|work| group_of(campaign, work, &values)).collect();
    let sharing: Vec<(String, String)> = subjects
        .iter()
        .filter_map(|facts| Some((facts.name.clone(), note_on_sharing(&facts.members)?)))
        .collect();
    let good = trials.iter().filter(|(trial, _)| trial.outcome == Outcome::Ok).count();
    let all = crate::matrix::plan_trials(campaign).len();
    let times = sessions.iter().map(|session| session.started_unix_s);
    let mut analysis = Analysis {
        campaign: campaign.clone(),
        environment: sessions.last().map(|session| session.environment.clone()),
        started_unix_s: times.clone().min().zip(times.max()),
        subjects: subjects.to_vec(),
        sharing,
        caveats: Vec::new(),
        groups,
        failures: failures_of(trials),
        progress: (good, all),
        commands: commands_of(trials),
    };
    analysis.caveats = caveats::write_caveats(&analysis, sessions, trials);
    analysis
}

fn index_samples(trials: &[(StoredTrial, Vec<Sample>)]) -> BTreeMap<Key, ByRepetition> {
    let mut values: BTreeMap<Key, ByRepetition> = BTreeMap::new();
    for (trial, samples) in trials.iter().filter(|(trial, _)| trial.outcome == Outcome::Ok) {
        for sample in samples {
            values
                .entry((trial.subject.clone(), trial.workload.clone(), sample.metric))
                .or_default()
                .insert(trial.repetition, sample.value);
        }
    }
    values
}

fn group_of(
    campaign: &Campaign,
    workload: &Workload,
    values: &BTreeMap<Key, ByRepetition>,
) -> Group {
    let label = workload.label();
    let of = |subject: &str, metric| values.get(&(subject.to_owned(), label.clone(), metric));
    let baseline = campaign.subjects.iter().find(|subject| subject.baseline);
    let ratio = |subject: &Subject, metric| {
        let baseline = baseline.filter(|_| !subject.baseline)?;
        compare(&pair_up(of(&subject.name, metric)?, of(&baseline.name, metric)?))
    };
    let rows = campaign
        .subjects
        .iter()
        .map(|subject| {
            let estimates = METRICS.iter().filter_map(|&metric| {
                let numbers: Vec<f64> = of(&subject.name, metric)?.values().copied().collect();
                Some((metric, estimate(&numbers)?))
            });
            Row {
                subject: subject.name.clone(),
                baseline: subject.baseline,
                estimates: estimates.collect(),
                throughputs: of(&subject.name, Metric::Throughput)
                    .map(|numbers| numbers.values().copied().collect())
                    .unwrap_or_default(),
                ratio: ratio(subject, Metric::Throughput),
                latency_ratio: ratio(subject, Metric::LatencyP99),
            }
        })
        .collect();
    Group { workload: workload.clone(), rows }
}

/// Values of the same repetition.
fn pair_up(values: &ByRepetition, baseline: &ByRepetition) -> Vec<(f64, f64)> {
    values
        .iter()
        .filter_map(|(repetition, value)| Some((*value, *baseline.get(repetition)?)))
        .collect()
}

fn failures_of(trials: &[(StoredTrial, Vec<Sample>)]) -> Vec<(u32, String, String, String)> {
    trials
        .iter()
        .filter_map(|(trial, _)| match &trial.outcome {
            Outcome::Ok => None,
            Outcome::Failed(reason) => {
                Some((trial.number, trial.subject.clone(), trial.workload.clone(), reason.clone()))
            }
        })
        .collect()
}

fn commands_of(trials: &[(StoredTrial, Vec<Sample>)]) -> Vec<(String, String, String)> {
    let mut cells: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (trial, _) in trials {
        cells.entry((&trial.subject, &trial.workload)).or_insert(&trial.command);
    }
    cells
        .into_iter()
        .map(|((subject, workload), command)| {
            (subject.to_owned(), workload.to_owned(), command.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests;
