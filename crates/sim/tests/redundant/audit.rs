//! Findings of an audit: each of these tests fails on the code that it was written against.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::{ArrayByte, Geometry};
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::redundant::{Consistency, Speed};
use braid_md::Level::{Raid4, Raid5, Raid6};
use braid_md::{Resync, Role, Superblock};
use braid_sim::{Client, Fault, Load, Oracle, Target, for_each_seed};

use crate::copies::failure::check_crash;
use crate::parity::crash::{Crash, bearable, fill, some_crash, tiny, without};
use crate::parity::crash_loads::change_superblocks;
use crate::parity::images::{Stripes, images_with};
use crate::world::{
    DATA, FAR, PAIR, PAIR_BITMAP, SHAPES, SUPERBLOCK, Shape, World, crash_images, data_of, filled,
    pool, rng, spare, superblock_of,
};

/// A crash left a member that is being filled one event behind. It is filled before anything else
/// is recorded; no crash may find it in sync before what it was filled with is durable.
#[test]
fn who_was_filled_in_this_run_is_not_in_sync_before_a_flush() {
    let name = "audit::who_was_filled_in_this_run_is_not_in_sync_before_a_flush";
    for_each_seed(name, 20, |seed| {
        let shape = PAIR;
        let mut images = shape.images();
        let contents = vec![0x5a; shape.member_size as usize];
        for (index, image) in images.iter_mut().flatten().enumerate() {
            let mut superblock = superblock_of(image).into_contents();
            superblock.events = 2 - index as u64;
            superblock.recovery_offset = (index == 1).then_some(0);
            let bytes = superblock.encode();
            image[SUPERBLOCK as usize..][..bytes.len()].copy_from_slice(&bytes);
            if index == 0 {
                image[DATA as usize..].copy_from_slice(&contents);
            }
        }
        let world = World::with_images(seed, shape, &images);
        let oracle = Oracle::new(&contents, 512);
        let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
        world.sim.observe(move || {
            check_crash(&shape, &crash_images(&disks.borrow(), &mut dice), &oracle);
        });
        world.run(world.sleep(2));
    });
}

/// One flush of one member fails, once, and data that was not durable is lost with it (as in the page cache of
/// Linux, and on a drive that was reset). Whichever part of the engine notices it, the member is out before a
/// later flush is answered, or its bits are cleared.
#[test]
fn a_flush_that_failed_once_is_not_forgotten() {
    let name = "audit::a_flush_that_failed_once_is_not_forgotten";
    let failures = Rc::new(Cell::new(0));
    for_each_seed(name, 20, |seed| {
        let shape = [PAIR_BITMAP, SHAPES[3], SHAPES[5], SHAPES[6]][seed as usize % 4];
        let world = World::new(seed, shape);
        let mut choices = rng(seed);
        let bad = world.disk(choices.index(shape.members));
        let client = Client::new(world.dev.clone(), pool(), choices.fork());
        let (disks, oracle) = (Rc::clone(&world.disks), Rc::clone(&client.oracle));
        let mut dice = rng(!seed);
        let (disk, counter) = (bad.clone(), Rc::clone(&failures));
        world.sim.observe(move || {
            let failed = |one: &braid_sim::Record| {
                one.op == Op::Flush && one.end.is_some_and(|(_, result)| result.is_err())
            };
            if disk.faults().error_for(0, &Io::flush()).is_some() && disk.trace().iter().any(failed)
            {
                disk.faults().clear();
                counter.set(counter.get() + 1);
            }
            if dice.percent(3) {
                let images = crash_images(&disks.borrow(), &mut dice);
                check_crash(&shape, &images, &oracle.borrow());
            }
        });
        let handle = world.sim.handle();
        let when = choices.below(20_000_000_000);
        world.sim.handle().spawn("fault", async move {
            handle.sleep(when).await;
            bad.faults().add(Target::op(Op::Flush), Fault::Error(Errno::IO));
        });
        let pauses: Vec<_> = (0..10).map(|_| world.sleep(choices.within(1..=3))).collect();
        let rest = world.sleep(15);
        world.run(async move {
            let mut client = client;
            for pause in pauses {
                let load = Load { requests: 12, depth: 4, longest: 16, overlapping: true };
                let report = client.run(load).await;
                assert!(report.errors.is_empty(), "{:?}", report.errors);
                pause.await;
            }
            rest.await;
        });
    });
    assert!(failures.get() > 10, "{} flushes failed", failures.get());
}

fn goes(seed: u64, shape: Shape, may_lose: bool, latest_ns: u64) {
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut rng(seed));
    let oracle = Rc::new(RefCell::new(Oracle::new(&bytes, 512)));
    let crash = Crash {
        shape,
        oracle: Rc::clone(&oracle),
        was_complete: true,
        adjust: |_| {},
        excused: Vec::new(),
    };
    let world = World::with_images(seed, shape, &images_with(&shape, &bytes));
    let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
    world.sim.observe(move || {
        if dice.percent(30) {
            let mut images = some_crash(&disks.borrow(), &mut dice);
            if may_lose && dice.percent(50) {
                let sets = bearable(&crash.shape, &images);
                images = without(&images, &sets[dice.index(sets.len())]);
            }
            crash.check(seed, &images, 0, &mut dice);
        }
    });
    let mut client = Client { dev: world.dev.clone(), pool: pool(), rng: rng(seed), oracle };
    world.sim.handle().spawn("client", async move {
        let load = Load { requests: 24, depth: 6, longest: 12, overlapping: true };
        client.run(load).await;
    });
    let (array, handle, mut choices) = (world.array.clone(), world.sim.handle(), rng(seed));
    let label = format!("disk{}", choices.index(shape.members));
    let (dev, rest) = (world.dev.clone(), world.sleep(1));
    let when = choices.below(latest_ns);
    let other = world.sim.handle();
    world.sim.handle().spawn("operator", async move {
        handle.sleep(when).await;
        array.fail(&label).await.unwrap();
    });
    world.run(async move {
        other.sleep(when).await;
        let _ = dev.start(Io::flush()).await;
        rest.await;
    });
}

/// A member goes; before the superblocks say so, writes are logged for the others. A crash then
/// finds it in sync: what was logged without its part must not be done without its part.
#[test]
fn what_was_logged_without_a_member_is_not_done_without_it() {
    let name = "audit::what_was_logged_without_a_member_is_not_done_without_it";
    for_each_seed(name, 12, |seed| {
        let level = [tiny(Raid6, 2, 5, Consistency::Log), tiny(Raid6, 10, 4, Consistency::Log)];
        goes(seed, level[seed as usize % 2], false, 1_000_000);
    });
}

/// The same of a log that forgets what a client's flush made durable, on the members but the one
/// that is out, before the superblocks say so.
#[test]
fn a_log_forgets_nothing_before_superblocks_say_who_is_out() {
    let name = "audit::a_log_forgets_nothing_before_superblocks_say_who_is_out";
    for_each_seed(name, 12, |seed| {
        let level = [tiny(Raid5, 2, 4, Consistency::Log), tiny(Raid4, 0, 3, Consistency::Log)];
        goes(seed, level[seed as usize % 2], seed % 4 > 1, 3_000_000);
    });
}

/// A raid1 uses more of its members, also while a resync is under way: what is new is synchronised, too.
#[test]
fn growing_synchronises_what_is_new() {
    for (shape, resync) in
        [(PAIR, Resync::From(0)), (PAIR, Resync::Clean), (PAIR_BITMAP, Resync::Clean)]
    {
        let mut images = shape.images();
        change_superblocks(&mut images, |superblock| superblock.resync = resync);
        for (index, image) in images.iter_mut().flatten().enumerate() {
            // Holes would be skipped.
            image[DATA as usize..].fill(0x5a);
            image.extend(vec![0x10 + index as u8; 192 << 10]);
        }
        let world = World::with(1, shape, &images, |setup| {
            setup.speed = Speed { min: 1 << 20, max: Some(1 << 20), latency: None };
        });
        let (array, handle, rest) = (world.array.clone(), world.sim.handle(), world.sleep(10));
        world.run(async move {
            handle.sleep(50_000_000).await;
            assert_eq!(array.status().job.is_some(), resync != Resync::Clean, "the resync");
            assert_eq!(array.set_member_size(None).await, Ok(384 << 10));
            rest.await;
            let status = array.status();
            assert!(status.resync == Resync::Clean && status.job.is_none(), "{status:#?}");
        });
        let images = world.images();
        let (a, b) = (images[0].as_deref().unwrap(), images[1].as_deref().unwrap());
        assert!(data_of(a) == data_of(b), "clean, and the copies differ");
    }
}

/// Members get more room while superblocks are on their way: the next ones say so.
#[test]
fn growing_while_superblocks_are_written_is_not_forgotten() {
    let shape = PAIR;
    let mut images = shape.images();
    for image in images.iter_mut().flatten() {
        image.extend(vec![0; 192 << 10]);
    }
    for_each_seed("audit::growing_while_superblocks_are_written_is_not_forgotten", 40, |seed| {
        let world = World::with_images(seed, shape, &images);
        world.sim.be_punctual();
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let (slow, rest) = (world.disk(1), world.sleep(20));
        world.run(async move {
            dev.start(Io::write(0, filled(4096, 1), Flags::NONE)).await.result.unwrap();
            slow.slow_down(1000);
            // Nothing is written for a while: superblocks are to say "clean".
            handle.sleep(rng(seed).within(400..=700) * 1_000_000).await;
            array.set_member_size(None).await.unwrap();
            slow.slow_down(1);
            rest.await;
        });
        for image in world.images() {
            let superblock = superblock_of(image.as_deref().unwrap());
            assert_eq!(superblock.component_size, 384 << 10);
            assert!(superblock.data_size >= 384 << 10, "{}", superblock.data_size);
        }
    });
}

/// A raid1 changes its size while a member takes over a role. Superblocks with equal events are of one shape,
/// also that of a member that first announces that it is in sync; and a member that a crash leaves one event
/// behind has enough room for the shape of the others.
#[test]
fn no_two_shapes_count_as_many_events() {
    const LARGER: u64 = 384 << 10;
    let name = "audit::no_two_shapes_count_as_many_events";
    let announced = Rc::new(Cell::new(0));
    for_each_seed(name, 200, |seed| {
        let shape = PAIR;
        let mut images = shape.images();
        for image in images.iter_mut().flatten() {
            image.extend(vec![0; (LARGER - shape.member_size) as usize]);
        }
        let world = World::with_images(seed, shape, &images);
        let (array, handle, disks) =
            (world.array.clone(), world.sim.handle(), Rc::clone(&world.disks));
        let (mut dice, mut choices) = (rng(!seed), rng(seed));
        let (seen, counter) = (Rc::clone(&disks), Rc::clone(&announced));
        world.sim.observe(move || {
            let images = crash_images(&seen.borrow(), &mut dice);
            let all: Vec<_> = images.iter().flatten().map(|image| superblock_of(image)).collect();
            let taking_part = || all.iter().filter(|one| matches!(one.role(), Role::Active(_)));
            let most = taking_part().map(|one| one.events).max().unwrap();
            let mut freshest = taking_part().filter(|one| one.events == most);
            let first = freshest.next().unwrap();
            let size = |one: &Superblock| (one.raid_disks, one.component_size);
            assert!(freshest.all(|one| size(one) == size(first)), "{all:#?}");
            let mut behind = taking_part().filter(|one| one.events + 1 == most);
            assert!(behind.all(|one| one.data_size >= first.component_size), "{all:#?}");
            let is_announced = |one: &&Superblock| {
                one.is_replacement() && one.recovery_offset.is_none() && one.events == most
            };
            if taking_part().any(|one| is_announced(&one)) {
                counter.set(counter.get() + 1);
            }
        });
        let larger = Shape { member_size: LARGER, ..shape };
        let rest = world.sleep(5);
        world.run(async move {
            let new = spare(&handle, &disks, &larger, array.free_number());
            // Superblocks that tell of a replacement may tell of the room in passing.
            if seed % 4 != 3 {
                array.replace("disk0", new).await.unwrap();
            }
            handle.sleep(choices.below(4_000_000)).await;
            if seed % 2 == 0 {
                array.set_raid_disks(3).await.unwrap();
            } else {
                assert_eq!(array.set_member_size(None).await, Ok(LARGER));
            }
            rest.await;
        });
    });
    assert!(announced.get() > 0, "no member was seen that says first that it is in sync");
}

/// A crash without a log left a row whose parity does not fit. A sector of the same row that was not being
/// written cannot be read: its content is unknown, and must not be invented.
#[test]
fn what_cannot_be_read_is_not_made_up_from_parity_in_doubt() {
    let shape = tiny(Raid5, 2, 4, Consistency::Resync);
    let geometry = shape.stripes();
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut rng(1));
    let mut images = images_with(&shape, &bytes);
    change_superblocks(&mut images, |superblock| superblock.resync = Resync::From(0));
    // The write of column 0 arrived, that of the parity did not.
    let torn = geometry.role_of(0, Column::Data(0));
    images[torn.index()].as_mut().unwrap()[DATA as usize..][..512].fill(0x99);
    let world = World::with_images(1, shape, &images);
    let other = geometry.role_of(0, Column::Data(1));
    world.disk(other.index()).faults().add_latent(Span::new(DATA, 512));
    let (dev, rest) = (world.dev.clone(), world.sleep(5));
    let expected = bytes[shape.chunk as usize..][..512].to_vec();
    world.run(async move {
        let read = dev.start(Io::read(shape.chunk, pool().get(512).unwrap())).await;
        assert!(
            read.result.is_err() || read.payload.to_vec() == expected,
            "what was durable is something else, and no error is told"
        );
        rest.await;
    });
}

/// A whole stripe is written, which is logged without its data, and not flushed. Then a part of the
/// same stripe is written with FUA, and answered: a crash that loses its member must not lose it.
#[test]
fn what_fua_made_durable_does_not_depend_on_a_stripe_that_is_not() {
    let mut wrong = Vec::new();
    for shape in [
        tiny(Raid4, 0, 3, Consistency::Log),
        tiny(Raid6, 2, 5, Consistency::Log),
        tiny(Raid5, 2, 4, Consistency::Log),
        tiny(Raid5, 2, 4, Consistency::Ppl),
    ] {
        let geometry = shape.stripes();
        let world = World::new(1, shape);
        let (dev, width) = (world.dev.clone(), geometry.stripe());
        // In the second column.
        let at = shape.chunk;
        world.run(async move {
            let mut buf = pool().get(width as usize).unwrap();
            fill(&mut buf, &mut rng(1));
            let whole = Io::write(0, buf, Flags::NONE);
            assert_eq!(dev.start(whole).await.result, Ok(()));
            let part = Io::write(at, filled(512, 2), Flags::FUA);
            assert_eq!(dev.start(part).await.result, Ok(()));
        });
        let mut images: Vec<_> =
            world.disks.borrow().iter().map(|disk| Some(disk.durable().to_vec())).collect();
        images[geometry.role_of(0, Column::Data(1)).index()] = None;
        let again = World::with_images(2, shape, &images);
        let dev = again.dev.clone();
        let read = again.run(async move {
            dev.start(Io::read(at, pool().get(512).unwrap())).await.payload.to_vec()
        });
        if read != [2; 512] {
            wrong.push((shape.level, shape.consistency, read[0]));
        }
    }
    assert!(wrong.is_empty(), "what was written with FUA is something else: {wrong:?}");
}

/// An array with a partial parity log whose resync begins is written where windows are done that
/// are not the first: a crash must not make a "clean" of it.
#[test]
fn a_resync_that_has_just_begun_is_not_called_done() {
    let name = "audit::a_resync_that_has_just_begun_is_not_called_done";
    for_each_seed(name, 12, |seed| {
        let shape = Shape { member_size: 40 << 10, ..tiny(Raid5, 2, 4, Consistency::Ppl) };
        let geometry = shape.stripes();
        let mut bytes = vec![0; shape.size() as usize];
        fill(&mut bytes, &mut rng(seed));
        let mut images = images_with(&shape, &bytes);
        change_superblocks(&mut images, |superblock| superblock.resync = Resync::From(0));
        // Nothing was ever in sync.
        for row in (0..shape.member_size).step_by(512) {
            let role = geometry.role_of(row / shape.chunk, Column::P);
            images[role.index()].as_mut().unwrap()[(DATA + row) as usize..][..512].fill(0x77);
        }
        let world = World::with_images(seed, shape, &images);
        // The first window takes long; the write is in the second stripe.
        let first = Target::op(Op::Read).touching(Span::new(DATA, 4096));
        world.disk(0).faults().add(first, Fault::NotBefore(1_000_000_000));
        let (dev, handle, at) = (world.dev.clone(), world.sim.handle(), geometry.stripe());
        let disks = Rc::clone(&world.disks);
        let images = world.run(async move {
            handle.sleep(5_000_000).await;
            let part = Io::write(at, filled(512, 2), Flags::FUA);
            assert_eq!(dev.start(part).await.result, Ok(()));
            let disks = disks.borrow();
            disks.iter().map(|disk| Some(disk.durable().to_vec())).collect::<Vec<_>>()
        });
        let again = World::with_images(seed, shape, &images);
        if again.array.status().resync == Resync::Clean {
            let found = again.images();
            let misfits = Stripes::new(&shape, &found).misfits();
            assert!(misfits.is_empty(), "clean, and parity does not fit at {misfits:?}");
        }
    });
}

/// Both remaining members of a raid10 are needed. A resync that cannot make the copies equal does not record
/// that they are.
#[test]
fn a_resync_that_fails_is_not_done() {
    let shape = Shape { bitmap: None, consistency: Consistency::Resync, layout: FAR, ..SHAPES[6] };
    let geometry = shape.geometry();
    let mut images = shape.images();
    change_superblocks(&mut images, |superblock| superblock.resync = Resync::From(0));
    images[2] = None;
    let on = |offset: u64| [0, 1].map(|copy| geometry.locate(ArrayByte::new(offset), copy));
    let offset = (0..geometry.size())
        .step_by(4096)
        .find(|offset| on(*offset).iter().all(|run| run.role.index() < 2))
        .unwrap();
    let [first, second] = on(offset);
    images[first.role.index()].as_mut().unwrap()[(DATA + first.offset.get()) as usize..][..512]
        .fill(1);
    for seed in 0..10 {
        let world = World::with_images(seed, shape, &images);
        let place = Span::new(DATA + second.offset.get(), 512);
        let target = Target::op(Op::Write).touching(place);
        world.disk(second.role.index()).faults().add(target, Fault::Error(Errno::IO));
        let (array, rest) = (world.array.clone(), world.sleep(10));
        let resync = world.run(async move {
            rest.await;
            array.status().resync
        });
        let at = |run: &braid_array::geometry::Run| {
            world.disk(run.role.index()).contents().to_vec()[(DATA + run.offset.get()) as usize..]
                [..512]
                .to_vec()
        };
        assert!(resync != Resync::Clean || at(&first) == at(&second), "{seed} {resync:?}");
    }
}

/// Two members fail a write at once, more than parity makes up for, and both stay: parity is in
/// doubt from there on, and the partial parity logs are emptied. What is being written below that
/// place lost its log, too: a crash then must not leave it with parity that does not fit.
#[test]
fn a_log_that_is_emptied_in_doubt_is_not_missed_elsewhere() {
    let name = "audit::a_log_that_is_emptied_in_doubt_is_not_missed_elsewhere";
    for_each_seed(name, 12, |seed| {
        let shape = Shape { member_size: 40 << 10, ..tiny(Raid5, 2, 4, Consistency::Ppl) };
        let mut bytes = vec![0; shape.size() as usize];
        fill(&mut bytes, &mut rng(seed));
        let oracle = Rc::new(RefCell::new(Oracle::new(&bytes, 512)));
        let crash = Crash {
            shape,
            oracle: Rc::clone(&oracle),
            was_complete: true,
            adjust: |_| {},
            excused: Vec::new(),
        };
        let world = World::with_images(seed, shape, &images_with(&shape, &bytes));
        for index in [0, 1, 2, 3] {
            let place = Span::new(DATA + (32 << 10), 8 << 10);
            let target = Target::op(Op::Write).touching(place);
            world.disk(index).faults().add(target, Fault::Error(Errno::IO));
        }
        let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
        world.sim.observe(move || {
            if dice.percent(25) {
                let images = some_crash(&disks.borrow(), &mut dice);
                crash.check(seed, &images, 0, &mut dice);
            }
        });
        let mut client = Client { dev: world.dev.clone(), pool: pool(), rng: rng(seed), oracle };
        let rest = world.sleep(1);
        world.run(async move {
            let load = Load { requests: 30, depth: 8, longest: 12, overlapping: true };
            client.run(load).await;
            rest.await;
        });
    });
}

/// Writes fail on several members at once, as they do when the file system that all of them are
/// on is full. What was acknowledged elsewhere in these rows stays as it was, or is an error.
#[test]
fn writes_that_fail_on_several_members_harm_nothing_else() {
    let name = "audit::writes_that_fail_on_several_members_harm_nothing_else";
    for_each_seed(name, 12, |seed| {
        let shape = [
            tiny(Raid5, 2, 4, Consistency::Resync),
            tiny(Raid5, 2, 4, Consistency::Ppl),
            tiny(Raid5, 2, 4, Consistency::Log),
            tiny(Raid5, 0, 4, Consistency::Bitmap),
            tiny(Raid6, 2, 5, Consistency::Log),
            tiny(Raid6, 2, 5, Consistency::Resync),
        ][seed as usize % 6];
        let shape = Shape { member_size: 40 << 10, ..shape };
        let world = World::new(seed, shape);
        let mut choices = rng(seed);
        let place = Span::new(DATA + (16 << 10), 24 << 10);
        let target = Target::op(Op::Write).touching(place);
        let (disks, handle) = (Rc::clone(&world.disks), world.sim.handle());
        let (from, len) = (choices.below(4_000_000), choices.below(4_000_000));
        world.sim.handle().spawn("full", async move {
            handle.sleep(from).await;
            for disk in disks.borrow().iter() {
                disk.faults().add(target, Fault::Error(Errno::NOSPC));
            }
            handle.sleep(len).await;
            disks.borrow().iter().for_each(|disk| disk.faults().clear());
        });
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let (rest, array) = (world.sleep(5), world.array.clone());
        let _guard = TellLog(world.array.clone());
        world.run(async move {
            let load = Load { requests: 60, depth: 8, longest: 12, overlapping: true };
            client.run(load).await;
            rest.await;
            if !array.status().broken {
                client.run(Load { requests: 0, ..load }).await;
            }
        });
    });
}

struct TellLog(braid_engine::redundant::Redundant);
impl Drop for TellLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let status = self.0.status();
            println!(
                "STATUS broken {} resync {:?} in sync {:?} {:#?}",
                status.broken, status.resync, status.in_sync, status.log
            );
        }
    }
}
