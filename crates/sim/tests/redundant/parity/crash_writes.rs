//! A crash at every moment of one write, discard or write of zeroes.
//!
//! ```text
//!   stripe 1   | D0 | D1 | D2 | P |     a write before, which a log still knows, then the one at
//!              | ww | w  |    |   |     each of whose events a crash is tried: of every shape, so
//!                                       that every method is used; with every loss before and at
//!                                       the crash
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_array::Geometry;
use braid_block::{Flags, Op, Span};
use braid_engine::redundant::Consistency::{self, Bitmap, Log, Ppl, Resync};
use braid_md::Level::{self, Raid4, Raid5, Raid6};
use braid_sim::{Oracle, SimDisk};

use crate::parity::crash::{
    Crash, bearable, change, fill, read_all, some_crash, tiny, without, write,
};
use crate::parity::images::{images_with, losses};
use crate::world::{Shape, World, crash_images, images_of, rng};

/// Each level, with each thing that may make a crash good, and room for each method.
const SHAPES: [(Level, u32, usize, Consistency); 11] = [
    (Raid4, 0, 4, Log),
    (Raid4, 0, 3, Log),
    (Raid5, 2, 3, Ppl),
    (Raid5, 2, 5, Ppl),
    (Raid5, 1, 4, Log),
    (Raid6, 2, 4, Log),
    (Raid6, 10, 6, Log),
    (Raid4, 0, 4, Resync),
    (Raid5, 2, 4, Bitmap),
    (Raid6, 2, 5, Resync),
    (Raid6, 18, 5, Bitmap),
];

/// Writes of every shape around stripe 1, whose data have `width` bytes.
fn spans(chunk: u64, width: u64) -> Vec<Span> {
    let last = width - chunk;
    [
        // A block, and a chunk.
        (512, 512),
        (last, chunk),
        // Over the edge of two columns: rows with one written column, and with two.
        (chunk - 1024, 2048),
        (512, chunk + 512),
        // All but one column; a whole stripe; the end of one and the start of the next.
        (0, last),
        (0, width),
        (last, 2 * chunk),
        (chunk / 2, width),
    ]
    .into_iter()
    .map(|(offset, len)| Span::new(width + offset, len))
    .collect()
}

/// The greatest number of missing members: without a log, a crash is survived by arrays that are complete and
/// stay so.
fn most_missing(shape: &Shape) -> usize {
    match shape.consistency {
        Resync | Bitmap => 0,
        Ppl | Log => shape.stripes().parities(),
    }
}

fn walk(seed: u64, shape: Shape, missing: &[usize], (op, span): (Op, Span), count: &Rc<Cell<u64>>) {
    let mut dice = rng(seed);
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut dice);
    let images = without(&images_with(&shape, &bytes), missing);
    let world = World::with_images(seed, shape, &images);
    let crash = Crash {
        shape,
        oracle: Rc::new(RefCell::new(Oracle::new(&bytes, 512))),
        was_complete: missing.is_empty(),
        adjust: |_| {},
        excused: Vec::new(),
    };
    let is_armed = Rc::new(Cell::new(false));
    {
        let (disks, crash, mut dice) = (Rc::clone(&world.disks), crash.clone(), dice.fork());
        let (is_armed, count) = (Rc::clone(&is_armed), Rc::clone(count));
        world.sim.observe(move || {
            if is_armed.get() {
                count.set(count.get() + try_all(seed, &crash, &disks.borrow(), &mut dice));
            }
        });
    }
    let (dev, oracle) = (world.dev.clone(), Rc::clone(&crash.oracle));
    let before = Span::new(shape.stripes().stripe() + 1024, 1024);
    world.run(async move {
        write(&dev, &oracle, &mut dice, before, Flags::NONE).await;
        is_armed.set(true);
        let flags = if seed.is_multiple_of(3) { Flags::FUA } else { Flags::NONE };
        change(&dev, &oracle, &mut dice, op, (span, flags)).await;
        is_armed.set(false);
        read_all(&dev).await;
    });
}

/// A crash now, with each loss that can be borne.
fn try_all(seed: u64, crash: &Crash, disks: &[SimDisk], dice: &mut braid_sim::Rng) -> u64 {
    let images = match dice.index(3) {
        0 => images_of(disks),
        1 => crash_images(disks, dice),
        _ => some_crash(disks, dice),
    };
    let mut sets = bearable(&crash.shape, &images);
    if matches!(crash.shape.consistency, Resync | Bitmap) {
        sets.truncate(1);
    }
    let chosen = dice.index(sets.len());
    let again = usize::from(dice.percent(5));
    for lost in [&sets[0], &sets[chosen]] {
        crash.check(seed, &without(&images, lost), again, dice);
    }
    2
}

/// Every shape of write on every array, whatever is missing.
#[test]
fn a_crash_at_every_moment_of_every_write() {
    let count = Rc::new(Cell::new(0));
    let mut seed = 0;
    for (level, layout, members, consistency) in SHAPES {
        let shape = tiny(level, layout, members, consistency);
        let geometry = shape.stripes();
        let sets = losses(members, most_missing(&shape));
        let spans = spans(geometry.chunk(), geometry.stripe());
        let writes = spans.into_iter().map(|span| (Op::Write, span));
        // Whole stripes, which have an order of their own, and the parts around them.
        let two = Span::new(geometry.stripe() / 2, 2 * geometry.stripe());
        let zeroes = [(Op::Discard, two), (Op::WriteZeroes, two)];
        for (op, span) in writes.chain(zeroes) {
            seed += 1;
            let mut wanted = vec![&sets[0]];
            if sets.len() > 1 {
                wanted.push(&sets[1 + seed as usize % members]);
                wanted.push(&sets[1 + seed as usize % (sets.len() - 1)]);
            }
            for missing in wanted {
                let guard = Tell { shape, missing, op, span, seed };
                walk(seed, shape, missing, (op, span), &count);
                std::mem::forget(guard);
            }
        }
    }
    assert!(count.get() > 1000, "{} crashes", count.get());
}

/// Says of which write a failure is.
struct Tell<'a> {
    shape: Shape,
    missing: &'a [usize],
    op: Op,
    span: Span,
    seed: u64,
}

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        let Tell { shape, missing, op, span, seed } = self;
        eprintln!("seed {seed}: {op:?} of {span} to {shape:?} without {missing:?}");
    }
}
