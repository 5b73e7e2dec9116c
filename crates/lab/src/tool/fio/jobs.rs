//! `fio-jobs`: the sections of a job file of fio, all at once, on the subject.
//!
//! A section defines pattern, sizes, depth, processes and flushes. The trial defines target, time and seed, and
//! `size` in percent is of the region. Invariant: fio gets only options that [`braid_trace::parse_jobs`] has
//! parsed.

use braid_stack::ByteSize;
use braid_trace::{Distribution, Extent, Job, Pattern};

use super::{LARGE, NAME, Ops, command, output};
use crate::command::Step;
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use crate::tool::parts::round_down;
use crate::tool::{
    About, Place, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes,
};

pub(crate) struct FioJobs;

const ABOUT: About = About {
    name: "fio-jobs",
    program: NAME,
    package: "fio",
    summary: "the sections of a job file of fio, all at once, for the campaign's time",
    parameters: &[Parameter::new("jobs", Kind::Text, "the text of the file")],
    version_args: &["--version"],
    version: Version::After("fio-"),
};

/// Returns the sections, which [`FioJobs::check`] has accepted.
fn jobs(settings: &Settings) -> Vec<Job> {
    braid_trace::parse_jobs(settings.word("jobs")).unwrap_or_default()
}

fn ops(jobs: &[Job]) -> Ops {
    Ops {
        read: jobs.iter().any(|job| job.read_percent > 0),
        write: jobs.iter().any(|job| job.read_percent < 100),
    }
}

/// Returns the bytes that a section uses of the region, from its offset on.
fn extent(job: &Job, region: u64) -> Result<u64, String> {
    let bytes = match job.size {
        Extent::Whole => region.saturating_sub(job.offset),
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => region / 100 * u64::from(percent),
    };
    let (bytes, end) = (round_down(bytes, job.block), job.offset.saturating_add(bytes));
    if bytes == 0 || end > region {
        return Err(format!(
            "job {} uses {} from {} on, in blocks of {}, and there are {region} bytes",
            job.name,
            ByteSize(bytes),
            ByteSize(job.offset),
            ByteSize(job.block)
        ));
    }
    Ok(bytes)
}

fn section(job: &Job, region: u64) -> Result<Vec<String>, String> {
    let (random, write) = (job.pattern != Pattern::Sequential, job.read_percent < 100);
    let rw = match (random, job.read_percent) {
        (false, 100) => "read",
        (false, 0) => "write",
        (false, _) => "rw",
        (true, 100) => "randread",
        (true, 0) => "randwrite",
        (true, _) => "randrw",
    };
    let set = |option: &str, value: u64| Some(format!("--{option}={value}"));
    let is_mixed = write && job.read_percent > 0;
    let options = [
        Some(format!("--name={}", job.name)),
        Some(format!("--rw={rw}")),
        set("rwmixread", job.read_percent.into()).filter(|_| is_mixed),
        set("bs", job.block),
        set("iodepth", job.depth.into()),
        set("numjobs", job.jobs.into()).filter(|_| job.jobs > 1),
        set("direct", job.direct.into()),
        set("offset", job.offset).filter(|_| job.offset > 0),
        set("size", extent(job, region)?),
        match job.pattern {
            Pattern::Random { distribution: Distribution::Zipf { theta }, .. } => {
                Some(format!("--random_distribution=zipf:{theta}"))
            }
            Pattern::Random { each_once: false, .. } => Some("--norandommap=1".to_owned()),
            Pattern::Random { .. } | Pattern::Sequential => None,
        },
        set("fsync", job.flush_every.into()).filter(|_| job.flush_every > 0),
        // As in the tool `fio`, for the same reasons.
        Some("--refill_buffers=1".to_owned()).filter(|_| write),
        Some("--end_fsync=1".to_owned()).filter(|_| write),
    ];
    Ok(options.into_iter().flatten().collect())
}

fn words(job: &Job) -> String {
    let order = match job.pattern {
        Pattern::Sequential => "sequential".to_owned(),
        Pattern::Random { distribution: Distribution::Uniform, each_once: true } => "random".into(),
        Pattern::Random { distribution: Distribution::Uniform, .. } => "random again".to_owned(),
        Pattern::Random { distribution: Distribution::Zipf { theta }, .. } => {
            format!("Zipf {theta}")
        }
    };
    let op = match job.read_percent {
        100 => "read".to_owned(),
        0 => "write".to_owned(),
        reads => format!("mixed {reads}/{}", 100_u8.saturating_sub(reads)),
    };
    let part = match job.size {
        Extent::Whole => String::new(),
        Extent::Bytes(bytes) => format!(" of {}", ByteSize(bytes)),
        Extent::Percent(percent) => format!(" of {percent} %"),
    };
    let told = |is_told: bool, text: String| if is_told { text } else { String::new() };
    [
        format!("{}: {order} {op} {}{part}", job.name, ByteSize(job.block)),
        told(job.offset > 0, format!(" from {}", ByteSize(job.offset))),
        format!(", depth {}", job.depth),
        told(job.jobs > 1, format!(" × {}", job.jobs)),
        told(!job.direct, ", buffered".to_owned()),
        told(job.flush_every > 0, format!(", flush every {}", job.flush_every)),
    ]
    .concat()
}

impl Tool for FioJobs {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, processes: u32) -> Result<(), String> {
        if settings.word("jobs").is_empty() {
            return Err("jobs is missing: the text of a job file, in three quotes".to_owned());
        }
        let jobs = braid_trace::parse_jobs(settings.word("jobs"))
            .map_err(|error| format!("jobs: {error}"))?;
        if let Some(twice) = jobs
            .iter()
            .enumerate()
            .find(|(at, job)| jobs.iter().take(*at).any(|other| other.name == job.name))
        {
            return Err(format!("jobs has two sections called {:?}", twice.1.name));
        }
        if processes > 1 {
            return Err("processes is about the other tools; set numjobs in the jobs".to_owned());
        }
        Ok(())
    }

    fn work(&self, settings: &Settings, _processes: u32) -> Work {
        let jobs = jobs(settings);
        let Ops { read, write } = ops(&jobs);
        let small = |job: &Job| job.pattern != Pattern::Sequential && job.block < LARGE;
        Work {
            place: Place::Either,
            speaks_nbd: true,
            writes: if write { Writes::UntilTime } else { Writes::Nothing },
            reads_raw: read,
            headline: if jobs.iter().all(small) { Metric::Iops } else { Metric::Throughput },
            ..Work::default()
        }
    }

    fn lays_out(&self, _settings: &Settings, _processes: u32, room_bytes: u64) -> u64 {
        round_down(room_bytes, 4096)
    }

    fn ramp_s(&self, asked_s: f64) -> f64 {
        asked_s
    }

    fn label(&self, settings: &Settings) -> String {
        match braid_trace::parse_jobs(settings.word("jobs")) {
            Ok(jobs) => jobs.iter().map(words).collect::<Vec<_>>().join(" + "),
            // `check` refuses it.
            Err(_) => settings.word("jobs").to_owned(),
        }
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let size = round_down(spec.region_bytes, 4096);
        let jobs = braid_trace::parse_jobs(spec.settings.word("jobs"));
        let jobs = jobs.map_err(|error| format!("jobs: {error}"))?;
        let sections: Result<Vec<_>, _> = jobs.iter().map(|job| section(job, size)).collect();
        // For all sections, until one has a name of its own.
        let command = command::job("global", spec.target)
            .args(command::seed_and_time(spec))
            .args(sections?.concat())
            .args(command::OUTPUT);
        let mut script = Script { measured: vec![command], ..Script::default() };
        if let Some(path) = command::file(spec.target) {
            script.prepare.push(Step::MakeFile {
                path: path.clone(),
                bytes: size,
                seed: spec.seed,
            });
            script.clean_up.push(Step::Remove(path));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let mut measured = output::totals(ops(&jobs(spec.settings)), &output::parse_jobs(run)?)?;
        // Sections have different workloads: the evenness of their shares means nothing.
        let compares = [Metric::Fairness, Metric::SpreadOfProcesses];
        measured.samples.retain(|sample| !compares.contains(&sample.metric));
        Ok(measured)
    }
}
