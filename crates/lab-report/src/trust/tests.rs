//! Each rule is checked with constructed results: some that trigger it, and some that just do not.

use super::*;
use braid_lab::campaign::{Campaign, Setup, Source, SubjectDecl};
use braid_lab::environment::Environment;
use braid_lab::evidence::{Evidence, Moved, RegionContent};
use braid_lab::facts::{Disk, Place, Placed};
use braid_lab::metric::{Measured, Metric};
use braid_lab::settings::{Settings, Value};
use braid_lab::store::{Outcome, Session, StoredTrial, SubjectFacts, Times};
use braid_stack::ByteSize;

mod beyond;
mod bytes;
mod cells;
mod machine;
mod members;
mod others;

const MIB: u64 = 1 << 20;

/// A campaign of one workload in which nothing is wrong: three repetitions on `single`, reading
/// 1000 MiB from `sda` in 10 s.
struct Lab {
    workload: Workload,
    subjects: Vec<(String, Source)>,
    facts: Vec<SubjectFacts>,
    sessions: Vec<Session>,
    trials: Vec<StoredTrial>,
    /// Further workloads: those of the trials that name their workload.
    also: Vec<Workload>,
    ramp_s: f64,
}

fn disk(name: &str) -> Placed {
    let disk = Disk { name: name.to_owned(), model: None, size_bytes: 0, rotational: false };
    Placed { member: format!("/dev/{name}"), place: Place::Disk(disk) }
}

fn read(bytes: u64) -> Moved {
    Moved { read_bytes: bytes, ..Moved::default() }
}

fn written(bytes: u64) -> Moved {
    Moved { written_bytes: bytes, ..Moved::default() }
}

fn session(started_unix_s: u64, kernel: &str) -> Session {
    let environment = Environment {
        host: "here".into(),
        kernel: kernel.into(),
        cpu: "some".into(),
        cores: 4,
        memory_bytes: 8 << 30,
        governor: None,
        virtualised: false,
        tools: Vec::new(),
        laboratory: "0".into(),
        prediction: None,
    };
    Session { started_unix_s, ended_unix_s: None, environment, times: Times::default() }
}

fn measured(values: &[(Metric, f64)]) -> Measured {
    let mut measured = Measured::default();
    for (metric, value) in values {
        measured.push(*metric, *value).unwrap();
    }
    measured
}

/// Replaces a number of a trial, or adds it.
fn set(trial: &mut StoredTrial, metric: Metric, value: f64) {
    trial.measured.samples.retain(|sample| sample.metric != metric);
    trial.measured.push(metric, value).unwrap();
}

/// Turns the reads of a trial into writes of the same amount.
fn write_instead(trial: &mut StoredTrial) {
    let bytes = trial.measured.get(Metric::BytesRead).unwrap();
    trial.measured.samples.retain(|sample| sample.metric != Metric::BytesRead);
    set(trial, Metric::BytesWritten, bytes);
    let turn = |moved: Moved| written(moved.read_bytes);
    trial.evidence.target = trial.evidence.target.map(turn);
    for (_, moved) in &mut trial.evidence.members {
        *moved = turn(*moved);
    }
}

impl Lab {
    fn new() -> Self {
        let settings = Settings::default()
            .with("op", Value::Word("read".into()))
            .with("pattern", Value::Word("seq".into()))
            .with("block_size", Value::Size(ByteSize(MIB)))
            .with("direct", Value::Flag(true));
        let workload = Workload { tool: "fio".into(), settings, setup: Setup::default() };
        let mut lab = Self {
            workload,
            subjects: Vec::new(),
            facts: Vec::new(),
            sessions: vec![session(1000, "Linux 6")],
            trials: Vec::new(),
            also: Vec::new(),
            ramp_s: 0.0,
        };
        lab.add("single", Source::Stack("/dev/sda".into()), &["sda"]);
        lab
    }

    fn add(&mut self, name: &str, source: Source, disks: &[&str]) -> &mut Self {
        self.subjects.push((name.to_owned(), source));
        self.facts.push(SubjectFacts {
            name: name.to_owned(),
            size_bytes: Some(64 << 30),
            members: disks.iter().map(|name| disk(name)).collect(),
            commands: Vec::new(),
        });
        for repetition in 1..=3 {
            let number = self.trials.len() as u32 + 1;
            let share = 1000 * MIB / disks.len().max(1) as u64;
            let evidence = Evidence {
                span_s: Some(10.2),
                target: Some(read(1000 * MIB)),
                members: disks.iter().map(|name| ((*name).to_owned(), read(share))).collect(),
                cpu_busy: Some(0.3),
                cpu_count: Some(4),
                tool_cores: Some(0.2),
                server_cpu_s: Some(1.0),
                memory_bytes: Some(8 << 30),
                throttled: Some(0),
                content: Some(RegionContent::Filled),
                ..Evidence::default()
            };
            self.trials.push(StoredTrial {
                number,
                repetition,
                subject: name.to_owned(),
                workload: String::new(),
                dimensions: BTreeMap::new(),
                seed: 0,
                region_bytes: 1000 * MIB,
                commands: vec!["fio --direct=1 --rw=read".into()],
                started_unix_s: 1000 + u64::from(number),
                duration_s: 10.2,
                outcome: Outcome::Ok,
                measured: measured(&[
                    (Metric::Throughput, (100 * MIB) as f64),
                    (Metric::Iops, 100.0),
                    (Metric::Requests, 1000.0),
                    (Metric::BytesRead, (1000 * MIB) as f64),
                ]),
                evidence,
                events: Vec::new(),
                raw: String::new(),
            });
        }
        self
    }

    /// A trial without O_DIRECT.
    fn buffered(mut self) -> Self {
        self.workload.settings = self.workload.settings.with("direct", Value::Flag(false));
        self.each(|trial| trial.commands = vec!["fio --direct=0".into()])
    }

    /// A trial with a ramp, by a tool that has one.
    fn ramped(mut self, ramp_s: f64) -> Self {
        self.ramp_s = ramp_s;
        self
    }

    fn each(mut self, change: impl FnMut(&mut StoredTrial)) -> Self {
        self.trials.iter_mut().for_each(change);
        self
    }

    fn setup(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.workload.setup);
        self
    }

    fn judge(&self) -> Judgement {
        let label = self.workload.label();
        let mut trials = self.trials.clone();
        let unnamed = trials.iter_mut().filter(|trial| trial.workload.is_empty());
        unnamed.for_each(|trial| trial.workload.clone_from(&label));
        let campaign = Campaign {
            name: "test".into(),
            description: String::new(),
            repetitions: 3,
            seed: Some(42),
            control: None,
            runtime_s: 10.0,
            ramp_s: self.ramp_s,
            region: ByteSize(1000 * MIB),
            fill: true,
            drop_caches: true,
            rounds: false,
            rest_s: 0.0,
            only: Vec::new(),
            working_dir: None,
            members: Vec::new(),
            subjects: self
                .subjects
                .iter()
                .enumerate()
                .map(|(index, (name, source))| SubjectDecl::new(name, source.clone(), index == 0))
                .collect(),
            jobs: Vec::new(),
        };
        let results = Results {
            planned: braid_lab::matrix::Planned::of(&campaign),
            facts: self.facts.clone(),
            sessions: self.sessions.clone(),
            trials,
        };
        let workloads: Vec<_> =
            std::iter::once(&self.workload).chain(&self.also).cloned().collect();
        super::judge(&results, &workloads)
    }

    /// The reasons that a rule found about a subject.
    fn found_about(&self, subject: &str, rule: &str) -> Option<Finding> {
        assert!(RULES.iter().any(|known| known.name == rule), "there is no rule {rule}");
        let judgement = self.judge();
        let verdict = judgement.of(subject, &self.workload.label()).unwrap();
        verdict.findings.iter().find(|finding| finding.rule == rule).cloned()
    }

    /// The reasons that a rule found about `single`.
    fn found(&self, rule: &str) -> Option<Finding> {
        self.found_about("single", rule)
    }

    /// The severity of a rule's reasons.
    fn standing(&self, rule: &str) -> Option<Standing> {
        self.found(rule).map(|finding| finding.standing)
    }
}

use Standing::{Invalid, Ok as Remark, Suspect};

#[test]
fn rules_have_unique_names_and_say_what_to_do() {
    let mut seen = std::collections::BTreeSet::new();
    for rule in RULES {
        assert!(seen.insert(rule.name), "{} is there twice", rule.name);
        assert!(rule.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", rule.name);
        assert!(!rule.action.is_empty(), "{}", rule.name);
    }
}

/// docs/trust.md names every rule in its table, in this order.
#[test]
fn every_rule_is_in_the_manual() {
    let manual = include_str!("../../../../docs/trust.md");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let named: Vec<&str> = rows.map(|(name, _)| name).collect();
    let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(named, rules);
}

/// The worst standing of a trial.
fn of_trial(judgement: &Judgement, number: u32) -> Standing {
    let findings = judgement.trials.get(&number).into_iter().flatten();
    findings.map(|finding| finding.standing).max().unwrap_or_default()
}

#[test]
fn honest_numbers_are_ok_and_nothing_is_found() {
    let judgement = Lab::new().judge();
    assert_eq!(judgement.cells.len(), 1);
    for verdict in judgement.cells.values() {
        assert_eq!(*verdict, Verdict::default());
    }
    assert_eq!(judgement.trials.len(), 3);
    assert_eq!(of_trial(&judgement, 1), Standing::Ok);
    // fio was not asked for its course over time.
    assert_eq!(judgement.unchecked, BTreeMap::from([("not-steady", 3)]));
}

#[test]
fn without_evidence_rules_are_silent_and_counted() {
    let judgement = Lab::new().each(|trial| trial.evidence = Evidence::default()).judge();
    assert!(judgement.cells.values().all(|verdict| verdict.standing == Standing::Ok));
    let unchecked: Vec<&str> = judgement.unchecked.keys().copied().collect();
    assert_eq!(
        unchecked,
        [
            "another-writer",
            "cpu-bound-client",
            "not-steady",
            "page-cache",
            "rebuilding",
            "throttled",
            "unwritten"
        ]
    );
    assert!(judgement.unchecked.values().all(|count| *count == 3));
}

/// By the same rule, trial 2 is invalid and trial 3 suspect: the cell has the worse of the two, once.
#[test]
fn a_cell_has_the_worst_of_its_trials() {
    let mut lab = Lab::new();
    lab.trials[1].evidence.target = Some(read(100 * MIB));
    lab.trials[2].evidence.target = Some(read(800 * MIB));
    let judgement = lab.judge();
    let of = |number| of_trial(&judgement, number);
    assert_eq!([of(1), of(2), of(3)], [Standing::Ok, Invalid, Suspect]);
    let verdict = judgement.of("single", &lab.workload.label()).unwrap();
    assert_eq!(verdict.standing, Invalid);
    let [finding] = verdict.findings.as_slice() else { panic!("{:?}", verdict.findings) };
    assert!(finding.why.contains("100 MiB of them (10 %)"), "{}", finding.why);
    assert!(finding.why.ends_with("(2 of 3 repetitions)"), "{}", finding.why);
}

#[test]
fn only_cells_with_a_number_are_judged() {
    let lab = Lab::new().each(|trial| trial.outcome = Outcome::Failed("gone".into()));
    assert_eq!(lab.judge(), Judgement::default());
    assert_eq!(of_trial(&lab.judge(), 1), Standing::Ok);
    // It is of a workload that no question is about.
    let mut lab = Lab::new();
    let results_label = lab.workload.label();
    lab.workload.setup.processes = 7;
    assert_ne!(lab.workload.label(), results_label);
    assert_eq!(lab.judge().cells.len(), 1);
}

#[test]
fn standings_are_ordered_and_read_well() {
    assert!(Standing::Ok < Suspect && Suspect < Invalid);
    assert_eq!([Remark, Suspect, Invalid].map(|s| s.to_string()), ["OK", "SUSPECT", "INVALID"]);
}
