//! Checks after a crash: the array is assembled as in production, brought up, read, left to come to rest, and
//! examined again.
//!
//! ```text
//!   images ─▶ assembled ─▶ (what a kernel would read) ─▶ restarted ─▶ read: what the oracle allows
//!                                     │                                │
//!                                     ╲                     at rest: read again, all agree,
//!                          images      ✕ ── … again         and any survivors read the same
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_block::Limits;
use braid_engine::Device;
use braid_engine::assembled::Assembled;
use braid_engine::redundant::{Redundant, Speed};
use braid_md::Resync;
use braid_mem::Pool;

use crate::atlas;
use crate::brief::describe;
use crate::executor::Outcome;
use crate::found::{self, Frame, There, Trouble};
use crate::kernel::{self, AwaySpare};
use crate::restart::Restart;
use crate::scenario::Way;
use crate::shards::Shards;
use crate::spec::{Policy, Spec};
use crate::timeline::{Timeline, watch};
use crate::{Image, Oracle, Rng, Sim, SimDisk};

/// The longest time that the processor may keep a task waiting, in nanoseconds.
pub(crate) const DELAY_NS: u64 = 2_000_000;

thread_local! {
    /// Memory of the clients of this thread's run.
    static POOL: RefCell<Pool> = RefCell::new(new_pool());
}

/// Memory for clients.
pub(crate) fn pool() -> Pool {
    POOL.with_borrow(Pool::clone)
}

fn new_pool() -> Pool {
    Pool::new(4 << 20).expect("memory for clients")
}

/// Another run begins: what one that failed still holds is not its.
pub(crate) fn begin() {
    braid_mem::set_limit(None);
    POOL.replace(new_pool());
}

/// An array of a process that ends when this is dropped, whatever happens: to be made before the
/// simulation that it is in, and so dropped behind it.
#[derive(Default)]
pub(crate) struct Process {
    array: OnceCell<Redundant>,
    /// They end with their last owner.
    shards: OnceCell<Shards>,
}

impl Process {
    /// It is `array`'s.
    pub(crate) fn of(&self, array: &Redundant) -> &Process {
        self.array.get_or_init(|| array.clone());
        self
    }

    /// It also has these other shards.
    pub(crate) fn with(&self, shards: &Shards) {
        self.shards.get_or_init(|| shards.clone());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(array) = self.array.get() {
            array.abandon();
        }
    }
}

/// An array at the moment of a crash.
#[derive(Clone)]
pub(crate) struct Crash {
    /// The array's properties.
    pub spec: Spec,
    /// The content of each disk; `None` for missing ones.
    pub images: Vec<Option<Image>>,
    /// Spares that were away when the array was put together without them.
    pub away_spares: Rc<[AwaySpare]>,
    /// The possible content of the array.
    pub oracle: Rc<Oracle>,
    /// True if it had all of its members when it was written.
    pub was_complete: bool,
    /// True if it may be refused, and reads may fail: requests had failed on more members than the redundancy.
    pub may_give_up: bool,
    /// True if members have been harmed since they were whole.
    pub was_harmed: bool,
    /// Seconds since 1970.
    pub unix: Duration,
    /// The order of the following events.
    pub schedule: u64,
    /// The timeline of events.
    pub timeline: Timeline,
    /// The thoroughness of the examination.
    pub care: Care,
}

/// The thoroughness of the examination after a crash.
#[derive(Clone)]
pub(crate) struct Care {
    /// True if it is left to come to rest, and examined once more.
    pub at_rest: bool,
    /// True if copies and parity must agree except in excluded parts. Otherwise only reads count.
    pub agreement: bool,
    /// True if a kernel that gets the members must be right as well.
    pub kernel: bool,
    /// The percentage of events of a restart at which another crash is simulated.
    pub again_percent: u64,
    /// The greatest number of them.
    pub most_again: u32,
    /// Crashes in restarts that were tried.
    pub again: Rc<Cell<u64>>,
}

impl Default for Care {
    fn default() -> Care {
        let (at_rest, agreement, kernel) = (true, true, true);
        let (again_percent, most_again, again) = (6, 3, Rc::default());
        Care { at_rest, agreement, kernel, again_percent, most_again, again }
    }
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was refused, which was right.
    Refused,
    /// All is well.
    Well,
}

/// The possible content of `disks` after a crash; `None` for those that were pulled.
pub(crate) fn crash_images(disks: &[SimDisk], way: Way, dice: &mut Rng) -> Vec<Option<Image>> {
    let image = |disk: &SimDisk| {
        if disk.is_gone() {
            return None;
        }
        let way = match way {
            Way::Mixed => [Way::All, Way::Nothing, Way::Blocks][dice.index(3)],
            other => other,
        };
        Some(match way {
            Way::All => disk.contents(),
            Way::Nothing => disk.durable(),
            Way::Blocks | Way::Mixed => disk.crash_image(dice),
        })
    };
    disks.iter().map(image).collect()
}

/// An array that was put together, or why that was refused, rightly.
pub(crate) enum Found {
    /// Put together.
    Whole(Vec<There>, Box<Assembled>),
    /// Refused.
    Refused(String),
}

impl Crash {
    /// Puts the array together.
    ///
    /// # Errors
    /// It is refused, and should not be.
    pub(crate) fn assemble(&self) -> Result<Found, String> {
        let mut there = found::look(&self.images)?;
        match found::assemble_as_told(&mut there) {
            Ok(assembled) => Ok(Found::Whole(there, Box::new(assembled))),
            Err(refusal) => {
                let is_logged = matches!(self.spec.policy, Policy::Ppl | Policy::Log);
                let holed = self.spec.has_parity() && !is_logged && self.was_harmed;
                if self.may_give_up || holed {
                    return Ok(Found::Refused(refusal.to_string()));
                }
                Err(format!("after a crash it is refused: {refusal}; {}", describe(&there)))
            }
        }
    }

    /// Loses members with the crash, as many as it must survive, if chance decides so. `counted_on` tells for
    /// each role whether the array counted on its member when it crashed: members that had failed by then are
    /// lost already, also if the superblocks with that information were still being written. Roles beyond are
    /// counted on.
    pub(crate) fn lose(
        &mut self,
        counted_on: &[bool],
        dice: &mut Rng,
    ) -> Result<Vec<usize>, String> {
        let Found::Whole(_, assembled) = self.assemble()? else { return Ok(Vec::new()) };
        let holders = found::holders(&assembled);
        fn whole(role: &[(usize, u64)]) -> Option<&(usize, u64)> {
            role.iter().find(|one| one.1 == u64::MAX)
        }
        let is_counted = |role: usize| counted_on.get(role).copied().unwrap_or(true);
        let in_sync: Vec<bool> = (holders.iter().enumerate())
            .map(|(role, holders)| whole(holders).is_some() && is_counted(role))
            .collect();
        let layout = found::layout(&assembled);
        let sets = atlas::bearable(&self.spec, &layout, &in_sync);
        let lost = &sets[dice.index(sets.len())];
        let disks: Vec<usize> =
            lost.iter().filter_map(|role| Some(whole(&holders[*role])?.0)).collect();
        disks.iter().for_each(|disk| self.images[*disk] = None);
        self.was_harmed |= !disks.is_empty();
        Ok(disks)
    }

    /// Has members lost with the crash of an array that counts on these roles, if that is given, and
    /// holds what is left to what it must be.
    ///
    /// # Errors
    /// The fault, in words.
    pub(crate) fn strike(
        mut self,
        counted_on: Option<&[bool]>,
        again: u32,
        dice: &mut Rng,
    ) -> Result<Verdict, String> {
        let lost = match counted_on {
            Some(counted_on) => self.lose(counted_on, dice)?,
            None => Vec::new(),
        };
        let way = if lost.is_empty() { String::new() } else { format!(", without disks {lost:?}") };
        self.verify(dice, again).map_err(|why| format!("a crash here{way}: {why}"))
    }

    /// Holds the array to what it must be, with up to `again` crashes while it is brought up.
    ///
    /// # Errors
    /// The fault, in words.
    pub(crate) fn verify(self, dice: &mut Rng, again: u32) -> Result<Verdict, String> {
        let (there, assembled) = match self.assemble()? {
            Found::Whole(there, assembled) => (there, assembled),
            Found::Refused(_) => return Ok(Verdict::Refused),
        };
        let layout = found::layout(&assembled);
        let readable = found::view(&assembled, &self.images).in_sync();
        let mut oracle = Oracle::clone(&self.oracle);
        oracle.crash(|offset| {
            let (spec, complete) = (&self.spec, self.was_complete);
            atlas::may_be_anything(spec, &layout, &self.oracle, &readable, complete, offset)
        });
        if !self.may_give_up && self.care.agreement {
            check_doubt(&self.spec, &assembled, &self.images, there_bitmap(&there, &assembled))?;
        }
        if !self.may_give_up && self.care.kernel {
            kernel::check(&self.spec, &there, &self.away_spares, &self.images, &oracle)?;
        }
        let process = Process::default();
        let sim = Sim::new(self.schedule);
        sim.be_quiet();
        sim.be_prompt(DELAY_NS);
        let handle = sim.handle();
        let disks = new_disks(&sim, &self.images);
        let is_there = |disk: &SimDisk| disk.limits().size > 4096;
        disks.iter().filter(|disk| is_there(disk)).for_each(|disk| self.spec.settle(disk));
        let frame = Frame {
            handle: &handle,
            unix_start: self.unix + Duration::from_secs(5),
            speed: Speed { min: 100 << 20, ..Speed::default() },
            nonce: dice.next_u64(),
        };
        let array = found::build(&assembled, &frame, &disks);
        if self.timeline.is_kept() {
            let said = describe(&there);
            self.timeline.put(0, "└ restart", || said);
            for (number, disk) in disks.iter().enumerate().filter(|(_, one)| is_there(one)) {
                watch(disk, number, &self.timeline);
            }
        }
        let trouble = Trouble::default();
        let calm = Rc::new(Cell::new(again == 0));
        if again > 0 {
            self.crash_again(&sim, &disks, &oracle, (&trouble, &calm), again, dice.fork());
        }
        process.of(&array);
        let start = Restart {
            array,
            handle: handle.clone(),
            oracle,
            is_changed: assembled.is_changed,
            may_give_up: self.may_give_up,
            calm,
        };
        let (spec, care, of_disks) = (self.spec, self.care.clone(), disks.clone());
        let (mut choices, told) = (dice.fork(), trouble.clone());
        let outcome = sim.run_until(async move {
            let done = match start.read().await {
                Ok(Some(contents)) if care.agreement && !start.may_give_up => {
                    start.examine(&spec, care.at_rest, &of_disks, &contents, &mut choices).await
                }
                done => done.map(drop),
            };
            told.note(&start.handle, done);
        });
        if let Outcome::Stuck(stuck) = outcome {
            return Err(format!("after a crash: {stuck}"));
        }
        trouble.check()?;
        Ok(Verdict::Well)
    }

    /// Has a crash follow at some of the events to come.
    fn crash_again(
        &self,
        sim: &Sim,
        disks: &[SimDisk],
        oracle: &Oracle,
        (trouble, calm): (&Trouble, &Rc<Cell<bool>>),
        again: u32,
        mut dice: Rng,
    ) {
        let next = Crash { oracle: Rc::new(oracle.clone()), images: Vec::new(), ..self.clone() };
        let (disks, handle) = (disks.to_vec(), sim.handle());
        let (trouble, calm) = (trouble.clone(), Rc::clone(calm));
        let care = self.care.clone();
        let mut left = care.most_again;
        sim.observe(move || {
            let is_over = left == 0 || calm.get() || trouble.check().is_err();
            if is_over || !dice.percent(care.again_percent) {
                return;
            }
            left -= 1;
            care.again.set(care.again.get() + 1);
            let way = [Way::All, Way::Nothing, Way::Blocks, Way::Mixed][dice.index(4)];
            let images = crash_images(&disks, way, &mut dice);
            let schedule = dice.next_u64();
            let crash = Crash { images, schedule, ..next.clone() };
            let verdict = crash.verify(&mut dice, again - 1);
            trouble.note(&handle, verdict.map_err(|why| format!("{why} (a crash in the restart)")));
        });
    }
}

/// Checks that the parts agree that superblocks, bitmap and log do not exclude.
fn check_doubt(
    spec: &Spec,
    assembled: &Assembled,
    images: &[Option<Image>],
    bitmap_is_known: bool,
) -> Result<(), String> {
    let from = match assembled.resync {
        // Below, it agrees but for what the log says.
        Resync::From(_) if spec.policy == Policy::Ppl => return Ok(()),
        Resync::From(from) => from,
        Resync::Clean => u64::MAX,
    };
    if from == 0 && assembled.bitmap.is_none() {
        return Ok(());
    }
    let misfits = found::view(assembled, images).misfits();
    let doubted = |offset: &u64| {
        let by_bitmap = assembled
            .bitmap
            .as_ref()
            .map(|start| &start.bitmap)
            .is_none_or(|bitmap| !bitmap_is_known || bitmap.is_set(bitmap.chunk_of(*offset)));
        *offset >= from && by_bitmap
    };
    match misfits.iter().find(|offset| !doubted(offset)) {
        None => Ok(()),
        Some(offset) => Err(format!(
            "superblocks say {:?}{}, and copies or parity differ at {offset} ({} such blocks)",
            assembled.resync,
            if assembled.bitmap.is_some() { " and there is no bit" } else { "" },
            misfits.len()
        )),
    }
}

/// True if the freshest member's bitmap is as new as its superblock.
fn there_bitmap(there: &[There], assembled: &Assembled) -> bool {
    there.iter().any(|one| {
        one.carried.superblock == assembled.superblock
            && one.carried.bitmap.as_ref().is_some_and(|bitmap| {
                bitmap.header.events >= one.carried.superblock.events && !bitmap.header.stale
            })
    })
}

/// Disks with these images; those that are not there fail whatever is asked of them.
pub(crate) fn new_disks(sim: &Sim, images: &[Option<Image>]) -> Vec<SimDisk> {
    let disk = |(index, image): (usize, &Option<Image>)| {
        let image = image.clone().unwrap_or_else(|| Image::zeroes(4096));
        let limits = Limits::new(image.len() as u64, 512);
        SimDisk::with_contents(&sim.handle(), found::label(index), limits, image)
    };
    images.iter().enumerate().map(disk).collect()
}
