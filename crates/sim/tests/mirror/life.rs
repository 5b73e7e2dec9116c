//! Members that come, go, take over and are replaced, under load.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_engine::mirror::{JobKind, MemberState, Mirror};
use braid_sim::{Client, Handle, Load, Rng, SimDisk, for_each_seed};

use crate::crash::assemble_again;
use crate::failure::check_crash;
use crate::world::{Shape, World, crash_images, pool, rng, spare};

/// Whoever changes members while a client works.
struct Operator {
    mirror: Mirror,
    handle: Handle,
    disks: Rc<RefCell<Vec<SimDisk>>>,
    shape: Shape,
    dice: Rng,
}

impl Operator {
    fn new(world: &World, seed: u64) -> Operator {
        Operator {
            mirror: world.mirror.clone(),
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

    /// The labels of members in a state that `wanted` picks.
    fn members(&self, wanted: impl Fn(MemberState) -> bool) -> Vec<String> {
        let members = self.mirror.status().members;
        members.into_iter().filter(|one| wanted(one.state)).map(|one| one.label).collect()
    }

    fn draw(&mut self, labels: Vec<String>) -> Option<String> {
        (!labels.is_empty()).then(|| labels[self.dice.index(labels.len())].clone())
    }

    fn spare(&mut self) -> braid_engine::mirror::NewMember {
        spare(&self.handle, &self.disks, &self.shape, self.mirror.free_number())
    }

    /// One thing that an operator does, at random; what is refused is refused.
    async fn act(&mut self) {
        match self.dice.below(12) {
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
            _ => self.rest().await,
        }
    }

    /// Removes a faulty member and adds it again.
    async fn take_back(&mut self) {
        let faulty = self.members(|state| state == MemberState::Faulty);
        let Some(label) = self.draw(faulty) else { return };
        self.mirror.remove(&label).await.unwrap();
        let index: usize = label.trim_start_matches("disk").parse().unwrap();
        let superblock = crate::world::superblock_of(&self.disks.borrow()[index].contents());
        if superblock.role() == braid_md::Role::Spare || superblock.recovery_offset.is_some() {
            return;
        }
        let member = World::comes_back(&self.handle, &self.disks, index, &mut self.dice);
        let _ = self.mirror.add(member).await;
    }

    /// Gives the array what it is missing and waits until it is whole.
    async fn make_whole(&mut self) {
        for _ in 0..2000 {
            let status = self.mirror.status();
            let done = status.in_sync.iter().all(|in_sync| *in_sync)
                && status.job.is_none()
                && !status.active
                && status.bitmap.is_none_or(|(_, _, set)| set == 0);
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

#[test]
fn whatever_operators_do_the_data_is_there() {
    let name = "life::whatever_operators_do_the_data_is_there";
    let crashes = Rc::new(Cell::new(0));
    for_each_seed(name, 150, |seed| {
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
    assert!(crashes.get() > 50, "{} crashes", crashes.get());
}
