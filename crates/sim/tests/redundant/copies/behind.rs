//! Write-behind: a write-mostly member that carries writes out after their answers.

use std::rc::Rc;

use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::canary::{Canary, plant};
use braid_engine::redundant::MemberState;
use braid_sim::{Client, Fault, Load, Target, for_each_seed};

use crate::world::{DATA, PAIR_BITMAP, World, filled, pool, rng};

const LEN: u64 = 4096;
/// No write of the late member's data is done before.
const SLOW_NS: u64 = 5_000_000_000;
/// Prompt requests take less.
const PROMPT_NS: u64 = 1_000_000_000;

/// A pair whose second member has up to `most` writes behind; its next `slow` writes of data take until [`SLOW_NS`].
fn world(seed: u64, most: u32, slow: u64) -> World {
    let world = World::with(seed, PAIR_BITMAP, &PAIR_BITMAP.images(), |setup| {
        setup.members[1].write_mostly = true;
        setup.bitmap.as_mut().expect("a bitmap").bitmap.header.write_behind = most;
    });
    world.sim.be_prompt(10_000_000);
    let data = Span::new(DATA, PAIR_BITMAP.member_size);
    let write = Target::op(Op::Write).touching(data);
    world.disk(1).faults().add_some(write, Fault::NotBefore(SLOW_NS), slow);
    world
}

fn write(offset: u64, byte: u8, flags: Flags) -> Io {
    Io::write(offset, filled(LEN as usize, byte), flags)
}

#[test]
fn a_write_is_answered_before_the_late_member_has_it_and_a_flush_waits() {
    let name =
        "copies::behind::a_write_is_answered_before_the_late_member_has_it_and_a_flush_waits";
    for_each_seed(name, 20, |seed| {
        let world = world(seed, 16, 1);
        let (dev, handle) = (world.dev.clone(), world.sim.handle());
        world.run(async move {
            assert_eq!(dev.start(write(0, 1, Flags::NONE)).await.result, Ok(()));
            assert!(handle.now() < PROMPT_NS, "{} ns", handle.now());
            assert_eq!(dev.start(Io::flush()).await.result, Ok(()));
            assert!(handle.now() >= SLOW_NS, "{} ns", handle.now());
        });
        world.check_copies_equal();
    });
}

/// FUA, a write over one that is behind, and one beyond the limit.
#[test]
fn other_writes_wait_for_all_members() {
    let later = [(LEN, Flags::FUA, 16), (0, Flags::NONE, 16), (LEN, Flags::NONE, 1)];
    for (offset, flags, most) in later {
        for_each_seed("copies::behind::other_writes_wait_for_all_members", 10, |seed| {
            let world = world(seed, most, 2);
            let (dev, handle) = (world.dev.clone(), world.sim.handle());
            world.run(async move {
                assert_eq!(dev.start(write(0, 1, Flags::NONE)).await.result, Ok(()));
                assert!(handle.now() < PROMPT_NS, "{} ns", handle.now());
                assert_eq!(dev.start(write(offset, 2, flags)).await.result, Ok(()));
                assert!(handle.now() >= SLOW_NS, "{} ns", handle.now());
            });
        });
    }
}

/// True if the late member returns what was written last, where the other cannot be read.
fn is_right_where_the_other_cannot_be_read(seed: u64) -> bool {
    let world = world(seed, 16, 0);
    // Its writes take effect late, too.
    world.disk(1).slow_down(2000);
    let data = Span::new(DATA, PAIR_BITMAP.member_size);
    world.disk(0).faults().add(Target::op(Op::Read).touching(data), Fault::Error(Errno::IO));
    let dev = world.dev.clone();
    world.run(async move {
        assert_eq!(dev.start(write(0, 7, Flags::NONE)).await.result, Ok(()));
        let read = dev.start(Io::read(0, pool().get(LEN as usize).expect("memory"))).await;
        read.result == Ok(()) && read.payload.to_vec() == [7; LEN as usize]
    })
}

#[test]
fn a_read_waits_for_the_late_member_where_no_other_can_be_read() {
    let name = "copies::behind::a_read_waits_for_the_late_member_where_no_other_can_be_read";
    for_each_seed(name, 20, |seed| assert!(is_right_where_the_other_cannot_be_read(seed)));
    plant(Some(Canary::LateMemberRead));
    let found = (0..20).any(|seed| !is_right_where_the_other_cannot_be_read(seed));
    plant(None);
    assert!(found);
}

#[test]
fn a_late_member_that_fails_is_taken_out() {
    let name = "copies::behind::a_late_member_that_fails_is_taken_out";
    for_each_seed(name, 20, |seed| {
        let world = world(seed, 16, 0);
        let data = Span::new(DATA, PAIR_BITMAP.member_size);
        let faults = world.disk(1).faults().clone();
        faults.add_some(Target::op(Op::Write).touching(data), Fault::Error(Errno::IO), 1);
        let (dev, array) = (world.dev.clone(), world.array.clone());
        world.run(async move {
            assert_eq!(dev.start(write(0, 7, Flags::NONE)).await.result, Ok(()));
            assert_eq!(dev.start(Io::flush()).await.result, Ok(()));
            let states: Vec<MemberState> =
                array.status().members.iter().map(|member| member.state).collect();
            assert_eq!(states, [MemberState::InSync, MemberState::Faulty]);
        });
    });
}

/// Writes that overlap come to both members in one order.
#[test]
fn copies_are_equal_after_a_load() {
    for_each_seed("copies::behind::copies_are_equal_after_a_load", 40, |seed| {
        let world = world(seed, 1 + (seed % 8) as u32, 0);
        world.disk(1).slow_down(20);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let load = Load { requests: 200, depth: 10, longest: 40, overlapping: true };
        let (dev, rest) = (world.dev.clone(), world.sleep(20));
        let array = Rc::new(world.array.clone());
        world.run(async move {
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(dev.start(Io::flush()).await.result, Ok(()));
            rest.await;
            assert!(array.status().in_sync.iter().all(|in_sync| *in_sync));
        });
        world.check_copies_equal();
    });
}
