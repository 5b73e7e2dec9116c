//! Logs that must not be used, or not completely: another program wrote the array since, or the log is damaged.
//!
//! ```text
//!   a write that is in the log, and not in place ──▶ crash ──▶ superblocks, data, logs are
//!                                                              changed ──▶ restart
//! ```
//!
//! A complete array is resynchronised and reports why; a degraded one is refused, with the reason; data remains
//! unchanged. A torn partial parity log is no damage: see [`a_torn_log_was_being_written`].

use std::cell::RefCell;
use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_block::{Flags, Span};
use braid_engine::redundant::{Consistency, RestartError};
use braid_md::Level::{Raid4, Raid5, Raid6};
use braid_md::ppl::{self, Entry, Header};
use braid_md::{Resync, Timestamp, Uuid};
use braid_sim::{Oracle, Sim};

use crate::parity::crash::{fill, read_all, tiny, without, write};
use crate::parity::crash_loads::{change_heads, change_superblocks};
use crate::parity::images::{check_whole, contents, images_with};
use crate::world::{ARRAY, DATA, HEAD, PPL, Shape, World, crash_images, rng};

type Images = Vec<Option<Vec<u8>>>;

const RECORDS: [Shape; 3] = [
    tiny(Raid4, 0, 3, Consistency::Log),
    tiny(Raid5, 2, 4, Consistency::Log),
    tiny(Raid6, 2, 5, Consistency::Log),
];
const PARTIAL: Shape = tiny(Raid5, 2, 4, Consistency::Ppl);
/// The written range: in stripe 0, the end of one column and the start of the next.
const SPAN: Span = Span::new(3072, 2048);

/// The images after a crash of an array with a write that the log has, and the content before.
fn crashed(seed: u64, shape: Shape) -> (Images, Vec<u8>) {
    let mut dice = rng(seed);
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut dice);
    let world = World::with_images(seed, shape, &images_with(&shape, &bytes));
    let oracle = Rc::new(RefCell::new(Oracle::new(&bytes, 512)));
    let dev = world.dev.clone();
    world.run(async move { write(&dev, &oracle, &mut dice, SPAN, Flags::NONE).await });
    let disks = world.disks.borrow();
    (disks.iter().map(|disk| Some(disk.durable().to_vec())).collect(), bytes)
}

/// Gives the array other contents, like a program that does not know the log.
fn write_behind(shape: &Shape, images: &mut Images, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut rng(!seed));
    for (image, other) in images.iter_mut().zip(images_with(shape, &bytes)) {
        let (image, other) = (image.as_mut().unwrap(), other.unwrap());
        image[DATA as usize..].copy_from_slice(&other[DATA as usize..]);
    }
    bytes
}

fn restarted(shape: Shape, images: &[Option<Vec<u8>>]) -> (World, Result<(), RestartError>) {
    let world = World::before_restart(Sim::new(5), shape, images, |_| {});
    let result = world.restart();
    (world, result)
}

/// A complete array starts, says `why`, holds `expected` and is made whole; without any one
/// member it is refused for the same reason.
fn is_doubted(shape: Shape, images: &Images, expected: &[u8], why: &str) {
    let (world, result) = restarted(shape, images);
    assert_eq!(result, Ok(()));
    let log = world.array.status().log;
    let is_said =
        |(_, text): &(_, String)| text.contains("all is resynchronised") && text.contains(why);
    assert!(log.iter().any(is_said), "{why}: {log:?}");
    check_contents(&world, expected);
    world.run(world.sleep(2));
    assert_eq!(world.array.status().resync, Resync::Clean);
    check_whole(&shape, &world.images());
    assert!(contents(&shape, &world.images()) == expected);
    // Of a member whose own log is damaged the loss is none.
    for lost in 1..shape.members {
        let (_, result) = restarted(shape, &without(images, &[lost]));
        let Err(RestartError::Log { why: found }) = result else {
            panic!("started without {lost}: {result:?}");
        };
        assert!(found.contains(why), "{found}");
    }
}

fn check_contents(world: &World, expected: &[u8]) {
    let dev = world.dev.clone();
    let found = world.run(async move { read_all(&dev).await });
    let wrong = found.chunks(512).zip(expected.chunks(512)).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{:#?}", world.array.status().log);
}

/// Without changes by a test, the log is used.
#[test]
fn a_log_that_is_left_alone_is_used() {
    for (seed, shape) in (0..).zip(RECORDS) {
        let (images, before) = crashed(seed, shape);
        let (world, result) = restarted(shape, &images);
        assert_eq!(result, Ok(()));
        let dev = world.dev.clone();
        let found = world.run(async move { read_all(&dev).await });
        let written = SPAN.offset as usize..SPAN.end() as usize;
        for (at, (found, before)) in
            (0..).step_by(512).zip(found.chunks(512).zip(before.chunks(512)))
        {
            assert_eq!(found != before, written.contains(&at), "at {at}");
        }
    }
}

#[test]
fn a_clean_array_is_not_made_good() {
    for (seed, shape) in (0..).zip(RECORDS.into_iter().chain([PARTIAL])) {
        for more in [0, 1, 2] {
            let (mut images, _) = crashed(seed, shape);
            let bytes = write_behind(&shape, &mut images, seed);
            change_superblocks(&mut images, |superblock| {
                superblock.events += more;
                superblock.updated.seconds += 60;
                superblock.resync = Resync::Clean;
            });
            for lost in [&[][..], &[1]] {
                let (world, result) = restarted(shape, &without(&images, lost));
                assert_eq!(result, Ok(()));
                check_contents(&world, &bytes);
            }
        }
    }
}

/// Another program that wrote the array since left it dirty, for any number of events.
#[test]
fn records_are_not_laid_over_what_somebody_else_wrote() {
    for (seed, shape) in (0..).zip(RECORDS) {
        // Between the heads and the superblocks, the heads are one ahead.
        for ahead in [0, 1] {
            for more in [0, 1, 2] {
                let (mut images, _) = crashed(seed, shape);
                let bytes = write_behind(&shape, &mut images, seed);
                if ahead == 1 {
                    change_heads(&mut images, |head| {
                        head.events += 1;
                        head.before = head.updated;
                        head.updated.seconds += 1;
                    });
                }
                change_superblocks(&mut images, |superblock| {
                    superblock.events += more;
                    superblock.updated.seconds += 60;
                    superblock.resync = Resync::From(0);
                });
                is_doubted(shape, &images, &bytes, "");
            }
        }
    }
}

#[test]
fn damaged_heads_are_refused() {
    for (seed, shape) in (0..).zip(RECORDS) {
        let (images, before) = crashed(seed, shape);
        let mut other = images.clone();
        change_heads(&mut other[..1], |head| head.array_uuid = Uuid([9; 16]));
        is_doubted(shape, &other, &before, "of array");
        let mut other = images.clone();
        change_heads(&mut other[..1], |head| head.device_number += 1);
        is_doubted(shape, &other, &before, "device number");
        let mut torn = images.clone();
        torn[0].as_mut().unwrap()[HEAD as usize + 60] ^= 1;
        is_doubted(shape, &torn, &before, "checksum");
        let mut gone = images.clone();
        gone[0].as_mut().unwrap()[HEAD as usize..DATA as usize].fill(0);
        is_doubted(shape, &gone, &before, "head");
        let mut stale = images.clone();
        change_heads(&mut stale[..1], |head| {
            head.updated = Timestamp::default();
            head.before = Timestamp::default();
        });
        is_doubted(shape, &stale, &before, "events");
    }
}

/// The member whose log has something to say of the write.
fn holder(images: &Images) -> usize {
    let has_entries = |image: &Option<Vec<u8>>| {
        let header =
            Header::parse(&image.as_ref().unwrap()[PPL as usize..], ppl::signature(&ARRAY));
        header.is_ok_and(|header| !header.entries.is_empty())
    };
    images.iter().position(has_entries).expect("a write is logged")
}

fn put_header(images: &mut Images, at: u64, change: impl FnOnce(&mut Header)) {
    let holder = holder(images);
    let image = images[holder].as_mut().unwrap();
    let mut header = Header::parse(&image[PPL as usize..], ppl::signature(&ARRAY)).unwrap();
    change(&mut header);
    image[(PPL + at) as usize..][..4096].copy_from_slice(&header.encode());
}

#[test]
fn damaged_partial_parity_is_refused() {
    let (mut images, before) = crashed(1, PARTIAL);
    assert_eq!(holder(&images), 3, "the loss of another member is tried");
    images.swap(0, 3);
    let shape = PARTIAL;
    for case in 0..3 {
        let mut images = images.clone();
        let why = match case {
            0 => {
                put_header(&mut images, 0, |header| header.signature ^= 1);
                "signed"
            }
            1 => {
                let outside = shape.size() * 2;
                put_header(&mut images, 0, |header| header.entries[0].data_start = outside);
                "array"
            }
            _ => {
                put_header(&mut images, 0, |header| header.entries[0].parity_role = 1);
                "role"
            }
        };
        is_doubted(shape, &images, &before, why);
    }
}

/// A header, or partial parity, with another checksum: the crash came while it was written, and
/// nothing in place had begun. A complete array is resynchronised, since the same could be
/// damage; a degraded one goes on as it is.
#[test]
fn a_torn_log_was_being_written() {
    let (images, before) = crashed(1, PARTIAL);
    for at in [100, ppl::HEADER_BYTES as u64 + 10] {
        let mut torn = images.clone();
        let holder = holder(&images);
        torn[holder].as_mut().unwrap()[(PPL + at) as usize] ^= 1;
        let (world, result) = restarted(PARTIAL, &torn);
        assert_eq!(result, Ok(()));
        let log = world.array.status().log;
        assert!(log.iter().any(|(_, text)| text.contains("all is resynchronised")), "{log:?}");
        check_contents(&world, &before);
        for lost in (0..PARTIAL.members).filter(|lost| *lost != holder) {
            let (world, result) = restarted(PARTIAL, &without(&torn, &[lost]));
            assert_eq!(result, Ok(()));
            let log = world.array.status().log;
            assert!(log.iter().any(|(_, text)| text.contains("checksum")), "{log:?}");
            check_contents(&world, &before);
        }
    }
}

/// One log is torn, another is sound. Both are emptied for what comes: a crash in between finds the torn one as
/// doubtful as before, not an empty log beside one that makes its own rows good.
#[test]
fn a_torn_log_is_emptied_last() {
    let shape = PARTIAL;
    let role_of = |stripe, column| shape.stripes().role_of(stripe, column).index();
    let (torn, sound) = (role_of(2, Column::P), role_of(0, Column::P));
    assert!(torn < sound, "members are emptied in their order otherwise");
    let mut dice = rng(1);
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut dice);
    let world = World::with_images(1, shape, &images_with(&shape, &bytes));
    let (dev, oracle) = (world.dev.clone(), Rc::new(RefCell::new(Oracle::new(&bytes, 512))));
    let stripe = shape.stripes().stripe();
    world.run(async move {
        write(&dev, &oracle, &mut dice, SPAN, Flags::NONE).await;
        let span = Span::new(2 * stripe + SPAN.offset, SPAN.len);
        write(&dev, &oracle, &mut dice, span, Flags::NONE).await;
    });
    let mut images: Images =
        world.disks.borrow().iter().map(|disk| Some(disk.durable().to_vec())).collect();
    images[torn].as_mut().unwrap()[(PPL + 100) as usize] ^= 1;
    let row = (DATA + 2 * shape.chunk + 3072) as usize;
    images[role_of(2, Column::Data(0))].as_mut().unwrap()[row..row + 512].fill(0x99);

    let world = World::before_restart(Sim::new(5), shape, &images, |_| {});
    let (disks, mut dice) = (Rc::clone(&world.disks), rng(2));
    world.sim.observe(move || {
        let (again, result) = restarted(shape, &crash_images(&disks.borrow(), &mut dice));
        assert_eq!(result, Ok(()));
        again.run(again.sleep(2));
        check_whole(&shape, &again.images());
    });
    assert_eq!(world.restart(), Ok(()));
    world.run(world.sleep(2));
    check_whole(&shape, &world.images());
}

/// Behind the newest unit lies one with a lower generation, which would change other rows.
#[test]
fn older_generations_behind_the_newest_are_passed_over() {
    let (mut images, before) = crashed(1, PARTIAL);
    let behind = 4096 + 2 * 512 * 4;
    let stale = vec![0x33; 512];
    let entry = Entry {
        data_start: 0,
        data_len: 512,
        parity_len: 512,
        parity_role: 3,
        checksum: ppl::parity_checksum([&stale[..]]),
    };
    let holder = holder(&images);
    let unit = {
        let image = &images[holder].as_ref().unwrap()[PPL as usize..];
        Header::parse(image, ppl::signature(&ARRAY)).unwrap().unit_len() as u64
    };
    assert!(unit <= behind);
    put_header(&mut images, unit, |header| {
        header.generation = 0;
        header.entries = vec![entry];
    });
    images[holder].as_mut().unwrap()[(PPL + unit + 4096) as usize..][..512].copy_from_slice(&stale);
    for lost in (0..PARTIAL.members).filter(|lost| *lost != holder) {
        let (world, result) = restarted(PARTIAL, &without(&images, &[lost]));
        assert_eq!(result, Ok(()));
        let dev = world.dev.clone();
        let found = world.run(async move { read_all(&dev).await });
        assert!(found[..512] == before[..512], "without {lost}");
    }
}
