//! Parts of a device, and devices with holes, against the bytes behind them.

use braid_block::{Errno, Extent, Flags, Io, Limits, Op, Span};
use braid_engine::Dev;
use braid_engine::decorators::{Holes, Slice};
use braid_mem::Pool;
use braid_sim::{Rng, Sim, SimDisk, for_each_seed};

use crate::world::rng;

const SECTOR: u64 = 512;
/// Sectors of the origin.
const SECTORS: u64 = 40;

/// Some sectors from a seed, as spans in order.
fn drawn_holes(rng: &mut Rng) -> Vec<Span> {
    let mut holes: Vec<Span> = Vec::new();
    let mut at = rng.below(8);
    while at < SECTORS {
        let len = rng.within(1..=4).min(SECTORS - at);
        holes.push(Span::new(at * SECTOR, len * SECTOR));
        at += len + rng.below(8);
    }
    holes
}

fn span_within(rng: &mut Rng, size: u64) -> Span {
    let from = rng.below(size / SECTOR);
    Span::new(from * SECTOR, rng.within(1..=size / SECTOR - from) * SECTOR)
}

#[test]
fn a_read_fails_where_a_hole_is_and_nowhere_else() {
    for_each_seed("decorators::a_read_fails_where_a_hole_is_and_nowhere_else", 60, |seed| {
        let (sim, mut rng) = (Sim::new(seed), rng(seed));
        let content: Vec<u8> = (0..SECTORS * SECTOR).map(|at| (at / 7) as u8).collect();
        let limits = Limits::new(content.len() as u64, 512);
        let disk = SimDisk::with_contents(&sim.handle(), "origin", limits, content.clone());
        let holes = drawn_holes(&mut rng);
        let with_holes = Dev::new(Holes::new(Dev::new(disk.clone()), holes[..].into()));
        let part = span_within(&mut rng, content.len() as u64);
        let dev = Dev::new(Slice::new(with_holes, part));
        assert_eq!(*dev.limits(), Limits { size: part.len, read_only: true, ..limits });
        let pool = Pool::new(1 << 20).unwrap();
        sim.block_on(async move {
            for _ in 0..40 {
                let span = span_within(&mut rng, part.len);
                let behind = Span::new(part.offset + span.offset, span.len);
                let is_hole = holes.iter().any(|hole| hole.overlaps(behind));
                let asked = disk.trace().len();
                let buf = pool.get(span.len as usize).unwrap();
                let done = dev.start(Io::read(span.offset, buf)).await;
                if is_hole {
                    assert_eq!(done.result, Err(Errno::IO), "{span}");
                    assert_eq!(done.payload.len(), span.len);
                    assert_eq!(disk.trace().len(), asked, "a hole asks nothing of the origin");
                } else {
                    assert_eq!(done.result, Ok(()), "{span}");
                    let expected = &content[behind.offset as usize..behind.end() as usize];
                    assert!(done.payload.to_vec() == expected, "{span}");
                }
                assert_extents(&dev.extents(span).await, behind, &holes);
            }
            let refused = dev.start(Io::write(0, pool.get(512).unwrap(), Flags::NONE)).await;
            assert_eq!(refused.result, Err(Errno::PERM));
            assert_eq!(dev.start(Io::flush()).await.result, Ok(()));
            assert!(disk.trace().iter().all(|record| !record.op.is_modifying()));
            assert_eq!(disk.trace().last().map(|record| record.op), Some(Op::Flush));
        });
    });
}

#[test]
fn a_hole_beyond_the_end_of_the_origin_makes_the_device_longer() {
    let sim = Sim::new(1);
    let limits = Limits::new(4 * SECTOR, 512);
    let content = vec![7; 4 * SECTOR as usize];
    let disk = SimDisk::with_contents(&sim.handle(), "origin", limits, content);
    let hole = [Span::new(4 * SECTOR, 4 * SECTOR)];
    let dev = Dev::new(Holes::new(Dev::new(disk), hole[..].into()));
    assert_eq!(dev.limits().size, 8 * SECTOR);
    let pool = Pool::new(1 << 20).unwrap();
    sim.block_on(async move {
        for at in 0..8 {
            let done = dev.start(Io::read(at * SECTOR, pool.get(512).unwrap())).await;
            let expected = if at < 4 { Ok(()) } else { Err(Errno::IO) };
            assert_eq!(done.result, expected, "sector {at}");
        }
        let both = dev.start(Io::read(3 * SECTOR, pool.get(1024).unwrap())).await;
        assert_eq!(both.result, Err(Errno::IO));
        assert_extents(
            &dev.extents(Span::new(0, 8 * SECTOR)).await,
            Span::new(0, 8 * SECTOR),
            &hole,
        );
    });
}

/// Checks that no extent calls a byte of a hole anything but data. The first one may end early.
fn assert_extents(extents: &[Extent], behind: Span, holes: &[Span]) {
    let mut at = behind.offset;
    for extent in extents {
        let is_hole = holes.iter().any(|hole| hole.overlaps(Span::new(at, extent.len)));
        assert!(!is_hole || *extent == Extent::data(extent.len), "{extent:?} at {at}");
        at += extent.len;
    }
    assert!(at > behind.offset && at <= behind.end());
}
