//! Brings subjects up and down.
//!
//! ```text
//!   source ──provider──▶ base: device, file, NBD export, folder      stays up between trials
//!              fill      written once, where it will be read raw
//!              health    a member fails, or a story is made of it
//!              trial     read-ahead, file system, a folder           goes after each trial
//! ```
//!
//! A provider is a file under `subjects/`. Each thing that comes into being is noted in [`Held`] at
//! once, so whatever stands in the way later, what is there goes away again in reverse order.
//!
//! Invariants:
//!
//! * two subjects that share a file or a disk are never up together; of those that share nothing,
//!   the [`MOST_UP`] that were used last stay up, as far as memory holds them;
//! * a subject that is handed out is ready, and no pass runs over it but the one that was asked for;
//! * its region has been written once before it is read raw, where [`crate::safety`] lets it be;
//! * a stack that the campaign does not write is served for reading only;
//! * whatever writes asks the [`Permit`] first, also where nobody planned that it would, and whether
//!   somebody else uses what it writes;
//! * a bring-up that fails leaves nothing of its trial, and of its base only what is whole;
//! * after [`Subjects::take_down_all`] nothing is left, or the error names what is;
//! * what a killed run has left is taken away by the next one in its results folder (`left.rs`).
//!
//! Deliberately absent: what may be overwritten ([`crate::safety`] says so), and configuring a
//! subject: the expression says everything.

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

/// So many subjects are up at most: each is a process, and those in memory take what they were
/// written.
const MOST_UP: usize = 8;
/// Regions are whole blocks of this many bytes.
const BLOCK: u64 = 4096;

/// What is used of so many bytes.
pub(crate) fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK * BLOCK
}

/// A subject that can be measured now.
#[derive(Debug)]
pub struct Ready {
    /// Where the tool finds it.
    pub target: Target,
    /// Bytes of the whole subject; of a folder, what was free.
    pub size_bytes: u64,
    /// Bytes that the trial may use.
    pub region_bytes: u64,
    /// Bytes that a tool may ask for that says what it needs.
    pub room_bytes: u64,
    /// What to look at around the trial.
    pub watch: Watch,
    /// What is done to the array while the tool runs.
    pub story: Story,
    /// What was run to bring it up, as a shell reads it.
    pub commands: Vec<String>,
    /// The folder on the subject, if it has one: empty, and gone after the trial.
    pub folder: Option<PathBuf>,
}

/// All subjects of a campaign.
pub struct Subjects<'a> {
    campaign: Campaign,
    options: &'a LabOptions,
    subjects: Vec<Subject>,
    states: Vec<State>,
    /// Those that are up, the one that was used last at the end.
    up: Vec<usize>,
    /// Holds sockets, and what braid remembers of volumes; gone when the campaign is over.
    room: Room,
    /// How braid is called; what it remembers of volumes lies in the room.
    braid: Braid,
    journal: Rc<Journal>,
    /// What may be overwritten.
    permit: Permit,
    /// Why each subject is written.
    reasons: Vec<Reasons>,
    through_nbd: bool,
    will_be_hurt: bool,
}

/// How one subject is.
struct State {
    base: Option<Base>,
    held: Held,
    commands: Vec<String>,
    /// What only the present trial needs.
    trial: Held,
    /// In which form it is up.
    form: Form,
    /// Whether its health was changed and not mended.
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
    /// All down.
    ///
    /// # Errors
    ///
    /// When no folder for sockets can be made, or what an earlier run noted cannot be read.
    pub fn new(planned: &Planned, options: &'a LabOptions) -> Result<Self, LabError> {
        // A socket's path may have 107 bytes, so not in the results directory.
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

    /// Makes a subject ready for a workload, taking down those that are in its way.
    ///
    /// # Errors
    ///
    /// Why it is not ready; also when its server has died since the last trial.
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
            // Where one state of an array needs it right, all are measured so: else the states
            // would differ by more than the state.
            parity_as_found: !self.will_be_hurt && treatment == Treatment::Nothing,
            read_only: !writes && !self.reasons[subject].any(),
        };
        if self.states[subject].base.is_some() && self.states[subject].form != form {
            self.take_down(subject, false, world)?;
        }
        if self.states[subject].base.is_none() {
            // Something may be left of an attempt that failed.
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

    /// Ends what a trial needed, and mends the array if its health was changed; a server that is
    /// well stays up for the next trial.
    ///
    /// # Errors
    ///
    /// When something is busy or the array does not heal.
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

    /// Takes everything down. All is tried, by force where it must be; the first failure is
    /// returned.
    ///
    /// # Errors
    ///
    /// What would not go, or went only by force, with the command that shows or removes it.
    pub fn take_down_all(&mut self, world: &mut dyn World) -> Result<(), LabError> {
        let all = 0..self.states.len();
        let results: Vec<_> = all.map(|subject| self.take_down(subject, true, world)).collect();
        results.into_iter().collect()
    }

    /// Where what is held is noted.
    pub(crate) fn journal(&self) -> Rc<Journal> {
        Rc::clone(&self.journal)
    }

    /// The pass that runs over a volume's array at this moment: `resync`, `recovery`, `check`.
    /// `None` where nothing runs, where the kernel's own tables tell it, and of a volume that does
    /// not answer.
    pub fn pass_now(&self, subject: usize, world: &mut dyn World) -> Option<String> {
        let array = self.states[subject].base.as_ref()?.array.as_ref()?;
        let (name, stop) = (&self.subjects[subject].name, &self.options.stop);
        match array.keeper {
            Keeper::Volume { .. } => Asked { subject: name, array, stop, world }.ask().ok()?.pass,
            Keeper::Kernel { .. } => None,
        }
    }

    /// Whether the region must be written before a subject meets a workload.
    pub fn needs_fill(&self, subject: usize, workload: &Workload) -> bool {
        self.reasons[subject].fill && !self.states[subject].is_filled && workload.reads_raw()
    }

    /// Refuses to write to a subject of which anything was not named to be overwritten. Whatever
    /// writes asks this, so that a mistake in what was planned costs no data.
    fn check_permit(&self, subject: usize) -> Result<(), Obstacle> {
        Ok(self.permit.check(&self.subjects[subject].source)?)
    }

    /// Refuses what somebody has begun to use since it came up. Only what is opened by its own path
    /// can be: the rest is held by its server, a loop device or an array.
    fn check_unused(&self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        let base = self.states[subject].base.as_ref();
        match (&self.subjects[subject].source, base.map(|base| &base.target)) {
            (Source::Path(path), Some(Target::Device(device))) if device == Path::new(path) => {
                world.check_unused(device)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a campaign of which anything that it would write is used by somebody, before the
    /// first trial.
    ///
    /// # Errors
    ///
    /// [`LabError::InUse`] with the first.
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

    /// Takes down what was used longest ago, where as many are up as may be, or `subject` needs the memory.
    fn make_room(&mut self, subject: usize, world: &mut dyn World) -> Result<(), LabError> {
        let meminfo = world.read_text(Path::new("/proc/meminfo"))?.unwrap_or_default();
        // Where nothing is known the volume says so when it comes up.
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
        // Whatever comes of it, the base is whole no more.
        (state.base, state.is_hurt) = (None, false);
        self.up.retain(|one| *one != subject);
        let mut hand = Hand { subject: &facts.name, braid: &self.braid, world };
        trial.and(state.held.release(&mut hand, is_the_end))
    }

    /// A volume that died between two trials is an error, not a reason for a silent restart: its
    /// death may be the most interesting result of the campaign.
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

/// The first failure is the one that is told; but what is merely impossible, or was stopped, is an
/// error when something of it is left.
fn first_of(obstacle: Obstacle, cleared: Result<(), LabError>) -> Obstacle {
    match (obstacle, cleared) {
        (Obstacle::Impossible(_) | Obstacle::Stopped, Err(error)) => Obstacle::Failed(error),
        (obstacle, _) => obstacle,
    }
}

#[cfg(test)]
mod tests;
