//! The number of requests to its members that a write costs.
//!
//! ```text
//!   4 KiB into a stripe       read old data and parity, write both
//!   a whole stripe            read nothing, one write a member
//!   4 KiB in a row, many      put together into whole stripes
//!   4 KiB in a row, one       each at once, as if it were alone
//!   discards, zeroes          of whole stripes: one order a member, nothing is written
//! ```
//!
//! Superblocks do not count: the array is marked active before. Writes to the logs are counted separately.

use std::future::poll_fn;

use braid_array::Geometry;
use braid_block::{Flags, Io, Limits, Op, Span};
use braid_engine::redundant::{Consistency, Setup};
use braid_engine::{Dev, Device, InFlight, Pending};
use braid_md::Level;
use braid_sim::{Sim, SimDisk};

use crate::parity::images::check_whole;
use crate::world::{BITMAP, DATA, Shape, World, filled, parity};

const ALL: [Consistency; 4] =
    [Consistency::Resync, Consistency::Bitmap, Consistency::Log, Consistency::Ppl];

/// Requests since a moment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    reads: usize,
    writes: usize,
    discards: usize,
    zeroes: usize,
    /// Writes to logs and bitmaps.
    log_writes: usize,
    superblocks: usize,
}

/// The number of requests to each disk so far.
fn mark(disks: &[SimDisk]) -> Vec<usize> {
    disks.iter().map(|disk| disk.trace().len()).collect()
}

fn count(disks: &[SimDisk], since: &[usize]) -> Count {
    let mut count = Count::default();
    for (disk, since) in disks.iter().zip(since) {
        for record in &disk.trace()[*since..] {
            match record.op {
                Op::Read if record.span.offset >= DATA => count.reads += 1,
                Op::Write if record.span.offset >= DATA => count.writes += 1,
                Op::Write if record.span.offset >= BITMAP => count.log_writes += 1,
                Op::Write => count.superblocks += 1,
                Op::Discard => count.discards += 1,
                Op::WriteZeroes => count.zeroes += 1,
                Op::Read | Op::Flush => {}
            }
        }
    }
    count
}

fn world(seed: u64, shape: Shape, adjust: impl FnOnce(&mut Setup)) -> World {
    let sim = Sim::new(seed);
    sim.be_punctual();
    World::on(sim, shape, &shape.images(), adjust)
}

/// Counts what a write of `len` bytes at `offset` costs, after another one there.
fn cost_of(shape: Shape, offset: u64, len: usize) -> Count {
    cost_of_io(shape, Io::write(offset, filled(len, 3), Flags::NONE), |_| {})
}

/// Counts what a request costs after a write of the same place.
fn cost_of_io(shape: Shape, io: Io, adjust: impl FnOnce(&mut Setup)) -> Count {
    let world = world(1, shape, adjust);
    let (dev, disks) = (world.dev.clone(), world.disks.borrow().clone());
    let count = world.run(async move {
        for byte in [1, 2] {
            let bytes = filled(io.span.len as usize, byte);
            let written = dev.start(Io::write(io.span.offset, bytes, Flags::NONE)).await;
            assert_eq!(written.result, Ok(()));
        }
        let since = mark(&disks);
        assert_eq!(dev.start(io).await.result, Ok(()));
        count(&disks, &since)
    });
    check_whole(&shape, &world.images());
    count
}

#[test]
fn a_small_write_reads_and_writes_data_and_parity() {
    let cases = [
        (Level::Raid4, 0, 4..=6, 2),
        (Level::Raid5, 2, 4..=6, 2),
        (Level::Raid5, 1, 4..=6, 2),
        (Level::Raid6, 2, 6..=8, 3),
        (Level::Raid6, 10, 6..=8, 3),
    ];
    for (level, layout, members, expected) in cases {
        for members in members {
            for consistency in ALL {
                if consistency == Consistency::Ppl && level != Level::Raid5 {
                    continue;
                }
                let shape = parity(level, layout, members, consistency);
                for offset in [0, 4096, 12288, 48 << 10] {
                    let Count { reads, writes, log_writes, superblocks, .. } =
                        cost_of(shape, offset, 4096);
                    let what = format!("{shape:?} at {offset}");
                    assert_eq!((reads, writes, superblocks), (expected, expected, 0), "{what}");
                    let logged = match consistency {
                        Consistency::Resync | Consistency::Bitmap => 0,
                        Consistency::Ppl => 1,
                        Consistency::Log => expected,
                    };
                    assert_eq!(log_writes, logged, "{what}");
                }
            }
        }
    }
}

#[test]
fn members_make_the_zeroes_of_whole_stripes() {
    for (level, members) in [(Level::Raid4, 4), (Level::Raid5, 5), (Level::Raid6, 6)] {
        for consistency in ALL {
            if consistency == Consistency::Ppl && level != Level::Raid5 {
                continue;
            }
            let shape = parity(level, 2, members, consistency);
            let stripe = shape.stripes().stripe();
            // The second and the third stripe, and half of two others.
            let span = Span::new(stripe / 2, 3 * stripe);
            let has_log = matches!(consistency, Consistency::Log | Consistency::Ppl);
            let zeroes = if has_log { 2 * members } else { members };
            let cost = cost_of_io(shape, Io::discard(span, Flags::NONE), |_| {});
            let Count { reads, writes, discards, superblocks, .. } = cost;
            assert_eq!((reads, writes, discards, superblocks), (0, 0, 0, 0), "{shape:?}");
            assert_eq!(cost.zeroes, zeroes, "{shape:?}");
            let whole = Span::new(stripe, 2 * stripe);
            let cost = cost_of_io(shape, Io::write_zeroes(whole, Flags::NONE), |_| {});
            assert_eq!((cost.reads, cost.writes, cost.zeroes), (0, 0, zeroes), "{shape:?}");
        }
    }
}

/// A disk that would have to write zeroes.
struct Writes(Dev);

impl Device for Writes {
    fn limits(&self) -> Limits {
        Limits { unmaps_zeroes: false, ..*self.0.limits() }
    }

    fn start(&self, io: Io) -> Pending {
        self.0.start(io)
    }
}

#[test]
fn a_discard_costs_nothing_where_a_member_would_write_zeroes() {
    for consistency in ALL {
        let shape = parity(Level::Raid5, 2, 4, consistency);
        let span = Span::new(0, 3 * shape.stripes().stripe());
        let cost = cost_of_io(shape, Io::discard(span, Flags::NONE), |setup| {
            let dev = &mut setup.members[2].dev;
            *dev = Dev::new(Writes(dev.clone()));
        });
        assert_eq!(cost, Count::default(), "{shape:?}");
    }
}

/// Fewer reads where the others of the stripe are fewer than what would be changed.
#[test]
fn a_write_reads_as_little_as_there_is_to_read() {
    let raid5 = parity(Level::Raid5, 2, 4, Consistency::Resync);
    // Two of three columns: the third, instead of two and the parity.
    assert_eq!(cost_of(raid5, 0, 16 << 10).reads, 1);
    // Of three members, one is written, the other read, instead of two.
    assert_eq!(cost_of(Shape { members: 3, ..raid5 }, 0, 4096).reads, 1);
    let raid6 = parity(Level::Raid6, 2, 4, Consistency::Resync);
    assert_eq!(cost_of(raid6, 0, 4096).reads, 1);
}

#[test]
fn a_whole_stripe_reads_nothing() {
    for (level, members) in [(Level::Raid4, 4), (Level::Raid5, 5), (Level::Raid6, 6)] {
        for consistency in ALL {
            if consistency == Consistency::Ppl && level != Level::Raid5 {
                continue;
            }
            let shape = parity(level, 2, members, consistency);
            let stripe = shape.stripes().stripe();
            for stripes in 1..=2 {
                let cost = cost_of(shape, stripe, (stripes * stripe) as usize);
                let writes = members * stripes as usize;
                assert_eq!((cost.reads, cost.writes), (0, writes), "{shape:?}: {stripes}");
            }
        }
    }
}

/// Writes `count` blocks of 4 KiB in a row, `depth` of them at once.
async fn write_in_a_row(dev: &Dev, count: u64, depth: usize) {
    let mut under_way = InFlight::new(depth);
    let mut free: Vec<usize> = (0..depth).collect();
    let mut next = 0;
    while next < count || !under_way.is_empty() {
        if let Some(slot) = free.pop_if(|_| next < count) {
            let io = Io::write(next * 4096, filled(4096, 7), Flags::NONE);
            under_way.push(slot, dev.start(io));
            next += 1;
            continue;
        }
        let (slot, done) = poll_fn(|cx| under_way.poll_next(cx)).await;
        assert_eq!(done.result, Ok(()));
        free.push(slot);
    }
}

#[test]
fn small_writes_in_a_row_become_whole_stripes() {
    for (level, members, consistency) in [
        (Level::Raid5, 4, Consistency::Resync),
        (Level::Raid5, 4, Consistency::Ppl),
        (Level::Raid6, 5, Consistency::Bitmap),
    ] {
        let shape = Shape {
            chunk: 32 << 10,
            member_size: 1 << 20,
            bitmap: (consistency == Consistency::Bitmap).then_some(64 << 10),
            ..parity(level, 2, members, consistency)
        };
        for seed in 0..4 {
            let world = world(seed, shape, |_| {});
            let (dev, disks) = (world.dev.clone(), world.disks.borrow().clone());
            let cost = world.run(async move {
                // Active before, and with all its bits set.
                let zeroes = Io::write_zeroes(Span::new(0, shape.size()), Flags::NONE);
                assert_eq!(dev.start(zeroes).await.result, Ok(()));
                let since = mark(&disks);
                write_in_a_row(&dev, shape.size() / 4096, 64).await;
                count(&disks, &since)
            });
            check_whole(&shape, &world.images());
            // The first one is carried out alone, since it is not known yet that more will come.
            let least = shape.stripes().stripes() as usize * members;
            let what = format!("{shape:?}, seed {seed}: {cost:?}, at least {least} writes");
            assert!(cost.reads <= 2 * members, "{what}");
            assert!(cost.writes <= least + least / 10 + 2 * members, "{what}");
        }
    }
}

/// A client that waits for each write finds each of them begun at once.
#[test]
fn nothing_is_held_for_a_client_that_waits() {
    let shape = parity(Level::Raid5, 2, 4, Consistency::Resync);
    let world = world(1, shape, |_| {});
    let (dev, disks) = (world.dev.clone(), world.disks.borrow().clone());
    let handle = world.sim.handle();
    world.run(async move {
        write_in_a_row(&dev, 1, 1).await;
        for index in 1..shape.size() / 4096 {
            let (since, now) = (mark(&disks), handle.now());
            let io = Io::write(index * 4096, filled(4096, 7), Flags::NONE);
            assert_eq!(dev.start(io).await.result, Ok(()));
            let begun = disks.iter().zip(since).filter_map(|(disk, since)| {
                disk.trace()[since..].first().map(|record| record.start_ns)
            });
            assert_eq!(begun.min(), Some(now), "write {index} was held");
        }
    });
    check_whole(&shape, &world.images());
}

/// Data of a stream that stops in the middle of a stripe is not held for long.
#[test]
fn what_is_held_is_not_held_for_long() {
    let shape = parity(Level::Raid5, 2, 5, Consistency::Resync);
    let world = world(1, shape, |_| {});
    let (dev, handle) = (world.dev.clone(), world.sim.handle());
    world.run(async move {
        write_in_a_row(&dev, 1, 1).await;
        let start = handle.now();
        write_in_a_row(&dev, 3, 3).await;
        // A millisecond, and some ten requests of at most 2 ms one after the other.
        let took = handle.now() - start;
        assert!(took < 21_000_000, "{took} ns");
    });
    check_whole(&shape, &world.images());
}
