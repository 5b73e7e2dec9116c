//! Queries of an array's state.

use std::time::Duration;

use super::site::{LIMIT, Site};
use crate::array::{Activity, Array};
use crate::command::Exit;
use crate::error::{LabError, Obstacle};
use crate::world::{StopFlag, World};

/// Interval of queries whether a pass is over.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// A subject's array, and the means to query it.
pub(super) struct Asked<'a> {
    pub(super) subject: &'a str,
    pub(super) array: &'a Array,
    pub(super) stop: &'a StopFlag,
    pub(super) world: &'a mut dyn World,
}

impl Asked<'_> {
    /// Queries the state.
    pub(super) fn ask(&mut self) -> Result<Activity, Obstacle> {
        let done = self.world.run(&self.array.ask(), LIMIT, self.stop)?;
        if done.exit == Exit::Stopped || self.stop.is_set() {
            return Err(Obstacle::Stopped);
        }
        let found = self.array.read(&done);
        found.map_err(|why| self.error(format!("the array does not answer: {why}")))
    }

    /// Waits until no pass runs. The limit allows a rate of 1 MiB/s, and a minute; a slower pass is stuck.
    pub(super) fn settle(&mut self, size_bytes: u64) -> Result<(), Obstacle> {
        let limit = Duration::from_secs(60 + (size_bytes >> 20));
        let deadline = self.world.monotonic() + limit;
        while let Some(pass) = self.ask()?.pass {
            if self.world.monotonic() >= deadline {
                let seconds = limit.as_secs();
                return Err(self.error(format!("its {pass} was not over after {seconds} s")));
            }
            self.world.sleep(ASK_EVERY);
        }
        Ok(())
    }

    pub(super) fn error(&self, reason: String) -> Obstacle {
        Obstacle::Failed(LabError::SubjectDown {
            subject: self.subject.to_owned(),
            reason,
            command: self.array.ask().to_string(),
            stderr: String::new(),
        })
    }
}

/// Waits until no pass runs over an array that is being built.
pub(super) fn settle(site: &mut Site<'_>, array: &Array, size_bytes: u64) -> Result<(), Obstacle> {
    site.commands.push(format!("# until no pass runs: {}", array.ask()));
    let (subject, stop) = (site.subject, site.stop);
    Asked { subject, array, stop, world: &mut *site.world }.settle(size_bytes)
}
