//! Results made up for tests: a campaign and a function from cell and repetition to numbers.
//!
//! [`Meter`] is a tool that exists in tests only, so that they do not depend on what a real tool's
//! parameters are called today.

use braid_lab::campaign::{Campaign, Source, Subject};
use braid_lab::environment::{Environment, Prediction};
use braid_lab::evidence::Evidence;
use braid_lab::facts::{Disk, Place as Hardware, Placed, members_of};
use braid_lab::matrix::{Planned, Workload, parse_campaign};
use braid_lab::metric::{LatencyBins, Measured, Metric, Sample, TimeSeries};
use braid_lab::settings::{Kind, Parameter, Settings};
use braid_lab::store::{Outcome, Results, Session, StoredTrial, SubjectFacts, Times};
use braid_lab::tool::{
    About, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes,
};

/// A tool that measures nothing; its headline is chosen by its parameter `unit`.
pub(crate) struct Meter;

const ABOUT: About = About {
    name: "meter",
    program: "meter",
    package: "none",
    summary: "measures nothing",
    parameters: &[
        choice("pattern", &["seq", "rand"], "seq"),
        choice("op", &["read", "write"], "read"),
        choice("unit", &["rate", "requests", "seconds"], "rate"),
        Parameter::new("block_size", Kind::BLOCK, "bytes of a request").or("1M"),
        Parameter::new("iodepth", Kind::count(1, 1024), "requests at once").or("1"),
    ],
    version_args: &[],
    version: Version::After("meter "),
};

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
) -> Parameter {
    Parameter::new(name, Kind::Choice(words), "a choice").or(default)
}

impl Tool for Meter {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn work(&self, settings: &Settings, _: u32) -> Work {
        let writes = settings.word("op") == "write";
        Work {
            place: Place::Either,
            speaks_nbd: true,
            writes: if writes { Writes::UntilTime } else { Writes::Nothing },
            reads_raw: !writes,
            headline: match settings.word("unit") {
                "seconds" => Metric::Seconds,
                "requests" => Metric::Iops,
                _ => Metric::Throughput,
            },
            ..Work::default()
        }
    }
    fn label(&self, settings: &Settings) -> String {
        let pattern = if settings.word("pattern") == "rand" { "random" } else { "sequential" };
        let size = settings.get("block_size").map_or(String::new(), ToString::to_string);
        let depth = settings.count("iodepth").unwrap_or(1);
        let depth = if depth > 1 { format!(", depth {depth}") } else { String::new() };
        let timed = if settings.word("unit") == "seconds" { ", timed" } else { "" };
        format!("{pattern} {} {size}{depth}{timed}", settings.word("op"))
    }
    fn plan(&self, _: &TrialSpec<'_>) -> Result<Script, String> {
        Err("it measures nothing".to_owned())
    }
    fn parse(&self, _: &TrialSpec<'_>, _: &RunOutput) -> Result<Measured, ToolError> {
        Err(ToolError::Nothing { tool: "meter" })
    }
}

/// The results of a trial.
pub(crate) enum Given {
    /// Numbers alone.
    Numbers(Vec<(Metric, f64)>),
    /// Numbers, distributions, courses and events.
    All(Measured, Vec<(f64, String)>),
    /// It failed.
    Failed(&'static str),
    /// It cannot be done.
    Impossible(&'static str),
    /// It was not begun.
    Nothing,
}

/// One number that the workload's headline has.
pub(crate) fn headline(workload: &Workload, value: f64) -> Given {
    Given::Numbers(vec![(workload.headline(), value)])
}

/// A campaign of a text.
pub(crate) fn campaign(toml: &str) -> Campaign {
    braid_lab::tool::bring(&Meter);
    parse_campaign(toml, "test").unwrap()
}

/// A result for each trial of a campaign: `measure` gets subject, workload and repetition.
pub(crate) fn results(
    campaign: &Campaign,
    mut measure: impl FnMut(&Subject, &Workload, u32) -> Given,
) -> Results {
    let planned = Planned::of(campaign);
    let subjects = &planned.subjects;
    let mut trials = Vec::new();
    for trial in &planned.trials {
        let (subject, workload) = (&subjects[trial.cell.subject], &trial.cell.workload);
        let given = match &trial.cell.impossible {
            Some(reason) => Err(Outcome::Impossible(reason.clone())),
            None => match measure(subject, workload, trial.repetition) {
                Given::Numbers(numbers) => Ok((measured(&numbers), Vec::new())),
                Given::All(measured, events) => Ok((measured, events)),
                Given::Failed(reason) => Err(Outcome::Failed(reason.to_owned())),
                Given::Impossible(reason) => Err(Outcome::Impossible(reason.to_owned())),
                Given::Nothing => continue,
            },
        };
        let (outcome, (measured, events)) = match given {
            Ok(given) => (Outcome::Ok, given),
            Err(outcome) => (outcome, (Measured::default(), Vec::new())),
        };
        let mut dimensions = workload.dimensions();
        dimensions.extend(subject.dimensions.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
        dimensions
            .insert("family".to_owned(), braid_lab::settings::Value::Word(subject.family.clone()));
        trials.push(StoredTrial {
            number: trial.number,
            repetition: trial.repetition,
            subject: subject.name.clone(),
            workload: workload.label(),
            dimensions,
            seed: trial.seed,
            region_bytes: campaign.region.0,
            commands: vec![format!("meter --of {}", subject.source.text())],
            started_unix_s: 1_800_000_000 + u64::from(trial.number) * 20,
            duration_s: campaign.runtime_s,
            outcome,
            measured,
            evidence: Evidence::default(),
            events,
            raw: format!("raw/{:04}", trial.number),
        });
    }
    Results {
        facts: subjects.iter().map(facts_of).collect(),
        planned,
        sessions: vec![Session {
            started_unix_s: 1_800_000_000,
            ended_unix_s: Some(1_800_003_600),
            environment: environment(),
            times: Times { busy_s: 3000.0, set_up_s: 500.0, overhead_s: 100.0 },
        }],
        trials,
    }
}

/// Numbers without distributions.
pub(crate) fn measured(numbers: &[(Metric, f64)]) -> Measured {
    let samples = numbers.iter().map(|(metric, value)| Sample { metric: *metric, value: *value });
    Measured { samples: samples.collect(), ..Measured::default() }
}

/// With a distribution of latencies and a course of the throughput over `seconds`.
pub(crate) fn with_course(
    mut measured: Measured,
    bins: &[(u64, u64)],
    rate: f64,
    seconds: u64,
) -> Measured {
    measured.latencies.push(LatencyBins { op: "read", bins: bins.to_vec() });
    let points = (1..=seconds).map(|second| (second * 1000, rate)).collect();
    measured.series.push(TimeSeries { metric: Metric::Throughput, points });
    measured
}

fn facts_of(subject: &Subject) -> SubjectFacts {
    let place = |name: &str| {
        Hardware::Disk(Disk {
            name: name.to_owned(),
            model: None,
            size_bytes: 1 << 31,
            rotational: false,
        })
    };
    let members = members_of(&subject.source);
    let placed = members.iter().map(|member| Placed {
        member: member.text().to_owned(),
        place: place(member.text().trim_start_matches("/dev/")),
    });
    SubjectFacts {
        name: subject.name.clone(),
        size_bytes: Some(1 << 31),
        members: placed.collect(),
        commands: match &subject.source {
            Source::Stack(text) => vec![format!("braid serve '{text}' --nbd unix:/run/s.sock")],
            _ => Vec::new(),
        },
    }
}

/// A machine that always is the same.
pub(crate) fn environment() -> Environment {
    Environment {
        host: "bench".to_owned(),
        kernel: "Linux 6.1.0 x86_64".to_owned(),
        cpu: "A processor".to_owned(),
        cores: 8,
        memory_bytes: 16 << 30,
        governor: None,
        virtualised: false,
        tools: vec![("meter".to_owned(), "meter-1".to_owned())],
        laboratory: "0.1.0".to_owned(),
        prediction: None,
    }
}

/// Multiplies by up to 1 ± `part`, the same for the same numbers.
pub(crate) fn noise(part: f64, numbers: &[u64]) -> f64 {
    let unit = (braid_seed::mix(numbers) >> 11) as f64 / (1_u64 << 53) as f64;
    1.0 + part * (2.0 * unit - 1.0)
}

/// The grounds of the fixture's predictions.
pub(crate) const GROUNDS: &str = "3 of 4 published rows lie within 17 %";

/// The same results as predictions.
pub(crate) fn predicted(mut results: Results) -> Results {
    let profiles = vec!["rally2".to_owned()];
    for session in &mut results.sessions {
        session.environment.prediction = Some(Prediction {
            profiles: profiles.clone(),
            error_percent: 17,
            grounds: GROUNDS.to_owned(),
        });
    }
    results
}
