//! What tools take on a device whose inside nobody measured: times by the number of processes.

use crate::profile::{Constants, ProfileError};

/// Times of tools on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Tools {
    /// By the tool's name: seconds of each process, and of each process beyond the first in addition.
    times: Vec<(String, f64, f64)>,
}

impl Tools {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Tools, ProfileError> {
        let mut times: Vec<(String, f64, f64)> = Vec::new();
        let mut further = Vec::new();
        for (name, value) in constants.rest() {
            if let Some(tool) = name.strip_suffix("_further_s") {
                further.push((tool, value));
            } else {
                let tool =
                    name.strip_suffix("_one_s").ok_or(ProfileError::Unknown(name.to_owned()))?;
                if value <= 0.0 {
                    let must = "above zero";
                    return Err(ProfileError::Range {
                        name: "one_s",
                        value: value.to_string(),
                        must,
                    });
                }
                times.push((tool.to_owned(), value, 0.0));
            }
        }
        for (tool, value) in further {
            let Some(time) = times.iter_mut().find(|time| time.0 == tool) else {
                return Err(ProfileError::Unknown(format!(
                    "{tool}_further_s without {tool}_one_s"
                )));
            };
            time.2 = value;
        }
        Ok(Tools { times })
    }

    /// Seconds that one process takes with `tool`, and each process beyond the first in addition. The
    /// names of tools are written with `_` or `-`.
    pub fn times(&self, tool: &str) -> Option<(f64, f64)> {
        let tool = tool.replace('-', "_");
        self.times.iter().find(|time| time.0 == tool).map(|time| (time.1, time.2))
    }
}
