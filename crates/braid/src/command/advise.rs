//! `braid advise`: which layout of these members suits this workload: all are predicted, and the best are measured
//! where the members are devices.

mod answer;
mod beside;
mod confirm;
mod costs;
mod members;
mod show;
mod words;

use std::io::Write;
use std::path::PathBuf;

use braid_lab_report::report::render::{render_html, render_terminal};
use braid_model::{Host, Kind};
use braid_predict::advise::{CHUNKS, Candidate, Need, arrangements, predict, rank};
use braid_predict::{NAMES, Workload};
use braid_trace::{Request, parse, parse_jobs};

use super::page::{check_new, write_new};
use crate::cli;
use braid_service::failure::{Context, Failure};

use beside::Beside;
use members::Members;

/// The request, and all predicted layouts, the best first.
struct Advice {
    members: Members,
    workload: Workload,
    /// The workload in words.
    words: String,
    origin: Origin,
    need: Need,
    host: Host,
    ranked: Vec<Candidate>,
    /// Properties on which the best layout depends.
    beside: Vec<Beside>,
    /// Number of measurements that are OK, suspect, and invalid.
    standings: [usize; 3],
    /// Why something was not measured; what would measure it.
    unmeasured: Option<String>,
    next: Option<String>,
}

pub(super) fn advise(options: &cli::Advise, colour: bool) -> Result<(), Failure> {
    if let Some(file) = &options.html {
        check_new(file)?;
    }
    let mut advice = Advice::of(options)?;
    confirm::confirm(&mut advice, options)?;
    advice.beside = beside::beside(&advice);
    if options.json {
        return writeln!(std::io::stdout(), "{}", show::json(&advice)).context("standard output");
    }
    let report = show::report(&advice);
    if let Some(file) = &options.html {
        let page = render_html(&report).context("cannot draw the page")?;
        return write_new(file, &page);
    }
    let whole = "`--html FILE` has the curves, `--json` all layouts";
    let text = render_terminal(&report, colour, whole);
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

impl Advice {
    fn of(options: &cli::Advise) -> Result<Advice, Failure> {
        let Asked { workload, words, origin } = workload(&options.workload)?;
        let need = match options.need {
            cli::AdviseNeed::Balanced => Need::Balanced,
            cli::AdviseNeed::Capacity => Need::Capacity,
            cli::AdviseNeed::Redundancy => Need::Redundancy,
            cli::AdviseNeed::Throughput => Need::Throughput,
            cli::AdviseNeed::Latency => Need::Latency,
            cli::AdviseNeed::Price => Need::Price { least: least(&workload) },
        };
        let Some(Kind::Host(host)) = braid_model::profile("host-2007").map(|one| one.kind) else {
            return Err(Failure::failed("the profile host-2007 is no host"));
        };
        let members = Members::of(options)?;
        let offers = &members.offers;
        let all = arrangements(offers, CHUNKS);
        // A layout that these members cannot have is none to choose.
        let predicted = all.iter().filter_map(|one| predict(offers, one, &workload, &host).ok());
        let price = |one: &Candidate| members.prices.as_ref().map(|all| all.sum(&one.members));
        let priced = predicted.map(|one| Candidate { price: price(&one), ..one });
        let mut ranked: Vec<_> = priced.collect();
        rank(&mut ranked, need);
        if ranked.is_empty() {
            let text = "no layout of these members survives the loss of one";
            return Err(Failure::failed(text).next("give two members at least, or another --need"));
        }
        let (unmeasured, next, standings) = (None, None, [0; 3]);
        let beside = Vec::new();
        Ok(Advice {
            members,
            workload,
            words,
            origin,
            need,
            host,
            ranked,
            beside,
            standings,
            unmeasured,
            next,
        })
    }

    /// Returns whether all members of the layout are devices.
    fn is_real(&self, one: &Candidate) -> bool {
        one.members.iter().all(|index| self.members.devices[*index].is_some())
    }

    /// The names of its profiles in order; devices are all called alike.
    fn names(&self, one: &Candidate) -> Vec<&str> {
        let is_real = self.is_real(one);
        let name = |index: &usize| self.members.offers[*index].name.as_str();
        let mut names: Vec<&str> =
            one.members.iter().map(|index| if is_real { "" } else { name(index) }).collect();
        names.sort_unstable();
        names
    }

    /// The best of each level with each number of members; of profiles, with so many of each.
    fn distinct(&self) -> Vec<&Candidate> {
        let mut distinct: Vec<&Candidate> = Vec::new();
        for one in &self.ranked {
            let is_new = |other: &&Candidate| {
                other.level != one.level || self.names(other) != self.names(one)
            };
            if distinct.iter().all(is_new) {
                distinct.push(one);
            }
        }
        distinct
    }
}

/// The share of a trace's rate that counts as keeping up: the last request takes its time.
const KEPT_UP: f64 = 0.97;

/// Bytes per second that suffice for a workload: nearly what a trace asks for.
fn least(workload: &Workload) -> f64 {
    let Workload::Trace(all) = workload else { return 0.0 };
    asked(all).map_or(0.0, |asked| KEPT_UP * asked)
}

/// Bytes per second that a trace asks for; `None` without times, where it asks for all at once.
fn asked(part: &[Request]) -> Option<f64> {
    let [first, .., last] = part else { return None };
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let bytes: u64 = part.iter().filter(|one| one.has_data()).map(|one| one.length).sum();
    (seconds > 0.0).then(|| bytes as f64 / seconds)
}

/// Source of a workload.
enum Origin {
    /// No file.
    Workload,
    /// A job file of this text.
    Jobs(String),
    /// The file of a trace.
    Trace(PathBuf),
}

/// The workload, and what it is in words.
struct Asked {
    workload: Workload,
    words: String,
    origin: Origin,
}

fn workload(text: &str) -> Result<Asked, Failure> {
    if let Some(workload) = Workload::named(text) {
        let about = NAMES.iter().find(|one| one.name == text).map_or("", |one| one.about);
        return Ok(Asked { workload, words: about.to_owned(), origin: Origin::Workload });
    }
    let bytes = match std::fs::read(text) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let names = NAMES.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
            let problem = format!("{text:?} is neither a workload nor a file that is there");
            return Err(Failure::usage(problem).note(format!("workloads: {names}")));
        }
        Err(error) => return Err(Failure::usage(format!("cannot read {text}: {error}"))),
    };
    let is_jobs =
        bytes.split(|byte| *byte == b'\n').any(|line| line.trim_ascii().starts_with(b"["));
    if is_jobs {
        let file = String::from_utf8_lossy(&bytes).into_owned();
        let jobs = parse_jobs(&file).map_err(|error| Failure::usage(format!("{text}: {error}")))?;
        let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
        let words = format!("fio's jobs of {text} ({})", names.join(", "));
        return Ok(Asked { workload: Workload::Jobs(jobs), words, origin: Origin::Jobs(file) });
    }
    let trace = parse(&bytes, None).map_err(|error| Failure::usage(format!("{text}: {error}")))?;
    if trace.totals().data_requests() == 0 {
        return Err(Failure::usage(format!("{text} asks for no data")));
    }
    let words = format!("the {} requests of {text}", trace.totals().data_requests());
    let path = std::path::absolute(text).context(text)?;
    Ok(Asked { workload: Workload::Trace(trace.requests), words, origin: Origin::Trace(path) })
}
