//! The history of members before one of their bits is flipped.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use braid_block::Io;
use braid_engine::Dev;
use braid_engine::assembled::{LogPlace, Newcomer};
use braid_engine::redundant::{MemberState, Redundant, Speed};
use braid_md::superblock::Contents;
use braid_md::{BadBlocks, Features, Level, Resync, Uuid, Version};
use braid_mem::Pool;

use crate::birth::birth;
use crate::executor::Outcome;
use crate::exhaust::request_from;
use crate::found::{self, Frame, Trouble, carried, label, tidy};
use crate::rest::STEP_NS;
use crate::scenario::{Start, Way};
use crate::spec::{FIRST_PAGE, Policy, Spec};
use crate::verify::{Process, crash_images, new_disks};
use crate::{Image, Oracle, Rng, Sim, SimDisk};

/// Seconds since 1970 at the start of a life.
pub(super) const UNIX: Duration = Duration::from_secs(1_700_000_000);
/// More requests than there are before a crash.
const UNTIL_CRASH: u64 = 1000;
/// The longest time of an operation, in steps of [`STEP_NS`].
const PATIENCE: u64 = 2000;

/// The events of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// A load, during which the power fails.
    Crash,
    /// A load, and the array is shut down.
    Rest,
    /// A member does not hold a place, by its bad-block log; then as `Rest`.
    Listed,
    /// A member is missing; then as `Crash` if that must be survived, or as `Rest`.
    Missing,
    /// A member leaves during the load, and comes back after the start.
    Away,
    /// The same; another has its role until then: the bitmap does not know what the first one lacks.
    Replaced,
}

impl Story {
    pub(super) const COUNT: usize = 4;

    /// The story of an array's turn of this number: the nearest that such an array can go through.
    pub(super) fn of(spec: &Spec, turn: u64) -> Story {
        let survivors = match spec.level {
            Level::Raid10 => spec.members / 2,
            _ => spec.members - 1,
        };
        // The only copy of a bitmap is not flipped.
        let comes_back = spec.policy == Policy::Bitmap && survivors > 1 && spec.members > 2;
        match turn % Story::COUNT as u64 {
            0 => Story::Crash,
            1 => Story::Rest,
            2 if spec.version == Version::V0_90 => Story::Rest,
            2 => Story::Listed,
            _ if comes_back && (turn / Story::COUNT as u64).is_multiple_of(2) => Story::Replaced,
            _ if comes_back => Story::Away,
            _ if spec.policy == Policy::Bitmap => Story::Crash,
            _ => Story::Missing,
        }
    }
}

/// The state at the end.
pub(super) struct Left {
    /// By disk.
    pub(super) images: Vec<Option<Image>>,
    /// A disk that was a member and comes back.
    pub(super) away: Option<(usize, Image)>,
    /// The member that has its role until then.
    pub(super) stands_in: Option<usize>,
    pub(super) oracle: Oracle,
    /// True if the array had all of its members.
    pub(super) was_complete: bool,
    /// Whose bad-block log lists places.
    pub(super) listed: Option<usize>,
    /// Writes may have been under way.
    pub(super) is_crash: bool,
}

/// Has an array of `spec` go through `story`.
pub(super) fn live(spec: &Spec, story: Story, rng: &mut Rng) -> Result<Left, String> {
    let start = match story {
        Story::Missing => Start::Missing(rng.index(spec.members)),
        _ => Start::Clean,
    };
    let is_logged = spec.policy == Policy::Log;
    let is_crash = match story {
        Story::Crash => true,
        Story::Missing => (is_logged || !spec.has_parity()) && rng.percent(50),
        _ => false,
    };
    let born = birth(spec, start, 1, rng);
    let mut images = born.disks;
    let listed = (story == Story::Listed).then(|| rng.index(spec.members));
    if let Some(disk) = listed {
        images[disk] = Some(with_bad_places(spec, images[disk].as_ref().expect("a member"), rng)?);
    }
    let oracle = Rc::new(RefCell::new(born.oracle));
    let there = found::look(&images)?;
    let assembled = found::assemble(&there).map_err(|why| why.to_string())?;
    let process = Process::default();
    let sim = Sim::new(rng.next_u64());
    sim.be_quiet();
    let handle = sim.handle();
    let disks = new_disks(&sim, &images);
    disks.iter().filter(|disk| disk.contents().len() > 4096).for_each(|disk| spec.settle(disk));
    let speed = Speed { min: 100 << 20, ..Speed::default() };
    let frame = Frame { handle: &handle, unix_start: UNIX, speed, nonce: rng.next_u64() };
    let array = found::build(&assembled, &frame, &disks);
    process.of(&array);
    if is_crash {
        let (mut event, end) = (0, rng.within(5..=250));
        let handle = handle.clone();
        sim.observe(move || {
            event += 1;
            if event >= end {
                handle.halt();
            }
        });
    }
    let trouble = Trouble::default();
    let leaves = matches!(story, Story::Away | Story::Replaced).then(|| rng.index(spec.members));
    let requests = if is_crash { UNTIL_CRASH } else { rng.within(2..=4) };
    let (from, disks_of_life) = (first(spec), disks.clone());
    let life = Load { array, disks: disks_of_life, oracle: Rc::clone(&oracle), from };
    let (told, mut dice) = (trouble.clone(), rng.fork());
    let stands_in = (story == Story::Replaced).then_some(disks.len() - 1);
    let log = assembled.log;
    let outcome = sim.run_until(async move {
        let done = life.run(requests, leaves, (stands_in, log), &mut dice).await;
        told.note(&handle, done);
    });
    trouble.check()?;
    if let Outcome::Stuck(stuck) = outcome {
        return Err(stuck.to_string());
    }
    let away = leaves.map(|disk| (disk, disks[disk].crash_image(rng)));
    let way = if is_crash { [Way::All, Way::Nothing, Way::Mixed][rng.index(3)] } else { Way::All };
    let mut images = crash_images(&disks, way, rng);
    images.iter_mut().for_each(|image| *image = image.take().filter(|one| one.len() > 4096));
    let oracle = oracle.borrow().clone();
    let was_complete = start == Start::Clean && away.is_none();
    Ok(Left { images, away, stands_in, oracle, was_complete, listed, is_crash })
}

/// Requests go beyond this many bytes: to what has its bits on the last page of the bitmap, so that the first one
/// is written only for its header.
pub(super) fn first(spec: &Spec) -> u64 {
    if spec.is_wide() { FIRST_PAGE } else { 0 }
}

/// An array that serves, and what is asked of it.
pub(super) struct Load {
    pub(super) array: Redundant,
    pub(super) disks: Vec<SimDisk>,
    pub(super) oracle: Rc<RefCell<Oracle>>,
    /// See [`first`].
    pub(super) from: u64,
}

impl Load {
    /// Some requests, and the way down. A disk leaves after some of them, if there is one; and another takes its
    /// role, if there is one.
    async fn run(
        self,
        requests: u64,
        leaves: Option<usize>,
        (stands_in, log): (Option<usize>, LogPlace),
        rng: &mut Rng,
    ) -> Result<(), String> {
        let Load { array, disks, oracle, from } = &self;
        array.restart().await.map_err(|why| format!("it is not restarted: {why}"))?;
        let handle = disks[0].handle();
        handle.spawn("array", array.run());
        let dev = Dev::new(array.clone());
        for _ in 0..requests {
            request_from(*from, &dev, oracle, rng).await?;
        }
        if let Some(disk) = leaves {
            self.pull(disk, rng).await?;
        }
        if let Some(disk) = stands_in {
            take_in(array, &disks[disk], disk, None, log).await?;
            come_to_rest(array, 0, &disks[disk]).await?;
        }
        let began = oracle.borrow_mut().begin_flush();
        let flushed = dev.start(Io::flush()).await.result;
        flushed.map_err(|errno| format!("the last flush fails: {errno}"))?;
        oracle.borrow_mut().end_flush(began);
        array.shut_down().await;
        Ok(())
    }

    /// Pulls a disk, and has the array notice.
    pub(super) async fn pull(&self, disk: usize, rng: &mut Rng) -> Result<(), String> {
        let dev = Dev::new(self.array.clone());
        self.disks[disk].vanish();
        let name = label(disk);
        let is_out = || {
            let members = self.array.status().members;
            members.iter().all(|one| one.label != name || one.state == MemberState::Faulty)
        };
        for _ in 0..40 {
            request_from(self.from, &dev, &self.oracle, rng).await?;
            if is_out() {
                return Ok(());
            }
        }
        Err(format!("{name} was pulled, and nothing of 40 requests went there"))
    }
}

/// Has a disk be taken in as an operator does it; `known` is what it carries of the array.
pub(crate) async fn take_in(
    array: &Redundant,
    sim: &SimDisk,
    disk: usize,
    known: Option<&Image>,
    log: LogPlace,
) -> Result<(), String> {
    let known = known.and_then(|image| carried(image).ok());
    let (label, dev, uuid) = (label(disk), tidy(sim.clone()), Uuid([0x90 + disk as u8; 16]));
    let size = sim.contents().len() as u64;
    let known = known.as_ref();
    let newcomer = Newcomer { label, dev, known, anew: false, superblocks: &[], size, uuid };
    let admitted = newcomer.admit(log, array).map_err(|why| why.to_string())?;
    let pool = Pool::new(64 << 10).map_err(|error| error.to_string())?;
    let (new, _) = admitted.prepare(&pool).await?;
    array.add(new).await.map_err(|why| why.to_string())
}

/// Waits until the array has nothing to do, `disk` says so, and it lacks as many members as that; if it lacks none,
/// until no bit is set.
pub(crate) async fn come_to_rest(
    array: &Redundant,
    lacking: usize,
    disk: &SimDisk,
) -> Result<(), String> {
    for _ in 0..PATIENCE {
        let status = array.status();
        let missing = status.in_sync.iter().filter(|one| !**one).count();
        let is_quiet = !status.active && status.resync == Resync::Clean && status.job.is_none();
        let is_swept = lacking > 0 || status.bitmap.is_none_or(|bitmap| bitmap.set == 0);
        // Its superblocks come later, and no time is long enough: an event may overtake tasks that are ready.
        let is_said =
            || carried(&disk.contents()).is_ok_and(|one| one.superblock.resync == Resync::Clean);
        let is_at_rest = missing == lacking && is_quiet && is_swept && is_said();
        disk.handle().sleep(STEP_NS).await;
        if is_at_rest {
            disk.handle().sleep(10 * STEP_NS).await;
            return Ok(());
        }
    }
    Err(format!("it does not come to rest: {}", crate::brief::brief(array)))
}

/// A member that does not hold some places of its data, by its bad-block log: something else is there.
fn with_bad_places(spec: &Spec, image: &Image, rng: &mut Rng) -> Result<Image, String> {
    let superblock = carried(image).map_err(|why| format!("{why:?}"))?.superblock;
    let place = superblock.bad_block_log.ok_or("no bad-block log")?;
    let mut log = BadBlocks::new(place.size, place.shift).map_err(|why| why.to_string())?;
    let mut image = image.clone();
    let blocks = spec.member_size / 512;
    for _ in 0..rng.within(1..=3) {
        let count = rng.within(1..=3);
        let first = rng.within(0..=blocks - count);
        let at = spec.data_offset() + first * 512;
        log.insert(at, count * 512).map_err(|why| why.to_string())?;
        image.write(at as usize, &vec![0xbb; count as usize * 512]);
    }
    let contents: &Contents = &superblock;
    let mut contents = contents.clone();
    contents.features = contents.features.union(Features::BAD_BLOCKS);
    image.write(contents.super_offset as usize, &contents.encode());
    let at = contents.super_offset.saturating_add_signed(place.offset);
    image.write(at as usize, &log.encode());
    Ok(image)
}
