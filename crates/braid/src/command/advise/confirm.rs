//! The best layouts, measured by the laboratory on the devices themselves.
//!
//! Invariants: members that were not named by `--destroy` are in no layout that is written, neither by the
//! workload nor by copies and parity that are made to agree; the laboratory asks that again of its own. What
//! cannot be measured leaves the prediction, with the reason.

use std::path::{Path, PathBuf};

use braid_lab::campaign::Job;
use braid_lab::metric::Metric;
use braid_lab::settings::Value;
use braid_lab::store::Store;
use braid_lab::{ByteSize, Campaign, LabError, LabOptions, Source, StopFlag, SubjectDecl};
use braid_lab_report::analysis::{Analysis, Standing, State, analyse};
use braid_predict::advise::{Candidate, Measured, predict_within, rank};
use braid_predict::{What, Workload};
use braid_shell::{shell_path, shell_word};
use braid_stack::{File, Node, Stack};
use braid_trace::{Extent, Kind, Request, busiest};

use super::{Advice, Origin};
use crate::cli;
use braid_service::failure::{Context, Failure};

/// So many of the best are measured, the best that survives a loss, and one member alone.
const MOST: usize = 3;
/// Duration of a trial, in seconds.
const SECONDS: f64 = 2.0;
/// Minimum time of a load before the measurement, in seconds, and the maximum to fill the write
/// caches of disks.
const RAMP_S: f64 = 0.5;
const MOST_RAMP_S: f64 = 30.0;
/// So much of a trace is replayed in one trial, in seconds: the busiest part.
const TRACE_SECONDS: f64 = 5.0;
/// Filled and used part of a layout that is read and written, in bytes; filling all of it would
/// take hours.
const FILLED: u64 = 256 << 20;
/// Minimum and maximum bytes of a long run.
const LEAST_RUN: u64 = 64 << 20;
const MOST_RUN: u64 = 1 << 30;

/// Measures the best layouts if they are of devices, and ranks by what was measured.
///
/// # Errors
/// It was interrupted, or a folder for the results cannot be had.
pub(super) fn confirm(advice: &mut Advice, options: &cli::Advise) -> Result<(), Failure> {
    if !advice.is_real(&advice.ranked[0]) {
        return Ok(());
    }
    let Some(load) = advice.load(advice.ranked[0].capacity) else {
        advice.unmeasured = Some("nothing was measured: the trace has no times".to_owned());
        return Ok(());
    };
    if !advice.may_measure(&advice.ranked[0], &load) {
        let why = match load.writes() {
            true => "this workload writes",
            false => "copies or parity are made to agree first, which writes",
        };
        advice.unmeasured =
            Some(format!("what is predicted to be the best was not measured: {why}"));
        advice.next = Some(command(advice, options));
    }
    let mut chosen: Vec<Candidate> = Vec::new();
    for one in advice.distinct() {
        let is_first_safe = one.losses > 0 && chosen.iter().all(|known| known.losses == 0);
        let is_wanted = chosen.len() < MOST || one.level.is_none() || is_first_safe;
        if is_wanted && advice.is_real(one) && advice.may_measure(one, &load) {
            chosen.push(one.clone());
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    let campaign = advice.campaign(&load, &chosen, options.repetitions);
    let folder = Folder::of(options)?;
    let mut lab = LabOptions::new(&folder.path).map_err(Failure::failed)?;
    lab.destroy = advice.destroyed();
    lab.stop = StopFlag::on_signals().map_err(Failure::failed)?;
    eprintln!(
        "braid: measuring {} layouts, repetitions: {}; Ctrl-C ends it",
        chosen.len(),
        options.repetitions
    );
    let ran = braid_lab::run(&campaign, &lab);
    let is_stopped = ran.as_ref().is_ok_and(|tally| tally.stopped);
    let ran = ran.and_then(|tally| Ok((tally, results(&folder.path)?)));
    match ran {
        Ok((tally, analysis)) => {
            advice.take(&load, &chosen, &analysis);
            let why = tally.reasons.keys().chain(tally.obstacles.keys()).next();
            if let Some(why) = why {
                advice.unmeasured = Some(format!("not all was measured: {why}"));
            }
        }
        Err(error) => advice.unmeasured = Some(format!("nothing was measured: {error}")),
    }
    folder.remove()?;
    match is_stopped {
        true => Err(Failure::interrupted("interrupted while layouts were measured")),
        false => Ok(()),
    }
}

/// Returns the part of a trace that is replayed.
pub(super) fn measured_part(all: &[Request]) -> Vec<Request> {
    busiest(all, (TRACE_SECONDS * 1e9) as u64)
}

fn results(folder: &Path) -> Result<Analysis, LabError> {
    Ok(analyse(&Store::open(folder)?.results()?))
}

/// Load of a measurement.
enum Load {
    One(What),
    /// The sections of a job file of this text.
    Jobs(String, Vec<braid_trace::Job>),
    /// The busiest part of the trace in this file.
    Trace(String, Vec<Request>),
}

impl Load {
    fn writes(&self) -> bool {
        match self {
            Load::One(What::ReadAhead) => false,
            Load::One(What::WriteBack) => true,
            Load::One(What::Direct(_, reads, ..)) => *reads < 100,
            Load::Jobs(_, jobs) => jobs.iter().any(|job| job.read_percent < 100),
            Load::Trace(_, part) => part.iter().any(|one| one.kind == Kind::Write),
        }
    }

    /// Returns whether the load reads data that must be written before.
    fn fills(&self) -> bool {
        match self {
            Load::One(What::Direct(_, reads, ..)) => (1..100).contains(reads),
            Load::One(What::ReadAhead | What::WriteBack) => false,
            Load::Jobs(_, jobs) => self.writes() && jobs.iter().any(|job| job.read_percent > 0),
            Load::Trace(_, part) => self.writes() && part.iter().any(|one| one.kind == Kind::Read),
        }
    }
}

/// The command that would be allowed to measure.
fn command(advice: &Advice, options: &cli::Advise) -> String {
    let mut words = vec!["braid".to_owned(), "advise".to_owned()];
    words.extend(options.members.iter().map(|member| shell_word(member)));
    words.extend(["--workload".to_owned(), shell_word(&options.workload)]);
    if let Some(need) = clap::ValueEnum::to_possible_value(&options.need) {
        words.extend(["--need".to_owned(), need.get_name().to_owned()]);
    }
    if let Some(size) = options.size {
        words.extend(["--size".to_owned(), size.to_string()]);
    }
    for (option, texts) in [("--price", &options.price), ("--watts", &options.watts)] {
        words.extend(texts.iter().flat_map(|text| [option.to_owned(), shell_word(text)]));
    }
    let devices = advice.members.devices.iter().flatten();
    words.extend(devices.flat_map(|one| ["--destroy".to_owned(), shell_path(&one.path)]));
    words.join(" ")
}

/// Folder of the results.
struct Folder {
    path: PathBuf,
    stays: bool,
}

impl Folder {
    fn of(options: &cli::Advise) -> Result<Folder, Failure> {
        if let Some(path) = &options.out {
            return Ok(Folder { path: path.clone(), stays: true });
        }
        let path = std::env::temp_dir().join(format!("braid-advise-{}", std::process::id()));
        std::fs::create_dir(&path).context(format!("cannot make {}", path.display()))?;
        Ok(Folder { path, stays: false })
    }

    fn remove(self) -> Result<(), Failure> {
        if self.stays {
            return Ok(());
        }
        let path = self.path.display();
        if self.path.join("held.json").exists() {
            eprintln!(
                "braid: {path}/held.json says what is still up; `braid lab resume {path}` takes it away"
            );
            return Ok(());
        }
        std::fs::remove_dir_all(&self.path).context(format!("cannot remove {path}"))
    }
}

impl Advice {
    /// Returns the load for an array of `size` bytes; `None` for a trace without times.
    fn load(&self, size: u64) -> Option<Load> {
        match (self.workload.what(size), &self.workload, &self.origin) {
            (Some((what, _)), ..) => Some(Load::One(what)),
            (None, Workload::Jobs(jobs), Origin::Jobs(text)) => {
                Some(Load::Jobs(text.clone(), jobs.clone()))
            }
            (None, Workload::Trace(all), Origin::Trace(path)) => {
                let has_times = all.last().is_some_and(|last| last.at_ns > 0);
                has_times.then(|| Load::Trace(path.display().to_string(), measured_part(all)))
            }
            _ => None,
        }
    }

    fn may_measure(&self, one: &Candidate, load: &Load) -> bool {
        let writes = load.writes() || one.losses > 0;
        let device = |index: &usize| self.members.devices[*index].as_ref();
        let may = |index: &usize| device(index).is_some_and(|device| !writes || device.destroy);
        one.members.iter().all(may)
    }

    fn destroyed(&self) -> Vec<PathBuf> {
        let devices = self.members.devices.iter().flatten().filter(|device| device.destroy);
        devices.map(|device| device.path.clone()).collect()
    }

    /// Bytes that are used of a layout.
    fn part(&self, load: &Load, one: &Candidate) -> u64 {
        let range = match load {
            Load::Trace(_, part) => {
                let end = part.iter().map(Request::end).max().unwrap_or(0);
                end.next_multiple_of(1 << 20).min(one.capacity)
            }
            _ => self.workload.what(one.capacity).map_or(one.capacity, |(_, range)| range),
        };
        let Load::Jobs(_, jobs) = load else {
            return if load.fills() { range.min(FILLED) } else { range };
        };
        let end = |job: &braid_trace::Job| match job.size {
            Extent::Bytes(bytes) => job.offset.saturating_add(bytes),
            Extent::Whole | Extent::Percent(_) => job.offset.saturating_add(FILLED),
        };
        match load.writes() {
            true => range.min(jobs.iter().map(end).max().unwrap_or(FILLED)),
            false => range,
        }
    }

    fn campaign(&self, load: &Load, chosen: &[Candidate], repetitions: u32) -> Campaign {
        let part = chosen.iter().map(|one| self.part(load, one)).max().unwrap_or(FILLED);
        let subjects = chosen
            .iter()
            .map(|one| SubjectDecl::new(&subject(one), self.source(one), one.level.is_none()));
        let jobs = match *load {
            Load::Jobs(ref text, _) => vec![job("fio-jobs", vec![("jobs", word(text))])],
            // Each layout with the read-ahead that was predicted.
            Load::One(What::ReadAhead) => (chosen.iter())
                .map(|one| {
                    let mut job = run("read", chosen);
                    let window = Value::Size(ByteSize(one.read_ahead));
                    job.settings.insert("readahead".to_owned(), vec![window]);
                    let only = Value::Word(subject(one));
                    job.settings.insert("subjects".to_owned(), vec![only]);
                    job
                })
                .collect(),
            Load::Trace(ref path, _) => {
                let op = if load.writes() { "all" } else { "read" };
                vec![job("replay", vec![("trace", word(path)), ("op", word(op))])]
            }
            Load::One(What::WriteBack) => vec![run("write", chosen)],
            Load::One(What::Direct(request, reads, depth, processes, sequential)) => {
                let mut all = vec![
                    ("pattern", word(if sequential { "seq" } else { "rand" })),
                    ("block_size", Value::Size(ByteSize(request))),
                    ("iodepth", Value::Count(depth)),
                    ("processes", Value::Count(processes)),
                ];
                match reads {
                    100 => all.push(("op", word("read"))),
                    0 => all.push(("op", word("write"))),
                    reads => {
                        all.extend([("op", word("mixed")), ("read_percent", Value::Count(reads))]);
                    }
                }
                vec![job("fio", all)]
            }
        };
        Campaign {
            name: "advise".to_owned(),
            description: format!("Do these layouts do what is predicted of them: {}?", self.words),
            repetitions,
            runtime_s: match load {
                Load::Trace(..) => TRACE_SECONDS,
                _ => SECONDS,
            },
            ramp_s: self.ramp_s(load, chosen),
            region: ByteSize(part),
            fill: load.fills(),
            control: Some(false),
            subjects: subjects.collect(),
            jobs,
            ..Campaign::default()
        }
    }

    /// Returns the time of a load before the measurement: as predicted to fill the write caches of
    /// the disks.
    fn ramp_s(&self, load: &Load, chosen: &[Candidate]) -> f64 {
        let full = |one: &Candidate| {
            let cache = |index: &usize| match &self.members.offers[*index].profile.kind {
                braid_model::Kind::Disk(disk) => disk.write_cache as f64,
                _ => 0.0,
            };
            let written = one.outcome.written as f64 / one.outcome.seconds.max(1e-9);
            one.members.iter().map(cache).sum::<f64>() / written.max(1.0)
        };
        match load {
            Load::One(What::Direct(..)) | Load::Jobs(..) if load.writes() => {
                chosen.iter().map(full).fold(RAMP_S, f64::max).min(MOST_RAMP_S)
            }
            _ => RAMP_S,
        }
    }

    fn source(&self, one: &Candidate) -> Source {
        let path = |index: &usize| {
            let device = self.members.devices[*index].as_ref();
            device.map_or(String::new(), |device| device.path.display().to_string())
        };
        let Some(level) = one.level else { return Source::Path(path(&one.members[0])) };
        let member = |index: &usize| {
            let file = File::whole_at(path(index));
            Stack::from(Node::File(file)).to_string()
        };
        let members: Vec<_> = one.members.iter().map(member).collect();
        let chunk = one.chunk.map_or(String::new(), |chunk| format!("chunk={}, ", ByteSize(chunk)));
        let text = format!("{}({chunk}{})", level.name(), members.join(", "));
        Source::Stack(text.as_str().into())
    }

    /// Notes what was measured.
    fn take(&mut self, load: &Load, chosen: &[Candidate], analysis: &Analysis) {
        // One for each rule: it concerns most layouts alike.
        let mut doubts: Vec<(&str, String, &str)> = Vec::new();
        for (index, one) in chosen.iter().enumerate() {
            let name = subject(one);
            let mut cells = analysis.cells.iter().filter(|cell| cell.subject == index);
            let Some(cell) = cells.find(|cell| cell.state == State::Measured) else { continue };
            self.standings[match cell.standing {
                Standing::Ok => 0,
                Standing::Suspect => 1,
                Standing::Invalid => 2,
            }] += 1;
            let gravest = cell.findings.iter().find(|finding| finding.standing == cell.standing);
            if let Some(finding) = gravest.filter(|_| cell.standing != Standing::Ok) {
                let unusable = if cell.is_usable() { "" } else { " is measured and not believed" };
                let name = format!("{name}{unusable}");
                match doubts.iter_mut().find(|doubt| doubt.0 == finding.rule) {
                    Some(doubt) => doubt.1 += &format!(", {name}"),
                    None => doubts.push((finding.rule, name, &finding.why)),
                }
            }
            let Some(rate) = cell.get(Metric::Throughput).filter(|_| cell.is_usable()) else {
                continue;
            };
            let part = self.part(load, one);
            let (offers, layout) = (&self.members.offers, one.arrangement());
            let again = match load {
                Load::Trace(_, trace) => {
                    let trace = Workload::Trace(trace.clone());
                    predict_within(part, offers, &layout, &trace, &self.host)
                }
                _ => predict_within(part, offers, &layout, &self.workload, &self.host),
            };
            let expected = again.map_or(one.outcome.rate(), |again| again.outcome.rate());
            let measured = Measured {
                rate: rate.median,
                range: (rate.low, rate.high),
                latency_ns: cell.get(Metric::LatencyP99).map(|latency| latency.median),
                expected,
            };
            let known = self.ranked.iter_mut().find(|known| known.arrangement() == layout);
            if let Some(known) = known {
                known.measured = Some(measured);
            }
        }
        let doubts = doubts.into_iter().map(|(_, names, why)| format!("{names}: {why}"));
        self.members.doubts.splice(0..0, doubts);
        // Without a measurement of what seems to be the best, those of others do not decide.
        if self.ranked[0].measured.is_some() {
            rank(&mut self.ranked, self.need);
        }
    }
}

/// Returns the name of a subject. There is one for each level and number of members.
fn subject(one: &Candidate) -> String {
    match one.level {
        Some(level) => format!("{} × {}", level.name(), one.members.len()),
        None => "alone".to_owned(),
    }
}

fn word(text: &str) -> Value {
    Value::Word(text.to_owned())
}

fn job(tool: &str, settings: Vec<(&str, Value)>) -> Job {
    let settings = settings.into_iter().map(|(key, value)| (key.to_owned(), vec![value]));
    Job { tool: tool.to_owned(), settings: settings.collect() }
}

/// One long run through the page cache, of as much as takes some seconds, and fits.
fn run(op: &str, chosen: &[Candidate]) -> Job {
    let rate = chosen.iter().map(|one| one.outcome.rate()).fold(0.0, f64::max);
    let bytes = (rate * SECONDS) as u64 >> 20 << 20;
    let room = chosen.iter().map(|one| one.capacity).min().unwrap_or(LEAST_RUN);
    let size = Value::Size(ByteSize(bytes.clamp(LEAST_RUN, MOST_RUN).min(room >> 20 << 20)));
    let mut settings =
        vec![("op", word(op)), ("bs", Value::Size(ByteSize(1 << 20))), ("size", size)];
    if op == "write" {
        settings.push(("source", word("file")));
    }
    job("dd", settings)
}
