//! Arrays under test, and the way from images of disks to an array.
//!
//! ```text
//!   images ──▶ superblocks ──▶ the freshest says who has which role ──▶ Setup ──▶ Redundant
//! ```
//!
//! Images become an array as Linux since 6.8 assembles one: the member with the most events determines the
//! roles, members that are two or more events behind are left out, and each member determines its own filled
//! part.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_array::{ArrayByte, MemberByte, Mirrored};
use braid_block::{Io, Limits, Op, Payload, Span};
use braid_engine::redundant::{
    MemberState, NewMember, Redundant, RestartError, Setup, Speed, StartingBitmap,
};
use braid_engine::{Clock, Dev, Device, Extents, InFlight, Pending};
use braid_md::{BadBlocks, Bitmap, Features, Role, Superblock, Version};
use braid_mem::Pool;
use braid_sim::{Handle, Rng, Sim, SimDisk};

pub(crate) use crate::shape::*;

/// The longest time of a run, in steps of virtual time, after which it is assumed to hang.
const PATIENCE: u64 = 100_000;
/// A step, in nanoseconds. A long wait is divided into steps: an event may overtake tasks that are ready, so
/// one long wait would leave the array no time to work.
const STEP_NS: u64 = 50_000_000;

/// The superblock of an image.
pub(crate) fn superblock_of(image: &[u8]) -> Superblock {
    let bytes = &image[SUPERBLOCK as usize..BITMAP as usize];
    Superblock::parse(Version::V1_2, SUPERBLOCK, image.len() as u64, bytes)
        .unwrap_or_else(|why| panic!("a superblock that is refused: {why}"))
}

/// The part of an image that the array uses.
pub(crate) fn data_of(image: &[u8]) -> &[u8] {
    &image[DATA as usize..]
}

/// The array of a set of images, according to their superblocks.
#[derive(Clone)]
pub(crate) struct Assembly {
    pub(crate) array: Superblock,
    pub(crate) bitmap: Option<Bitmap>,
    /// By image.
    pub(crate) members: Vec<Option<Assembled>>,
}

#[derive(Clone)]
pub(crate) struct Assembled {
    pub(crate) superblock: Superblock,
    pub(crate) role: Option<u16>,
    pub(crate) state: MemberState,
    pub(crate) replacement: bool,
    pub(crate) by_bitmap: bool,
}

impl Assembly {
    pub(crate) fn new(images: &[Option<Vec<u8>>]) -> Assembly {
        let superblocks: Vec<Option<Superblock>> =
            images.iter().map(|image| image.as_deref().map(superblock_of)).collect();
        // A spare knows nothing of the array, whatever it counts.
        let takes_part = |one: &&Superblock| one.role() != Role::Spare;
        let there = || superblocks.iter().flatten().filter(takes_part);
        let most = there().map(|one| one.events).max().expect("a disk");
        let freshest = superblocks
            .iter()
            .position(|one| one.as_ref().is_some_and(|one| one.events == most && takes_part(&one)))
            .unwrap();
        let array = superblocks[freshest].clone().unwrap();
        let bitmap = array.bitmap_offset.map(|_| {
            let image = images[freshest].as_deref().unwrap();
            let bitmap = Bitmap::parse(&image[BITMAP as usize..DATA as usize]).unwrap();
            assert!(bitmap.header.events >= array.events, "a stale bitmap");
            bitmap
        });
        let member = |own: &Superblock| -> Option<Assembled> {
            if own.events + 1 < most {
                return None;
            }
            let place = |role, state| Assembled {
                superblock: own.clone(),
                role,
                state,
                // A member that has all data has announced itself: the former member of its role is out.
                replacement: own.is_replacement() && own.recovery_offset.is_some(),
                by_bitmap: own.features.contains(Features::RECOVERY_BITMAP),
            };
            match array.roles[own.device_number as usize] {
                Role::Active(role) => {
                    let filled = |below| MemberState::Recovering(MemberByte::new(below));
                    let state = own.recovery_offset.map_or(MemberState::InSync, filled);
                    Some(place(Some(role), state))
                }
                Role::Spare => Some(place(None, MemberState::Spare)),
                Role::Faulty | Role::Journal => None,
            }
        };
        let members = superblocks.iter().map(|one| one.as_ref().and_then(member)).collect();
        Assembly { array, bitmap, members }
    }

    /// By role: the images that hold its data, and up to where in bytes.
    pub(crate) fn holders(&self) -> Vec<Vec<(usize, u64)>> {
        let mut found = vec![Vec::new(); self.array.raid_disks as usize];
        for (index, member) in self.members.iter().enumerate() {
            let Some(Assembled { role: Some(role), state, by_bitmap, .. }) = member else {
                continue;
            };
            let up_to = match state {
                MemberState::InSync => u64::MAX,
                MemberState::Recovering(done) if !by_bitmap => done.get(),
                _ => 0,
            };
            found[usize::from(*role)].push((index, up_to));
        }
        let in_sync =
            |role: &Vec<(usize, u64)>| role.iter().filter(|one| one.1 == u64::MAX).count();
        assert!(found.iter().all(|role| in_sync(role) <= 1), "two in sync: {found:?}");
        found
    }

    /// True if the superblocks say that the copies agree.
    pub(crate) fn is_clean(&self) -> bool {
        self.array.is_clean()
    }
}

/// The bytes of every copy of an array that images hold in sync: for each logical block, each
/// copy.
pub(crate) fn copies(
    shape: &Shape,
    images: &[Option<Vec<u8>>],
    assembly: &Assembly,
    mut each: impl FnMut(u64, &[&[u8]]),
) {
    const BLOCK: u64 = 512;
    let holders = assembly.holders();
    let geometry = geometry_of(shape, holders.len());
    let mut found: Vec<&[u8]> = Vec::new();
    for offset in (0..geometry.size()).step_by(BLOCK as usize) {
        found.clear();
        for copy in 0..geometry.copies() {
            let run = geometry.locate(ArrayByte::new(offset), copy);
            let row = run.offset.get();
            let there = holders[run.role.index()].iter().filter(|(_, up_to)| row < *up_to);
            found.extend(there.filter_map(|(index, _)| {
                let image = images[*index].as_deref()?;
                Some(&data_of(image)[row as usize..][..BLOCK as usize])
            }));
        }
        each(offset, &found);
    }
}

/// The geometry of `shape` when it has `members` roles: a raid1 may have grown.
pub(crate) fn geometry_of(shape: &Shape, members: usize) -> Arc<dyn Mirrored> {
    Shape { members, ..*shape }.geometry()
}

/// The simulation's clock.
pub(crate) struct SimClock(pub(crate) Handle);

impl Clock for SimClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now())
    }

    fn unix_time(&self) -> Duration {
        Duration::from_secs(1_700_000_000) + self.now()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        let handle = self.0.clone();
        Box::pin(async move { handle.sleep(duration.as_nanos() as u64).await })
    }
}

/// A disk on which discarded blocks stay as they are, so that discards leave equal copies equal:
/// md makes no promise for them.
struct Tidy(Dev);

impl Device for Tidy {
    fn limits(&self) -> Limits {
        *self.0.limits()
    }

    fn start(&self, io: Io) -> Pending {
        match io.op {
            Op::Discard => Pending::ready(io.complete(Ok(()))),
            _ => self.0.start(io),
        }
    }

    fn extents(&self, span: Span) -> Extents {
        self.0.extents(span)
    }
}

/// A simulation with an array.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) shape: Shape,
    /// All disks ever, in the order in which they came.
    pub(crate) disks: Rc<RefCell<Vec<SimDisk>>>,
    pub(crate) array: Redundant,
    pub(crate) dev: Dev,
}

thread_local! {
    /// Memory of clients, mapped once for all the short runs of a thread.
    static POOL: Pool = Pool::new(8 << 20).unwrap();
}

/// Memory for clients.
pub(crate) fn pool() -> Pool {
    POOL.with(Pool::clone)
}

/// A generator for a test's own choices.
pub(crate) fn rng(seed: u64) -> Rng {
    Rng::new(seed ^ 0x6d69_7272_6f72)
}

impl World {
    /// A new array.
    pub(crate) fn new(seed: u64, shape: Shape) -> World {
        World::with_images(seed, shape, &shape.images())
    }

    /// The array that `images` are.
    pub(crate) fn with_images(seed: u64, shape: Shape, images: &[Option<Vec<u8>>]) -> World {
        World::with(seed, shape, images, |_| {})
    }

    /// The same, with a last word on the setup.
    pub(crate) fn with(
        seed: u64,
        shape: Shape,
        images: &[Option<Vec<u8>>],
        adjust: impl FnOnce(&mut Setup),
    ) -> World {
        World::on(Sim::new(seed), shape, images, adjust)
    }

    /// The same, in a simulation that is there already.
    pub(crate) fn on(
        sim: Sim,
        shape: Shape,
        images: &[Option<Vec<u8>>],
        adjust: impl FnOnce(&mut Setup),
    ) -> World {
        let world = World::before_restart(sim, shape, images, adjust);
        world.restart().expect("what a crash left is made good");
        world
    }

    /// The array that `images` are, before anything is asked of it and before its own tasks run:
    /// [`World::restart`] is to be called.
    pub(crate) fn before_restart(
        sim: Sim,
        shape: Shape,
        images: &[Option<Vec<u8>>],
        adjust: impl FnOnce(&mut Setup),
    ) -> World {
        let assembly = Assembly::new(images);
        let shape = Shape { members: assembly.array.raid_disks as usize, ..shape };
        let disks = Rc::new(RefCell::new(Vec::new()));
        let mut members = Vec::new();
        for (index, member) in assembly.members.into_iter().enumerate() {
            let image = images[index].clone().unwrap_or_default();
            let disk = new_disk(&sim.handle(), &disks, image);
            members.extend(member.map(|member| new_member(&disk, index, member)));
        }
        let mut setup = Setup {
            layout: shape.layout(),
            members,
            resync: assembly.array.resync,
            log: shape.log(sim.handle().seed(), assembly.array.events),
            array: Some(assembly.array),
            bitmap: assembly.bitmap.map(|bitmap| StartingBitmap { bitmap, is_on_members: true }),
            stripe_cache: 1 << 20,
            read_only: false,
            clock: Rc::new(SimClock(sim.handle())),
            speed: Speed { min: 100 << 20, ..Speed::default() },
        };
        adjust(&mut setup);
        let array = Redundant::new(setup).unwrap();
        let dev = Dev::new(array.clone());
        World { sim, shape, disks, array, dev }
    }

    /// Has what a crash left made good, and lets the array's own tasks run.
    pub(crate) fn restart(&self) -> Result<(), RestartError> {
        if self.shape.has_parity() {
            let array = self.array.clone();
            self.run(async move { array.restart().await })?;
        }
        self.sim.handle().spawn("array", self.array.run());
        Ok(())
    }

    /// Runs `future` to its end, which must come within a reasonable virtual time.
    pub(crate) fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        let handle = self.sim.handle();
        let array = self.array.clone();
        self.sim.block_on(async move {
            let mut limit = pin!(steps(handle, PATIENCE));
            let mut future = pin!(future);
            poll_fn(|cx| {
                assert!(limit.as_mut().poll(cx).is_pending(), "stuck: {:#?}", array.status());
                future.as_mut().poll(cx)
            })
            .await
        })
    }

    /// Disk number `index`.
    pub(crate) fn disk(&self, index: usize) -> SimDisk {
        self.disks.borrow()[index].clone()
    }

    /// A disk that comes new, as device `number`: a spare by its superblock.
    pub(crate) fn spare(&self, number: u32) -> NewMember {
        spare(&self.sim.handle(), &self.disks, &self.shape, number)
    }

    /// Takes disk `index` back in, as a crash now may leave it, in the role that it had.
    pub(crate) fn comes_back(
        handle: &Handle,
        disks: &Rc<RefCell<Vec<SimDisk>>>,
        index: usize,
        dice: &mut Rng,
    ) -> NewMember {
        let image = disks.borrow()[index].crash_image(dice).to_vec();
        let superblock = superblock_of(&image);
        let disk = new_disk(handle, disks, image);
        disks.borrow_mut().swap_remove(index);
        let Role::Active(role) = superblock.role() else { panic!("it had a role") };
        let state = MemberState::Recovering(MemberByte::START);
        let (role, replacement, by_bitmap) = (Some(role), false, true);
        new_member(&disk, index, Assembled { superblock, role, state, replacement, by_bitmap })
    }

    /// The present content of each disk.
    pub(crate) fn images(&self) -> Vec<Option<Vec<u8>>> {
        images_of(&self.disks.borrow())
    }

    /// Checks that all copies are the same on all active members, according to their superblocks.
    pub(crate) fn check_copies_equal(&self) {
        let images = self.images();
        copies(&self.shape, &images, &Assembly::new(&images), |offset, copies| {
            assert!(copies.iter().all(|one| *one == copies[0]), "copies differ at {offset}");
        });
    }

    /// Waits for `seconds`.
    pub(crate) fn sleep(&self, seconds: u64) -> impl Future<Output = ()> + use<> {
        steps(self.sim.handle(), seconds * 1_000_000_000 / STEP_NS)
    }
}

async fn steps(handle: Handle, count: u64) {
    for _ in 0..count {
        handle.sleep(STEP_NS).await;
    }
}

/// A disk that comes new, as device `number`: a spare by its superblock.
pub(crate) fn spare(
    handle: &Handle,
    disks: &Rc<RefCell<Vec<SimDisk>>>,
    shape: &Shape,
    number: u32,
) -> NewMember {
    let image = shape.image(number, Role::Spare);
    let (superblock, index) = (superblock_of(&image), disks.borrow().len());
    let disk = new_disk(handle, disks, image);
    let (role, state) = (None, MemberState::Spare);
    let (replacement, by_bitmap) = (false, false);
    new_member(&disk, index, Assembled { superblock, role, state, replacement, by_bitmap })
}

/// The present content of each disk; `None` for those that were missing.
pub(crate) fn images_of(disks: &[SimDisk]) -> Vec<Option<Vec<u8>>> {
    let contents =
        |disk: &SimDisk| Some(disk.contents().to_vec()).filter(|image| !image.is_empty());
    disks.iter().map(contents).collect()
}

/// A possible content of each disk after a crash now.
pub(crate) fn crash_images(disks: &[SimDisk], dice: &mut Rng) -> Vec<Option<Vec<u8>>> {
    disks
        .iter()
        .map(|disk| Some(disk.crash_image(dice).to_vec()).filter(|image| !image.is_empty()))
        .collect()
}

fn new_disk(handle: &Handle, disks: &Rc<RefCell<Vec<SimDisk>>>, image: Vec<u8>) -> SimDisk {
    let name = format!("disk{}", disks.borrow().len());
    let limits = Limits::new(image.len() as u64, 512);
    let disk = SimDisk::with_contents(handle, name, limits, image);
    disks.borrow_mut().push(disk.clone());
    disk
}

fn new_member(disk: &SimDisk, index: usize, member: Assembled) -> NewMember {
    NewMember {
        label: format!("disk{index}"),
        dev: Dev::new(Tidy(Dev::new(disk.clone()))),
        data_offset: DATA,
        number: member.superblock.device_number,
        role: member.role.map(braid_array::Role::new),
        replacement: member.replacement,
        state: member.state,
        by_bitmap: member.by_bitmap,
        write_mostly: member.superblock.write_mostly,
        superblock: Some(member.superblock),
        bad_blocks: BadBlocks::new(4096, 0).unwrap(),
    }
}

/// Memory that is full of `byte`.
pub(crate) fn filled(len: usize, byte: u8) -> Payload {
    let mut buf = pool().get(len).expect("memory");
    buf.fill(byte);
    buf.into()
}

/// Waits for all of these requests, which go on at the same time, and each of which must succeed.
pub(crate) async fn all_succeed(requests: Vec<Pending>) {
    let mut under_way = InFlight::new(requests.len().max(1));
    for (index, pending) in requests.into_iter().enumerate() {
        under_way.push(index, pending);
    }
    while !under_way.is_empty() {
        let (index, done) = poll_fn(|cx| under_way.poll_next(cx)).await;
        assert_eq!(done.result, Ok(()), "request {index}");
    }
}
