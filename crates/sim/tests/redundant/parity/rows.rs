//! Writes of the same rows are carried out one after the other, whatever their columns; other writes are not.
//!
//! ```text
//!            D0    D1    D2    P
//!   rows   | a  |     |     |  ·  |     a and b change the same parity: one waits for the other
//!          | a  |  b  |     |  ·  |
//!          |    |     |  c  |  ·  |     c has other rows of the same stripe: it does not wait
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use braid_array::geometry::Column;
use braid_block::{Flags, Io, Op, Span};
use braid_engine::redundant::Consistency;
use braid_md::Level;
use braid_sim::{Fault, Record, Sim, SimDisk, Target, for_each_seed};

use crate::parity::images::check_recoverable;
use crate::world::{DATA, Shape, World, all_succeed, filled, parity};

const SHAPES: [Shape; 4] = [
    parity(Level::Raid5, 2, 5, Consistency::Resync),
    parity(Level::Raid5, 2, 5, Consistency::Ppl),
    parity(Level::Raid6, 2, 6, Consistency::Log),
    parity(Level::Raid4, 0, 5, Consistency::Bitmap),
];
/// The time at which a read of the first write's old data ends, in nanoseconds.
const LATE: u64 = 40_000_000;

/// Carries out a write of `a` whose read of old data takes until [`LATE`], and meanwhile one of `b`; returns
/// the requests to the disks for `b`'s rows, in bytes of each member's data, from its arrival on.
fn second_of(seed: u64, shape: Shape, a: Span, b: Span, rows_of_b: Span) -> Vec<Record> {
    let sim = Sim::new(seed);
    sim.be_punctual();
    let world = World::on(sim, shape, &shape.images(), |_| {});
    let (dev, handle, disks) =
        (world.dev.clone(), world.sim.handle(), world.disks.borrow().clone());
    let late = disk_of(&shape, &disks, a.offset);
    let came = world.run(async move {
        // The array was active before, so that no write waits for superblocks.
        let at = shape.size() - 512;
        dev.start(Io::write(at, filled(512, 9), Flags::NONE)).await.result.unwrap();
        late.faults().add(Target::op(Op::Read), Fault::NotBefore(LATE));
        let order = Rc::new(RefCell::new(Vec::new()));
        let came = handle.now();
        for (name, span) in [('a', a), ('b', b)] {
            let byte = name as u8;
            let pending =
                dev.start(Io::write(span.offset, filled(span.len as usize, byte), Flags::NONE));
            let order = Rc::clone(&order);
            handle.spawn("writer", async move {
                assert_eq!(pending.await.result, Ok(()));
                order.borrow_mut().push(name);
            });
        }
        while order.borrow().len() < 2 {
            handle.sleep(1_000_000).await;
        }
        came
    });
    let mut expected = vec![0; shape.size() as usize];
    for (byte, span) in [(b'a', a), (b'b', b)] {
        expected[span.offset as usize..span.end() as usize].fill(byte);
    }
    let last = expected.len() - 512;
    expected[last..].fill(9);
    check_recoverable(&shape, &world.images(), &expected);
    let place = Span::new(DATA + rows_of_b.offset, rows_of_b.len);
    let is_of_b = |one: &Record| {
        one.start_ns >= came && one.span.offset < place.end() && place.offset < one.span.end()
    };
    world.disks.borrow().iter().flat_map(SimDisk::trace).filter(is_of_b).collect()
}

fn disk_of(shape: &Shape, disks: &[SimDisk], offset: u64) -> SimDisk {
    use braid_array::{ArrayByte, Geometry};
    disks[shape.stripes().locate(ArrayByte::new(offset)).role.index()].clone()
}

/// The writes among `records`, by the time of their start: those before [`LATE`], and those after it.
fn early_and_late(records: &[Record]) -> (usize, usize) {
    let writes = records.iter().filter(|one| one.op == Op::Write);
    let (early, late): (Vec<_>, Vec<_>) = writes.partition(|one| one.start_ns < LATE);
    (early.len(), late.len())
}

/// Another column of the same rows, or of some of them.
#[test]
fn writes_of_the_same_rows_wait_for_each_other() {
    for_each_seed("parity::rows::writes_of_the_same_rows_wait", 8, |seed| {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let written = 2 + usize::from(shape.level == Level::Raid6);
        for (from, len) in [(0, 4096), (512, 512), (1024, 3072)] {
            let (a, b) = (Span::new(0, 4096), Span::new(8192 + from, len));
            let records = second_of(seed, shape, a, b, Span::new(from, len));
            let (early, late) = early_and_late(&records);
            assert_eq!(early, 0, "{b} did not wait: {records:#?}");
            assert!(late >= 2 * written - 1, "{records:#?}");
        }
    });
}

/// The same column, other rows; another column, other rows; another stripe.
#[test]
fn writes_of_other_rows_do_not_wait() {
    for_each_seed("parity::rows::writes_of_other_rows_do_not_wait", 8, |seed| {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let written = 2 + usize::from(shape.level == Level::Raid6);
        // The place of `b` in the array, and its rows. A write that reads the late member waits.
        let a = Span::new(0, 4096);
        for (offset, row) in [(8192 + 4096, 4096), (16384 + 4096, 4096)] {
            let b = Span::new(offset, 2048);
            let records = second_of(seed, shape, a, b, Span::new(row, 2048));
            let (early, late) = early_and_late(&records);
            assert_eq!((early, late), (written, 0), "{b} waited: {records:#?}");
        }
    });
}

/// Writes in a row are stored as one write; it is durable if one of them must be.
#[test]
fn a_write_with_fua_is_durable_together_with_others() {
    let shape = SHAPES[0];
    let world = World::new(1, shape);
    let dev = world.dev.clone();
    let last = shape.stripes().data() - 1;
    world.run(async move {
        let write = |column| {
            let flags = if column == last { Flags::FUA } else { Flags::NONE };
            let payload = filled(shape.chunk as usize, 7);
            dev.start(Io::write(column as u64 * shape.chunk, payload, flags))
        };
        all_succeed((0..=last).map(write).collect()).await;
    });
    let member = shape.stripes().role_of(0, Column::Data(last)).index();
    let durable = world.disk(member).durable().to_vec();
    assert!(durable[DATA as usize..][..shape.chunk as usize].iter().all(|byte| *byte == 7));
}
