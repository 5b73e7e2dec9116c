//! What a campaign writes and how long it takes, cell by cell; and what that is on each member.
//!
//! The amounts are of the tools' own words ([`Tool::writes`], [`Tool::lays_out`]) and of what the
//! laboratory adds: filling, as [`reasons_to_write`] decides it; and members that are filled again.
//! What cannot be known beforehand is left out, and the plan says so: what file systems, superblocks
//! and logs write of their own, how often memory is filled because it had to go in between, and the
//! resync of an array without superblocks each time that it comes up.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use braid_stack::{ByteSize, Node, Stack};

use super::Written;
use super::rates::Rates;
use super::spread::{capacity, spread};
use crate::campaign::{Campaign, FileSystem, Health, Source, Subject};
use crate::command::Target;
use crate::facts::members_of;
use crate::matrix::{Cell, Planned, Workload};
use crate::safety::reasons_to_write;
use crate::source::refilled;
use crate::subjects::{Shares, whole_blocks};
use crate::tool::enough::{ENOUGH_S, START_UP_ENOUGH, START_UP_S};
use crate::tool::{self, Effort, Tool, TrialSpec, Writes};
use crate::world::{free_bytes, size_of};

/// Bringing up, starting a tool and writing its result down, roughly.
const SET_UP: Duration = Duration::from_millis(600);
/// Making and mounting a file system, roughly.
const MAKE_FILE_SYSTEM: Duration = Duration::from_millis(700);
/// What a file system leaves of its device, roughly and rather too little: journal, inodes, and what
/// is kept for root.
const LEFT_BY_FILE_SYSTEM: f64 = 0.85;
/// What the whole campaign does, in figures.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// What one trial of each cell takes, in the order of the campaign's; nothing where it is
    /// impossible.
    pub(super) cells: Vec<Duration>,
    /// What is done once before.
    pub(super) fill: Duration,
    /// Whether a rate was assumed that nobody has measured.
    pub(super) assumes: bool,
    /// By the member's text in the campaign.
    pub(super) written: BTreeMap<String, Written>,
    /// What will hardly find room, or be over too soon: the subject's index and a sentence.
    pub(super) tight: Vec<(usize, String)>,
}

/// Adds everything up.
pub(super) fn plan_work(planned: &Planned) -> Work {
    let Planned { campaign, subjects, cells, .. } = planned;
    let reasons = reasons_to_write(planned);
    let mut work = Work { cells: vec![Duration::ZERO; cells.len()], ..Work::default() };
    for (index, subject) in subjects.iter().enumerate() {
        let is_mine = |cell: &Cell| cell.subject == index && cell.impossible.is_none();
        let mine = cells.iter().enumerate().filter(|(_, cell)| is_mine(cell));
        let mut place = Place::new(subject, campaign, &mut work);
        place.add_members();
        for (number, cell) in mine {
            place.work.cells[number] = place.add_cell(&cell.workload);
            let tight = place.why_tight(&cell.workload).or_else(|| place.why_short(&cell.workload));
            place.work.tight.extend(tight.map(|why| (index, why)));
        }
        if reasons[index].fill {
            place.add_fill();
        }
    }
    work
}

/// One subject, and where its bytes go.
struct Place<'p> {
    source: &'p Source,
    campaign: &'p Campaign,
    /// What is not known is as large as the region.
    size: u64,
    is_size_known: bool,
    rates: Rates,
    work: &'p mut Work,
}

impl<'p> Place<'p> {
    fn new(subject: &'p Subject, campaign: &'p Campaign, work: &'p mut Work) -> Self {
        let known = size_of_source(&subject.source);
        let is_size_known = known.is_some() || subject.source.is_folder();
        let size = known.unwrap_or(campaign.region.0);
        let rates = subject.source.stack().map_or(Rates::ASSUMED, Rates::of);
        Self { source: &subject.source, campaign, size, is_size_known, rates, work }
    }

    /// Bytes of the subject that raw trials use.
    fn region(&self) -> u64 {
        whole_blocks(self.campaign.region.0.min(self.size))
    }

    /// Bytes that a trial in a folder may use, and may ask for.
    fn rooms(&self) -> [u64; 2] {
        let (free, is_folder) = match self.source {
            Source::Directory(folder) => {
                (free_bytes(Path::new(folder)).unwrap_or(self.campaign.region.0) as f64, true)
            }
            _ => (self.size as f64 * LEFT_BY_FILE_SYSTEM, false),
        };
        Shares::of(is_folder).bytes(free, self.campaign.region.0)
    }

    /// Every member is named, though nothing may be written to it.
    fn add_members(&mut self) {
        for member in members_of(self.source) {
            self.work.written.entry(member.text().to_owned()).or_default();
        }
    }

    /// Answers what one trial takes.
    fn add_cell(&mut self, workload: &Workload) -> Duration {
        let repetitions = f64::from(self.campaign.repetitions);
        let setup = &workload.setup;
        let (mut time, mut laid_out) = (SET_UP, 0);
        let in_folder = setup.filesystem != FileSystem::None || self.source.is_folder();
        if setup.filesystem.is_made() {
            time += MAKE_FILE_SYSTEM;
        }
        let mut seconds = self.campaign.rest_s;
        if let Some(tool) = workload.tool() {
            seconds += self.effort_s(tool, workload);
            if in_folder {
                laid_out = tool.lays_out(&workload.settings, setup.processes, self.rooms()[0]);
            }
            match tool.writes(&workload.settings, setup.processes) {
                Writes::Nothing => {}
                Writes::Bytes(bytes) if in_folder => self.write_anywhere(bytes, repetitions),
                Writes::Bytes(bytes) => self.write_first(bytes.min(self.region()), repetitions),
                Writes::UntilTime => self.write_until(in_folder, self.until_s(tool) * repetitions),
            }
        }
        self.write_anywhere(laid_out, repetitions);
        let refilled = self.add_refill(setup.health, repetitions);
        seconds += self.write_s(laid_out + refilled);
        time + Duration::from_secs_f64(seconds)
    }

    fn write_s(&mut self, bytes: u64) -> f64 {
        self.work.assumes |= bytes > 0 && !self.rates.are_known;
        bytes as f64 / self.rates.write
    }

    /// Why a trial will be over too soon for its number to be believed, where that can be told.
    fn why_short(&self, workload: &Workload) -> Option<String> {
        let tool = workload.tool()?;
        let effort = tool.effort(&workload.settings, workload.setup.processes);
        let (seconds, next) = match effort {
            Effort::Runtime if self.campaign.runtime_s < ENOUGH_S => {
                (self.campaign.runtime_s, "take --runtime 1 or more")
            }
            // It begins and ends by a clock of its own.
            Effort::Bytes(bytes) if self.rates.are_known => {
                let seconds = bytes as f64 / self.rate_of(tool, workload);
                let is_short = START_UP_S / seconds > START_UP_ENOUGH;
                is_short.then_some((seconds, "take a larger size"))?
            }
            _ => return None,
        };
        Some(format!(
            "Probably too short to be believed: {}: a trial takes about {seconds:.2} s; {next}",
            workload.label()
        ))
    }

    /// What a tool moves that is done after so many bytes.
    fn rate_of(&self, tool: &dyn Tool, workload: &Workload) -> f64 {
        match tool.writes(&workload.settings, workload.setup.processes) {
            Writes::Nothing => self.rates.read,
            _ => self.rates.read.min(self.rates.write),
        }
    }

    /// Why a workload that may be impossible for want of room probably is. A tool says it when it
    /// is asked for its commands; only it knows what it needs.
    fn why_tight(&self, workload: &Workload) -> Option<String> {
        let tool = workload.tool().filter(|_| self.is_size_known)?;
        let nowhere = Path::new("/");
        let in_folder = workload.setup.filesystem.is_made() || self.source.is_folder();
        let (target, [region_bytes, room_bytes]) = if in_folder {
            (Target::Folder(nowhere.into()), self.rooms())
        } else if matches!(tool.place(&workload.settings), tool::Place::Either { .. }) {
            (Target::Device(nowhere.into()), [self.region(); 2])
        } else {
            return None;
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
        Some(format!("Probably impossible: {}: {why}", workload.label()))
    }

    fn effort_s(&mut self, tool: &dyn Tool, workload: &Workload) -> f64 {
        match tool.effort(&workload.settings, workload.setup.processes) {
            Effort::Runtime => self.until_s(tool),
            Effort::Seconds(seconds) => seconds,
            Effort::Bytes(bytes) => {
                self.work.assumes |= !self.rates.are_known;
                bytes as f64 / self.rate_of(tool, workload)
            }
        }
    }

    /// The region, once: also of memory, which is filled again when it was gone in between.
    fn add_fill(&mut self) {
        let bytes = self.region();
        self.write_first(bytes, 1.0);
        let seconds = self.write_s(bytes);
        self.work.fill += Duration::from_secs_f64(seconds);
    }

    /// The member that a state of the array has filled again; answers its bytes.
    fn add_refill(&mut self, health: Health, repetitions: f64) -> u64 {
        let Some(member) = refilled(self.source, health) else { return 0 };
        let bytes = size_of(Path::new(&member)).unwrap_or(self.campaign.region.0);
        self.work.written.entry(member).or_default().bytes += bytes as f64 * repetitions;
        bytes
    }

    /// The first bytes of the subject are written so often.
    fn write_first(&mut self, bytes: u64, times: f64) {
        for (member, share) in self.shares(bytes) {
            self.work.written.entry(member).or_default().bytes += share as f64 * times;
        }
    }

    /// So many bytes are written somewhere in a file system: to each member its part of the whole.
    fn write_anywhere(&mut self, bytes: u64, times: f64) {
        let part = bytes as f64 / self.size.max(1) as f64;
        for (member, share) in self.shares(self.size) {
            self.work.written.entry(member).or_default().bytes += share as f64 * part * times;
        }
    }

    /// How long a tool that runs for a time takes, seconds.
    fn until_s(&self, tool: &dyn Tool) -> f64 {
        self.campaign.runtime_s + tool.ramp_s(self.campaign.ramp_s)
    }

    /// As much as it takes is written for so many seconds.
    fn write_until(&mut self, in_folder: bool, seconds: f64) {
        let bytes = if in_folder { self.size } else { self.region() };
        for (member, share) in self.shares(bytes) {
            if share > 0 {
                self.work.written.entry(member).or_default().seconds += seconds;
            }
        }
    }

    /// What each member is written when the first `bytes` are.
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

/// Bytes of a subject, if they can be known without bringing it up. Looks at files and devices.
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
        Node::Ram(ram) => Some(ram.size.0),
        Node::Model(model) => Some(model.size.0),
        Node::File(file) => match file.length {
            Some(length) => Some(length.0),
            None => size_of(Path::new(&file.path)).map(|size| size.saturating_sub(file.offset.0)),
        },
        _ => None,
    }
}
