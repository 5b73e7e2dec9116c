//! The meaning of `f(id)` in a claim: a row, a probe, or something that follows from one.
//!
//! | id | value |
//! |---|---|
//! | of a row or a probe | its value |
//! | `ID.iops` | the rate of `ID`, by its block size `bs` |
//! | `ID.seconds` | the bytes of `ID` (`size`, or `bs` times `count`), by its rate |
//! | with the name of a derived device | the mean of what the same id has with the devices that it stands for |

use crate::study::{Asked, Device, Study, Unit};

/// The value of an id, where `of` has those of what rows and probes ask for. An error says why there is
/// none.
pub(crate) fn value(
    study: &Study,
    id: &str,
    of: &dyn Fn(&Asked) -> Result<f64, String>,
) -> Result<f64, String> {
    if let Some(asked) = find(study, id) {
        return mean(asked.iter().map(of));
    }
    for (ending, convert) in [(".iops", iops as Convert), (".seconds", seconds)] {
        let asked = id.strip_suffix(ending).and_then(|base| find(study, base));
        if let Some(asked) = asked {
            return mean(asked.iter().map(|asked| convert(asked, of(asked)?)));
        }
    }
    Err("no row and no probe has this id".to_owned())
}

type Convert = fn(&Asked, f64) -> Result<f64, String>;

fn iops(asked: &Asked, value: f64) -> Result<f64, String> {
    match (asked.unit, asked.params.number("bs").filter(|bs| *bs > 0.0)) {
        (Unit::PerSecond, _) => Ok(value),
        (Unit::BytesPerSecond, Some(bs)) => Ok(value / bs),
        (Unit::BytesPerSecond, None) => Err(format!("{} has no bs", asked.id)),
        (Unit::Seconds, _) => Err(format!("{} is a time, no rate", asked.id)),
    }
}

fn seconds(asked: &Asked, value: f64) -> Result<f64, String> {
    match (asked.unit, asked.params.bytes()) {
        (Unit::Seconds, _) => Ok(value),
        (Unit::BytesPerSecond, Some(bytes)) => Ok(bytes / value),
        (Unit::BytesPerSecond, None) => {
            Err(format!("{} has neither size nor bs and count", asked.id))
        }
        (Unit::PerSecond, _) => Err(format!("{} is no rate of bytes", asked.id)),
    }
}

/// Returns what has this id; for the name of a derived device in the id, what has the ids of its devices.
fn find(study: &Study, id: &str) -> Option<Vec<Asked>> {
    if let Some(asked) = study.asked(id) {
        return Some(vec![asked.clone()]);
    }
    let derived = study.devices.iter().filter(|device| device.is_derived);
    derived.filter(|device| id.contains(&device.name)).find_map(|derived| {
        let devices: Vec<&Device> = stands_for(study, derived).collect();
        let named = |device: &Device| id.replace(&derived.name, &device.name);
        // A device whose own figure was not published is asked under the conditions of the others.
        let any = devices.iter().find_map(|device| study.asked(&named(device)))?;
        let asked = devices.iter().map(|device| {
            let (id, subject) = (named(device), device.name.clone());
            study.asked(&id).cloned().unwrap_or_else(|| Asked { id, subject, ..any.clone() })
        });
        Some(asked.collect())
    })
}

/// The devices that a derived one is the mean of.
pub(crate) fn stands_for<'s>(
    study: &'s Study,
    derived: &Device,
) -> impl Iterator<Item = &'s Device> {
    let kind = derived.kind.clone();
    study.devices.iter().filter(move |device| !device.is_derived && device.kind == kind)
}

/// The mean, or the first error.
pub(crate) fn mean<E>(values: impl Iterator<Item = Result<f64, E>>) -> Result<f64, E> {
    let values = values.collect::<Result<Vec<f64>, E>>()?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
