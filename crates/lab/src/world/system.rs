//! The real world.
//!
//! Invariants:
//!
//! * a child that was started is waited for, on every way out;
//! * nothing is removed but folders that this world made, and what lies below them.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::content::{self, Leave};
use super::many::Left;
use super::{StopFlag, World, many, strays};
use crate::command::{CommandLine, Exit, Finished, Step, ToolOutput};
use crate::error::LabError;
use crate::story::Story;

/// The real world.
#[derive(Debug)]
pub struct SystemWorld {
    start: Instant,
    /// Folders that were made here, by their real paths.
    folders: Vec<PathBuf>,
    /// The results folder, if processes are marked with it.
    mark: Option<OsString>,
}

impl SystemWorld {
    /// The world, with the monotonic clock at zero.
    pub fn new() -> Self {
        Self { start: Instant::now(), folders: Vec::new(), mark: None }
    }

    /// Removes the path of a step, if it lies below a folder of this world.
    fn remove(&self, path: &Path) -> Result<(), LabError> {
        let failed = || LabError::file("remove", path);
        let (Some(parent), Some(Component::Normal(name))) =
            (path.parent(), path.components().next_back())
        else {
            return Err(self.not_ours(path));
        };
        // The real folder: a link in the middle could lead elsewhere.
        let parent = parent.canonicalize().map_err(failed())?;
        if !self.folders.iter().any(|folder| parent.starts_with(folder)) {
            return Err(self.not_ours(path));
        }
        let path = parent.join(name);
        match std::fs::symlink_metadata(&path).map_err(failed())?.is_dir() {
            true => std::fs::remove_dir_all(&path).map_err(failed()),
            false => std::fs::remove_file(&path).map_err(failed()),
        }
    }

    fn not_ours(&self, path: &Path) -> LabError {
        let action = format!("remove {}", path.display());
        LabError::step(action, "it does not lie in a folder that the laboratory made")
    }
}

impl Default for SystemWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for SystemWorld {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError> {
        let commands = std::slice::from_ref(command);
        let mark = self.mark.as_ref();
        let mut done = many::run_all(commands, Left::Alone, limit, stop, &mut Story::none(), mark)?;
        let ToolOutput { exit, stdout, stderr, .. } = done.remove(0);
        Ok(Finished { exit, stdout, stderr })
    }

    fn run_all(
        &mut self,
        commands: &[CommandLine],
        limit: Duration,
        stop: &StopFlag,
        story: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError> {
        many::run_all(commands, Left::Ended, limit, stop, story, self.mark.as_ref())
    }

    fn perform(&mut self, step: &Step, limit: Duration, stop: &StopFlag) -> Result<(), LabError> {
        match step {
            Step::Run(command) => {
                let done = self.run(command, limit, stop)?;
                match done.exit {
                    Exit::Code(0) => Ok(()),
                    Exit::Stopped => Err(LabError::Stopped),
                    _ => Err(LabError::StepFailed {
                        action: format!("run {}", command.program),
                        reason: done.why(),
                        command: Some(command.to_string()),
                    }),
                }
            }
            Step::MakeFile { path, bytes, seed } => {
                content::make_file(path, *bytes, *seed, &Leave::new(limit, stop))
            }
            Step::MakeFolder(path) => {
                std::fs::create_dir(path).map_err(LabError::file("create the folder", path))
            }
            Step::ReadAll(path) => content::read_all(path, &Leave::new(limit, stop)),
            Step::Remove(path) => self.remove(path),
        }
    }

    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError> {
        let folder = content::make_folder(parent)?;
        let real = folder.canonicalize().map_err(LabError::file("look at", &folder))?;
        self.folders.push(real);
        Ok(folder)
    }

    fn adopt_folder(&mut self, folder: &Path) -> Result<(), LabError> {
        content::check_folder(folder)?;
        let real = folder.canonicalize().map_err(LabError::file("look at", folder))?;
        self.folders.push(real);
        Ok(())
    }

    fn mark_processes(&mut self, results: &Path) -> Result<(), LabError> {
        let real = results.canonicalize().map_err(LabError::file("look at", results))?;
        self.mark = Some(real.into_os_string());
        Ok(())
    }

    fn end_strays(&mut self, but_volumes: bool) -> Result<usize, LabError> {
        self.mark.as_ref().map_or(Ok(0), |mark| strays::end_strays(mark, but_volumes))
    }

    fn remove_folder(&mut self, folder: &Path, with_content: bool) -> Result<(), LabError> {
        let failed = || LabError::file("remove", folder);
        let real = match folder.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed())?,
        };
        if !self.folders.contains(&real) {
            return Err(self.not_ours(folder));
        }
        match with_content {
            true => std::fs::remove_dir_all(&real).map_err(failed())?,
            false => std::fs::remove_dir(&real).map_err(failed())?,
        }
        self.folders.retain(|own| *own != real);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
