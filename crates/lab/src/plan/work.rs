//! The amount that a campaign writes and its time, cell by cell, and the amount on each member.
//!
//! The amounts come from the tools ([`Work::writes`], [`Tool::lays_out`]) and from the laboratory: filling, as
//! [`reasons_to_write`] decides it, and members that are filled again. Unknown amounts are left out, and the
//! plan says so: writes of file systems, superblocks and logs, repeated fills of memory that was taken down in
//! between, and the resync of an array without superblocks at each start.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use braid_stack::{ByteSize, Node, Stack};

use super::Written;
use super::rates::Rates;
use super::spread::{capacity, size_that_is_said, spread};
use crate::campaign::{Campaign, FileSystem, Source, Subject};
use crate::command::Target;
use crate::facts::members_of;
use crate::matrix::{Planned, Workload};
use crate::safety::reasons_to_write;
use crate::source::refilled;
use crate::subjects::{Shares, whole_blocks};
use crate::tool::enough::{ENOUGH_S, START_UP_ENOUGH, START_UP_S};
use crate::tool::{Effort, Place, Tool, TrialSpec, Work, Writes};
use crate::world::{free_bytes, size_of};

/// Time to bring a subject up, start a tool and store its result, roughly.
const SET_UP_S: f64 = 0.6;
/// Time to make and mount a file system, roughly.
const MAKE_FILE_SYSTEM_S: f64 = 0.7;
/// Share of a device that a file system leaves, roughly and rather too little: without journal, inodes, and
/// root's reserve.
const LEFT_BY_FILE_SYSTEM: f64 = 0.85;

/// The figures of a whole campaign.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Time of one trial of each cell, in the order of the campaign's; 0 if it is impossible.
    pub(super) cells: Vec<Duration>,
    /// Time of the steps that come once, at first.
    pub(super) fill: Duration,
    /// True if the rate of an unmeasured device was assumed.
    pub(super) assumes: bool,
    /// Amounts by the member's text in the campaign.
    pub(super) written: BTreeMap<String, Written>,
    /// Workloads that will hardly have room, or be too short: the subject's index and a sentence.
    pub(super) tight: Vec<(usize, String)>,
}

/// Adds up the figures of a campaign.
pub(super) fn add_up(planned: &Planned) -> Figures {
    let Planned { campaign, subjects, cells, .. } = planned;
    let reasons = reasons_to_write(planned);
    let mut figures = Figures { cells: vec![Duration::ZERO; cells.len()], ..Figures::default() };
    for (index, subject) in subjects.iter().enumerate() {
        let mut adding = Adding::new(subject, campaign, &mut figures);
        for (number, cell) in cells.iter().enumerate() {
            let is_mine = cell.subject == index && cell.impossible.is_none();
            let task = is_mine.then(|| Task::of(&cell.workload)).flatten();
            let Some(task) = task else { continue };
            adding.figures.cells[number] = adding.add_task(&task);
            let tight = adding.why_tight(&task).or_else(|| adding.why_short(&task));
            adding.figures.tight.extend(tight.map(|why| (index, why)));
        }
        if reasons[index].fill {
            adding.add_fill();
        }
    }
    figures
}

/// A workload with its tool and work.
struct Task<'w> {
    workload: &'w Workload,
    tool: &'static dyn Tool,
    work: Work,
}

impl<'w> Task<'w> {
    fn of(workload: &'w Workload) -> Option<Self> {
        Some(Self { workload, tool: workload.tool()?, work: workload.work()? })
    }
}

/// One subject, and the target of its figures.
struct Adding<'p> {
    source: &'p Source,
    campaign: &'p Campaign,
    /// Size of the subject; an unknown size is taken to be that of the region.
    size: u64,
    is_size_known: bool,
    rates: Rates,
    figures: &'p mut Figures,
}

impl<'p> Adding<'p> {
    fn new(subject: &'p Subject, campaign: &'p Campaign, figures: &'p mut Figures) -> Self {
        let source = &subject.source;
        // Every member is listed, even if it is not written.
        for member in members_of(source) {
            figures.written.entry(member.text().to_owned()).or_default();
        }
        let known = size_of_source(source);
        let is_size_known = known.is_some() || source.is_folder();
        let size = known.unwrap_or(campaign.region.0);
        let rates = source.stack().map_or(Rates::ASSUMED, Rates::of);
        Self { source, campaign, size, is_size_known, rates, figures }
    }

    /// Returns the bytes of the subject that raw trials use.
    fn region(&self) -> u64 {
        whole_blocks(self.campaign.region.0.min(self.size))
    }

    /// Returns the bytes that a trial in a folder may use, and may ask for.
    fn rooms(&self) -> [u64; 2] {
        let (free, is_folder) = match self.source {
            Source::Directory(folder) => {
                (free_bytes(Path::new(folder)).unwrap_or(self.campaign.region.0) as f64, true)
            }
            _ => (self.size as f64 * LEFT_BY_FILE_SYSTEM, false),
        };
        Shares::of(is_folder).bytes(free, self.campaign.region.0)
    }

    /// Adds a task; returns the time of one trial.
    fn add_task(&mut self, task: &Task<'_>) -> Duration {
        let Workload { settings, setup, .. } = task.workload;
        let repetitions = f64::from(self.campaign.repetitions);
        let in_folder = setup.filesystem != FileSystem::None || self.source.is_folder();
        let until_s = self.campaign.runtime_s + task.tool.ramp_s(self.campaign.ramp_s);
        let mut seconds = SET_UP_S + self.campaign.rest_s;
        if setup.filesystem.is_made() {
            seconds += MAKE_FILE_SYSTEM_S;
        }
        seconds += match task.work.effort {
            Effort::Runtime => until_s,
            Effort::Seconds(seconds) => seconds,
            Effort::Bytes(bytes) => {
                self.figures.assumes |= !self.rates.are_known;
                bytes as f64 / self.rate_of(task)
            }
        };
        match task.work.writes {
            Writes::Nothing => {}
            Writes::Bytes(bytes) if in_folder => self.write_anywhere(bytes, repetitions),
            Writes::Bytes(bytes) => self.write_first(bytes.min(self.region()), repetitions),
            Writes::UntilTime => self.write_until(in_folder, until_s * repetitions),
        }
        let laid_out = match in_folder {
            true => task.tool.lays_out(settings, setup.processes, self.rooms()[0]),
            false => 0,
        };
        self.write_anywhere(laid_out, repetitions);
        // The member that a state of the array has filled again.
        let refilled = refilled(self.source, setup.health).map_or(0, |member| {
            let bytes = size_of(Path::new(&member)).unwrap_or(self.campaign.region.0);
            self.written_to(member).bytes += bytes as f64 * repetitions;
            bytes
        });
        Duration::from_secs_f64(seconds + self.write_s(laid_out + refilled))
    }

    fn written_to(&mut self, member: String) -> &mut Written {
        self.figures.written.entry(member).or_default()
    }

    fn write_s(&mut self, bytes: u64) -> f64 {
        self.figures.assumes |= bytes > 0 && !self.rates.are_known;
        bytes as f64 / self.rates.write
    }

    /// Returns why a trial will be too short for its number to be believed, if that is known.
    fn why_short(&self, task: &Task<'_>) -> Option<String> {
        let (seconds, next) = match task.work.effort {
            Effort::Runtime if self.campaign.runtime_s < ENOUGH_S => {
                (self.campaign.runtime_s, "take --runtime 1 or more")
            }
            // dd has a clock of its own.
            Effort::Bytes(bytes) if self.rates.are_known => {
                let seconds = bytes as f64 / self.rate_of(task);
                let is_short = START_UP_S / seconds > START_UP_ENOUGH;
                is_short.then_some((seconds, "take a larger size"))?
            }
            _ => return None,
        };
        Some(format!(
            "Probably too short to be believed: {}: a trial takes about {seconds:.2} s; {next}",
            task.workload
        ))
    }

    /// Returns the rate of a tool that ends after so many bytes.
    fn rate_of(&self, task: &Task<'_>) -> f64 {
        match task.work.writes {
            Writes::Nothing => self.rates.read,
            _ => self.rates.read.min(self.rates.write),
        }
    }

    /// Returns why a workload that may lack room probably does. The tool's plan says so; only the tool knows
    /// its needs.
    fn why_tight(&self, task: &Task<'_>) -> Option<String> {
        let Task { workload, tool, work } = task;
        let nowhere = Path::new("/");
        let in_folder = workload.setup.filesystem.is_made() || self.source.is_folder();
        let (target, [region_bytes, room_bytes]) = match work.place {
            _ if !self.is_size_known => return None,
            _ if in_folder => (Target::Folder(nowhere.into()), self.rooms()),
            Place::Either => (Target::Device(nowhere.into()), [self.region(); 2]),
            Place::Device | Place::Folder => return None,
        };
        let planned = tool.plan(&TrialSpec {
            settings: &workload.settings,
            target: &target,
            processes: workload.setup.processes,
            region_bytes,
            room_bytes,
            runtime_s: self.campaign.runtime_s,
            ramp_s: tool.ramp_s(self.campaign.ramp_s),
            seed: 0,
            scratch: nowhere,
            sources: nowhere,
        });
        let why = planned.err()?;
        Some(format!("Probably impossible: {workload}: {why}"))
    }

    /// Adds the fill of the region, once: also for memory, which is filled again after it was taken down.
    fn add_fill(&mut self) {
        let bytes = self.region();
        self.write_first(bytes, 1.0);
        let seconds = self.write_s(bytes);
        self.figures.fill += Duration::from_secs_f64(seconds);
    }

    /// Adds `times` writes of the first bytes of the subject.
    fn write_first(&mut self, bytes: u64, times: f64) {
        for (member, share) in self.shares(bytes) {
            self.written_to(member).bytes += share as f64 * times;
        }
    }

    /// Adds `times` writes of so many bytes somewhere in a file system: to each member its part of the whole.
    fn write_anywhere(&mut self, bytes: u64, times: f64) {
        let part = bytes as f64 / self.size.max(1) as f64;
        for (member, share) in self.shares(self.size) {
            self.written_to(member).bytes += share as f64 * part * times;
        }
    }

    /// Adds writes at full speed for so many seconds.
    fn write_until(&mut self, in_folder: bool, seconds: f64) {
        let bytes = if in_folder { self.size } else { self.region() };
        for (member, share) in self.shares(bytes) {
            if share > 0 {
                self.written_to(member).seconds += seconds;
            }
        }
    }

    /// Returns the bytes that each member gets when the first `bytes` are written.
    fn shares(&self, bytes: u64) -> BTreeMap<String, u64> {
        match self.source {
            // The campaign was checked before it was planned.
            Source::Stack(_) | Source::Kernel(_) => self
                .source
                .stack()
                .map(|stack| spread(stack, bytes, &size_of_leaf))
                .unwrap_or_default(),
            _ => members_of(self.source)
                .into_iter()
                .map(|member| (member.text().to_owned(), bytes))
                .collect(),
        }
    }
}

/// Returns the bytes of a subject, if they are known without bringing it up. Reads files and devices.
fn size_of_source(source: &Source) -> Option<u64> {
    match source {
        Source::Stack(_) | Source::Kernel(_) => capacity(source.stack()?, &size_of_leaf),
        Source::Path(path) => size_of(Path::new(path)),
        Source::Zram(text) | Source::Tmpfs(text) => {
            text.parse::<ByteSize>().ok().map(|size| size.0)
        }
        Source::Directory(_) | Source::Nbd(_) => None,
    }
}

fn size_of_leaf(leaf: &Stack) -> Option<u64> {
    match &leaf.node {
        Node::File(file) if file.length.is_none() => {
            size_of(Path::new(&file.path)).map(|size| size.saturating_sub(file.offset.0))
        }
        _ => size_that_is_said(leaf),
    }
}
