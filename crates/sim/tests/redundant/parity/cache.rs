//! Memory for stripes in flight is bounded, and no holder of memory waits for more.
//!
//! ```text
//!   writes ──▶ memory ──▶ rows ──▶ …       hundreds wait here
//!   a pass, reads of failed sectors ──▶    their own memory, and the same rows
//! ```

use std::cell::Cell;
use std::rc::Rc;

use braid_block::{Flags, Io, Span};
use braid_engine::redundant::{CacheStatus, Consistency, JobKind, Redundant};
use braid_md::Level;
use braid_sim::{Rng, Sim, for_each_seed};

use crate::parity::images::check_whole;
use crate::world::{DATA, Shape, World, all_succeed, filled, parity, pool, rng};

const SHAPES: [Shape; 6] = [
    parity(Level::Raid5, 2, 4, Consistency::Resync),
    parity(Level::Raid5, 2, 4, Consistency::Ppl),
    parity(Level::Raid5, 0, 5, Consistency::Log),
    parity(Level::Raid6, 2, 5, Consistency::Bitmap),
    parity(Level::Raid6, 8, 6, Consistency::Log),
    parity(Level::Raid4, 0, 3, Consistency::Log),
];

fn world(seed: u64, shape: Shape) -> World {
    World::on(Sim::new(seed), shape, &shape.images(), |setup| setup.stripe_cache = 4096)
}

/// Has the memory in use looked at after every event; answers how much of it, in percent, was.
fn watch(world: &World) -> Rc<Cell<usize>> {
    let most = Rc::new(Cell::new(0));
    let (array, seen) = (world.array.clone(), Rc::clone(&most));
    world.sim.observe(move || {
        let CacheStatus { total, used } = array.status().stripe_cache.expect("there is parity");
        assert!(used <= total, "{used} of {total} bytes");
        seen.set(seen.get().max(100 * used / total));
    });
    most
}

/// A request at random.
pub(crate) fn draw(shape: &Shape, dice: &mut Rng) -> Io {
    let size = shape.size() / 512;
    let len = dice.within(1..=100);
    let offset = dice.below(size - len) * 512;
    match dice.below(10) {
        0 => Io::write_zeroes(Span::new(offset, len * 512), Flags::NONE),
        1..3 => Io::read(offset, pool().get(len as usize * 512).unwrap()),
        _ => Io::write(offset, filled(len as usize * 512, 1), Flags::NONE),
    }
}

/// Hundreds of requests at once.
async fn storm(dev: &braid_engine::Dev, shape: Shape, mut dice: Rng, count: usize) {
    all_succeed((0..count).map(|_| dev.start(draw(&shape, &mut dice))).collect()).await;
}

/// Shapes whose units are large beside the memory that there is.
fn coarse(shape: Shape) -> Shape {
    let bitmap = shape.bitmap.map(|_| 64 << 10);
    Shape { chunk: 128 << 10, member_size: 256 << 10, bitmap, ..shape }
}

#[test]
fn hundreds_of_writes_share_what_memory_there_is() {
    let most_seen = Rc::new(Cell::new(0));
    for_each_seed("parity::cache::hundreds_of_writes_share_what_memory_there_is", 24, |seed| {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let shape = if seed % 2 == 0 { shape } else { coarse(shape) };
        let world = world(seed, shape);
        let most = watch(&world);
        let (dev, array, pause) = (world.dev.clone(), world.array.clone(), world.sleep(10));
        world.run(async move {
            storm(&dev, shape, rng(seed), 150).await;
            pause.await;
            assert_eq!(array.status().stripe_cache.map(|cache| cache.used), Some(0));
        });
        most_seen.set(most_seen.get().max(most.get()));
        check_whole(&shape, &world.images());
    });
    assert!(most_seen.get() > 80, "{} % of the memory at most", most_seen.get());
}

/// While a check goes over the array again and again, and sectors cannot be read.
#[test]
fn passes_and_failed_sectors_do_not_stop_each_other() {
    let name = "parity::cache::passes_and_failed_sectors_do_not_stop_each_other";
    for_each_seed(name, 24, |seed| {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let shape = if seed % 2 == 0 { shape } else { coarse(shape) };
        let world = world(seed, shape);
        let _ = watch(&world);
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let bad = world.disk(seed as usize / 2 % shape.members).faults().clone();
        let mut dice = rng(!seed);
        let pause = world.sleep(20);
        world.run(async move {
            for _ in 0..3 {
                for _ in 0..6 {
                    let row = dice.below(shape.member_size / 512) * 512;
                    bad.add_latent(Span::new(DATA + row, 512));
                }
                array.scrub(Some([JobKind::Check, JobKind::Repair][dice.index(2)])).unwrap();
                storm(&dev, shape, dice.fork(), 50).await;
                until_scrubbed(&array, &handle).await;
            }
            pause.await;
            let status = array.status();
            assert_eq!(status.stripe_cache.map(|cache| cache.used), Some(0), "{status:#?}");
            assert_eq!(status.mismatches, 0, "{status:#?}");
        });
        check_whole(&shape, &world.images());
    });
}

async fn until_scrubbed(array: &Redundant, handle: &braid_sim::Handle) {
    while array.status().requested.is_some() {
        handle.sleep(5_000_000).await;
    }
}

/// Zeroes are made in the memory of passes. As many as that holds wait for rows that a check has
/// locked, which meets a sector that cannot be read and goes on in halves.
#[test]
fn a_check_in_halves_does_not_wait_for_who_waits_for_it() {
    let shape = Shape {
        chunk: 512 << 10,
        member_size: 512 << 10,
        ..parity(Level::Raid5, 2, 3, Consistency::Resync)
    };
    for_each_seed("parity::cache::a_check_in_halves", 6, |seed| {
        let world = World::new(seed, shape);
        world.disk(0).faults().add_latent(Span::new(DATA + 4096, 512));
        let (dev, array, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        world.run(async move {
            // Marked active before, so that all are let in at once.
            dev.start(Io::write(512 << 10, filled(512, 1), Flags::NONE)).await.result.unwrap();
            array.scrub(Some(JobKind::Check)).unwrap();
            handle.sleep(seed * 20_000).await;
            let zeroes = |_| Io::write_zeroes(Span::new(0, 256 << 10), Flags::NONE);
            all_succeed((0..80).map(|n| dev.start(zeroes(n))).collect()).await;
            until_scrubbed(&array, &handle).await;
        });
        check_whole(&shape, &world.images());
    });
}
