//! The profile of a member `model(PROFILE, …)`: found by name or read from a file, with the constants that the stack
//! replaces.
//!
//! Deliberately absent: paths relative to anything but the working directory. A stack's are absolute before a
//! volume has it.

use std::io;
use std::path::{Path, PathBuf};

use braid_model::{BusProfile, Kind, Profile, ProfileError};
use braid_stack::{Model, Rate};

/// Why a member has no model.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what went wrong, and with what")]
pub enum ModelError {
    #[error("there is no model called {name:?}; there are: {known}")]
    Unknown { name: String, known: String },
    #[error("the profile {path} cannot be read: {source}")]
    Unread { path: PathBuf, source: io::Error },
    #[error("{path} is no profile: {why}")]
    Invalid { path: PathBuf, why: ProfileError },
    #[error("model({profile}, …): {why}")]
    Unfit { profile: String, why: String },
}

impl ModelError {
    /// Returns the next step.
    pub fn next(&self) -> &'static str {
        match self {
            ModelError::Unknown { .. } => {
                "`braid model list` says what they are; the path of a profile's file has a `/` or ends in `.toml`"
            }
            ModelError::Unread { .. } => {
                "`braid model fit DEVICE --output FILE` writes a profile; `braid model list` has those that need no file"
            }
            ModelError::Invalid { .. } => {
                "correct the file, and `braid model show FILE` reads it; `braid model show usb-flash` is one that is right"
            }
            ModelError::Unfit { .. } => "`braid model show PROFILE` has its kind and its constants",
        }
    }
}

/// A modelled member.
pub struct Modelled {
    /// The device, with what replaces constants of its profile.
    pub profile: Profile,
    /// The bus of the device.
    pub of_bus: BusProfile,
}

/// Returns the profile of `model` with its replaced constants.
///
/// # Errors
/// The profile is unknown, its file is malformed, or it describes no device or one without these constants.
pub fn modelled(model: &Model) -> Result<Modelled, ModelError> {
    let mut profile = match model.profile_file() {
        Some(path) => from_file(path)?,
        None => braid_model::profile(&model.profile).ok_or_else(|| ModelError::Unknown {
            name: model.profile.clone(),
            known: braid_model::device_names().collect::<Vec<_>>().join(", "),
        })?,
    };
    let unfit = |why: String| ModelError::Unfit { profile: model.profile.clone(), why };
    if profile.long_rates().is_none() {
        return Err(unfit(format!("it is of kind {}, no device", profile.kind.name())));
    }
    let rate = |rate: Option<Rate>| rate.map(|rate| rate.bytes_per_second());
    let given = &model.overrides;
    let latency = given.latency.map(|latency| latency.nanoseconds());
    let replaced = profile.replace(rate(given.read), rate(given.write), latency);
    replaced.map_err(|why| unfit(why.to_owned()))?;
    let of_bus = rate(given.bus_rate).map_or_else(|| profile.usual_bus(), BusProfile::of_rate);
    Ok(Modelled { profile, of_bus })
}

/// The kind of a profile, by its name or the path of its file; `None` where there is none.
pub fn kind(name: &str) -> Option<Kind> {
    let profile = braid_model::profile(name).or_else(|| from_file(Path::new(name)).ok());
    profile.map(|profile| profile.kind)
}

/// The profile that a file is.
///
/// # Errors
/// It cannot be read, or is no profile.
pub fn from_file(path: &Path) -> Result<Profile, ModelError> {
    let text = braid_probe::read_text(path)
        .map_err(|source| ModelError::Unread { path: path.to_owned(), source })?;
    Profile::parse(&text).map_err(|why| ModelError::Invalid { path: path.to_owned(), why })
}
