//! Rules that one small case each shows to be kept: what superblocks may say before a flush, which member is left behind,
//! what is believed at a start.

use std::cell::Cell;
use std::rc::Rc;

use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::Device as _;
use braid_engine::assembled::{LogPlace, Newcomer, NotTaken};
use braid_engine::redundant::{JobKind, MemberState, MemberStatus};
use braid_md::superblock::BadBlockLog;
use braid_md::{BadBlocks, Bitmap, BitmapHeader, Level, Resync, Role, Superblock, Uuid};
use braid_sim::found::{There, assemble, carried, look};
use braid_sim::kernel::{Kernel, Made, make};
use braid_sim::{Client, Fault, Image, Load, Target, for_each_seed};

use crate::parity::crash_loads::change_superblocks;
use crate::world::{
    BITMAP, DATA, PAIR, PAIR_BITMAP, SHAPES, SUPERBLOCK, Shape, World, crash_images, data_of,
    filled, pool, rng, superblock_of,
};

fn told(superblocks: &[Superblock]) -> String {
    let one = |one: &Superblock| {
        let (number, events, resync) = (one.device_number, one.events, one.resync);
        let (roles, filled) = (&one.roles[..3], one.recovery_offset);
        let is_replacement = one.is_replacement();
        format!("disk{number} {events} {resync:?} {roles:?} {filled:?} {is_replacement}")
    };
    superblocks.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// At every moment from now on: whom a kernel would believe without a resync, after a crash then, hold the same.
fn believed_copies_agree(world: &World, seed: u64) {
    let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
    world.sim.observe(move || {
        let images = crash_images(&disks.borrow(), &mut dice);
        let there: Vec<&Vec<u8>> = images.iter().flatten().collect();
        let all: Vec<Superblock> = there.iter().map(|image| superblock_of(image)).collect();
        let list: Vec<&Superblock> = all.iter().collect();
        for kernel in [Kernel::Before6_8, Kernel::Since6_8] {
            let Made::Runs(believed) = make(&list, kernel) else { continue };
            if all[believed.freshest].resync != Resync::Clean {
                continue;
            }
            let in_sync = believed.roles.iter().flatten().filter(|one| one.1 == u64::MAX);
            let mut data = in_sync.map(|(place, _)| data_of(there[*place]));
            let first = data.next().expect("a disk");
            assert!(data.all(|other| other == first), "{kernel:?} believes both: {}", told(&all));
        }
    });
}

/// Superblocks are made, then what they call in sync is flushed: if that fails on a member, they are made anew.
#[test]
fn superblocks_made_before_a_flush_that_failed_are_not_written() {
    let name = "rules::superblocks_made_before_a_flush_that_failed_are_not_written";
    for_each_seed(name, 10, |seed| {
        let world = World::new(seed, PAIR);
        believed_copies_agree(&world, seed);
        let (dev, array) = (world.dev.clone(), world.array.clone());
        let (weak, rest) = (world.disk(1), world.sleep(10));
        world.run(async move {
            let write = Io::write(0, filled(64 << 10, 7), Flags::NONE);
            dev.start(write).await.result.expect("it is written");
            weak.faults().add(Target::op(Op::Flush), Fault::Error(Errno::IO));
            // After a while without a write superblocks are to say "clean", and before that members are flushed.
            rest.await;
            let status = array.status();
            assert_eq!(status.members[1].state, MemberState::Faulty, "{status:#?}");
        });
    });
}

/// The same where the superblock is that of a member which takes a role, and says so before the others.
#[test]
fn who_takes_a_role_does_not_say_so_after_a_flush_that_failed() {
    let name = "rules::who_takes_a_role_does_not_say_so_after_a_flush_that_failed";
    for_each_seed(name, 200, |seed| {
        let world = World::new(seed, PAIR);
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let (weak, rest, mut dice) = (world.disk(1), world.sleep(2), rng(seed));
        let spare = world.spare(array.free_number());
        believed_copies_agree(&world, seed);
        world.run(async move {
            array.replace("disk0", spare).await.expect("a replacement");
            let write = Io::write(0, filled(64 << 10, 7), Flags::NONE);
            dev.start(write).await.result.expect("it is written");
            handle.sleep(dice.below(250_000_000)).await;
            weak.faults().add(Target::op(Op::Flush), Fault::Error(Errno::IO));
            rest.await;
        });
    });
}

/// The same where a sweep of the bitmap delays the superblocks that are to say "clean", and a replacement arrives
/// meanwhile: it announces itself by the same superblocks.
///
/// ```text
///   sweep    flush ──▶ clears bits ·············▶ superblocks: flush of disk1 fails ✕
///   write             ■ (after the flush)
///   200 ms later           "clean" waits ·······▶
///   replacement                     waits ······▶
/// ```
#[test]
fn a_replacement_does_not_announce_a_clean_array_after_a_flush_that_failed() {
    const MS: u64 = 1_000_000;
    const CHUNK: u64 = 8 << 10;
    let name = "rules::a_replacement_does_not_announce_a_clean_array_after_a_flush_that_failed";
    for_each_seed(name, 10, |seed| {
        let world = World::new(seed, PAIR_BITMAP);
        world.sim.be_prompt(MS);
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let (weak, rest) = (world.disk(1), world.sleep(1));
        let spare = world.spare(array.free_number());
        believed_copies_agree(&world, seed);
        world.run(async move {
            let write = async |chunk: u64, byte| {
                let write = Io::write(chunk * CHUNK, filled(4096, byte), Flags::NONE);
                dev.start(write).await.result.expect("it is written");
            };
            let until = async |ms: u64| handle.sleep((ms * MS).saturating_sub(handle.now())).await;
            write(0, 1).await;
            until(9_800).await;
            write(1, 2).await;
            // The second sweep clears the bit of the first chunk, and takes long.
            let bitmap = Target::op(Op::Write).touching(Span::new(BITMAP, DATA - BITMAP));
            weak.faults().add_some(bitmap, Fault::NotBefore(12_000 * MS), 1);
            until(10_100).await;
            write(1, 3).await;
            until(11_000).await;
            assert!(!array.status().active, "it is to become clean: {:#?}", array.status());
            weak.faults().add(Target::op(Op::Flush), Fault::Error(Errno::IO));
            array.replace("disk0", spare).await.expect("a replacement");
            assert!(handle.now() >= 12_000 * MS, "the sweep was over before");
            rest.await;
            let status = array.status();
            assert_eq!(status.members[1].state, MemberState::Faulty, "{status:#?}");
        });
    });
}

/// Kernels before 6.8 believe a member that is one event behind, in the role that it had, and might make the
/// others like it.
#[test]
fn nothing_is_written_until_who_was_replaced_is_left_two_events_behind() {
    let name = "rules::nothing_is_written_until_who_was_replaced_is_left_two_events_behind";
    for_each_seed(name, 20, |seed| {
        let world = World::new(seed, [PAIR, PAIR_BITMAP][seed as usize % 2]);
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let spare = world.spare(array.free_number());
        world.run(async move {
            array.replace("disk0", spare).await.expect("a replacement");
            let takes_part =
                |one: &MemberStatus| one.label == "disk0" && one.state != MemberState::Faulty;
            // The array is being written all the while: nothing else counts an event.
            loop {
                let is_over = !array.status().members.iter().any(takes_part);
                let write = Io::write(0, filled(4096, 7), Flags::FUA);
                dev.start(write).await.result.expect("it is written");
                if is_over {
                    break;
                }
                handle.sleep(1_000_000).await;
            }
        });
        let images = world.images();
        let events = |disk: usize| superblock_of(images[disk].as_deref().expect("a disk")).events;
        assert_eq!(events(1), events(2), "those who take part");
        assert!(events(0) + 2 <= events(1), "{} is no two behind {}", events(0), events(1));
    });
}

/// A kernel's resync of a raid10 reads a member that is being filled, too. One that fails in the middle still says on
/// its own superblock that it is being filled, and a kernel before 6.8 believes it until it is two events behind:
/// before that nothing calls the array dirty, at no moment and after no crash.
#[test]
fn a_raid10_is_clean_until_who_failed_while_it_was_filled_is_left_behind() {
    let name = "rules::a_raid10_is_clean_until_who_failed_while_it_was_filled_is_left_behind";
    let shapes: Vec<Shape> =
        SHAPES.into_iter().filter(|shape| shape.level == Level::Raid10).collect();
    let failed_while_filled = Rc::new(Cell::new(0));
    for_each_seed(name, 40, |seed| {
        let world = World::new(seed, shapes[seed as usize % shapes.len()]);
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let mut dice = rng(seed);
        let (disks, mut crash) = (Rc::clone(&world.disks), rng(!seed));
        let count = Rc::clone(&failed_while_filled);
        world.sim.observe(move || {
            let images = crash_images(&disks.borrow(), &mut crash);
            let all: Vec<Superblock> =
                images.iter().flatten().map(|image| superblock_of(image)).collect();
            let Made::Runs(believed) = make(&all.iter().collect::<Vec<_>>(), Kernel::Before6_8)
            else {
                return;
            };
            let is_dirty = all[believed.freshest].resync != Resync::Clean;
            assert!(!is_dirty || believed.filled.is_empty(), "{}", told(&all));
        });
        let spare = world.spare(array.free_number());
        let filled_one = world.disk(world.disks.borrow().len() - 1);
        world.run(async move {
            array.fail("disk0").await.expect("a member that is there");
            array.remove("disk0").await.expect("one that failed");
            array.add(spare).await.expect("a spare");
            handle.sleep(dice.below(2_000_000)).await;
            let data = Target::op(Op::Write).touching(Span::new(DATA, 1 << 20));
            filled_one.faults().add(data, Fault::Error(Errno::IO));
            let is_filled = |one: &MemberStatus| matches!(one.state, MemberState::Recovering(_));
            while array.status().members.iter().any(is_filled) {
                handle.sleep(100_000).await;
            }
            let is_out = |one: &MemberStatus| one.state == MemberState::Faulty;
            count.set(count.get() + usize::from(array.status().members.iter().any(is_out)));
            let write = Io::write(0, filled(4096, 7), Flags::FUA);
            dev.start(write).await.result.expect("it is written");
        });
    });
    assert!(failed_while_filled.get() > 10, "{} failed while filled", failed_while_filled.get());
}

fn bitmap_of(images: &[Option<Vec<u8>>]) -> Bitmap {
    let images: Vec<Option<Image>> =
        images.iter().map(|image| image.clone().map(Image::from)).collect();
    let there: Vec<There> = look(&images).expect("sound superblocks");
    let assembled = assemble(&there).unwrap_or_else(|why| panic!("{why}"));
    assembled.bitmap.expect("it has one").bitmap
}

/// A bitmap covers the whole array for raid10, and each member for raid1. The copies may differ elsewhere.
#[test]
fn a_bitmap_that_covers_a_part_of_the_array_is_refused() {
    for shape in [PAIR_BITMAP, SHAPES[5]] {
        let image = shape.image(0, Role::Active(0));
        let header = Bitmap::parse(&image[BITMAP as usize..DATA as usize]).expect("one").header;
        let trouble = |sync_size| {
            let (header, mut image) = (BitmapHeader { sync_size, ..header.clone() }, image.clone());
            image[BITMAP as usize..][..256].copy_from_slice(&header.encode());
            carried(&Image::from(image)).expect("a member").bitmap_trouble
        };
        assert_eq!(trouble(header.sync_size), None);
        let less = trouble(header.sync_size - header.chunk_size);
        assert!(less.is_some_and(|why| why.starts_with("it is about ")), "{shape:?}");
    }
}

/// A bitmap that counts fewer events than its superblock was left behind by a writer that ignores it.
#[test]
fn a_bitmap_older_than_its_superblock_says_nothing() {
    let mut images = PAIR_BITMAP.images();
    change_superblocks(&mut images, |superblock| {
        superblock.events = 5;
        superblock.resync = Resync::From(0);
    });
    let stale = bitmap_of(&images);
    assert_eq!(stale.count_set(), stale.chunk_count(), "all of it may differ");
    for image in images.iter_mut().flatten() {
        let mut bitmap = Bitmap::parse(&image[BITMAP as usize..DATA as usize]).expect("a bitmap");
        bitmap.header.events = 5;
        image[BITMAP as usize..][..4096].copy_from_slice(&bitmap.page(0));
    }
    assert_eq!(bitmap_of(&images).count_set(), 0, "a bitmap of the same event is believed");
}

/// A mirror's halves were written one without the other: neither has what the other was written.
#[test]
fn who_went_on_alone_is_not_taken_back() {
    let world = World::new(1, PAIR_BITMAP);
    let (array, dev, rest) = (world.array.clone(), world.dev.clone(), world.sleep(2));
    world.run(async move {
        array.fail("disk1").await.expect("a member that is there");
        array.remove("disk1").await.expect("one that failed");
        let write = Io::write(0, filled(4096, 7), Flags::FUA);
        dev.start(write).await.result.expect("it is written");
        rest.await;
    });
    let mut image = world.images()[1].take();
    let admit = |image: &Option<Vec<u8>>| {
        let carried = carried(&Image::from(image.clone().expect("a disk")));
        let carried = carried.unwrap_or_else(|why| panic!("{why:?}"));
        let (label, dev) = ("disk1".to_owned(), braid_engine::Dev::new(world.disk(1)));
        let (size, uuid) = (dev.limits().size, Uuid([9; 16]));
        let known = Some(&carried);
        let newcomer =
            Newcomer { label, dev, known, anew: false, superblocks: &[SUPERBLOCK], size, uuid };
        newcomer.admit(LogPlace::None, &world.array).map(drop)
    };
    assert_eq!(admit(&image), Ok(()), "it lacks what the bitmap says");
    change_superblocks(std::slice::from_mut(&mut image), |superblock| {
        superblock.events += 10;
        superblock.roles[0] = Role::Faulty;
    });
    assert!(matches!(admit(&image), Err(NotTaken::WentOnAlone { .. })), "{:?}", admit(&image));
}

/// Whatever lay where a new member has its bad-block log would be taken for entries.
#[test]
fn a_new_member_begins_with_an_empty_bad_block_log() {
    const LIST: u64 = 12 << 10;
    let world = World::with(1, PAIR_BITMAP, &PAIR_BITMAP.images(), |setup| {
        let array = setup.array.take().expect("superblocks");
        let mut contents = array.into_contents();
        let offset = (LIST - SUPERBLOCK) as i64;
        contents.bad_block_log = Some(BadBlockLog { offset, size: 4096, shift: 0 });
        let size = DATA + PAIR_BITMAP.member_size;
        setup.array = Some(Superblock::new(contents, size).expect("room for a list"));
    });
    drop(world.spare(world.array.free_number()));
    let disk = world.disk(2);
    let used = vec![0x5a; (DATA + PAIR_BITMAP.member_size) as usize];
    let dev = braid_engine::Dev::new(disk.clone());
    let (array, size) = (world.array.clone(), dev.limits().size);
    world.run(async move {
        let mut buf = pool().get(used.len()).expect("memory");
        buf.copy_from_slice(&used);
        dev.start(Io::write(0, buf, Flags::FUA)).await.result.expect("it is written");
        let (label, uuid) = ("disk2".to_owned(), Uuid([9; 16]));
        let newcomer =
            Newcomer { label, dev, known: None, anew: true, superblocks: &[], size, uuid };
        let admitted = newcomer.admit(LogPlace::None, &array).expect("it has room");
        let (new, _) = admitted.prepare(&pool()).await.expect("a disk that works");
        array.add(new).await.expect("a spare");
    });
    let contents = disk.contents().to_vec();
    let superblock = superblock_of(&contents);
    let log = superblock.bad_block_log.expect("it has a log");
    let at = superblock.super_offset.strict_add_signed(log.offset) as usize;
    let bytes = &contents[at..][..log.size as usize];
    let list = BadBlocks::parse(bytes, log.shift, contents.len() as u64)
        .unwrap_or_else(|why| panic!("{why}"));
    assert!(list.is_empty(), "{list:?}");
}

/// A check reads copies that are being written: a write that reached one of them and not yet the other is no
/// difference.
#[test]
fn a_check_beside_writes_finds_nothing() {
    for_each_seed("rules::a_check_beside_writes_finds_nothing", 12, |seed| {
        let shape = [PAIR, PAIR_BITMAP, SHAPES[2], SHAPES[4]][seed as usize % 4];
        let world = World::new(seed, Shape { member_size: 512 << 10, ..shape });
        let (array, handle) = (world.array.clone(), world.sim.handle());
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        world.sim.handle().spawn("client", async move {
            let load = Load { requests: 300, depth: 8, longest: 64, overlapping: true };
            assert!(client.run(load).await.errors.is_empty());
        });
        let status = world.run(async move {
            array.scrub(Some(JobKind::Check)).expect("it is writable");
            while array.status().last_scrub.is_none() {
                handle.sleep(1_000_000).await;
            }
            array.status()
        });
        assert!(status.compared > 0 && status.mismatches == 0, "{status:#?}");
    });
}

/// A read asks a slow member, which is removed. Then its disk gets other data, as it does when it comes back in another
/// role, and only then it answers.
///
/// ```text
///   read      ▶ disk0 ······························ reads "other" ▶ does not count: disk1 is asked
///   operator     removes disk0   other data on it
/// ```
#[test]
fn a_late_answer_of_a_member_that_was_removed_does_not_count() {
    let name = "rules::a_late_answer_of_a_member_that_was_removed_does_not_count";
    // One chunk and several.
    for (shape, len) in [(PAIR, 4096), (SHAPES[4], 4096), (SHAPES[4], 32 << 10)] {
        for_each_seed(name, 20, |seed| {
            let world = World::new(seed, shape);
            let (dev, array, disk) = (world.dev.clone(), world.array.clone(), world.disk(0));
            world.run(async move {
                let write = Io::write(0, filled(len, 7), Flags::NONE);
                dev.start(write).await.result.expect("it is written");
                array.avoid(|label| label != "disk0");
                disk.slow_down(10_000);
                let read = dev.start(Io::read(0, pool().get_wait(len).await));
                disk.slow_down(1);
                array.fail("disk0").await.expect("there is another copy");
                array.remove("disk0").await.expect("it is faulty");
                let other = Io::write(DATA, filled(32 << 10, 9), Flags::NONE);
                disk.start(other).await.result.expect("it is written");
                let answer = read.await;
                answer.result.expect("it is read");
                let bufs = answer.payload.bufs();
                assert!(bufs.iter().all(|buf| buf.iter().all(|byte| *byte == 7)), "a late answer");
            });
        });
    }
}
