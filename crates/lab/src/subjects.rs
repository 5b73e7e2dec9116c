//! Bringing subjects up and down.
//!
//! ```text
//!   source ──provider──▶ base: device, file, NBD export, folder      stays up between trials
//!              fill      written once, where it will be read raw
//!              health    a member fails, or a story is prepared
//!              trial     read-ahead, file system, a folder           removed after each trial
//! ```
//!
//! A provider is a file under `subjects/`. Each object that is made is recorded in [`Held`] at once, so after a
//! failure at any step all objects are removed in reverse order.
//!
//! Invariants:
//!
//! * two subjects that share a file or a disk are never up together; of the others, the [`MOST_UP`] that were
//!   used last stay up, as far as memory allows;
//! * a subject is ready when it is handed out, and only the requested pass runs over it;
//! * its region has been written once before it is read raw, if [`crate::safety`] allows it;
//! * a stack that the campaign does not write is served read-only;
//! * every writer asks the [`Permit`] first, even for an unplanned write, and checks that the target is unused;
//! * a failed bring-up leaves nothing of its trial, and of its base only what is complete;
//! * after [`Subjects::take_down_all`] nothing is left, or the error names the rest;
//! * the remains of a killed run are removed by the next one in its results folder (`left.rs`).
//!
//! Deliberately absent: the decision what may be overwritten ([`crate::safety`]), and a configuration of
//! subjects: the expression has everything.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use braid_stack::Stack;

use crate::LabOptions;
use crate::array::{Braid, Keeper};
use crate::campaign::{Campaign, Health, Source, Subject};
use crate::command::{Exit, Target};
use crate::error::{LabError, Obstacle};
use crate::evidence::{Watch, find_memory_bytes};
use crate::facts::{Member, identities_of, members_of};
use crate::matrix::{Planned, Workload, goes_through_nbd};
use crate::safety::{Permit, Reasons, reasons_to_write, workload_writes};
use crate::source::{Form, Treatment, is_ephemeral, treatment};
use crate::story::Story;
use crate::world::World;

mod asked;
mod content;
mod devices;
mod directory;
mod filesystem;
mod hand;
mod held;
mod journal;
mod kernel;
mod left;
mod loops;
mod nbd;
mod path;
mod readahead;
mod site;
mod stack;
mod start;
mod things;
mod tmpfs;
mod treat;
mod trial;
mod zram;

pub(crate) use trial::Shares;

use asked::Asked;
use hand::Hand;
use held::Held;
pub(crate) use journal::{Journal, Room};
use site::{Base, LIMIT};

/// Largest number of subjects that are up: each is a process, and those in memory take the size of their
/// writes.
const MOST_UP: usize = 8;
/// Regions are whole blocks of this many bytes.
const BLOCK: u64 = 4096;

/// Rounds bytes down to whole blocks.
pub(crate) fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK * BLOCK
}

/// A subject that is ready to be measured.
#[derive(Debug)]
pub struct Ready {
    /// The place where the tool finds it.
    pub target: Target,
    /// Bytes of the whole subject; of a folder, the free bytes.
    pub size_bytes: u64,
    /// Bytes that the trial may use.
    pub region_bytes: u64,
    /// Bytes that a tool may ask for if it knows its needs.
    pub room_bytes: u64,
    /// The objects to observe around the trial.
    pub watch: Watch,
    /// The actions on the array while the tool runs.
    pub story: Story,
    /// The commands that brought it up, in shell syntax.
    pub commands: Vec<String>,
    /// The empty folder on the subject, if it has one, which is removed after the trial.
    pub folder: Option<PathBuf>,
}

/// All subjects of a campaign.
pub struct Subjects<'a> {
    campaign: Campaign,
    options: &'a LabOptions,
    subjects: Vec<Subject>,
    states: Vec<State>,
    /// Subjects that are up, the one that was used last at the end.
    up: Vec<usize>,
    /// Folder for sockets and braid's records of volumes; removed when the campaign is over.
    room: Room,
    /// The way to call braid; its records of volumes lie in the room.
    braid: Braid,
    journal: Rc<Journal>,
    /// The paths that may be overwritten.
    permit: Permit,
    /// The reasons why each subject is written.
    reasons: Vec<Reasons>,
    through_nbd: bool,
    will_be_hurt: bool,
}

/// The state of one subject.
struct State {
    base: Option<Base>,
    held: Held,
    commands: Vec<String>,
    /// Objects that only the present trial needs.
    trial: Held,
    /// The form in which it is up.
    form: Form,
    /// True if its health was changed and not restored.
    is_hurt: bool,
    is_filled: bool,
}

impl State {
    fn noted_in(journal: &Rc<Journal>) -> Self {
        Self {
            base: None,
            held: Held::noted_in(journal),
            commands: Vec::new(),
            trial: Held::noted_in(journal),
            form: Form::default(),
            is_hurt: false,
            is_filled: false,
        }
    }
}

impl<'a> Subjects<'a> {
    /// Returns the subjects, all down.
    ///
    /// # Errors
    ///
    /// No folder for sockets can be made, or the journal of an earlier run cannot be read.
    pub fn new(planned: &Planned, options: &'a LabOptions) -> Result<Self, LabError> {
        // A socket's path may have 107 bytes, so sockets are not in the results directory.
        let journal = Journal::open(&options.results_dir)?;
        let room = Room::new(&std::env::temp_dir(), "braid-lab-", &journal)?;
        let Planned { campaign, subjects, workloads, .. } = planned;
        let hurts = |workload: &Workload| workload.setup.health != Health::Healthy;
        Ok(Self {
            states: subjects.iter().map(|_| State::noted_in(&journal)).collect(),
            up: Vec::new(),
            subjects: subjects.clone(),
            braid: Braid::in_folder(options.braid_binary.display().to_string(), room.path()),
            room,
            journal,
            permit: Permit::new(&options.destroy),
            reasons: reasons_to_write(planned),
            through_nbd: !campaign.jobs.is_empty() && goes_through_nbd(&planned.workloads),
            will_be_hurt: workloads.iter().any(hurts),
            campaign: campaign.clone(),
            options,
        })
    }

    /// Makes a subject ready for a workload, and takes down those that are in its way.
    ///
    /// # Errors
    ///
    /// The reason why it is not ready; also if its server has died since the last trial.
    pub fn bring_up(
        &mut self,
        subject: usize,
        workload: &Workload,
        world: &mut dyn World,
    ) -> Result<Ready, Obstacle> {
        if let Some(reason) = &self.subjects[subject].impossible {
            return Err(Obstacle::Impossible(reason.clone()));
        }
        let writes = workload_writes(workload);
        if writes {
            self.check_permit(subject)?;
        }
        let treatment = treatment(&self.subjects[subject].source, workload.setup.health)
            .map_err(Obstacle::Impossible)?;
        self.take_down_rivals(subject, world)?;
        self.check_alive(subject, world)?;
        self.let_go(subject, world)?;
        let form = Form {
            short: treatment == Treatment::Short,
            // If one state of an array needs correct parity, all states get it: otherwise the states would
            // differ by more than the state.
            parity_as_found: !self.will_be_hurt && treatment == Treatment::Nothing,
            read_only: !writes && !self.reasons[subject].any(),
        };
        if self.states[subject].base.is_some() && self.states[subject].form != form {
            self.take_down(subject, false, world)?;
        }
        if self.states[subject].base.is_none() {
            // A failed attempt may have left objects.
            self.take_down(subject, false, world)?;
            self.make_room(subject, world)?;
            self.start(subject, form, world)?;
        }
        self.up.retain(|one| *one != subject);
        self.up.push(subject);
        if self.needs_fill(subject, workload) {
            self.fill(subject, world)?;
        }
        let mut commands = self.states[subject].commands.clone();
        let story = self.treat(subject, workload, treatment, &mut commands, world)?;
        match self.prepare(subject, workload, commands, world) {
            Ok(ready) => Ok(Ready { story, ..ready }),
            Err(obstacle) => Err(first_of(obstacle, self.end_trial(subject, false, world))),
        }
    }

    /// Removes the objects of a trial, and repairs the array if its health was changed; a healthy server stays
    /// up for the next trial.
    ///
    /// # Errors
    ///
    /// An object is busy, or the array does not recover.
    pub fn let_go(&mut self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        self.end_trial(subject, false, world)?;
        match self.states[subject].is_hurt {
            true => self.mend(subject, world),
            false => Ok(()),
        }
    }

    fn end_trial(
        &mut self,
        subject: usize,
        is_the_end: bool,
        world: &mut dyn World,
    ) -> Result<(), LabError> {
        let name = &self.subjects[subject].name;
        let mut hand = Hand { subject: name, braid: &self.braid, world };
        self.states[subject].trial.release(&mut hand, is_the_end)
    }

    /// Takes everything down. All objects are tried, if necessary by force; the first failure is returned.
    ///
    /// # Errors
    ///
    /// An object was not removed, or only by force, with the command that shows or removes it.
    pub fn take_down_all(&mut self, world: &mut dyn World) -> Result<(), LabError> {
        let all = 0..self.states.len();
        let results: Vec<_> = all.map(|subject| self.take_down(subject, true, world)).collect();
        results.into_iter().collect()
    }

    /// Returns the journal of held objects.
    pub(crate) fn journal(&self) -> Rc<Journal> {
        Rc::clone(&self.journal)
    }

    /// Returns the pass that runs over a volume's array now: `resync`, `recovery`, `check`. `None` if no pass
    /// runs, for arrays in the kernel's own tables, and for a volume that does not answer.
    pub fn pass_now(&self, subject: usize, world: &mut dyn World) -> Option<String> {
        let array = self.states[subject].base.as_ref()?.array.as_ref()?;
        let (name, stop) = (&self.subjects[subject].name, &self.options.stop);
        match array.keeper {
            Keeper::Volume { .. } => Asked { subject: name, array, stop, world }.ask().ok()?.pass,
            Keeper::Kernel { .. } => None,
        }
    }

    /// Returns true if the region must be written before a subject meets a workload.
    pub fn needs_fill(&self, subject: usize, workload: &Workload) -> bool {
        self.reasons[subject].fill && !self.states[subject].is_filled && workload.reads_raw()
    }

    /// Refuses to write to a subject with a member that was not named to be overwritten. Every writer calls
    /// this, so that a mistake in the plan destroys no data.
    fn check_permit(&self, subject: usize) -> Result<(), Obstacle> {
        Ok(self.permit.check(&self.subjects[subject].source)?)
    }

    /// Refuses a subject that another process has begun to use since it came up. Only subjects that are opened
    /// by their own path are checked: the others are held by their server, a loop device or an array.
    fn check_unused(&self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        let base = self.states[subject].base.as_ref();
        match (&self.subjects[subject].source, base.map(|base| &base.target)) {
            (Source::Path(path), Some(Target::Device(device))) if device == Path::new(path) => {
                world.check_unused(device)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a campaign that would write to a path in use, before the first trial.
    ///
    /// # Errors
    ///
    /// [`LabError::InUse`] with the first such path.
    pub fn check_all_unused(&self, world: &mut dyn World) -> Result<(), LabError> {
        let written = self.subjects.iter().zip(&self.reasons).filter(|(_, why)| why.any());
        for member in written.flat_map(|(subject, _)| members_of(&subject.source)) {
            if let Member::Path(path) = member {
                world.check_unused(Path::new(&path))?;
            }
        }
        Ok(())
    }

    fn take_down_rivals(&mut self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        let mine = identities_of(&self.subjects[subject].source);
        for other in self.up.clone() {
            let others = identities_of(&self.subjects[other].source);
            if other != subject && others.keys().any(|identity| mine.contains_key(identity)) {
                self.take_down(other, false, world)?;
            }
        }
        Ok(())
    }

    /// Takes down the subjects that were used longest ago, while too many are up, or `subject` needs the
    /// memory.
    fn make_room(&mut self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        let meminfo = world.read_text(Path::new("/proc/meminfo"))?.unwrap_or_default();
        // Without a known size the volume fails when it comes up.
        let most = find_memory_bytes(&meminfo).unwrap_or(u64::MAX);
        let memory = |one: &usize| self.subjects[*one].source.stack().map_or(0, Stack::memory);
        let fits = |up: &[usize]| {
            let all = up.iter().map(memory).fold(memory(&subject), u64::saturating_add);
            up.len() < MOST_UP && all <= most
        };
        let few = (0..self.up.len()).find(|first| fits(&self.up[*first..]));
        let oldest = self.up[..few.unwrap_or(self.up.len())].to_vec();
        oldest.into_iter().try_for_each(|one| self.take_down(one, false, world))
    }

    fn take_down(
        &mut self,
        subject: usize,
        is_the_end: bool,
        world: &mut dyn World,
    ) -> Result<(), LabError> {
        let trial = self.end_trial(subject, is_the_end, world);
        if trial.is_err() && !is_the_end {
            return trial;
        }
        let facts = &self.subjects[subject];
        let state = &mut self.states[subject];
        state.is_filled &= state.base.is_none() || !is_ephemeral(&facts.source);
        // In any case the base is no longer complete.
        (state.base, state.is_hurt) = (None, false);
        self.up.retain(|one| *one != subject);
        let mut hand = Hand { subject: &facts.name, braid: &self.braid, world };
        trial.and(state.held.release(&mut hand, is_the_end))
    }

    /// Reports a volume that died between two trials, instead of a silent restart: its death may be the most
    /// interesting result of the campaign.
    fn check_alive(&mut self, subject: usize, world: &mut dyn World) -> Result<(), Obstacle> {
        let base = self.states[subject].base.as_ref();
        let Some(name) = base.and_then(|base| base.volume.as_deref()) else { return Ok(()) };
        let ask = self.braid.call(["status", name, "--json"]);
        let done = world.run(&ask, LIMIT, &self.options.stop)?;
        match done.exit {
            Exit::Code(0) => return Ok(()),
            Exit::Stopped => return Err(Obstacle::Stopped),
            _ => {}
        }
        let command = self.states[subject].commands.join("; ");
        let left = self.take_down(subject, true, world).err();
        let left = left.map_or_else(String::new, |error| format!("; {error}"));
        Err(Obstacle::Failed(LabError::SubjectDown {
            subject: self.subjects[subject].name.clone(),
            reason: format!("its server ended by itself: `braid status` says {}{left}", done.exit),
            command,
            stderr: done.stderr,
        }))
    }
}

/// Returns the first failure; but an impossibility or a stop becomes an error if objects are left.
fn first_of(obstacle: Obstacle, cleared: Result<(), LabError>) -> Obstacle {
    match (obstacle, cleared) {
        (Obstacle::Impossible(_) | Obstacle::Stopped, Err(error)) => Obstacle::Failed(error),
        (obstacle, _) => obstacle,
    }
}

#[cfg(test)]
mod tests;
