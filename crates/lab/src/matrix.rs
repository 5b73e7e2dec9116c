//! The expansion of a campaign into cells, and the order of the trials. Pure.
//!
//! Invariants:
//!
//! * every cell appears once in each repetition, and repetition r is over before r + 1 begins (blocking: a
//!   drift over the hours affects all cells alike);
//! * inside a repetition the order is drawn by the campaign's seed, and balanced over repetitions (`order`);
//! * the offsets of a trial depend on workload and repetition and not on the subject, so that compared pairs
//!   use the same offsets;
//! * an impossible cell is in the matrix with its reason.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::campaign::{Campaign, FileSystem, Job, Setup, Source, Subject};
use crate::metric::Metric;
use crate::settings::{Parameter, Settings, Value, vary};
use crate::tool::{Place, Tool, Work};
use braid_seed::mix;

mod check;
mod order;

pub use check::parse_campaign;

/// One workload, with all values set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Workload {
    /// The tool's name in the registry.
    pub tool: String,
    /// The tool's parameters.
    pub settings: Settings,
    /// The environment of the tool.
    pub setup: Setup,
}

impl Workload {
    /// Returns the tool.
    pub fn tool(&self) -> Option<&'static dyn Tool> {
        crate::tool::find(&self.tool)
    }

    /// Returns the tool's work.
    pub fn work(&self) -> Option<Work> {
        Some(self.tool()?.work(&self.settings, self.setup.processes))
    }

    /// Returns true if the workload reads raw data that must have been written before.
    pub(crate) fn reads_raw(&self) -> bool {
        self.setup.filesystem == FileSystem::None && self.work().is_some_and(|work| work.reads_raw)
    }

    /// Returns a name that is unique within the campaign: `random read 4K, depth 32 × 2, ext4`.
    pub fn label(&self) -> String {
        self.to_string()
    }

    /// Returns the number that is compared between subjects.
    pub fn headline(&self) -> Metric {
        self.work().map_or(Metric::Seconds, |work| work.headline)
    }

    /// Returns all dimensions, for pivots: the tool's parameters by name, and `tool`, `filesystem`, `mkfs`,
    /// `mount`, `readahead`, `health`, `processes`, `drop_caches`.
    pub fn dimensions(&self) -> BTreeMap<String, Value> {
        let setup = &self.setup;
        let word = |text: &str| Value::Word(text.to_owned());
        let mut dimensions = self.settings.0.clone();
        dimensions.extend(
            [
                ("tool", word(&self.tool)),
                ("filesystem", word(setup.filesystem.name())),
                ("mkfs", word(&setup.mkfs)),
                ("mount", word(&setup.mount)),
                ("health", word(setup.health.name())),
                ("processes", Value::Count(setup.processes.into())),
                ("drop_caches", Value::Flag(setup.drop_caches)),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        dimensions.extend(setup.readahead.map(|size| ("readahead".to_owned(), Value::Size(size))));
        dimensions
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tool() {
            Some(tool) => f.write_str(&tool.label(&self.settings))?,
            None => f.write_str(&self.tool)?,
        }
        write!(f, "{}", self.setup)
    }
}

/// A workload on a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Index into the campaign's expanded subjects.
    pub subject: usize,
    /// Number of the workload, 0-based, in the campaign's order.
    pub workload_index: usize,
    /// The workload.
    pub workload: Workload,
    /// The reason why the cell cannot be measured, if that is known beforehand.
    pub impossible: Option<String>,
}

impl Cell {
    /// Returns the indices of subject and workload.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.subject, self.workload_index)
    }
}

/// A cell in one repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Position in the schedule, from 1; names the raw files.
    pub number: u32,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// The cell that is measured.
    pub cell: Cell,
    /// Seed of the offsets and contents.
    pub seed: u64,
}

/// An expanded campaign: expanded once, and passed to the code that runs or describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The campaign.
    pub campaign: Campaign,
    /// The expanded subjects.
    pub subjects: Vec<Subject>,
    /// The workloads, in the order of the campaign; each once, although two jobs may have it for different
    /// subjects.
    pub workloads: Vec<Workload>,
    /// Every workload on every subject of its job.
    pub cells: Vec<Cell>,
    /// The trials in the order in which they run.
    pub trials: Vec<Trial>,
}

impl Planned {
    /// Expands a campaign that has been checked.
    pub fn of(campaign: &Campaign) -> Self {
        Self::on(campaign, campaign.expand())
    }

    /// Returns a subject's possible cells, as far as is known beforehand.
    pub(crate) fn possible_of(&self, subject: usize) -> impl Iterator<Item = &Cell> {
        let mine = self.cells.iter().filter(move |cell| cell.subject == subject);
        mine.filter(|cell| cell.impossible.is_none())
    }

    /// Returns the possible trials, as far as is known beforehand.
    pub(crate) fn possible_trials(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.cell.impossible.is_none())
    }

    fn on(campaign: &Campaign, subjects: Vec<Subject>) -> Self {
        let of_job = |job| (job, plan_job(campaign, &subjects, job));
        let jobs: Vec<(&Job, Vec<Workload>)> = campaign.jobs.iter().map(of_job).collect();
        let mut index = BTreeMap::new();
        let mut workloads = Vec::new();
        for workload in jobs.iter().flat_map(|(_, all)| all) {
            index.entry(workload).or_insert_with(|| {
                workloads.push(workload.clone());
                workloads.len() - 1
            });
        }
        let mut cells = Vec::new();
        for (job, workload) in jobs.iter().flat_map(|(job, all)| all.iter().map(move |w| (job, w)))
        {
            let mine = subjects.iter().enumerate().filter(|(_, s)| suits(job, workload, s));
            cells.extend(mine.map(|(subject, facts)| Cell {
                subject,
                workload_index: index[workload],
                workload: workload.clone(),
                impossible: why_impossible(facts, workload),
            }));
        }
        cells.sort_by_key(|cell| (cell.workload_index, cell.subject));
        let trials = schedule(campaign, &cells);
        Self { campaign: campaign.clone(), subjects, workloads, cells, trials }
    }
}

/// Returns the workloads of one job: every combination of its lists. Without a named file system, folders get
/// workloads of their own: the file system of a folder differs from one that is made on a device, and the two
/// must not be compared.
fn plan_job(campaign: &Campaign, subjects: &[Subject], job: &Job) -> Vec<Workload> {
    let Some(tool) = crate::tool::find(&job.tool) else {
        return Vec::new();
    };
    let mine = || subjects.iter().filter(|subject| job.is_for(&subject.name));
    let in_folders = mine().any(|subject| subject.source.is_folder());
    let on_devices = !in_folders || mine().any(|subject| !subject.source.is_folder());
    let mut all_settings = vec![Settings::defaults(tool.parameters())];
    for Parameter { name, .. } in tool.parameters() {
        all_settings = vary(&all_settings, job.values(name), |settings, value| {
            settings.0.insert((*name).to_owned(), value);
        });
    }
    let mut workloads = Vec::new();
    for settings in all_settings {
        let place = tool.work(&settings, 1).place;
        let mut filesystems = Vec::new();
        for (_, in_folder) in [(on_devices, false), (in_folders, true)].iter().filter(|one| one.0) {
            let new = job.filesystems(place, *in_folder).into_iter();
            let new: Vec<FileSystem> = new.filter(|one| !filesystems.contains(one)).collect();
            filesystems.extend(new);
        }
        let setups = [Setup { drop_caches: campaign.drop_caches, ..Setup::default() }];
        let setups = vary(&setups, &filesystems, |setup, one| setup.filesystem = one);
        let setups = Setup::KEYS.iter().fold(setups, |setups, key| {
            vary(&setups, job.values(key), |setup, value| setup.set(key, value))
        });
        workloads.extend(setups.into_iter().map(|setup| Workload {
            tool: job.tool.clone(),
            settings: settings.clone(),
            setup,
        }));
    }
    workloads
}

/// Returns true if a workload of a job is for a subject: folders and devices have workloads of their own.
fn suits(job: &Job, workload: &Workload, subject: &Subject) -> bool {
    job.is_for(&subject.name)
        && workload.work().is_some_and(|work| {
            let own = job.filesystems(work.place, subject.source.is_folder());
            own.contains(&workload.setup.filesystem)
        })
}

/// Returns why a workload cannot run on a subject, as far as the campaign alone tells.
fn why_impossible(subject: &Subject, workload: &Workload) -> Option<String> {
    if subject.impossible.is_some() {
        return subject.impossible.clone();
    }
    let work = workload.work()?;
    let setup = &workload.setup;
    let needs_device = match work.place {
        Place::Device => true,
        Place::Either => setup.filesystem == FileSystem::None,
        Place::Folder => false,
    };
    match &subject.source {
        Source::Directory(_) if needs_device => {
            Some(format!("{} needs a raw device and this is a folder", workload.tool))
        }
        Source::Directory(_) if !setup.leaves_folders_alone() => Some(FOLDER_AS_IT_IS.to_owned()),
        Source::Directory(_) if setup.readahead.is_some() => Some(
            "read-ahead is set on a device, and a folder's device is not the laboratory's".into(),
        ),
        Source::Nbd(_) if !work.speaks_nbd || *setup != nbd_setup(setup) => Some(
            "an NBD export is not a block device of this machine: attach it first and name the \
             device as a path"
                .into(),
        ),
        source => crate::source::why_never(source, setup.health),
    }
}

/// The reason why a job is impossible in a folder.
pub(crate) const FOLDER_AS_IT_IS: &str = "a folder keeps its file system and its mount: leave \
     filesystem, mkfs and mount out, or name its device as a path";

/// Returns the part of a setup that is possible without a device of this kernel.
fn nbd_setup(setup: &Setup) -> Setup {
    Setup { processes: setup.processes, drop_caches: setup.drop_caches, ..Setup::default() }
}

/// Returns true if all stacks of this campaign can be measured through NBD: every tool speaks it and nothing
/// needs a block device. Otherwise all of them are attached, so that all numbers of a campaign use one path.
pub fn goes_through_nbd(workloads: &[Workload]) -> bool {
    // Workloads in folders do not concern stacks.
    let mut of_devices = workloads.iter().filter(|one| one.setup.filesystem != FileSystem::Own);
    of_devices.all(|workload| {
        let health = Setup { health: workload.setup.health, ..nbd_setup(&workload.setup) };
        workload.work().is_some_and(|work| work.speaks_nbd) && workload.setup == health
    })
}

/// Returns the trials in the order in which they run.
fn schedule(campaign: &Campaign, cells: &[Cell]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for repetition in 1..=campaign.repetitions {
        for cell in order::order_of(cells, campaign.seed(), repetition) {
            let (number, cell) = (trials.len() as u32 + 1, cells[cell].clone());
            let seed = mix(&[campaign.seed(), repetition.into(), cell.workload_index as u64]);
            trials.push(Trial { number, repetition, cell, seed });
        }
    }
    trials
}

#[cfg(test)]
mod tests;
