//! Members that come, go, take over and are replaced, under load.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_array::ArrayByte;
use braid_block::{Errno, Op};
use braid_engine::redundant::{JobKind, MemberState, Redundant, Status};
use braid_sim::{Client, Fault, Handle, Load, Rng, SimDisk, Target, for_each_seed};

use crate::copies::crash::assemble_again;
use crate::copies::failure::check_crash;
use crate::world::{Shape, World, crash_images, pool, rng, spare};

/// An operator that changes members while a client works.
pub(crate) struct Operator {
    mirror: Redundant,
    handle: Handle,
    disks: Rc<RefCell<Vec<SimDisk>>>,
    shape: Shape,
    dice: Rng,
}

impl Operator {
    pub(crate) fn new(world: &World, seed: u64) -> Operator {
        Operator {
            mirror: world.array.clone(),
            handle: world.sim.handle(),
            disks: Rc::clone(&world.disks),
            shape: world.shape,
            dice: rng(seed.rotate_left(32)),
        }
    }

    pub(crate) async fn rest(&mut self) {
        let most_ns = [1_000_000, 50_000_000, 400_000_000][self.dice.index(3)];
        self.handle.sleep(self.dice.below(most_ns)).await;
    }

    /// The labels of members in a state that `wanted` picks.
    fn members(&self, wanted: impl Fn(MemberState) -> bool) -> Vec<String> {
        let members = self.mirror.status().members;
        members.into_iter().filter(|one| wanted(one.state)).map(|one| one.label).collect()
    }

    fn draw(&mut self, labels: Vec<String>) -> Option<String> {
        (!labels.is_empty()).then(|| labels[self.dice.index(labels.len())].clone())
    }

    fn spare(&mut self) -> braid_engine::redundant::NewMember {
        spare(&self.handle, &self.disks, &self.shape, self.mirror.free_number())
    }

    /// One thing that an operator does, at random; what is refused is refused.
    pub(crate) async fn act(&mut self) {
        match self.dice.below(13) {
            0..3 => {
                let all = self.members(|state| state != MemberState::Faulty);
                if let Some(label) = self.draw(all) {
                    let _ = self.mirror.fail(&label).await;
                }
            }
            3 => {
                let faulty = self.members(|state| state == MemberState::Faulty);
                if let Some(label) = self.draw(faulty) {
                    self.mirror.remove(&label).await.unwrap();
                }
            }
            4..6 if self.members(|state| state == MemberState::Spare).is_empty() => {
                let spare = self.spare();
                self.mirror.add(spare).await.unwrap();
            }
            6..9 => self.take_back().await,
            9 => {
                let in_sync = self.members(|state| state == MemberState::InSync);
                if let Some(label) = self.draw(in_sync) {
                    let spare = self.spare();
                    let _ = self.mirror.replace(&label, spare).await;
                }
            }
            10 => {
                let kind = [None, Some(JobKind::Check), Some(JobKind::Repair)][self.dice.index(3)];
                self.mirror.scrub(kind).unwrap();
            }
            11 => {
                // A disk fails while it is filled.
                let filled = |state| matches!(state, MemberState::Recovering(_));
                if let Some(label) = self.draw(self.members(filled)) {
                    let disk = self.disks.borrow()[number_of(&label)].clone();
                    disk.faults().add(Target::op(Op::Write), Fault::Error(Errno::IO));
                }
            }
            _ => self.rest().await,
        }
    }

    /// Removes a faulty member and adds it again.
    async fn take_back(&mut self) {
        let faulty = self.members(|state| state == MemberState::Faulty);
        let Some(label) = self.draw(faulty) else { return };
        self.mirror.remove(&label).await.unwrap();
        let index = number_of(&label);
        let superblock =
            crate::world::superblock_of(&self.disks.borrow()[index].contents().to_vec());
        if superblock.role() == braid_md::Role::Spare || superblock.recovery_offset.is_some() {
            return;
        }
        let member = World::comes_back(&self.handle, &self.disks, index, &mut self.dice);
        let _ = self.mirror.add(member).await;
    }

    /// Gives the array what it is missing and waits until it is whole.
    pub(crate) async fn make_whole(&mut self) {
        for _ in 0..2000 {
            let status = self.mirror.status();
            let done = status.in_sync.iter().all(|in_sync| *in_sync)
                && status.job.is_none()
                && !status.active
                && status.bitmap.is_none_or(|bitmap| bitmap.set == 0);
            if done {
                return;
            }
            let missing = status.in_sync.contains(&false)
                && self
                    .members(|state| !matches!(state, MemberState::Faulty | MemberState::InSync))
                    .is_empty();
            if missing {
                let spare = self.spare();
                self.mirror.add(spare).await.unwrap();
            }
            self.handle.sleep(50_000_000).await;
        }
        panic!("the array does not come to rest: {:#?}", self.mirror.status());
    }
}

/// The disk that a label means.
fn number_of(label: &str) -> usize {
    label.trim_start_matches("disk").parse().expect("a disk's label")
}

#[test]
fn whatever_operators_do_the_data_is_there() {
    let name = "life::whatever_operators_do_the_data_is_there";
    let crashes = Rc::new(Cell::new(0));
    for_each_seed(name, 100, |seed| {
        let shape = Shape::number(seed);
        let world = World::new(seed, shape);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let mut operator = Operator::new(&world, seed);

        let (disks, oracle) = (Rc::clone(&world.disks), Rc::clone(&client.oracle));
        let (mut dice, counter) = (rng(!seed), Rc::clone(&crashes));
        world.sim.observe(move || {
            if dice.below(40) > 0 {
                return;
            }
            let images = crash_images(&disks.borrow(), &mut dice);
            check_crash(&shape, &images, &oracle.borrow());
            if dice.percent(5) {
                counter.set(counter.get() + 1);
                assemble_again(seed, shape, &images, &oracle);
            }
        });

        let done = Rc::new(Cell::new(false));
        let over = Rc::clone(&done);
        world.sim.handle().spawn("client", async move {
            for _ in 0..12 {
                let load = Load { requests: 15, depth: 5, longest: 16, overlapping: true };
                let report = client.run(load).await;
                assert!(report.errors.is_empty(), "{:?}", report.errors);
            }
            over.set(true);
        });
        world.run(async move {
            while !done.get() {
                operator.act().await;
                operator.rest().await;
            }
            operator.make_whole().await;
        });
        world.check_copies_equal();
    });
    assert!(crashes.get() > 30, "{} crashes", crashes.get());
}

/// The starts of the blocks that a scrub found to differ.
pub(crate) fn blocks_of(found: &Status) -> Vec<u64> {
    let places = found.mismatch_places.iter();
    places.flat_map(|place| (place.offset..place.offset + place.len).step_by(4096)).collect()
}

/// Plants other bytes on one disk, behind the array's back.
fn plant(images: &mut [Option<Vec<u8>>], disk: usize, offset: u64, len: usize) {
    let at = (crate::world::DATA + offset) as usize;
    images[disk].as_mut().unwrap()[at..at + len].fill(0xbd);
}

#[test]
fn a_check_finds_what_differs_and_a_repair_makes_it_the_same() {
    let name = "life::a_check_finds_what_differs_and_a_repair_makes_it_the_same";
    for_each_seed(name, 60, |seed| {
        let shape = Shape::number(seed);
        let geometry = shape.geometry();
        let mut images = shape.images();
        let mut dice = rng(seed);
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..dice.within(1..=6) {
            let offset = dice.below(geometry.size() / 4096) * 4096;
            let run = geometry.locate(ArrayByte::new(offset), dice.index(geometry.copies()));
            let row = run.offset + 512 * dice.below(8);
            plant(&mut images, run.role.index(), row.get(), 512);
            places.insert(offset);
        }
        // The same bytes planted on all copies of a block do not differ.
        let world = World::with_images(seed, shape, &images);
        let (mirror, dev, pause) = (world.array.clone(), world.dev.clone(), world.sleep(5));
        let again = world.sleep(5);
        let repaired = world.sleep(5);
        let found = world.run(async move {
            mirror.scrub(Some(JobKind::Check)).unwrap();
            pause.await;
            let found = mirror.status();
            assert!(
                found.last_scrub.as_ref().is_some_and(|last| last.kind == JobKind::Check),
                "{found:#?}"
            );
            mirror.scrub(Some(JobKind::ForcedRepair)).unwrap();
            again.await;
            assert_eq!(mirror.status().mismatches, found.mismatches, "a check changes nothing");
            mirror.scrub(Some(JobKind::Check)).unwrap();
            repaired.await;
            assert_eq!(mirror.status().mismatches, 0);
            drop(dev);
            found
        });
        let found_places = blocks_of(&found);
        assert!(found_places.iter().all(|place| places.contains(place)), "{found_places:?}");
        assert_eq!(found.mismatches, found_places.len() as u64 * 4096, "{found_places:?}");
        if places.len() == 1 {
            assert_eq!(found_places.len(), 1, "{places:?}");
        }
        world.check_copies_equal();
    });
}

/// A member that comes back gets the chunks that were written without it, and no others.
#[test]
fn a_member_that_comes_back_gets_what_it_missed() {
    use crate::world::{DATA, PAIR_BITMAP};
    use braid_block::{Flags, Io};
    for_each_seed("life::a_member_that_comes_back_gets_what_it_missed", 60, |seed| {
        let world = World::new(seed, PAIR_BITMAP);
        let chunk = PAIR_BITMAP.bitmap.unwrap();
        let (dev, mirror, disks) =
            (world.dev.clone(), world.array.clone(), Rc::clone(&world.disks));
        let (handle, quiet, pause) = (world.sim.handle(), world.sleep(15), world.sleep(15));
        let mut dice = rng(seed);
        let missed = world.run(async move {
            let io = Io::write(0, crate::world::filled(32 << 10, 1), Flags::NONE);
            dev.start(io).await.result.unwrap();
            quiet.await;
            mirror.fail("disk1").await.unwrap();
            let mut missed = std::collections::BTreeSet::new();
            for _ in 0..dice.within(1..=5) {
                let offset = dice.below(PAIR_BITMAP.member_size / 512) * 512;
                let io = Io::write(offset, crate::world::filled(512, 2), Flags::NONE);
                dev.start(io).await.result.unwrap();
                missed.insert(offset / chunk);
            }
            mirror.remove("disk1").await.unwrap();
            let member = World::comes_back(&handle, &disks, 1, &mut dice);
            mirror.add(member).await.unwrap();
            pause.await;
            let status = mirror.status();
            assert_eq!(status.in_sync, [true, true], "{status:#?}");
            assert_eq!(status.bitmap.map(|bitmap| bitmap.set), Some(0), "{status:#?}");
            missed.len() as u64
        });
        let trace = world.disk(1).trace();
        let written = trace.iter().filter(|one| one.op == Op::Write && one.span.offset >= DATA);
        assert_eq!(written.map(|one| one.span.len).sum::<u64>(), missed * chunk);
        world.check_copies_equal();
    });
}

/// One that was away while bits were cleared is filled from end to end.
#[test]
fn a_member_that_was_away_too_long_is_filled_whole() {
    use crate::world::SHAPES;
    use braid_block::{Flags, Io};
    for_each_seed("life::a_member_that_was_away_too_long_is_filled_whole", 20, |seed| {
        let shape = SHAPES[3];
        let world = World::new(seed, shape);
        let mut operator = Operator::new(&world, seed);
        let (dev, mirror) = (world.dev.clone(), world.array.clone());
        let pause = world.sleep(5);
        world.run(async move {
            mirror.fail("disk1").await.unwrap();
            mirror.remove("disk1").await.unwrap();
            let io = Io::write(8192, crate::world::filled(4096, 1), Flags::NONE);
            dev.start(io).await.result.unwrap();
            // Another takes its place, and all bits are cleared; then that one goes.
            operator.make_whole().await;
            mirror.fail("disk3").await.unwrap();
            mirror.remove("disk3").await.unwrap();
            let (handle, disks) = (operator.handle.clone(), Rc::clone(&operator.disks));
            let member = World::comes_back(&handle, &disks, 1, &mut operator.dice);
            mirror.add(member).await.unwrap();
            pause.await;
            let status = mirror.status();
            assert_eq!(status.in_sync, [true; 3], "{status:#?}");
        });
        world.check_copies_equal();
    });
}

/// A spare keeps its superblock when it is removed. Kernels since 6.8 ask the other members which role its
/// number has: no other member may get that number.
#[test]
fn the_number_of_a_spare_that_is_gone_is_not_given_to_another() {
    use crate::world::PAIR_BITMAP;
    let world = World::new(1, PAIR_BITMAP);
    let mut operator = Operator::new(&world, 1);
    let (mirror, disks) = (world.array.clone(), Rc::clone(&world.disks));
    world.run(async move {
        let spare = operator.spare();
        let number = spare.number;
        mirror.add(spare).await.unwrap();
        mirror.remove("disk2").await.unwrap();
        assert!(mirror.free_number() > number);
        mirror.fail("disk1").await.unwrap();
        operator.make_whole().await;
        let recorded = crate::world::superblock_of(&disks.borrow()[0].contents().to_vec());
        assert_eq!(recorded.roles[number as usize], braid_md::Role::Faulty);
        assert_eq!(recorded.roles[number as usize + 1], braid_md::Role::Active(1));
    });
}

#[test]
fn an_array_that_is_shut_down_is_clean() {
    for_each_seed("life::an_array_that_is_shut_down_is_clean", 100, |seed| {
        let world = World::new(seed, Shape::number(seed));
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let (mirror, disks) = (world.array.clone(), Rc::clone(&world.disks));
        let mut dice = rng(!seed);
        let shape = world.shape;
        world.run(async move {
            if seed % 3 == 0 {
                mirror.scrub(Some(JobKind::Repair)).unwrap();
            }
            client.run(Load { requests: 40, depth: 8, longest: 30, overlapping: true }).await;
            mirror.shut_down().await;
            let images = crash_images(&disks.borrow(), &mut dice);
            let assembly = crate::world::Assembly::new(&images);
            assert!(assembly.is_clean());
            assert_eq!(assembly.bitmap.as_ref().map_or(0, |bitmap| bitmap.count_set()), 0);
            check_crash(&shape, &images, &client.oracle.borrow());
        });
        world.check_copies_equal();
    });
}

/// A raid1 gets another role, which a spare takes; it gives the role up again when no member has it.
#[test]
fn a_raid1_grows_and_shrinks_under_load() {
    use crate::world::{PAIR, PAIR_BITMAP};
    for_each_seed("life::a_raid1_grows_and_shrinks_under_load", 60, |seed| {
        let world = World::new(seed, [PAIR, PAIR_BITMAP][seed as usize % 2]);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let mut operator = Operator::new(&world, seed);
        world.sim.handle().spawn("client", async move {
            let load = Load { requests: 150, depth: 5, longest: 16, overlapping: true };
            assert!(client.run(load).await.errors.is_empty());
        });
        world.run(async move {
            let mirror = operator.mirror.clone();
            mirror.set_raid_disks(3).await.unwrap();
            operator.rest().await;
            operator.make_whole().await;
            assert_eq!(mirror.status().in_sync, [true; 3]);
            assert!(mirror.set_raid_disks(2).await.is_err(), "somebody has role 2");
            mirror.fail("disk2").await.unwrap();
            mirror.set_raid_disks(2).await.unwrap();
            operator.make_whole().await;
        });
        world.check_copies_equal();
    });
}

/// Two copies on two members is the order of a raid1 only for one layout, and never its level.
#[test]
fn a_raid10_does_not_become_a_raid1() {
    use crate::world::{FAR, NEAR, OFFSET, SHAPES};
    for layout in [NEAR, FAR, OFFSET] {
        let shape = Shape { members: 2, layout, ..SHAPES[4] };
        let world = World::new(1, shape);
        let mirror = world.array.clone();
        world.run(async move {
            assert!(mirror.set_raid_disks(3).await.is_err());
            let refused = mirror.set_member_size(None).await.unwrap_err();
            assert!(refused.to_string().contains("only raid1"), "{refused}");
        });
    }
}
