//! `braid model list`, `show`, `fit` and `predict`: profiles and their constants.

pub(super) mod fit;
mod predict;

use std::io::Write;
use std::path::Path;

use braid_member::profile::{ModelError, from_file};
use braid_model::{Profile, profile, profile_names};
use serde_json::json;

use crate::cli;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};

pub(super) fn model(command: &cli::Model) -> Result<(), Failure> {
    let text = match command {
        cli::Model::List(options) => list(options.json),
        cli::Model::Show(options) => show(&options.profile, options.json)?,
        cli::Model::Fit(options) => return fit::model_fit(options),
        cli::Model::Predict(options) => return predict::predict(options),
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

/// The profile of a name, or of a file.
pub(super) fn read(name: &str) -> Result<Profile, Failure> {
    if let Some(profile) = profile(name) {
        return Ok(profile);
    }
    from_file(Path::new(name)).map_err(|error| match error {
        ModelError::Unread { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let known = profile_names().collect::<Vec<_>>().join(", ");
            let text = format!("{name:?} is neither a profile nor a file that is there");
            Failure::usage(text).note(format!("profiles: {known}"))
        }
        error => Failure::usage(&error).next(error.next()),
    })
}

fn list(as_json: bool) -> String {
    let all = profile_names().filter_map(|name| Some((name, profile(name)?)));
    if as_json {
        let one = |(name, profile): (&str, Profile)| {
            json!({
                "name": name,
                "kind": profile.kind.name(),
                "label": profile.label,
                "capacity": profile.capacity,
                "read_bytes_per_s": profile.long_rates().map(|rates| rates.0),
                "write_bytes_per_s": profile.long_rates().map(|rates| rates.1),
            })
        };
        let profiles: Vec<_> = all.map(one).collect();
        return format!("{}\n", json!({ "output_version": OUTPUT_VERSION, "profiles": profiles }));
    }
    let mut text = format!("{:16} {:10} {:>7} {:>7}  WHAT\n", "NAME", "KIND", "READ", "WRITE");
    for (name, profile) in all {
        let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), megabytes);
        let rates = profile.long_rates();
        let (read, write) = (rate(rates.map(|rates| rates.0)), rate(rates.map(|rates| rates.1)));
        let (kind, label) = (profile.kind.name(), &profile.label);
        text += &format!("{name:16} {kind:10} {read:>7} {write:>7}  {label}\n");
    }
    text + "\nREAD, WRITE: MB/s of long runs, before a bus. `braid model show NAME` has the constants.\n"
}

fn megabytes(rate: f64) -> String {
    format!("{:.1}", rate / 1e6)
}

fn show(name: &str, as_json: bool) -> Result<String, Failure> {
    let profile = read(name)?;
    if as_json {
        let constant = |one: &braid_model::Constant| json!({ "name": one.name, "value": one.value, "source": one.source });
        let value = json!({
            "output_version": OUTPUT_VERSION,
            "kind": profile.kind.name(),
            "label": profile.label,
            "capacity": profile.capacity,
            "constants": profile.constants.iter().map(constant).collect::<Vec<_>>(),
        });
        return Ok(format!("{value}\n"));
    }
    let mut text = format!("{}: {} ({})\n\n", name, profile.label, profile.kind.name());
    let width = profile.constants.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for one in &profile.constants {
        let value = match one.value {
            value if value.fract() == 0.0 => format!("{value:.0}"),
            value => format!("{value}"),
        };
        text += &format!("{:width$}  {value:>13}  {}\n", one.name, one.source);
    }
    Ok(text)
}
