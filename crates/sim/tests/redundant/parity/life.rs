//! Members that come, go, take over and are replaced under load; resyncs.
//!
//! Whatever happens, the content is what the oracle allows, and when the array is whole again its
//! parity fits.

use std::cell::Cell;
use std::rc::Rc;

use braid_array::{ArrayByte, Geometry};
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::redundant::{Consistency, JobKind, MemberState, NewMember, Redundant, Speed};
use braid_md::{Level, Resync, Role};
use braid_sim::{Client, Fault, Load, Rng, SimDisk, Target, for_each_seed};

use crate::parity::conformance::all_shapes;
use crate::parity::images::{check_whole, contents, images_with};
use crate::world::{DATA, Shape, World, filled, parity, pool, rng, spare, superblock_of};

/// An operator that changes members while a client works.
struct Operator {
    array: Redundant,
    handle: braid_sim::Handle,
    disks: Rc<std::cell::RefCell<Vec<SimDisk>>>,
    shape: Shape,
    dice: Rng,
}

impl Operator {
    fn new(world: &World, seed: u64) -> Operator {
        Operator {
            array: world.array.clone(),
            handle: world.sim.handle(),
            disks: Rc::clone(&world.disks),
            shape: world.shape,
            dice: rng(seed.rotate_left(32)),
        }
    }

    async fn rest(&mut self) {
        let most_ns = [1_000_000, 50_000_000, 400_000_000][self.dice.index(3)];
        self.handle.sleep(self.dice.below(most_ns)).await;
    }

    /// One of the members in a state that `wanted` picks.
    fn draw(&mut self, wanted: impl Fn(MemberState) -> bool) -> Option<String> {
        let members = self.array.status().members.into_iter();
        let labels: Vec<String> =
            members.filter(|one| wanted(one.state)).map(|one| one.label).collect();
        (!labels.is_empty()).then(|| labels[self.dice.index(labels.len())].clone())
    }

    fn spare(&mut self) -> NewMember {
        spare(&self.handle, &self.disks, &self.shape, self.array.free_number())
    }

    /// One thing that an operator does, at random; what is refused is refused.
    async fn act(&mut self) {
        match self.dice.below(12) {
            0..3 => {
                if let Some(label) = self.draw(|state| state != MemberState::Faulty) {
                    let _ = self.array.fail(&label).await;
                }
            }
            3 => {
                if let Some(label) = self.draw(|state| state == MemberState::Faulty) {
                    self.array.remove(&label).await.unwrap();
                }
            }
            4..6 if self.draw(|state| state == MemberState::Spare).is_none() => {
                let spare = self.spare();
                self.array.add(spare).await.unwrap();
            }
            6..8 => self.take_back().await,
            8 => {
                if let Some(label) = self.draw(|state| state == MemberState::InSync) {
                    let spare = self.spare();
                    let _ = self.array.replace(&label, spare).await;
                }
            }
            9 => {
                let kind = [None, Some(JobKind::Check), Some(JobKind::Repair)][self.dice.index(3)];
                self.array.scrub(kind).unwrap();
            }
            10 => {
                // A disk fails while it is filled.
                let filled = |state| matches!(state, MemberState::Recovering(_));
                if let Some(label) = self.draw(filled) {
                    let disk = self.disks.borrow()[number_of(&label)].clone();
                    disk.faults().add(Target::op(Op::Write), Fault::Error(Errno::IO));
                }
            }
            _ => self.rest().await,
        }
    }

    /// Removes a faulty member and adds it again, to be filled by the bitmap if that knows enough.
    async fn take_back(&mut self) {
        let Some(label) = self.draw(|state| state == MemberState::Faulty) else { return };
        self.array.remove(&label).await.unwrap();
        let index = number_of(&label);
        let superblock = superblock_of(&self.disks.borrow()[index].contents().to_vec());
        if superblock.role() == Role::Spare || superblock.recovery_offset.is_some() {
            return;
        }
        let member = World::comes_back(&self.handle, &self.disks, index, &mut self.dice);
        let _ = self.array.add(member).await;
    }

    /// Gives the array what it is missing and waits until it is whole.
    async fn make_whole(&mut self) {
        for _ in 0..2000 {
            let status = self.array.status();
            let done = status.in_sync.iter().all(|in_sync| *in_sync)
                && status.job.is_none()
                && !status.active
                && status.bitmap.is_none_or(|bitmap| bitmap.set == 0);
            if done {
                return;
            }
            let is_coming = |state| !matches!(state, MemberState::Faulty | MemberState::InSync);
            if status.in_sync.contains(&false) && self.draw(is_coming).is_none() {
                let spare = self.spare();
                self.array.add(spare).await.unwrap();
            }
            self.handle.sleep(50_000_000).await;
        }
        panic!("the array does not come to rest: {:#?}", self.array.status());
    }
}

/// The disk that a label means.
fn number_of(label: &str) -> usize {
    label.trim_start_matches("disk").parse().expect("a disk's label")
}

#[test]
fn whatever_operators_do_the_data_is_there() {
    let shapes = all_shapes();
    for_each_seed("parity::life::whatever_operators_do_the_data_is_there", 100, |seed| {
        let shape = shapes[seed as usize * 7 % shapes.len()];
        let world = World::new(seed, shape);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let oracle = Rc::clone(&client.oracle);
        let mut operator = Operator::new(&world, seed);
        let done = Rc::new(Cell::new(false));
        let over = Rc::clone(&done);
        world.sim.handle().spawn("client", async move {
            for _ in 0..8 {
                let load = Load { requests: 20, depth: 6, longest: 48, overlapping: true };
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
        let images = world.images();
        check_whole(&shape, &images);
        oracle.borrow().check_crash(&contents(&shape, &images)).unwrap();
    });
}

/// Each of the ways in which a member comes to have its role, one after the other, while a client
/// works.
#[test]
fn a_member_is_replaced_comes_back_and_is_filled() {
    let shapes = all_shapes();
    for_each_seed("parity::life::a_member_is_replaced_comes_back_and_is_filled", 60, |seed| {
        let shape = shapes[seed as usize * 13 % shapes.len()];
        let world = World::new(seed, shape);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let oracle = Rc::clone(&client.oracle);
        let mut operator = Operator::new(&world, seed);
        let done = Rc::new(Cell::new(false));
        let over = Rc::clone(&done);
        world.sim.handle().spawn("client", async move {
            let load = Load { requests: 150, depth: 5, longest: 32, overlapping: true };
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            over.set(true);
        });
        world.run(async move {
            let array = operator.array.clone();
            // A spare takes over.
            array.fail("disk1").await.unwrap();
            array.remove("disk1").await.unwrap();
            operator.rest().await;
            operator.make_whole().await;
            // Another is filled beside the one that it replaces.
            let new = operator.spare();
            array.replace("disk0", new).await.unwrap();
            operator.make_whole().await;
            let replaced = array.status().members.into_iter().find(|one| one.label == "disk0");
            assert_eq!(replaced.unwrap().state, MemberState::Faulty);
            // One goes, misses something, and is back.
            array.fail("disk2").await.unwrap();
            array.remove("disk2").await.unwrap();
            operator.rest().await;
            let (handle, disks) = (operator.handle.clone(), Rc::clone(&operator.disks));
            let back = World::comes_back(&handle, &disks, 2, &mut operator.dice);
            array.add(back).await.unwrap();
            while !done.get() {
                operator.rest().await;
            }
            operator.make_whole().await;
        });
        let images = world.images();
        check_whole(&shape, &images);
        oracle.borrow().check_crash(&contents(&shape, &images)).unwrap();
    });
}

/// A write finds no room on its members, and room on a replacement that is being filled: the write
/// fails, and the replacement takes over what the array holds, not what the write brought.
#[test]
fn a_replacement_forgets_a_write_that_found_no_room() {
    let shapes = [
        parity(Level::Raid4, 0, 5, Consistency::Resync),
        parity(Level::Raid5, 0, 5, Consistency::Bitmap),
        parity(Level::Raid5, 0, 5, Consistency::Ppl),
        parity(Level::Raid6, 0, 5, Consistency::Log),
    ];
    let mut mended = 0;
    for seed in 0..32 {
        let shape = Shape { member_size: 1 << 20, ..shapes[seed as usize % shapes.len()] };
        let before: Vec<u8> = (0..shape.size()).map(|at| (at / 512) as u8 ^ 0x55).collect();
        let images = images_with(&shape, &before);
        let slowly = Speed { min: 1 << 20, max: Some(1 << 20), latency: None };
        let world = World::with(seed, shape, &images, |setup| setup.speed = slowly);
        let replaced = format!("disk{}", shape.stripes().locate(ArrayByte::START).role.index());
        let (array, dev, handle) = (world.array.clone(), world.dev.clone(), world.sim.handle());
        let members = world.disks.borrow().clone();
        let (replacement, rest) = (world.spare(5), world.sleep(10));
        let took_over = world.run(async move {
            array.replace(&replaced, replacement).await.unwrap();
            let is_begun = |state| matches!(state, MemberState::Recovering(at) if at.get() > 0);
            while !array.status().members.iter().any(|one| is_begun(one.state)) {
                handle.sleep(1_000_000).await;
            }
            for disk in &members {
                let data = Target::op(Op::Write).touching(Span::new(DATA, 512));
                disk.faults().add(data, Fault::Error(Errno::NOSPC));
            }
            let write = Io::write(0, filled(512, 9), Flags::NONE);
            assert!(dev.start(write).await.result.is_err());
            members.iter().for_each(|disk| disk.faults().clear());
            rest.await;
            let status = array.status();
            let is_out = status
                .members
                .iter()
                .any(|one| one.label == replaced && one.state == MemberState::Faulty);
            assert!(is_out || status.broken, "{shape:?}: {status:#?}");
            is_out
        });
        // Where one of the writes that failed did arrive, the array stopped.
        if took_over {
            let images = world.images();
            check_whole(&shape, &images);
            let after = contents(&shape, &images);
            assert!(after[512..] == before[512..], "{shape:?}");
            assert!(after[..512] == before[..512] || after[..512] == [9; 512], "{shape:?}");
            mended += 1;
        }
    }
    assert!(mended >= 8, "{mended} of 32");
}

/// Superblocks that say that nothing is known of the parity: it is made to fit the data under
/// load, and no write counts on it before.
#[test]
fn a_resync_makes_parity_fit_its_data() {
    let shapes = all_shapes();
    for_each_seed("parity::life::a_resync_makes_parity_fit_its_data", 80, |seed| {
        let shape = shapes[seed as usize * 3 % shapes.len()];
        let mut dice = rng(seed);
        let mut images = images_with(&shape, &vec![0; shape.size() as usize]);
        let geometry = shape.stripes();
        for (role, image) in images.iter_mut().flatten().enumerate() {
            let mut superblock = superblock_of(image).into_contents();
            superblock.resync = Resync::From(0);
            let bytes = superblock.encode();
            image[crate::world::SUPERBLOCK as usize..][..bytes.len()].copy_from_slice(&bytes);
            // Rubbish where the parity is.
            for row in (0..shape.member_size).step_by(512) {
                use braid_array::geometry::Column;
                let column = geometry.column_of(row / shape.chunk, braid_array::Role::nth(role));
                if !matches!(column, Column::Data(_)) && dice.percent(30) {
                    image[(DATA + row) as usize..][..512].fill(0x77);
                }
            }
            // As the array's creation leaves it, a bitmap is set where nothing is known.
            if shape.bitmap.is_some() {
                let room = crate::world::BITMAP as usize..DATA as usize;
                let mut bitmap = braid_md::Bitmap::parse(&image[room.clone()]).unwrap();
                for chunk in 0..bitmap.chunk_count() {
                    bitmap.set(chunk);
                }
                let page = bitmap.page(0);
                image[room.start..room.start + page.len()].copy_from_slice(&page);
            }
            // The stripe log has nothing to say either.
            if shape.consistency == braid_engine::redundant::Consistency::Log {
                let head = crate::world::DATA as usize - 4096;
                image[head..head + 8].fill(0);
            }
        }
        let world = World::with_images(seed, shape, &images);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let oracle = Rc::clone(&client.oracle);
        let (array, pause) = (world.array.clone(), world.sleep(20));
        world.run(async move {
            let load = Load { requests: 60, depth: 6, longest: 40, overlapping: true };
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = array.status();
            assert_eq!(status.resync, Resync::Clean, "{status:#?}");
            assert!(!status.active && status.job.is_none(), "{status:#?}");
        });
        let images = world.images();
        check_whole(&shape, &images);
        oracle.borrow().check_crash(&contents(&shape, &images)).unwrap();
    });
}
