//! Running the commands that remove objects.
//!
//! A stop by the user does not stop them: they run to their end.

use std::path::Path;
use std::time::Duration;

use crate::array::Braid;
use crate::command::{CommandLine, Exit, Finished};
use crate::error::LabError;
use crate::world::{StopFlag, World};

/// Time limit of a command; `braid down` waits 120 s for requests in flight.
const LIMIT: Duration = Duration::from_secs(180);
/// Number and interval of retries on a busy object: a program that has ended may hold a file for a moment.
const TRIES: u32 = 20;
const TRY_EVERY: Duration = Duration::from_millis(250);

/// Runs the commands that remove objects.
pub(super) struct Hand<'h> {
    pub(super) subject: &'h str,
    pub(super) braid: &'h Braid,
    pub(super) world: &'h mut dyn World,
}

impl Hand<'_> {
    /// Runs a command whose result the caller judges.
    pub(super) fn try_run(&mut self, command: &CommandLine) -> Result<Finished, LabError> {
        self.world.run(command, LIMIT, &StopFlag::default())
    }

    pub(super) fn run(&mut self, command: &CommandLine) -> Result<(), LabError> {
        let done = self.try_run(command)?;
        match done.exit {
            Exit::Code(0) => Ok(()),
            _ => Err(self.left(done.why(), command)),
        }
    }

    /// Runs a command, with retries for a while.
    pub(super) fn insist(&mut self, command: &CommandLine) -> Result<(), LabError> {
        self.retry(|hand| hand.run(command))
    }

    pub(super) fn retry(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let mut result = act(self);
        for _ in 1..TRIES {
            if result.is_ok() {
                break;
            }
            self.world.sleep(TRY_EVERY);
            result = act(self);
        }
        result
    }

    pub(super) fn left(&self, reason: String, command: &CommandLine) -> LabError {
        LabError::LeftBehind { subject: self.subject.to_owned(), reason, next: command.to_string() }
    }
}

/// Removes a file of the run that may be gone.
pub(super) fn remove_file(path: &Path) -> Result<(), LabError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Returns a command of a program and its arguments.
pub(super) fn command(words: &[&str]) -> CommandLine {
    let (program, arguments) =
        words.split_first().map_or(("", &[][..]), |(one, rest)| (*one, rest));
    arguments.iter().fold(CommandLine::new(program), |command, word| command.arg(*word))
}
