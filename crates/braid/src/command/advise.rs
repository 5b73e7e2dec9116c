//! `braid advise`: which layout of these members suits this workload, by prediction.

mod show;

use std::io::Write;
use std::path::Path;

use braid_lab_report::report::render::{render_html, render_sections, render_terminal};
use braid_model::{BusProfile, Kind};
use braid_predict::advise::{CHUNKS, Candidate, Need, Offer, arrangements, predict, rank};
use braid_predict::{NAMES, Workload};
use braid_shell::shell_path;
use braid_trace::{parse, parse_jobs};

use super::model;
use super::page::write_new;
use crate::cli;
use crate::failure::{Context, Failure};

/// What was asked, and all that was predicted, the best first.
struct Advice {
    offers: Vec<Offer>,
    /// The workload in words.
    workload: String,
    need: Need,
    ranked: Vec<Candidate>,
}

/// More members make more layouts than anybody waits for.
const MOST_MEMBERS: usize = 12;

pub(super) fn advise(options: &cli::Advise, colour: bool) -> Result<(), Failure> {
    let advice = Advice::of(options)?;
    if options.json {
        return writeln!(std::io::stdout(), "{}", show::json(&advice)).context("standard output");
    }
    let report = show::report(&advice);
    if let Some(file) = &options.html {
        let page = render_html(&report).context("cannot draw the page")?;
        return write_new(file, &page);
    }
    let below = "below; `--html FILE` has the curves, `--json` is for programs";
    let text = render_terminal(&report, colour, below) + &render_sections(&report.sections, colour);
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

impl Advice {
    fn of(options: &cli::Advise) -> Result<Advice, Failure> {
        let mut offers = Vec::new();
        for text in &options.members {
            offers.extend(offered(text, options.size.map(|size| size.0))?);
        }
        if offers.len() > MOST_MEMBERS {
            let text = format!("{} members; at most {MOST_MEMBERS} are compared", offers.len());
            return Err(Failure::usage(text));
        }
        let (workload, words) = workload(&options.workload)?;
        let need = match options.need {
            cli::AdviseNeed::Capacity => Need::Capacity,
            cli::AdviseNeed::Redundancy => Need::Redundancy,
            cli::AdviseNeed::Throughput => Need::Throughput,
            cli::AdviseNeed::Latency => Need::Latency,
            cli::AdviseNeed::Price => Need::Price,
        };
        let Some(Kind::Host(host)) = braid_model::profile("host-2007").map(|one| one.kind) else {
            return Err(Failure::failed("the profile host-2007 is no host"));
        };
        let all = arrangements(&offers, CHUNKS);
        // A layout that these members cannot have is none to choose.
        let predicted = all.iter().filter_map(|one| predict(&offers, one, &workload, &host).ok());
        let mut ranked: Vec<_> = predicted.collect();
        rank(&mut ranked, need);
        if ranked.is_empty() {
            let text = "no layout of these members survives the loss of one";
            return Err(Failure::failed(text).next("give two members at least, or another --need"));
        }
        Ok(Advice { offers, workload: words, need, ranked })
    }
}

/// The members of `PROFILE[*COUNT][@BUS]`.
fn offered(text: &str, size: Option<u64>) -> Result<Vec<Offer>, Failure> {
    let (rest, bus) = match text.rsplit_once('@') {
        Some((rest, bus)) if !bus.is_empty() => (rest, Some(bus.to_owned())),
        _ => (text, None),
    };
    let (name, count) = match rest.rsplit_once('*') {
        Some((name, count)) => {
            let number = count.parse().ok().filter(|count| (1..=MOST_MEMBERS).contains(count));
            let wrong = || {
                Failure::usage(format!("{text}: {count:?} is no count from 1 to {MOST_MEMBERS}"))
            };
            (name, number.ok_or_else(wrong)?)
        }
        None => (rest, 1),
    };
    let profile = match model::read(name) {
        Err(_) if is_device(Path::new(name)) => {
            let text = format!("{name} is a device or an image, not a profile");
            let path = shell_path(Path::new(name));
            return Err(Failure::usage(text).next(format!(
                "braid model fit {path} --output mine.toml, and advise ./mine.toml; or the profile of a device \
                 like it: braid model list"
            )));
        }
        read => read?,
    };
    if profile.long_rates().is_none() {
        let text = format!("{name} is of kind {}, no device", profile.kind.name());
        return Err(Failure::usage(text).next("braid model list"));
    }
    let size = size.or(profile.capacity);
    let missing = || {
        Failure::usage(format!("{name} has no capacity")).next("give --size, such as --size 500G")
    };
    let size = size.ok_or_else(missing)?;
    let usual = profile.usual_bus();
    let of_bus = match (&profile.kind, &bus) {
        _ if braid_model::profile(name).is_some() => usual,
        // What was fitted to a stick contains its bus; one that it shares is a limit nevertheless.
        (Kind::Flash(_), None) => BusProfile::default(),
        _ => BusProfile { turn_ns: 0, wrapper_ns: 0, ..usual },
    };
    Ok(vec![Offer { name: name.to_owned(), profile, size, bus, of_bus }; count])
}

fn is_device(path: &Path) -> bool {
    path.exists() && path.extension().is_none_or(|ending| ending != "toml")
}

/// The workload, and what it is in words.
fn workload(text: &str) -> Result<(Workload, String), Failure> {
    if let Some(workload) = Workload::named(text) {
        let about = NAMES.iter().find(|one| one.name == text).map_or("", |one| one.about);
        return Ok((workload, about.to_owned()));
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
        let jobs = String::from_utf8_lossy(&bytes);
        let jobs = parse_jobs(&jobs).map_err(|error| Failure::usage(format!("{text}: {error}")))?;
        let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
        let words = format!("fio's jobs of {text} ({})", names.join(", "));
        return Ok((Workload::Jobs(jobs), words));
    }
    let trace = parse(&bytes, None).map_err(|error| Failure::usage(format!("{text}: {error}")))?;
    if trace.totals().data_requests() == 0 {
        return Err(Failure::usage(format!("{text} asks for no data")));
    }
    let words = format!("the {} requests of {text}", trace.totals().data_requests());
    Ok((Workload::Trace(trace.requests), words))
}
