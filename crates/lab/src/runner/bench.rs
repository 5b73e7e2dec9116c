//! One trial on a subject that is ready: prepare, run, look, parse, clean up.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::LabOptions;
use crate::campaign::Campaign;
use crate::command::{CommandLine, Exit, Step, Target, ToolOutput, last_lines};
use crate::error::{LabError, Obstacle};
use crate::evidence::Evidence;
use crate::matrix::{Planned, Trial, Workload};
use crate::metric::{Measured, Metric, Sample};
use crate::store::{StoredTrial, Times};
use crate::subjects::{Journal, Ready, Room};
use crate::tool::source::make_source;
use crate::tool::{
    Effort, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec, places_in_shell,
};
use crate::world::{World, free_bytes, rest};
use braid_seed::mix;

/// Time of a tool beyond its measured time: start, preparation, the last flush.
const OVERTIME: Duration = Duration::from_secs(120);
/// Rate of the slowest subject that is supported, in bytes per second.
const SLOWEST: u64 = 256 << 10;
/// Key that distinguishes the seed of sources from those of trials and of filling.
const SOURCES: u64 = 0x736f_7572_6365;
/// Largest part of a raw text file that is stored.
const FILE_LIMIT: u64 = 64 << 20;

/// The place where trials run.
pub(super) struct Bench<'c> {
    campaign: &'c Campaign,
    options: &'c LabOptions,
    /// Folder for sources and scratch files, beside every subject, in memory if there is room.
    folder: Room,
    /// Steps that are left of the last trial.
    clean_up: Vec<Step>,
    /// The use of the last trial's time.
    pub(super) spent: Times,
}

impl<'c> Bench<'c> {
    pub(super) fn new(
        planned: &'c Planned,
        options: &'c LabOptions,
        journal: &Rc<Journal>,
    ) -> Result<Self, LabError> {
        let home = home_of_sources(planned, &options.results_dir);
        let folder = Room::new(&home, "braid-lab-bench-", journal)?;
        Ok(Self {
            campaign: &planned.campaign,
            options,
            folder,
            clean_up: Vec::new(),
            spent: Times::default(),
        })
    }

    /// Runs one trial. The findings go into `kept`, and the output of the tools into `output` if they ran.
    pub(super) fn try_out(
        &mut self,
        trial: &Trial,
        ready: Ready,
        kept: &mut StoredTrial,
        output: &mut Option<RunOutput>,
        world: &mut dyn World,
    ) -> Result<Measured, Obstacle> {
        self.spent = Times::default();
        let began = world.monotonic();
        let measured = self.run(trial, ready, kept, output, world);
        let all = (world.monotonic() - began).as_secs_f64();
        kept.commands.extend(self.clean_up.iter().map(ToString::to_string));
        // Parsing is the laboratory's own time, but too little to be counted apart.
        self.spent.set_up_s = (all - self.spent.busy_s).max(0.0);
        measured
    }

    /// Carries out the clean-up of the last trial's script. A failure leaves files in the trial's own folder,
    /// which is removed with the file system or the folder itself.
    pub(super) fn clean_up(&mut self, world: &mut dyn World) {
        // Processes that a tool or a command left would keep the file system busy. If one does not end, the end
        // of the run tries again and reports it.
        let _ = world.end_strays(true);
        for step in std::mem::take(&mut self.clean_up) {
            // The subject's own clean-up comes next and removes the folder with the rest.
            let _ = world.perform(&step, OVERTIME, &crate::StopFlag::default());
        }
    }

    fn run(
        &mut self,
        trial: &Trial,
        mut ready: Ready,
        kept: &mut StoredTrial,
        output: &mut Option<RunOutput>,
        world: &mut dyn World,
    ) -> Result<Measured, Obstacle> {
        let workload = &trial.cell.workload;
        let Some(tool) = workload.tool() else {
            let reason = format!("the tool {:?} is not known", workload.tool);
            return Err(LabError::Reason(reason).into());
        };
        kept.region_bytes = ready.region_bytes;
        kept.commands.clone_from(&ready.commands);
        let sources = self.make_sources(tool, trial, world)?;
        let scratch = self.empty_scratch()?;
        let spec = TrialSpec {
            settings: &workload.settings,
            target: &ready.target,
            processes: workload.setup.processes,
            region_bytes: ready.region_bytes,
            room_bytes: ready.room_bytes,
            runtime_s: self.campaign.runtime_s,
            ramp_s: tool.ramp_s(self.campaign.ramp_s),
            seed: trial.seed,
            scratch: &scratch,
            sources: &sources,
        };
        let script = tool.plan(&spec).map_err(Obstacle::Impossible)?;
        self.clean_up.clone_from(&script.clean_up);
        let work = tool.work(&workload.settings, workload.setup.processes);
        kept.commands.extend(places_in_shell(&spec, &script, work.source));
        let limit = self.time_limit(tool, &spec);
        self.prepare(&script, trial, limit, kept, world)?;

        let before = world.snapshot(&ready.watch);
        kept.started_unix_s = world.unix_time_s();
        let began = world.monotonic();
        let own = |command: &CommandLine| command.with_own(&self.options.braid_binary);
        let measured: Vec<_> = script.measured.iter().map(own).collect();
        let processes = world.run_all(&measured, limit, &self.options.stop, &mut ready.story)?;
        if processes.iter().any(|process| process.exit == Exit::Stopped) {
            return Err(Obstacle::Stopped);
        }
        // Up to the last end: the time from there to here is the laboratory's own.
        let mut wall_s = processes.iter().map(|process| process.wall_s).fold(0.0, f64::max);
        if script.sync {
            kept.commands.extend(script.sync_in_shell(&ready.target));
            let before = world.monotonic();
            world.sync_path(place_of(&ready.target, &scratch))?;
            wall_s += (world.monotonic() - before).as_secs_f64();
        }
        self.spent.busy_s = (world.monotonic() - began).as_secs_f64();
        let after = world.snapshot(&ready.watch);

        kept.duration_s = wall_s;
        kept.events = ready.story.events().to_vec();
        kept.evidence = Evidence::between(&before, &after);
        let run = output.insert(RunOutput { processes, wall_s, files: read_scratch(&scratch)? });
        let mut measured = judge(tool, &spec, limit, run).map_err(LabError::Reason)?;
        measured.samples.extend(server_cpu(&measured, &spec, kept.evidence.server_cpu_s));
        Ok(measured)
    }

    /// Carries out the steps before the clock starts.
    fn prepare(
        &self,
        script: &Script,
        trial: &Trial,
        limit: Duration,
        kept: &mut StoredTrial,
        world: &mut dyn World,
    ) -> Result<(), Obstacle> {
        let stop = &self.options.stop;
        for step in &script.prepare {
            kept.commands.push(step.to_string());
            world.perform(step, limit, stop)?;
        }
        if trial.cell.workload.setup.drop_caches {
            world.drop_caches()?;
            kept.commands.push("sync; echo 3 > /proc/sys/vm/drop_caches".to_owned());
        }
        for step in &script.warm {
            kept.commands.push(step.to_string());
            world.perform(step, limit, stop)?;
        }
        rest(world, Duration::from_secs_f64(self.campaign.rest_s), stop)?;
        kept.commands.extend(script.measured_in_shell());
        Ok(())
    }

    fn make_sources(
        &self,
        tool: &dyn Tool,
        trial: &Trial,
        world: &mut dyn World,
    ) -> Result<PathBuf, LabError> {
        let folder = self.folder.path().join("sources");
        std::fs::create_dir_all(&folder).map_err(LabError::file("create", &folder))?;
        // Not the seed of the subjects' contents: a device that deduplicates would find the whole source.
        let seed = mix(&[self.campaign.seed(), SOURCES]);
        let Workload { settings, setup, .. } = &trial.cell.workload;
        if let Some(data) = tool.work(settings, setup.processes).source {
            make_source(data, &folder, seed, &self.options.stop, world)?;
        }
        Ok(folder)
    }

    fn empty_scratch(&self) -> Result<PathBuf, LabError> {
        let folder = self.folder.path().join("scratch");
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::file("empty", &folder)(error));
            }
            _ => {}
        }
        std::fs::create_dir(&folder).map_err(LabError::file("create", &folder))?;
        Ok(folder)
    }

    fn time_limit(&self, tool: &dyn Tool, spec: &TrialSpec<'_>) -> Duration {
        let time = match tool.work(spec.settings, spec.processes).effort {
            Effort::Runtime => Duration::from_secs_f64(spec.runtime_s + spec.ramp_s),
            Effort::Seconds(seconds) => Duration::from_secs_f64(seconds * 10.0),
            Effort::Bytes(bytes) => Duration::from_secs(bytes / SLOWEST),
        };
        time + OVERTIME
    }
}

/// Returns memory, if the sources leave half of the free memory; else the disk of the results.
fn home_of_sources(planned: &Planned, results: &Path) -> PathBuf {
    let needed =
        room_of_sources(planned.workloads.iter().filter_map(|workload| workload.work()?.source));
    let memory = Path::new("/dev/shm");
    let free = free_bytes(memory).unwrap_or(0);
    let available = crate::evidence::available_memory_bytes().unwrap_or(0);
    if needed < free.min(available) / 2 { memory.to_owned() } else { results.to_owned() }
}

/// Returns the largest number of bytes of different sources while they are made; each is made once.
fn room_of_sources(sources: impl Iterator<Item = SourceData>) -> u64 {
    // A tree of small files fills whole pages.
    let tree = |bytes: u64| bytes.saturating_mul(2);
    let room = |data: &SourceData| match data {
        SourceData::File(bytes) => *bytes,
        SourceData::Tree(bytes) => tree(*bytes),
        // The tree lies beside the archive until that is complete. In the archive each file has a header and is
        // padded to a block.
        SourceData::Archive(bytes) => tree(*bytes).saturating_add(bytes + bytes / 4),
    };
    let each_once: std::collections::BTreeSet<SourceData> = sources.collect();
    each_once.iter().map(room).fold(0, u64::saturating_add)
}

fn place_of<'a>(target: &'a Target, scratch: &'a Path) -> &'a Path {
    match target {
        Target::Device(path) | Target::Folder(path) => path,
        // An NBD client has nothing on this side to be synced.
        Target::Nbd(_) => scratch,
    }
}

/// Returns the text files that the tool left.
fn read_scratch(folder: &Path) -> Result<std::collections::BTreeMap<String, String>, LabError> {
    let mut files = std::collections::BTreeMap::new();
    let entries = std::fs::read_dir(folder).map_err(LabError::file("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(LabError::file("read", folder))?;
        let path = entry.path();
        let small = entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_LIMIT);
        if small {
            let bytes = std::fs::read(&path).map_err(LabError::file("read", &path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(files)
}

/// Returns the numbers, or the reason why there are none. `limit` is the time limit of the programs.
fn judge(
    tool: &dyn Tool,
    spec: &TrialSpec<'_>,
    limit: Duration,
    run: &RunOutput,
) -> Result<Measured, String> {
    let said = |process: &ToolOutput| match last_lines(&process.stderr) {
        lines if lines.is_empty() => String::new(),
        lines => format!(" ({lines})"),
    };
    if let Some(bad) = run.processes.iter().find(|process| process.exit != Exit::Code(0)) {
        let limit = match (&bad.exit, tool.work(spec.settings, spec.processes).effort) {
            (Exit::TimedOut, effort) => {
                let of = match effort {
                    Effort::Bytes(_) => "256 KiB/s for what it moves: take less (size)",
                    Effort::Runtime => "runtime_s: take more for a slow subject",
                    Effort::Seconds(_) => "ten times what it usually takes (a command's takes_s)",
                };
                format!(" of {} s, which is {} s and {of}", limit.as_secs(), OVERTIME.as_secs())
            }
            _ => String::new(),
        };
        return Err(format!("{}: {}{limit}{}", tool.name(), bad.exit, said(bad)));
    }
    tool.parse(spec, run).map_err(|error: ToolError| {
        format!("{error}{}", run.processes.first().map(said).unwrap_or_default())
    })
}

/// Returns the server's processor time for each request. The server also worked during the tool's ramp, if
/// there is one. The tool does not count those requests, so they are added at the measured rate.
fn server_cpu(measured: &Measured, spec: &TrialSpec<'_>, used_s: Option<f64>) -> Option<Sample> {
    let counted = measured.get(Metric::Requests)?;
    let requests = counted * (spec.runtime_s + spec.ramp_s) / spec.runtime_s;
    let value = used_s? * 1e9 / requests;
    value.is_finite().then_some(Sample { metric: Metric::ServerCpu, value })
}

#[cfg(test)]
mod tests;
