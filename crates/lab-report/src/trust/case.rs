//! The cases of rules: a trial or a cell, with its request written out once for all rules.

use std::collections::BTreeMap;

use braid_stack::{Node, Stack};

use braid_lab::campaign::{FileSystem, Source, Subject};
use braid_lab::evidence::{Evidence, Moved};
use braid_lab::facts::Placed;
use braid_lab::matrix::Workload;
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, Results, Session, StoredTrial, SubjectFacts};
use braid_lab::tool::Effort;

/// A workload on a subject, with its trials that count.
#[derive(Debug)]
pub struct Cell<'a> {
    /// The subject's name and the workload's label.
    pub key: (&'a str, &'a str),
    /// The requested workload.
    pub workload: &'a Workload,
    /// The subject, if the campaign still contains it.
    pub subject: Option<&'a Subject>,
    /// The trials that went well, by repetition; at least one.
    pub good: Vec<TrialCase<'a>>,
    /// The trials that failed.
    pub failed: Vec<&'a StoredTrial>,
    sessions: &'a [Session],
}

/// A trial that went well, as a rule sees it.
#[derive(Debug, Clone, Copy)]
pub struct TrialCase<'a> {
    /// The trial.
    pub trial: &'a StoredTrial,
    /// The evidence of the machine during the trial.
    pub evidence: &'a Evidence,
    /// The requested workload.
    pub workload: &'a Workload,
    /// The subject, if the campaign still contains it.
    pub subject: Option<&'a Subject>,
    /// The facts about the devices below it.
    pub facts: Option<&'a SubjectFacts>,
    /// Seconds before the measured time, in which the tool also works; 0 if it has no ramp.
    pub ramp_s: f64,
}

/// The cells that have a trial that went well and counts.
pub(super) fn gather<'a>(
    results: &'a Results,
    workloads: &'a [Workload],
    counts: impl Fn(&StoredTrial) -> bool,
) -> Vec<Cell<'a>> {
    let labels: BTreeMap<String, &Workload> =
        workloads.iter().map(|workload| (workload.label(), workload)).collect();
    let mut cells: BTreeMap<(&str, &str), Cell<'a>> = BTreeMap::new();
    for trial in &results.trials {
        let Some(&workload) = labels.get(&trial.workload) else { continue };
        let key = (trial.subject.as_str(), trial.workload.as_str());
        let cell = cells.entry(key).or_insert_with(|| Cell {
            key,
            workload,
            subject: results.subjects.iter().find(|subject| subject.name == trial.subject),
            good: Vec::new(),
            failed: Vec::new(),
            sessions: &results.sessions,
        });
        match trial.outcome {
            Outcome::Ok if counts(trial) => cell.good.push(TrialCase {
                trial,
                evidence: &trial.evidence,
                workload,
                subject: cell.subject,
                facts: results.facts.iter().find(|facts| facts.name == trial.subject),
                ramp_s: workload.tool().map_or(0.0, |tool| tool.ramp_s(results.campaign.ramp_s)),
            }),
            Outcome::Failed(_) => cell.failed.push(trial),
            Outcome::Ok | Outcome::Impossible(_) => {}
        }
    }
    cells.retain(|_, cell| !cell.good.is_empty());
    for cell in cells.values_mut() {
        cell.good.sort_by_key(|case| case.trial.repetition);
    }
    cells.into_values().collect()
}

impl Cell<'_> {
    /// True if its workload is that of `many`, which has several processes, but with one.
    pub(super) fn is_one_stream_of(&self, many: &Cell<'_>) -> bool {
        let mut one = many.workload.clone();
        one.setup.processes = 1;
        many.workload.setup.processes > 1 && *self.workload == one
    }
}

impl TrialCase<'_> {
    /// A number of the trial, above 0.
    pub(super) fn get(&self, metric: Metric) -> Option<f64> {
        self.trial.measured.get(metric).filter(|value| *value > 0.0)
    }

    /// Seconds in which the numbers were measured, and whether the tool's own clock says so: an
    /// amount over its rate. Else the wall time, which has the tool's start-up in it.
    pub(super) fn measured_s(&self) -> (f64, bool) {
        let bytes = [Metric::BytesRead, Metric::BytesWritten].map(|metric| self.get(metric));
        let bytes = bytes.into_iter().flatten().reduce(|read, written| read + written);
        let rate = self.get(Metric::Throughput).filter(|_| self.get(Metric::Seconds).is_none());
        match bytes.zip(rate) {
            Some((amount, rate)) => (amount / rate, true),
            None => (self.get(Metric::Seconds).unwrap_or(self.trial.duration_s), false),
        }
    }

    /// All that the tool did over what it counted, if it works in its ramp as it does later.
    pub(super) fn ramp_factor(&self) -> f64 {
        let (seconds, _) = self.measured_s();
        let factor = (seconds + self.ramp_s) / seconds;
        if factor.is_finite() { factor } else { 1.0 }
    }

    /// The bytes that the tool's device moved; `None` if it does not count them. The kernel's md linear passes
    /// requests on and counts none of them.
    pub(super) fn target(&self) -> Option<Moved> {
        let keeps_no_counters = || {
            let is_kernel = matches!(self.subject?.source, Source::Kernel(_));
            Some(is_kernel && matches!(stack_of(self.subject)?.node, Node::Linear(_)))
        };
        let is_silent = |moved: &Moved| moved.read_bytes == 0 && moved.written_bytes == 0;
        let target = self.evidence.target?;
        (!is_silent(&target) || keeps_no_counters() != Some(true)).then_some(target)
    }

    /// True if a command line of the tool's own program, not one that sets the subject up, contains this text.
    pub(super) fn tool_was_told(&self, text: &str) -> bool {
        let own = self.workload.tool().map(|tool| tool.version_command().program);
        let is_own = |command: &str| {
            let program = command.split(' ').next().unwrap_or_default();
            program.rsplit('/').next() == own.as_deref()
        };
        self.trial.commands.iter().any(|command| is_own(command) && command.contains(text))
    }

    /// True if the tool was to bypass the page cache.
    pub(super) fn is_direct(&self) -> bool {
        let settings = &self.workload.settings;
        let words = ["direct=1", "iflag=direct", "oflag=direct", "--direct ", "extra-flags=direct"];
        settings.flag("direct")
            || ["flags", "iflag", "oflag"].iter().any(|name| settings.word(name).contains("direct"))
            || words.iter().any(|word| self.tool_was_told(word))
    }

    /// True if the tool works on the raw device.
    pub(super) fn is_raw(&self) -> bool {
        self.workload.setup.filesystem == FileSystem::None
    }

    /// True if the tool runs for a given time, and not until its work is done.
    pub(super) fn runs_for_a_time(&self) -> bool {
        self.workload.work().is_some_and(|work| work.effort == Effort::Runtime)
    }

    /// The bytes that are used repeatedly: the size of all files if it is set (a total, or one for each
    /// process), otherwise the region.
    pub(super) fn working_set(&self) -> u64 {
        working_set(self.workload, self.trial.region_bytes)
    }

    /// True if there are facts about every member, and `hold` is true for all.
    pub(super) fn all_members(&self, hold: impl Fn(&Placed) -> bool) -> bool {
        self.facts.is_some_and(|facts| !facts.members.is_empty() && facts.members.iter().all(hold))
    }
}

impl<'a> Cell<'a> {
    /// A metric of every repetition that has it.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.good.iter().filter_map(|case| case.trial.measured.get(metric)).collect()
    }

    /// The starts of the runner that its trials belong to: of each the last before it.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &'a Session> + '_ {
        self.good.iter().filter_map(|case| {
            let begun = |session: &&Session| session.started_unix_s <= case.trial.started_unix_s;
            self.sessions.iter().filter(begun).max_by_key(|session| session.started_unix_s)
        })
    }
}

/// See [`TrialCase::working_set`].
pub(super) fn working_set(workload: &Workload, region_bytes: u64) -> u64 {
    let settings = &workload.settings;
    let each = || settings.size("size").or_else(|| settings.size("file_size"));
    let processes = u64::from(workload.setup.processes).max(1);
    settings
        .size("total_size")
        .or_else(|| each().map(|size| size.saturating_mul(processes)))
        .filter(|all| *all > 0)
        .unwrap_or(region_bytes)
}

/// The stack of a subject that is one; a plain path is a stack of one leaf.
pub(super) fn stack_of(subject: Option<&Subject>) -> Option<Stack> {
    match &subject?.source {
        Source::Stack(text) | Source::Kernel(text) => text.stack().ok().cloned(),
        Source::Path(path) => Stack::parse(&format!("file({path:?})")).ok(),
        Source::Directory(_) | Source::Nbd(_) | Source::Zram(_) | Source::Tmpfs(_) => None,
    }
}

/// Bytes for a sentence: `3.5 MiB`.
pub(super) fn mib(bytes: f64) -> String {
    let mib = bytes / f64::from(1 << 20);
    if mib < 99.95 { format!("{mib:.1} MiB") } else { format!("{mib:.0} MiB") }
}

/// A share for a sentence: `43 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
