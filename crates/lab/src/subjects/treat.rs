//! Bringing an array into the state of a trial, and restoring it.

use std::time::Duration;

use super::Subjects;
use super::asked::Asked;
use super::site::{LIMIT, said};
use crate::command::{CommandLine, Exit};
use crate::error::{LabError, Obstacle};
use crate::matrix::Workload;
use crate::source::Treatment;
use crate::story::Story;
use crate::world::{StopFlag, World};

impl Subjects<'_> {
    /// Brings the array into the state of a trial.
    pub(super) fn treat(
        &mut self,
        subject: usize,
        workload: &Workload,
        treatment: Treatment,
        commands: &mut Vec<String>,
        world: &mut dyn World,
    ) -> Result<Story, Obstacle> {
        if matches!(treatment, Treatment::Nothing | Treatment::Short) {
            return Ok(Story::none());
        }
        self.check_permit(subject)?;
        let state = &mut self.states[subject];
        let Some(array) = state.base.as_ref().and_then(|base| base.array.clone()) else {
            return Err(Obstacle::Impossible("it is no array that reports its state".to_owned()));
        };
        // Set before: a failed command may have taken effect.
        state.is_hurt = true;
        let before: &[Option<CommandLine>] = match treatment {
            Treatment::Fail => &[array.fail()],
            Treatment::Refill => &[array.fail(), array.take_out(), array.forget()],
            _ => &[],
        };
        for command in before.iter().flatten() {
            commands.push(command.to_string());
            let done = world.run(command, LIMIT, &self.options.stop)?;
            match done.exit {
                Exit::Code(0) => {}
                Exit::Stopped => return Err(Obstacle::Stopped),
                _ => {
                    self.states[subject].is_hurt = false;
                    let why = format!("the array refuses the change: {}", said(&done));
                    self.take_down(subject, false, world)?;
                    return Err(Obstacle::Impossible(why));
                }
            }
        }
        let ramp_s = workload.tool().map_or(0.0, |tool| tool.ramp_s(self.campaign.ramp_s));
        let [ramp, runtime] = [ramp_s, self.campaign.runtime_s].map(Duration::from_secs_f64);
        Ok(match treatment {
            Treatment::Refill => Story::of_recovery(&array),
            Treatment::Check => Story::of_checks(&array),
            Treatment::Story => Story::of_a_failure(&array, ramp, runtime),
            _ => Story::none(),
        })
    }

    /// Restores an array. One of the kernel's is taken down, and the next trial makes a new one; a volume gets
    /// its member back, which is filled completely.
    pub(super) fn mend(&mut self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        let Some(base) = self.states[subject].base.clone() else { return Ok(()) };
        let (Some(array), Some(_)) = (&base.array, &base.volume) else {
            return self.take_down(subject, false, world);
        };
        let (never, name) = (StopFlag::default(), &self.subjects[subject].name);
        let mut asked = Asked { subject: name, array, stop: &never, world };
        asked.put_back()?;
        asked.stop = &self.options.stop;
        match asked.settle(base.size_bytes) {
            // A stop does not wait for a recovery: md continues it next time.
            Err(Obstacle::Stopped) => return Ok(()),
            settled => settled?,
        }
        asked.stop = &never;
        if asked.ask()?.is_degraded {
            return Err(asked.error("the array is still degraded".to_owned()).into());
        }
        self.states[subject].is_hurt = false;
        Ok(())
    }
}

/// The commands that restore a volume run to their end even if the user stopped the run.
impl Asked<'_> {
    /// Ends a check, and adds the victim again from any state.
    fn put_back(&mut self) -> Result<(), LabError> {
        if self.ask()?.pass.as_deref() == Some("check") {
            self.must(Some(self.array.cancel_check()))?;
        }
        let found = self.ask()?;
        if !found.is_degraded {
            return Ok(());
        }
        if found.victim.as_deref() == Some("faulty") {
            self.must(self.array.take_out())?;
            self.must(self.array.forget())?;
        }
        match found.victim.as_deref() {
            None | Some("faulty") => self.must(self.array.put_in()),
            // It is being filled.
            Some(_) => Ok(()),
        }
    }

    fn must(&mut self, command: Option<CommandLine>) -> Result<(), LabError> {
        let Some(command) = command else { return Ok(()) };
        let done = self.world.run(&command, LIMIT, self.stop)?;
        match done.exit {
            Exit::Code(0) => Ok(()),
            _ => Err(LabError::StepFailed {
                action: format!("mend {:?}", self.subject),
                reason: said(&done),
                command: Some(command.to_string()),
            }),
        }
    }
}
