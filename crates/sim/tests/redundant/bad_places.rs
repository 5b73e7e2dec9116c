//! Unreadable places: healed by scrubs without harm to the member, skipped by recoveries, and entered in md's
//! bad-block logs if no member has their content.

use std::rc::Rc;

use braid_array::{ArrayByte, Geometry};
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::redundant::{Consistency, JobKind, MemberState, NewMember, Setup, Speed};
use braid_md::Level::{Raid5, Raid6};
use braid_md::superblock::BadBlockLog;
use braid_md::{BadBlocks, Features, Role, Superblock};
use braid_sim::{Fault, Target, for_each_seed};

use crate::parity::crash::{fill, tiny};
use crate::parity::images::images_with;
use crate::world::{
    DATA, PAIR, SHAPES, SUPERBLOCK, Shape, World, filled, pool, rng, superblock_of,
};

/// The place of the bad-block log, behind the bitmap's only page.
const LIST: u64 = 12 << 10;

fn with_list(member: &mut NewMember) {
    let mut contents = member.superblock.take().expect("a superblock").into_contents();
    let offset = (LIST - SUPERBLOCK) as i64;
    contents.bad_block_log = Some(BadBlockLog { offset, size: 4096, shift: 0 });
    let superblock = Superblock::new(contents, member.dev.limits().size);
    member.superblock = Some(superblock.expect("room for a list"));
}

fn with_lists(setup: &mut Setup) {
    setup.members.iter_mut().for_each(with_list);
}

fn some_bytes(shape: &Shape, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut rng(seed));
    bytes
}

/// Images of an array that holds `bytes`.
fn images_of(shape: &Shape, bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    if shape.has_parity() {
        return images_with(shape, bytes);
    }
    let mut images = shape.images();
    for image in images.iter_mut().flatten() {
        image[DATA as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    images
}

/// A scrub reads all of a member at once, so that errors which came over years are found within
/// an hour: that is no reason to give the member up.
#[test]
fn a_check_heals_and_gives_nobody_up() {
    for_each_seed("bad_places::a_check_heals_and_gives_nobody_up", 12, |seed| {
        let shape = [
            Shape { member_size: 256 << 10, ..tiny(Raid5, 2, 4, Consistency::Resync) },
            Shape { member_size: 256 << 10, ..tiny(Raid6, 2, 5, Consistency::Log) },
            Shape { member_size: 256 << 10, ..PAIR },
        ][seed as usize % 3];
        let world = World::with_images(seed, shape, &images_of(&shape, &some_bytes(&shape, seed)));
        // More pages than md bears within an hour, and sectors of the same page.
        for page in 0..30 {
            world.disk(1).faults().add_latent(Span::new(DATA + page * 8192 + 512, 1536));
        }
        let (array, rest) = (world.array.clone(), world.sleep(30));
        array.scrub(Some(JobKind::Check)).unwrap();
        world.run(rest);
        let status = array.status();
        assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
        assert_eq!((status.mismatches, status.unread), (0, 0), "{status:#?}");
        assert!((30..=60).contains(&status.members[1].corrected_reads), "{status:#?}");
        assert!(status.last_scrub.is_some());
        let disk = world.disk(1);
        assert!(disk.faults().latent().is_empty(), "every sector was written again");
    });
}

/// A listed bad block is no new error, and does not count against the member.
#[test]
fn a_check_passes_over_what_is_listed() {
    for shape in [tiny(Raid5, 2, 4, Consistency::Resync), tiny(Raid6, 2, 5, Consistency::Log), PAIR]
    {
        let shape = Shape { member_size: 256 << 10, ..shape };
        let images = images_of(&shape, &some_bytes(&shape, 1));
        let world = World::with(1, shape, &images, |setup| {
            let bad = &mut setup.members[0].bad_blocks;
            *bad = BadBlocks::new(4096, 0).unwrap();
            bad.insert(DATA + 8192, 64 << 10).unwrap();
        });
        let (array, rest) = (world.array.clone(), world.sleep(30));
        array.scrub(Some(JobKind::Check)).unwrap();
        world.run(rest);
        let status = array.status();
        assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
        assert_eq!(status.members[0].corrected_reads, 0, "{status:#?}");
        assert_eq!((status.listed, status.unread), (64 << 10, 0), "{status:#?}");
        assert!(status.compared > 0 && status.lost.is_empty());
    }
}

/// A scrub of an array that is degraded as far as it bears compares nothing, and says so.
#[test]
fn a_check_that_can_compare_nothing_says_so() {
    for shape in [tiny(Raid5, 2, 4, Consistency::Resync), PAIR] {
        let world = World::new(1, shape);
        let (array, rest) = (world.array.clone(), world.sleep(10));
        world.run(async move {
            array.fail("disk1").await.unwrap();
            array.scrub(Some(JobKind::Check)).unwrap();
            rest.await;
            let status = array.status();
            assert!(status.last_scrub.is_some() && status.compared == 0, "{status:#?}");
        });
    }
}

/// One sector of a survivor cannot be read, nor written: the rest of the array is redundant again,
/// and what is gone is known to be, until it is written anew.
#[test]
fn a_recovery_enters_what_nobody_has() {
    for_each_seed("bad_places::a_recovery_enters_what_nobody_has", 8, |seed| {
        let shape = if seed % 2 == 0 { tiny(Raid5, 2, 4, Consistency::Resync) } else { PAIR };
        let shape = Shape { member_size: 128 << 10, ..shape };
        let bytes = some_bytes(&shape, seed);
        let world = World::with(seed, shape, &images_of(&shape, &bytes), with_lists);
        let bad = Span::new(DATA + (40 << 10), 8 << 10);
        let survivor = world.disk(1);
        survivor.faults().add(Target::op(Op::Read).touching(bad), Fault::Error(Errno::IO));
        let mut spare = world.spare(shape.members as u32);
        with_list(&mut spare);
        let label = spare.label.clone();
        let (array, dev, rest) = (world.array.clone(), world.dev.clone(), world.sleep(20));
        let lost = world.run(async move {
            array.fail("disk0").await.unwrap();
            array.add(spare).await.unwrap();
            rest.await;
            let status = array.status();
            let filled = status.members.iter().find(|one| one.label == label).unwrap();
            assert_eq!(filled.state, MemberState::InSync, "{status:#?}");
            assert!(filled.bad_blocks > 0 && !status.lost.is_empty(), "{status:#?}");
            for at in (0..dev.limits().size).step_by(512) {
                let read = dev.start(Io::read(at, pool().get(512).unwrap())).await;
                let is_lost = status
                    .lost
                    .iter()
                    .any(|lost| (lost.offset..lost.end()).contains(&ArrayByte::new(at)));
                match read.result {
                    Ok(()) => {
                        assert!(!is_lost, "{at} is said to be lost");
                        assert_eq!(read.payload.to_vec(), bytes[at as usize..][..512]);
                    }
                    Err(_) => assert!(is_lost, "{at} of {:?}", status.lost),
                }
            }
            status.lost
        });
        // Both members record it themselves, for the next start of the array.
        let images = world.images();
        for index in [1, shape.members] {
            let image = images[index].as_deref().unwrap();
            assert!(superblock_of(image).features.contains(Features::BAD_BLOCKS));
            let list = BadBlocks::parse(&image[LIST as usize..][..4096], 0, u64::MAX).unwrap();
            assert!(list.overlaps(bad.offset, bad.len).is_some());
        }
        // What is written there anew is there again, and is listed no more.
        survivor.faults().clear();
        let (dev, array) = (world.dev.clone(), world.array.clone());
        let stripe = if shape.has_parity() { shape.stripes().stripe() } else { 4096 };
        world.run(async move {
            for span in lost {
                let start = span.offset / stripe * stripe;
                let len = span.end().get().next_multiple_of(stripe) - start;
                let whole = Io::write(start, filled(len as usize, 9), Flags::NONE);
                assert_eq!(dev.start(whole).await.result, Ok(()));
                let read = dev.start(Io::read(span.offset.get(), pool().get(512).unwrap())).await;
                assert_eq!(read.result, Ok(()));
                assert_eq!(read.payload.to_vec(), [9; 512]);
            }
            assert!(array.status().lost.is_empty(), "{:?}", array.status().lost);
        });
    });
}

/// A write over what is listed is answered: the place is listed no more, and a crash that takes all
/// that was not flushed leaves what was written there, not what was there before.
#[test]
fn a_place_is_listed_until_what_is_written_there_is_durable() {
    for shape in [tiny(Raid5, 2, 4, Consistency::Resync), tiny(Raid6, 2, 5, Consistency::Log), PAIR]
    {
        let images = images_of(&shape, &some_bytes(&shape, 1));
        let world = World::with(1, shape, &images, |setup| {
            with_lists(setup);
            setup.members[0].bad_blocks.insert(DATA, 4096).unwrap();
        });
        let dev = world.dev.clone();
        let stripe = if shape.has_parity() { shape.stripes().stripe() } else { 4096 };
        world.run(async move {
            let write = Io::write(0, filled(stripe as usize, 9), Flags::NONE);
            assert_eq!(dev.start(write).await.result, Ok(()));
        });
        let disk = world.disk(0);
        let list = BadBlocks::parse(&disk.durable().to_vec()[LIST as usize..][..4096], 0, u64::MAX)
            .unwrap();
        assert!(list.is_empty(), "{list:?}");
        let place = |image: braid_sim::Image| image.to_vec()[DATA as usize..][..4096].to_vec();
        assert_eq!(place(disk.durable()), place(disk.contents()));
    }
}

/// Lists on all members, with whatever ranges, beyond their data as well: what is said to be lost is
/// what a read says that it cannot give, block for block.
#[test]
fn what_is_lost_is_what_cannot_be_read() {
    let parity = [
        tiny(Raid5, 2, 4, Consistency::Resync),
        tiny(Raid6, 2, 5, Consistency::Log),
        tiny(Raid6, 2, 4, Consistency::Resync),
    ];
    let shapes: Vec<Shape> = SHAPES.into_iter().chain(parity).collect();
    for_each_seed("bad_places::what_is_lost_is_what_cannot_be_read", 39, |seed| {
        let shape = shapes[seed as usize % shapes.len()];
        let mut dice = rng(seed);
        let world = World::with(seed, shape, &shape.images(), |setup| {
            with_lists(setup);
            for member in &mut setup.members {
                member.bad_blocks = BadBlocks::new(4096, 0).unwrap();
                for _ in 0..dice.below(24) {
                    let at = dice.below(DATA + shape.member_size);
                    member.bad_blocks.insert(at, 1 + dice.below(16 << 10)).unwrap();
                }
            }
        });
        let (array, dev) = (world.array.clone(), world.dev.clone());
        let unreadable = world.run(async move {
            let mut unreadable = Vec::new();
            for at in (0..dev.limits().size).step_by(512) {
                let read = dev.start(Io::read(at, pool().get(512).unwrap())).await;
                unreadable.extend(read.result.is_err().then_some(at));
            }
            unreadable
        });
        let lost = array.status().lost;
        let lost_blocks: Vec<u64> =
            lost.iter().flat_map(|lost| lost.step_by(512)).map(ArrayByte::get).collect();
        assert_eq!(lost_blocks, unreadable, "{shape:?}");
        assert!(lost.windows(2).all(|pair| pair[0].end() < pair[1].offset), "joined");
    });
}

/// Without a log to note it in, the recovery ends, and says why and which survivor it is.
#[test]
fn a_recovery_without_a_list_names_the_survivor() {
    let shape = tiny(Raid5, 2, 4, Consistency::Resync);
    let world = World::new(1, shape);
    let bad = Span::new(DATA + (8 << 10), 4096);
    world.disk(1).faults().add(Target::op(Op::Read).touching(bad), Fault::Error(Errno::IO));
    let spare = world.spare(shape.members as u32);
    let (array, rest) = (world.array.clone(), world.sleep(10));
    world.run(async move {
        array.fail("disk0").await.unwrap();
        array.add(spare).await.unwrap();
        rest.await;
        let status = array.status();
        let said = status.log.iter().any(|(_, text)| text.contains("disk1 cannot be read"));
        assert!(said, "{:#?}", status.log);
        assert_eq!(status.members[1].state, MemberState::InSync);
    });
}

/// A replacement is full, and its superblock, which is to say so, cannot be written: it is out, and the
/// member that it was to replace keeps the role.
#[test]
fn a_replacement_that_cannot_say_that_it_is_full_does_not_take_over() {
    for shape in [PAIR, tiny(Raid5, 2, 4, Consistency::Resync)] {
        let world = World::new(1, shape);
        let replacement = world.spare(shape.members as u32);
        let label = replacement.label.clone();
        let (array, rest) = (world.array.clone(), world.sleep(10));
        let disks = Rc::clone(&world.disks);
        world.run(async move {
            array.replace("disk0", replacement).await.unwrap();
            let superblock = Target::op(Op::Write).touching(Span::new(SUPERBLOCK, 512));
            disks.borrow()[shape.members].faults().add(superblock, Fault::Error(Errno::IO));
            rest.await;
            let status = array.status();
            let state = |label: &str| {
                let member = status.members.iter().find(|one| one.label == label);
                member.expect("a member").state
            };
            assert_eq!(state("disk0"), MemberState::InSync, "{status:#?}");
            assert_eq!(state(&label), MemberState::Faulty, "{status:#?}");
            assert!(status.in_sync.iter().all(|in_sync| *in_sync) && !status.broken);
        });
        let recorded = superblock_of(world.images()[1].as_deref().expect("a disk"));
        assert_eq!(recorded.roles[0], Role::Active(0));
        assert_eq!(recorded.roles[shape.members], Role::Faulty);
    }
}

/// A member fails while another is being replaced: a spare is filled at once, in the same pass as
/// the replacement, and not after it.
#[test]
fn a_spare_does_not_wait_for_a_replacement() {
    for shape in [tiny(Raid5, 2, 4, Consistency::Resync), tiny(Raid6, 2, 5, Consistency::Log)] {
        let shape = Shape { member_size: 1 << 20, ..shape };
        let geometry = shape.stripes();
        let bytes = some_bytes(&shape, 1);
        let world = World::with(1, shape, &images_with(&shape, &bytes), |setup| {
            setup.speed = Speed { min: 1 << 20, max: Some(1 << 20), latency: None };
        });
        world.sim.be_punctual();
        let replacement = world.spare(shape.members as u32);
        let spare = world.spare(shape.members as u32 + 1);
        let labels = [replacement.label.clone(), spare.label.clone()];
        let (array, handle) = (world.array.clone(), world.sim.handle());
        world.run(async move {
            array.replace("disk0", replacement).await.unwrap();
            array.add(spare).await.unwrap();
            handle.sleep(300_000_000).await;
            array.fail("disk2").await.unwrap();
            handle.sleep(300_000_000).await;
            let status = array.status();
            let job = status.job.as_ref().expect("a recovery");
            assert_eq!(job.kind, JobKind::Recovery, "{status:#?}");
            let named = job.member.as_deref().unwrap();
            assert!(labels.iter().all(|label| named.contains(label)), "{named}");
            for _ in 0..200 {
                handle.sleep(50_000_000).await;
            }
            let status = array.status();
            assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
            let filled = status.members.iter().filter(|one| labels.contains(&one.label));
            assert!(filled.into_iter().all(|one| one.state == MemberState::InSync));
        });
        let images = world.images();
        for (role, index) in [(0, shape.members), (2, shape.members + 1)] {
            let filled = images[index].as_deref().unwrap();
            let old = images[role].as_deref().unwrap();
            let len = geometry.member_size() as usize;
            assert!(filled[DATA as usize..][..len] == old[DATA as usize..][..len], "role {role}");
        }
    }
}
