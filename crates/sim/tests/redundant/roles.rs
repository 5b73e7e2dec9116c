//! Order of superblocks when members take roles: a member says that it has a role before the other members do, and
//! nothing is answered before the superblocks have the change.
//!
//! ```text
//!   spare    own superblock: role 1, nothing filled ──┐
//!   disk0                                             └──▶ superblock: role 1 is the spare's
//! ```
//!
//! A member with an older superblock, which says "spare", would count as in sync if the others give it a role.

use std::rc::Rc;

use braid_block::{Op, Span};
use braid_engine::redundant::{Consistency, MemberState, Redundant};
use braid_md::Level::Raid5;
use braid_md::{Role, Superblock};
use braid_sim::{Fault, Target, for_each_seed};

use crate::parity::crash::{tiny, without};
use crate::world::{
    DATA, HEAD, PAIR, SUPERBLOCK, Shape, TRIPLE, World, crash_images, rng, superblock_of,
};

const SECOND_NS: u64 = 1_000_000_000;

/// Checks at every event from now on that after a crash each member to which any superblock gives a role says that it
/// has one.
fn roles_are_announced(world: &World, seed: u64) {
    let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
    world.sim.observe(move || {
        let images = crash_images(&disks.borrow(), &mut dice);
        let all: Vec<Superblock> = images.iter().flatten().map(|one| superblock_of(one)).collect();
        let has_role = |role| matches!(role, Role::Active(_));
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            let is_given = has_role(one.roles[other.device_number as usize]);
            assert!(!is_given || has_role(other.role()), "{one:?} and {other:?}");
        }
    });
}

fn is_filled(array: &Redundant, label: &str) -> bool {
    let is = |state| matches!(state, MemberState::Recovering(_));
    array.status().members.iter().any(|one| one.label == label && is(one.state))
}

#[test]
fn a_spare_announces_its_role_before_the_other_members_do() {
    let name = "roles::a_spare_announces_its_role_before_the_other_members_do";
    for_each_seed(name, 20, |seed| {
        let world = World::with_images(seed, PAIR, &without(&PAIR.images(), &[1]));
        roles_are_announced(&world, seed);
        let (array, rest) = (world.array.clone(), world.sleep(1));
        let spare = world.spare(array.free_number());
        world.run(async move {
            // Recorded as a spare first: its superblock is then as fresh as the others.
            array.hold_passes().await.expect("it is recorded");
            array.add(spare).await.expect("a spare");
            array.let_passes_go_on();
            rest.await;
            assert_eq!(array.status().in_sync, [true, true], "{:#?}", array.status());
        });
    });
}

/// Two members take roles by the same superblocks. The first one announces itself and not the second.
#[test]
fn two_replacements_announce_themselves_one_after_the_other() {
    let name = "roles::two_replacements_announce_themselves_one_after_the_other";
    for_each_seed(name, 20, |seed| {
        let world = World::new(seed, TRIPLE);
        roles_are_announced(&world, seed);
        let (array, handle, rest) = (world.array.clone(), world.sim.handle(), world.sleep(1));
        let (first, second) = (world.spare(3), world.spare(4));
        world.run(async move {
            // Superblocks are written twice at first.
            array.record().await.expect("it is recorded");
            let beside = array.clone();
            handle.spawn("second", async move {
                beside.replace("disk1", second).await.expect("a replacement");
            });
            array.replace("disk0", first).await.expect("a replacement");
            rest.await;
            let members = array.status().members;
            let faulty = members.iter().filter(|one| one.state == MemberState::Faulty);
            assert_eq!(faulty.count(), 2, "{members:#?}");
        });
    });
}

/// A spare takes a role, and fails while the logs' heads are written, before it has announced itself. Superblocks
/// that were made before the failure are not written.
#[test]
fn a_spare_that_fails_before_it_announces_its_role_gets_none() {
    const RECORDS: Shape = tiny(Raid5, 2, 4, Consistency::Log);
    let name = "roles::a_spare_that_fails_before_it_announces_its_role_gets_none";
    for_each_seed(name, 10, |seed| {
        let world = World::with_images(seed, RECORDS, &without(&RECORDS.images(), &[3]));
        world.sim.be_prompt(SECOND_NS / 1000);
        roles_are_announced(&world, seed);
        let (array, handle, slow) = (world.array.clone(), world.sim.handle(), world.disk(0));
        let spare = world.spare(array.free_number());
        let label = spare.label.clone();
        world.run(async move {
            array.hold_passes().await.expect("it is recorded");
            array.add(spare).await.expect("a spare");
            let heads = Target::op(Op::Write).touching(Span::new(HEAD, DATA - HEAD));
            let late_ns = handle.now() + SECOND_NS;
            slow.faults().add_some(heads, Fault::NotBefore(late_ns), 1);
            array.let_passes_go_on();
            handle.sleep(SECOND_NS / 10).await;
            assert!(is_filled(&array, &label), "{:#?}", array.status());
            array.fail(&label).await.expect("a member");
            assert!(handle.now() >= late_ns, "the heads were written before");
        });
    });
}

/// A member fails while superblocks are written that were made before. The next ones say so, and then the order is
/// answered.
#[test]
fn a_failure_is_recorded_by_superblocks_that_were_made_after_it() {
    let name = "roles::a_failure_is_recorded_by_superblocks_that_were_made_after_it";
    for_each_seed(name, 10, |seed| {
        let world = World::new(seed, PAIR);
        world.sim.be_prompt(SECOND_NS / 1000);
        let (array, handle, slow) = (world.array.clone(), world.sim.handle(), world.disk(1));
        world.run(async move {
            // Superblocks are written twice at first.
            array.record().await.expect("it is recorded");
            let superblocks = Target::op(Op::Write).touching(Span::new(SUPERBLOCK, 4096));
            let late_ns = handle.now() + SECOND_NS;
            slow.faults().add_some(superblocks, Fault::NotBefore(late_ns), 1);
            let beside = array.clone();
            handle.spawn("record", async move { beside.record().await.expect("it is recorded") });
            handle.sleep(SECOND_NS / 10).await;
            array.fail("disk0").await.expect("disk1 is left");
            assert!(handle.now() >= late_ns, "the superblocks were written before");
            let superblock = superblock_of(&slow.contents().to_vec());
            assert_eq!(superblock.roles[0], Role::Faulty, "{superblock:?}");
        });
    });
}

/// A member fails while its replacement is filled, and the replacement takes its place. Superblocks are written twice
/// to leave the failed member behind; up to the second time a crash finds it believed, so the replacement stays one.
#[test]
fn a_member_that_failed_and_its_successor_are_never_believed_in_one_role() {
    let name = "roles::a_member_that_failed_and_its_successor_are_never_believed_in_one_role";
    for_each_seed(name, 10, |seed| {
        let world = World::new(seed, PAIR);
        world.sim.be_prompt(SECOND_NS / 1000);
        let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
        world.sim.observe(move || {
            let images = crash_images(&disks.borrow(), &mut dice);
            let all: Vec<Superblock> =
                images.iter().flatten().map(|one| superblock_of(one)).collect();
            let freshest = all.iter().map(|one| one.events).max().expect("a member");
            let is_believed = |one: &&Superblock| {
                let has_role = matches!(one.role(), Role::Active(_)) && !one.is_replacement();
                has_role && one.events + 1 >= freshest
            };
            let roles: Vec<Role> = all.iter().filter(is_believed).map(|one| one.role()).collect();
            for role in &roles {
                let holders = roles.iter().filter(|other| *other == role).count();
                assert_eq!(holders, 1, "members of {role:?}: {all:?}");
            }
        });
        let (array, handle, spare) = (world.array.clone(), world.sim.handle(), world.spare(2));
        let reads = Target::op(Op::Read).touching(Span::new(DATA, 4096));
        for index in [0, 1] {
            world.disk(index).faults().add(reads, Fault::NotBefore(SECOND_NS));
        }
        world.run(async move {
            array.record().await.expect("it is recorded");
            array.replace("disk0", spare).await.expect("a replacement");
            handle.sleep(SECOND_NS / 10).await;
            assert!(handle.now() < SECOND_NS, "it is filled");
            array.fail("disk0").await.expect("disk1 is left");
            handle.sleep(5 * SECOND_NS).await;
            assert_eq!(array.status().in_sync, [true, true], "{:#?}", array.status());
        });
    });
}
