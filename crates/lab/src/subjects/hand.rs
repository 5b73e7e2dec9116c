//! Runs the commands that take things away.
//!
//! A user who asks to stop does not stop these: they run to their end.

use std::path::Path;
use std::time::Duration;

use crate::array::Braid;
use crate::command::{CommandLine, Exit, Finished};
use crate::error::LabError;
use crate::world::{StopFlag, World};

/// How long a command may take; `braid down` waits 120 s for what is under way.
const LIMIT: Duration = Duration::from_secs(180);
/// How often what is busy is tried again: a program that has ended may hold a file for a moment.
const TRIES: u32 = 20;
const TRY_EVERY: Duration = Duration::from_millis(250);

/// Runs what takes things away.
pub(super) struct Hand<'h> {
    pub(super) subject: &'h str,
    pub(super) braid: &'h Braid,
    pub(super) world: &'h mut dyn World,
}

impl Hand<'_> {
    /// Runs a command whose outcome is for the caller to judge.
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

    /// Again and again for a while.
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

/// Removes a file of ours that may be gone.
pub(super) fn remove_file(path: &Path) -> Result<(), LabError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// A program and its arguments.
pub(super) fn command(words: &[&str]) -> CommandLine {
    let (program, arguments) =
        words.split_first().map_or(("", &[][..]), |(one, rest)| (*one, rest));
    arguments.iter().fold(CommandLine::new(program), |command, word| command.arg(*word))
}
