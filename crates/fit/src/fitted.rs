//! A fit: constants with their intervals, and how far their model is from the device.

use crate::robust::{Estimate, quantile, sorted};

/// A constant of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Its name in the profile.
    pub name: &'static str,
    /// Its value with its interval, in the profile's unit.
    pub estimate: Estimate,
    /// True if an experiment measured it; otherwise it is assumed, and its interval means nothing.
    pub measured: bool,
    /// The source of the value.
    pub source: String,
}

/// The differences between a model and the measured times: shares, as |ln(model / measured)|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Half of the differences are below.
    pub median: f64,
    /// The greatest.
    pub worst: f64,
}

impl Errors {
    pub(crate) fn of(differences: &[f64]) -> Errors {
        let sorted = sorted(differences);
        Errors { median: quantile(&sorted, 0.5), worst: quantile(&sorted, 1.0) }
    }
}

/// A device as a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The kind of device: the `kind` of the profile.
    pub kind: &'static str,
    /// Bytes of the device.
    pub size: u64,
    /// All of its constants, in the order of the profile.
    pub constants: Vec<Fitted>,
    /// On experiments that no constant is from.
    pub held_out: Errors,
    /// On those that constants are from.
    pub used: Errors,
    /// Each kind that was tried, with the mean of its differences on what was held out.
    pub tried: Vec<(&'static str, f64)>,
    /// Measured facts that are not constants.
    pub facts: Vec<String>,
    /// Reasons to doubt this fit.
    pub warnings: Vec<String>,
    /// The profile's text, which contains all of this, and which [`braid_model::Profile::parse`] reads.
    pub text: String,
}
