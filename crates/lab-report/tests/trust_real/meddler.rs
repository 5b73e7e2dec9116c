//! The real world with a meddling program: it changes a trial right before the start, or the facts of the
//! machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_lab::command::{CommandLine, Finished, Step, Target, ToolOutput};
use braid_lab::environment::{Environment, read_environment_under};
use braid_lab::evidence::{Roots, Snapshot, Watch};

use braid_lab::story::Story;
use braid_lab::world::PathKind;
use braid_lab::{LabError, StopFlag, SystemWorld, World};

/// Gets the trial's number in this run, from 1, the programs that are about to be started, and the
/// flag that stops the run.
type Meddling<'m> = Box<dyn FnMut(usize, &mut Vec<CommandLine>, &StopFlag) + 'm>;

pub(crate) struct Meddler<'m> {
    world: SystemWorld,
    roots: Roots,
    trials: usize,
    meddling: Meddling<'m>,
}

impl<'m> Meddler<'m> {
    /// A machine that shows itself under `roots` when it is asked what it is.
    pub(crate) fn new(
        roots: Roots,
        meddling: impl FnMut(usize, &mut Vec<CommandLine>, &StopFlag) + 'm,
    ) -> Self {
        Self { world: SystemWorld::new(), roots, trials: 0, meddling: Box::new(meddling) }
    }
}

impl World for Meddler<'_> {
    fn run_all(
        &mut self,
        commands: &[CommandLine],
        limit: Duration,
        stop: &StopFlag,
        story: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError> {
        self.trials += 1;
        let mut commands = commands.to_vec();
        (self.meddling)(self.trials, &mut commands, stop);
        self.world.run_all(&commands, limit, stop, story)
    }

    fn environment(&mut self, tools: Vec<(String, String)>) -> Environment {
        read_environment_under(&self.roots, tools)
    }

    // Everything else is as it is.

    fn monotonic(&self) -> Duration {
        self.world.monotonic()
    }

    fn unix_time_s(&self) -> u64 {
        self.world.unix_time_s()
    }

    fn sleep(&mut self, time: Duration) {
        self.world.sleep(time);
    }

    fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError> {
        self.world.run(command, limit, stop)
    }

    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError> {
        self.world.nbd_size(uri)
    }

    fn path_size(&mut self, path: &Path) -> Result<u64, LabError> {
        self.world.path_size(path)
    }

    fn perform(&mut self, step: &Step, limit: Duration, stop: &StopFlag) -> Result<(), LabError> {
        self.world.perform(step, limit, stop)
    }

    fn drop_caches(&mut self) -> Result<(), LabError> {
        self.world.drop_caches()
    }

    fn sync_path(&mut self, path: &Path) -> Result<(), LabError> {
        self.world.sync_path(path)
    }

    fn fill(
        &mut self,
        target: &Target,
        bytes: u64,
        seed: u64,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<(), LabError> {
        self.world.fill(target, bytes, seed, limit, stop)
    }

    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError> {
        self.world.make_folder(parent)
    }

    fn remove_folder(&mut self, folder: &Path, with_content: bool) -> Result<(), LabError> {
        self.world.remove_folder(folder, with_content)
    }

    fn adopt_folder(&mut self, folder: &Path) -> Result<(), LabError> {
        self.world.adopt_folder(folder)
    }

    fn mark_processes(&mut self, results: &Path) -> Result<(), LabError> {
        self.world.mark_processes(results)
    }

    fn end_strays(&mut self, but_volumes: bool) -> Result<usize, LabError> {
        self.world.end_strays(but_volumes)
    }

    fn snapshot(&mut self, watch: &Watch) -> Snapshot {
        self.world.snapshot(watch)
    }

    fn is_root(&self) -> bool {
        self.world.is_root()
    }

    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        self.world.path_kind(path)
    }

    fn free_bytes(&mut self, path: &Path) -> Result<u64, LabError> {
        self.world.free_bytes(path)
    }

    fn read_text(&mut self, path: &Path) -> Result<Option<String>, LabError> {
        self.world.read_text(path)
    }

    fn write_text(&mut self, path: &Path, text: &str) -> Result<(), LabError> {
        self.world.write_text(path, text)
    }
}
