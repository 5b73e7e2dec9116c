//! What tools take on a device whose inside nobody measured: times by the number of processes.

use crate::constants::{Constants, ProfileError};

/// Times of tools on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Tools {
    times: Vec<Times>,
}

/// Times of one tool, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    tool: String,
    /// Measured: by the number of processes.
    measured: Vec<(u32, f64)>,
    /// What each process beyond the first costs in addition to its own time.
    pub further: f64,
}

impl Tools {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Tools, ProfileError> {
        let mut times: Vec<Times> = Vec::new();
        for (name, value) in constants.rest() {
            let unknown = || ProfileError::Unknown(name.to_owned());
            let rest = name.strip_suffix("_s").ok_or_else(unknown)?;
            let (tool, what) = rest.rsplit_once('_').ok_or_else(unknown)?;
            let index = times.iter().position(|one| one.tool == tool).unwrap_or_else(|| {
                times.push(Times { tool: tool.to_owned(), ..Times::default() });
                times.len() - 1
            });
            let processes = what.strip_prefix('p').and_then(|count| count.parse().ok());
            match (what, processes) {
                ("further", _) => times[index].further = value,
                (_, Some(processes)) if value > 0.0 => {
                    times[index].measured.push((processes, value))
                }
                _ => return Err(unknown()),
            }
        }
        match times.iter().find(|one| one.of(1).is_none()) {
            Some(_) => Err(ProfileError::Missing("the time of one process (TOOL_p1_s)")),
            None => Ok(Tools { times }),
        }
    }

    /// The times of a tool, whose name may be written with `_` or `-`.
    pub fn times(&self, tool: &str) -> Option<&Times> {
        let tool = tool.replace('-', "_");
        self.times.iter().find(|time| time.tool == tool)
    }
}

impl Times {
    fn of(&self, processes: u32) -> Option<f64> {
        self.measured.iter().find(|one| one.0 == processes).map(|one| one.1)
    }

    /// What one process takes.
    pub fn one(&self) -> f64 {
        self.of(1).unwrap_or(0.0)
    }

    /// What so many at once take until the last has ended: as measured, or else as their own times and
    /// what each further one costs.
    pub fn seconds(&self, processes: u32) -> f64 {
        let p = f64::from(processes);
        self.of(processes).unwrap_or(p * self.one() + self.further * (p - 1.0))
    }
}
