//! What a rule sees: a trial or a cell, with what was asked for spelt out once for all rules.

use std::collections::{BTreeMap, BTreeSet};

use braid_stack::Node;

use braid_lab::campaign::{Campaign, FileSystem, Source, Subject};
use braid_lab::evidence::{Evidence, Moved};
use braid_lab::matrix::Workload;
use braid_lab::metric::{Better, Metric};
use braid_lab::store::{Outcome, Results, Session, StoredTrial, SubjectFacts};
use braid_lab::tool::Effort;

/// By subject's name and workload's label.
pub(super) type Cells<'a> = BTreeMap<(&'a str, &'a str), Cell<'a>>;

/// A cell with its trials, by repetition.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    campaign: &'a Campaign,
    sessions: &'a [Session],
    workload: &'a Workload,
    subject: Option<&'a Subject>,
    facts: Option<&'a SubjectFacts>,
    good: Vec<&'a StoredTrial>,
    failed: Vec<&'a StoredTrial>,
}

/// The cells that have a trial that went well.
pub(super) fn gather<'a>(
    results: &'a Results,
    labels: &BTreeMap<String, &'a Workload>,
) -> Cells<'a> {
    let mut cells = Cells::new();
    for trial in &results.trials {
        let Some(&workload) = labels.get(&trial.workload) else { continue };
        let cell = cells.entry((&trial.subject, &trial.workload)).or_insert_with(|| Cell {
            campaign: &results.campaign,
            sessions: &results.sessions,
            workload,
            subject: results.subjects.iter().find(|subject| subject.name == trial.subject),
            facts: results.facts.iter().find(|facts| facts.name == trial.subject),
            good: Vec::new(),
            failed: Vec::new(),
        });
        match trial.outcome {
            Outcome::Ok => cell.good.push(trial),
            Outcome::Failed(_) => cell.failed.push(trial),
            Outcome::Impossible(_) => {}
        }
    }
    cells.retain(|_, cell| !cell.good.is_empty());
    for cell in cells.values_mut() {
        cell.good.sort_by_key(|trial| trial.repetition);
    }
    cells
}

impl<'a> Cell<'a> {
    /// Repetitions that were disturbed are none of the cell's any more.
    pub(super) fn leave_out(&mut self, repetitions: &BTreeSet<u32>) {
        self.good.retain(|trial| !repetitions.contains(&trial.repetition));
    }

    pub(super) fn trials(&self) -> impl Iterator<Item = TrialCase<'a>> + '_ {
        self.good.iter().map(|trial| TrialCase {
            trial,
            evidence: &trial.evidence,
            workload: self.workload,
            subject: self.subject,
            facts: self.facts,
            ramp_s: self.workload.tool().map_or(0.0, |tool| tool.ramp_s(self.campaign.ramp_s)),
        })
    }
}

/// A trial that went well, as a rule sees it.
#[derive(Debug, Clone, Copy)]
pub struct TrialCase<'a> {
    /// The trial.
    pub trial: &'a StoredTrial,
    /// What the machine did meanwhile.
    pub evidence: &'a Evidence,
    /// What was asked for.
    pub workload: &'a Workload,
    /// On what, if the campaign still knows it.
    pub subject: Option<&'a Subject>,
    /// What lies under it.
    pub facts: Option<&'a SubjectFacts>,
    /// Seconds before the measured time, in which the tool works as well; 0 if it has no ramp.
    pub ramp_s: f64,
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

    /// What the device that the tool used moved; `None` when it does not say. The kernel's md
    /// linear passes requests on and counts none of them.
    pub(super) fn target(&self) -> Option<Moved> {
        let keeps_no_counters = || match &self.subject?.source {
            Source::Kernel(text) => Some(matches!(text.stack().ok()?.node, Node::Linear(_))),
            _ => None,
        };
        let is_silent = |moved: &Moved| moved.read_bytes == 0 && moved.written_bytes == 0;
        let target = self.evidence.target?;
        (!is_silent(&target) || keeps_no_counters() != Some(true)).then_some(target)
    }

    /// The command lines of the tool's own program, not those that set the subject up.
    fn tool_commands(&self) -> impl Iterator<Item = &str> {
        let own = self.workload.tool().map(|tool| tool.version_command().program);
        self.trial.commands.iter().map(String::as_str).filter(move |command| {
            let program = command.split(' ').next().unwrap_or_default();
            program.rsplit('/').next() == own.as_deref()
        })
    }

    /// Whether a command line of the tool has this text.
    pub(super) fn tool_was_told(&self, text: &str) -> bool {
        self.tool_commands().any(|command| command.contains(text))
    }

    /// Whether the tool was asked to go past the page cache.
    pub(super) fn is_direct(&self) -> bool {
        let settings = &self.workload.settings;
        let words = ["direct=1", "iflag=direct", "oflag=direct", "--direct ", "extra-flags=direct"];
        settings.flag("direct")
            || ["flags", "iflag", "oflag"].iter().any(|name| settings.word(name).contains("direct"))
            || words.iter().any(|word| self.tool_was_told(word))
    }

    /// Whether the tool works on the raw device.
    pub(super) fn is_raw(&self) -> bool {
        self.workload.setup.filesystem == FileSystem::None
    }

    /// Whether the tool goes on for as long as it is told, and not until its work is done.
    pub(super) fn runs_for_a_time(&self) -> bool {
        self.workload.work().is_some_and(|work| work.effort == Effort::Runtime)
    }

    /// How many bytes are worked on, again and again: the size of all files where it is set (a
    /// total, or one for each process), else the region.
    pub(super) fn working_set(&self) -> u64 {
        let settings = &self.workload.settings;
        let each = || settings.size("size").or_else(|| settings.size("file_size"));
        let processes = u64::from(self.workload.setup.processes).max(1);
        settings
            .size("total_size")
            .or_else(|| each().map(|size| size.saturating_mul(processes)))
            .filter(|all| *all > 0)
            .unwrap_or(self.trial.region_bytes)
    }
}

/// A cell, as a rule sees it.
#[derive(Debug, Clone, Copy)]
pub struct CellCase<'a> {
    cell: &'a Cell<'a>,
    cells: &'a Cells<'a>,
}

impl<'a> CellCase<'a> {
    pub(super) fn new(cell: &'a Cell<'a>, cells: &'a Cells<'a>) -> Self {
        Self { cell, cells }
    }

    /// What was asked for.
    pub fn workload(&self) -> &'a Workload {
        self.cell.workload
    }

    /// On what, if the campaign still knows it.
    pub fn subject(&self) -> Option<&'a Subject> {
        self.cell.subject
    }

    /// The trials that went well, by repetition; at least one.
    pub fn trials(&self) -> &'a [&'a StoredTrial] {
        &self.cell.good
    }

    /// The trials that failed.
    pub fn failed(&self) -> &'a [&'a StoredTrial] {
        &self.cell.failed
    }

    /// The same workload on the campaign's other subjects.
    pub fn others(&self) -> impl Iterator<Item = CellCase<'a>> + '_ {
        let label = self.cell.good.first().map_or("", |trial| trial.workload.as_str());
        let own = self.cell.good.first().map_or("", |trial| trial.subject.as_str());
        let same = self.cells.iter().filter(move |(key, _)| key.1 == label && key.0 != own);
        same.map(|(_, cell)| CellCase { cell, cells: self.cells })
    }

    /// A metric of every repetition that has it.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.trials().iter().filter_map(|trial| trial.measured.get(metric)).collect()
    }

    /// The metric that is compared, if it was measured; else the first that was measured and can
    /// be compared at all.
    pub(super) fn headline(&self) -> Option<Metric> {
        let headline = self.workload().headline();
        let measured = self.trials().first()?.measured.samples.iter().map(|sample| sample.metric);
        let mut comparable = measured.filter(|metric| metric.better() != Better::Neither);
        if self.trials().iter().any(|trial| trial.measured.get(headline).is_some()) {
            Some(headline)
        } else {
            comparable.next()
        }
    }

    /// The start of the runner that a trial belongs to: the last before it.
    pub(super) fn session(&self, trial: &StoredTrial) -> Option<&'a Session> {
        let sessions = self.cell.sessions.iter();
        let before = sessions.filter(|session| session.started_unix_s <= trial.started_unix_s);
        before.max_by_key(|session| session.started_unix_s)
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
