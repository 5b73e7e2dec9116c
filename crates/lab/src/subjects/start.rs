//! Calling the subjects' providers, and filling regions that are read raw.

use std::time::Duration;

use braid_stack::ByteSize;

use super::hand::Hand;
use super::held::Held;
use super::site::{Base, Site};
use super::{Subjects, directory, first_of, kernel, nbd, path, stack, tmpfs, whole_blocks, zram};
use crate::campaign::{Expression, Source};
use crate::error::{LabError, Obstacle};
use crate::source::{Form, writes_when_it_comes_up};
use crate::world::World;

/// Rate of the slowest device that can be filled: 1 MiB/s, and a minute on top.
const LIMIT_BYTES_PER_S: u64 = 1 << 20;

/// Returns the time limit of a fill.
fn fill_limit(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / LIMIT_BYTES_PER_S)
}

impl Subjects<'_> {
    /// Returns `lab-q3XfZa-2`, from the name of the run's own folder, so that campaigns do not collide.
    pub(super) fn name_of_volume(&self, subject: usize) -> String {
        let room = self.room.path().file_name().unwrap_or_default().to_string_lossy();
        format!("{}-{subject}", room.trim_start_matches("braid-"))
    }

    /// Calls the subject's provider; after a failure its objects are removed.
    pub(super) fn start(
        &mut self,
        subject: usize,
        form: Form,
        world: &mut dyn World,
    ) -> Result<(), Obstacle> {
        let (mut held, mut commands) = (Held::noted_in(&self.journal), Vec::new());
        let facts = &self.subjects[subject];
        let mut site = Site {
            world: &mut *world,
            held: &mut held,
            stop: &self.options.stop,
            subject: &facts.name,
            commands: &mut commands,
        };
        let base = self.provide(&mut site, subject, form);
        match base {
            Ok(base) => {
                let state = &mut self.states[subject];
                (state.base, state.held, state.commands) = (Some(base), held, commands);
                state.form = form;
                Ok(())
            }
            Err(obstacle) => {
                let mut hand = Hand { subject: &facts.name, braid: &self.braid, world };
                let cleared = held.release(&mut hand, false);
                // Remaining objects are tried again with the rest.
                self.states[subject].held = held;
                Err(first_of(obstacle, cleared))
            }
        }
    }

    fn provide(&self, site: &mut Site<'_>, subject: usize, form: Form) -> Result<Base, Obstacle> {
        let size = |text: &str| {
            text.parse::<ByteSize>().map_err(|error| Obstacle::Impossible(error.to_string()))
        };
        let said = |expression: &Expression| {
            expression.stack().cloned().map_err(|why| Obstacle::Impossible(why.to_owned()))
        };
        let name = self.name_of_volume(subject);
        if writes_when_it_comes_up(&self.subjects[subject].source) {
            self.check_permit(subject)?;
        }
        match &self.subjects[subject].source {
            Source::Path(path) => path::bring_up(site, path, self.through_nbd, form),
            Source::Directory(folder) => directory::bring_up(site, folder),
            Source::Nbd(uri) => nbd::bring_up(site, uri),
            Source::Zram(text) => zram::bring_up(site, size(text)?),
            Source::Tmpfs(text) => tmpfs::bring_up(site, size(text)?),
            Source::Kernel(text) => kernel::bring_up(site, &said(text)?, &name, form),
            Source::Stack(text) => {
                let request = stack::Request {
                    stack: &said(text)?,
                    braid: &self.braid,
                    name,
                    socket: self
                        .through_nbd
                        .then(|| self.room.path().join(format!("{subject}.sock"))),
                    form,
                    permit: &self.permit,
                };
                stack::bring_up(site, &request)
            }
        }
    }

    /// Writes the region once.
    pub(super) fn fill(&mut self, subject: usize, world: &mut dyn World) -> Result<(), Obstacle> {
        let Some(base) = &self.states[subject].base else { return Ok(()) };
        self.check_permit(subject)?;
        self.check_unused(subject, world)?;
        let bytes = self.raw_region(base);
        let (seed, stop) = (self.campaign.seed(), &self.options.stop);
        let filled = world.fill(&base.target, bytes, seed, fill_limit(bytes), stop);
        filled.map_err(|error| match error {
            LabError::Stopped => Obstacle::Stopped,
            error => Obstacle::Failed(LabError::StepFailed {
                action: format!(
                    "fill subject {:?} before measuring it",
                    self.subjects[subject].name
                ),
                reason: error.to_string(),
                command: Some(self.states[subject].commands.join("; ")),
            }),
        })?;
        self.states[subject].is_filled = true;
        Ok(())
    }

    pub(super) fn raw_region(&self, base: &Base) -> u64 {
        whole_blocks(self.campaign.region.0.min(base.size_bytes))
    }
}
