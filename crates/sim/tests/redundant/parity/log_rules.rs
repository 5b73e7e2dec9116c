//! Rules of logs that one small case each shows to be kept: which records a write leaves behind, and what a restart
//! makes of a member that is being filled.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::redundant::{Consistency, MemberState};
use braid_md::Level::Raid5;
use braid_md::Resync;
use braid_md::ppl::{self, Header};
use braid_sim::{Fault, Oracle, Record, Rng, Sim, Target};

use crate::parity::crash::{Crash, bearable, fill, read_all, tiny, without, write};
use crate::parity::crash_loads::change_superblocks;
use crate::parity::images::{check_whole, contents, images_with};
use crate::world::{ARRAY, DATA, HEAD, LOG, PPL, Shape, World, filled, images_of, rng};

const RECORDS: Shape = tiny(Raid5, 2, 4, Consistency::Log);
const PARTIAL: Shape = tiny(Raid5, 2, 4, Consistency::Ppl);
/// A part of the first stripe: the end of its first column and the start of the second.
const PART: Span = Span::new(3072, 2048);
/// The logs of records, without their heads.
const RECORDS_AREA: Span = Span::new(DATA - LOG, HEAD - (DATA - LOG));

const SECOND_NS: u64 = 1_000_000_000;

type Images = Vec<Option<Vec<u8>>>;

/// An array that holds `bytes`, and what a crash of it is checked against.
struct Case {
    world: World,
    crash: Crash,
    dice: Rng,
}

impl Case {
    fn new(shape: Shape) -> Case {
        let mut dice = rng(1);
        let mut bytes = vec![0; shape.size() as usize];
        fill(&mut bytes, &mut dice);
        let world = World::with_images(1, shape, &images_with(&shape, &bytes));
        let oracle = Rc::new(RefCell::new(Oracle::new(&bytes, 512)));
        let crash =
            Crash { shape, oracle, was_complete: true, adjust: |_| {}, excused: Vec::new() };
        Case { world, crash, dice }
    }

    /// Writes random bytes to `span`; the write is answered when this returns.
    fn write(&mut self, span: Span, flags: Flags) {
        let (dev, oracle) = (self.world.dev.clone(), Rc::clone(&self.crash.oracle));
        let mut dice = self.dice.fork();
        self.world.run(async move { write(&dev, &oracle, &mut dice, span, flags).await });
    }

    /// Durable content of each disk.
    fn durable(&self) -> Images {
        let disks = self.world.disks.borrow();
        disks.iter().map(|disk| Some(disk.durable().to_vec())).collect()
    }

    /// The role that has `column` of the first stripe.
    fn role_of(&self, column: Column) -> usize {
        self.crash.shape.stripes().role_of(0, column).index()
    }
}

/// The record of a part has data, the record of a whole stripe has none: replayed, the part would be laid over the
/// stripe.
#[test]
fn a_whole_stripe_is_not_undone_by_the_record_of_a_part() {
    let mut case = Case::new(RECORDS);
    case.write(PART, Flags::NONE);
    case.write(Span::new(0, RECORDS.stripes().stripe()), Flags::FUA);
    let images = case.durable();
    case.crash.check(2, &images, 0, &mut rng(2));
}

/// Without parity a write needs no record; the record of the write before, which ended after its parity's member
/// failed, would be laid over it.
#[test]
fn a_write_without_parity_is_not_undone_by_an_older_record() {
    let mut case = Case::new(RECORDS);
    let (parity, data) = (case.role_of(Column::P), case.role_of(Column::Data(0)));
    case.crash.was_complete = false;
    let (handle, disk) = (case.world.sim.handle(), case.world.disk(data));
    let in_place = Span::new(DATA, RECORDS.member_size);
    let late = Fault::NotBefore(handle.now() + SECOND_NS);
    disk.faults().add_some(Target::op(Op::Write).touching(in_place), late, 1);
    let (dev, oracle, mut dice) =
        (case.world.dev.clone(), Rc::clone(&case.crash.oracle), case.dice.fork());
    let span = Span::new(0, 1024);
    let is_over = Rc::new(Cell::new(false));
    let over = Rc::clone(&is_over);
    handle.spawn("client", async move {
        write(&dev, &oracle, &mut dice, span, Flags::NONE).await;
        over.set(true);
    });
    let array = case.world.array.clone();
    case.world.run(async move {
        let is_there = |one: &Record| one.op == Op::Write && one.span.overlaps(in_place);
        while !disk.trace().iter().any(is_there) {
            handle.sleep(1_000_000).await;
        }
        array.fail(&format!("disk{parity}")).await.expect("a member that is there");
        assert!(!is_over.get(), "superblocks tell of the failure before the write ends");
        while !is_over.get() {
            handle.sleep(1_000_000).await;
        }
    });
    case.write(span, Flags::FUA);
    let images = without(&case.durable(), &[parity]);
    case.crash.check(2, &images, 0, &mut rng(2));
}

/// Two groups of records are under way at once, of one unit each; what comes meanwhile shares the third.
#[test]
fn writes_that_come_together_share_records() {
    const WRITES: u64 = 8;
    const SHAPE: Shape = Shape { member_size: 64 << 10, ..RECORDS };
    let mut case = Case::new(SHAPE);
    let (handle, stripe) = (case.world.sim.handle(), SHAPE.stripes().stripe());
    let left = Rc::new(Cell::new(WRITES));
    for number in 0..WRITES {
        let (dev, oracle) = (case.world.dev.clone(), Rc::clone(&case.crash.oracle));
        let (mut dice, left) = (case.dice.fork(), Rc::clone(&left));
        handle.spawn("client", async move {
            write(&dev, &oracle, &mut dice, Span::new(number * stripe, 512), Flags::FUA).await;
            left.set(left.get() - 1);
        });
    }
    let sleeper = handle.clone();
    case.world.run(async move {
        while left.get() > 0 {
            sleeper.sleep(1_000_000).await;
        }
    });
    let is_record = |one: &Record| one.op == Op::Write && one.span.overlaps(RECORDS_AREA);
    let records: usize = (0..SHAPE.members)
        .map(|disk| case.world.disk(disk).trace().iter().filter(|one| is_record(one)).count())
        .sum();
    // Of each unit, data and parity are on different members.
    let alone = 2 * WRITES as usize;
    assert!(records <= 4 + SHAPE.members, "{records} records, {alone} without sharing");
    let images = case.durable();
    case.crash.check(2, &images, 0, &mut rng(2));
}

/// A member's log fails, so it lacks the record. The unit is stored when superblocks no longer count on that member:
/// a crash that takes another one would work out what that had from new parity and old data.
#[test]
fn a_unit_is_stored_when_superblocks_tell_whose_log_failed() {
    let mut case = Case::new(RECORDS);
    let data = case.role_of(Column::Data(0));
    let target = Target::op(Op::Write).touching(RECORDS_AREA);
    case.world.disk(data).faults().add(target, Fault::Error(Errno::IO));
    let (disks, crash, mut dice) =
        (Rc::clone(&case.world.disks), case.crash.clone(), case.dice.fork());
    let is_over = Rc::new(Cell::new(false));
    let over = Rc::clone(&is_over);
    case.world.sim.observe(move || {
        let images = images_of(&disks.borrow());
        for lost in bearable(&crash.shape, &images).iter().filter(|_| !over.get()) {
            crash.check(2, &without(&images, lost), 0, &mut dice);
        }
    });
    case.write(Span::new(0, 1024), Flags::NONE);
    is_over.set(true);
    assert_eq!(case.world.array.status().members[data].state, MemberState::Faulty);
}

/// Has the superblocks say that the disk of `role` is being filled, and has come beyond the first stripe.
fn is_being_filled(images: &mut Images, role: usize) {
    change_superblocks(&mut images[role..=role], |superblock| {
        superblock.recovery_offset = Some(RECORDS.chunk * 2);
    });
}

/// The array that `images` are comes to rest, and then is whole and holds what the oracle allows.
fn comes_to_rest_whole(case: &Case, images: &Images) {
    let shape = case.crash.shape;
    let world = World::with_images(5, shape, images);
    world.run(world.sleep(2));
    check_whole(&shape, &world.images());
    let found = contents(&shape, &world.images());
    let oracle = case.crash.oracle.borrow();
    if let Err(mismatch) = oracle.check_crash_but(&found, |_| false) {
        panic!("{mismatch}");
    }
}

/// A replay writes what records say; a member that is being filled and has no record of the write does not get it.
#[test]
fn a_member_without_its_record_is_filled_again_from_there() {
    let mut case = Case::new(RECORDS);
    case.write(PART, Flags::NONE);
    let mut images = case.durable();
    let role = case.role_of(Column::P);
    is_being_filled(&mut images, role);
    let records = RECORDS_AREA.offset as usize..RECORDS_AREA.end() as usize;
    images[role].as_mut().expect("it is there")[records].fill(0);
    comes_to_rest_whole(&case, &images);
}

/// A member that is being filled, and has the parity of what was being written, has a log that is not read: its
/// parity may be the old one.
#[test]
fn a_member_with_parity_that_nobody_logged_is_filled_again() {
    let mut case = Case::new(PARTIAL);
    case.write(PART, Flags::NONE);
    let role = case.role_of(Column::P);
    let parity = case.durable().swap_remove(role);
    let mut images = case.world.images();
    images[role] = parity;
    is_being_filled(&mut images, role);
    comes_to_rest_whole(&case, &images);
}

/// A record rots whose write is in place but for its parity: nothing is laid over such rows, and parity is made to fit.
#[test]
fn rows_of_a_record_that_is_gone_get_parity_that_fits() {
    let mut case = Case::new(RECORDS);
    case.write(PART, Flags::NONE);
    let role = case.role_of(Column::P);
    let parity = case.durable().swap_remove(role);
    let mut images = case.world.images();
    images[role] = parity;
    let records = RECORDS_AREA.offset as usize..RECORDS_AREA.end() as usize;
    images[role].as_mut().expect("it is there")[records].fill(0);
    comes_to_rest_whole(&case, &images);
}

/// Two writes of the same rows; the record of the second one rots after the write is acknowledged. A replay does not
/// write the first record over the second write.
#[test]
fn an_older_record_is_not_replayed_over_rows_of_a_damaged_record() {
    let mut case = Case::new(RECORDS);
    let role = case.role_of(Column::P);
    let records = RECORDS_AREA.offset as usize..RECORDS_AREA.end() as usize;
    case.write(PART, Flags::NONE);
    let older = case.durable().swap_remove(role).expect("a disk");
    case.write(PART, Flags::FUA);
    let mut images = case.durable();
    let image = images[role].as_mut().expect("a disk");
    image[records.clone()].copy_from_slice(&older[records]);
    comes_to_rest_whole(&case, &images);
}

/// A restart writes the heads of the logs one after the other. A crash between two of them finds records of the
/// previous run on some members: all of these records are in place, and a part of them must not be replayed.
#[test]
fn a_crash_between_heads_of_a_restart_replays_no_part_of_the_records() {
    for seed in 0..20 {
        let mut case = Case::new(RECORDS);
        // Both writes change the same rows of the parity.
        case.write(Span::new(0, 512), Flags::NONE);
        case.write(Span::new(RECORDS.chunk, 512), Flags::NONE);
        let lost = case.role_of(Column::Data(2));
        let images = without(&case.durable(), &[lost]);
        let world = World::before_restart(Sim::new(seed), RECORDS, &images, |_| {});
        let (disks, crash, mut dice) =
            (Rc::clone(&world.disks), case.crash.clone(), case.dice.fork());
        world.sim.observe(move || {
            crash.check(!seed, &images_of(&disks.borrow()), 0, &mut dice);
        });
        world.restart().expect("the records are replayed");
        world.run(world.sleep(1));
    }
}

/// Parity of more rows than are computed at a time: each part is made of its own part of the log's entry.
#[test]
fn parity_of_many_rows_is_recomputed_from_all_of_an_entry() {
    const WIDE: Shape = Shape { chunk: 32 << 10, member_size: 64 << 10, ..PARTIAL };
    let mut case = Case::new(WIDE);
    case.write(Span::new(0, 24 << 10), Flags::NONE);
    let role = case.role_of(Column::P);
    let parity = case.durable().swap_remove(role);
    let mut images = case.world.images();
    images[role] = parity;
    comes_to_rest_whole(&case, &images);
}

/// Parity fits in a window that a resync has done ahead of its frontier: a write there has an entry. Then a window
/// before it cannot be made to agree, and nothing behind that one is counted on any more: the next write has no entry.
/// An entry that is left of its rows would make a restart compute their parity from data that were there before.
///
/// ```text
///   stripe 0: in sync   1: cannot be read   2: compared, written, in doubt, written
/// ```
#[test]
fn no_entry_is_left_of_rows_that_are_written_without_one() {
    const LONG: Shape = Shape { member_size: 40 << 10, ..PARTIAL };
    let geometry = LONG.stripes();
    let mut bytes = vec![0; LONG.size() as usize];
    fill(&mut bytes, &mut rng(1));
    let mut images = images_with(&LONG, &bytes);
    change_superblocks(&mut images, |superblock| superblock.resync = Resync::From(LONG.chunk));
    let world = World::with_images(1, LONG, &images);
    world.sim.be_prompt(SECOND_NS / 1000);
    let reads = Target::op(Op::Read).touching(Span::new(DATA + LONG.chunk, LONG.chunk));
    let of_second = |index| world.disk(geometry.role_of(1, Column::Data(index)).index());
    let (slow, p) = (of_second(0), world.disk(geometry.role_of(2, Column::P).index()));
    of_second(1).faults().add(reads, Fault::Error(Errno::IO));
    let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
    let entries = move || {
        let header = Header::parse(&p.durable().to_vec()[PPL as usize..], ppl::signature(&ARRAY));
        header.expect("a header").entries.len()
    };
    let written = [(2 * geometry.stripe(), 2), (2 * geometry.stripe() + LONG.chunk, 3)];
    world.run(async move {
        // The second pass, a minute after the first, has several windows at once.
        handle.sleep(30 * SECOND_NS).await;
        slow.faults().add(reads, Fault::NotBefore(90 * SECOND_NS));
        for ((at, byte), left) in written.into_iter().zip([1, 0]) {
            handle.sleep(45 * SECOND_NS).await;
            assert_eq!(array.status().resync, Resync::From(LONG.chunk), "at the write of {byte}");
            let write = Io::write(at, filled(512, byte), Flags::FUA);
            assert_eq!(dev.start(write).await.result, Ok(()));
            assert_eq!(entries(), left, "entries after the write of {byte}");
        }
    });
    for (at, byte) in written {
        bytes[at as usize..][..512].fill(byte);
    }
    let durable =
        world.disks.borrow().iter().map(|one| Some(one.durable().to_vec())).collect::<Images>();
    let lost = geometry.role_of(2, Column::Data(2)).index();
    let again = World::with_images(2, LONG, &without(&durable, &[lost]));
    let dev = again.dev.clone();
    let found = again.run(async move { read_all(&dev).await });
    let stripe = 2 * geometry.stripe() as usize..3 * geometry.stripe() as usize;
    assert!(found[stripe.clone()] == bytes[stripe], "parity does not fit");
}
