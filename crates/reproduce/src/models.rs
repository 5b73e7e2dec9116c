//! Published conditions as loads of modelled machines.
//!
//! A condition is taken by what it is of (sticks, disks, memory) and by its tool; ids are names only. A
//! device's constants are those of the profile that its file has of it, or else of the profile of its name. What a study does not state is assumed in one
//! place each, and said there.

mod copies;
mod disks;
mod memory;
mod sticks;

use braid_model::{Kind, Profile, profile};

pub use copies::COPIES;

use crate::study::{Asked, NotModelled, Predictor, Study, Subject, Unit};

/// The device models, with the profiles that come with braid.
#[derive(Clone, Copy, Debug, Default)]
pub struct Models;

impl Predictor for Models {
    fn predict(&self, study: &Study, condition: &Asked) -> Result<f64, NotModelled> {
        let (members, level) = match study.subject(&condition.subject) {
            Some(Subject::Device(device)) => (vec![device.name.clone()], "single"),
            Some(Subject::Array(array)) => (array.members.clone(), array.level.as_str()),
            None => return Err(no(format!("{} is not in the study", condition.subject))),
        };
        let kinds =
            members.iter().filter_map(|name| study.device(name)).map(|one| one.kind.as_str());
        let kinds: Vec<_> = kinds.collect();
        let all = |kind: &str| kinds.iter().all(|one| *one == kind);
        let value = if level == "cache" {
            memory::cache(study, condition, &members)
        } else if all("usb-flash") {
            sticks::predict(study, condition, &members, level)
        } else if all("hdd") {
            disks::predict(study, condition, &members, level)
        } else if all("ram") && level == "single" {
            memory::ram(study, condition, &members[0])
        } else {
            Err(no(format!("{level} of {}", kinds.join(" and "))))
        };
        value.map(to_three_digits)
    }
}

/// Rounds to three digits: the fourth depends on where a run of a load begins and ends.
fn to_three_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.abs().max(f64::MIN_POSITIVE).log10().floor() - 2.0);
    (value / unit).round() * unit
}

fn no(why: String) -> NotModelled {
    NotModelled(why)
}

/// Names of devices in the files that are too short, or not the profile's.
const NAMES: &[(&str, &str)] = &[
    ("cruzer", "cruzer-titanium"),
    ("disk1", "ide-1"),
    ("disk2", "ide-2"),
    ("rxdsk", "ram"),
    ("sata-hdd", "sata-7200"),
    ("st3500630as", "barracuda-500"),
];

/// The profile of a device of the study: the file's own, or that of its name among braid's.
fn profile_of(study: &Study, device: &str) -> Result<Profile, NotModelled> {
    if let Some(own) = study.device(device).and_then(|device| device.profile.as_ref()) {
        return Ok(own.clone());
    }
    let name = NAMES.iter().find(|(known, _)| *known == device).map_or(device, |(_, name)| name);
    profile(name).ok_or_else(|| no(format!("there is no profile of {device}")))
}

fn host(name: &str) -> braid_model::Host {
    match profile(name).map(|profile| profile.kind) {
        Some(Kind::Host(host)) => host,
        other => panic!("{name} is a host among the profiles that come with braid, not {other:?}"),
    }
}

fn bus(name: &str) -> braid_model::BusProfile {
    match profile(name).map(|profile| profile.kind) {
        Some(Kind::Bus(bus)) => bus,
        other => panic!("{name} is a bus among the profiles that come with braid, not {other:?}"),
    }
}

/// Bytes per second in the unit that is asked for, of calls of `request` bytes and `bytes` in all.
fn of_rate(condition: &Asked, rate: f64) -> Result<f64, NotModelled> {
    let params = &condition.params;
    Ok(match condition.unit {
        Unit::BytesPerSecond => rate,
        Unit::Seconds => {
            params.bytes().ok_or_else(|| no("how much is not stated".to_owned()))? / rate
        }
        Unit::PerSecond => {
            rate / params.number("bs").ok_or_else(|| no("bs is not stated".to_owned()))?
        }
    })
}

/// Requests per second in the unit that is asked for; a time is that of one request.
fn of_requests(condition: &Asked, per_second: f64, request: u64) -> f64 {
    match condition.unit {
        Unit::BytesPerSecond => per_second * request as f64,
        Unit::Seconds => 1.0 / per_second,
        Unit::PerSecond => per_second,
    }
}
