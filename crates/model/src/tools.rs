//! What requests of a tool take on a device whose inside nobody measured.

use crate::constants::{Constants, ProfileError};

/// Times of requests on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Tools {
    /// By the request's name, in seconds.
    times: Vec<(String, f64)>,
}

impl Tools {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Tools, ProfileError> {
        let times = constants.rest().map(|(name, value)| match name.strip_suffix("_s") {
            Some(request) if value > 0.0 => Ok((request.to_owned(), value)),
            _ => Err(ProfileError::Unknown(name.to_owned())),
        });
        Ok(Tools { times: times.collect::<Result<_, _>>()? })
    }

    /// What a request takes, in seconds; its name may be written with `_` or `-`.
    pub fn seconds(&self, request: &str) -> Option<f64> {
        let request = request.replace('-', "_");
        self.times.iter().find(|one| one.0 == request).map(|one| one.1)
    }
}
