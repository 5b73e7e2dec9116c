//! After a crash at any moment, what was flushed is there, and the copies become equal again.
//!
//! ```text
//!   run         ──e──e──e──e──e──e──▶      e: a request took effect, or completed
//!                  ╲     ╲
//!   images          ✓     ✓                each copy holds what the oracle allows; where copies
//!                          ╲               differ, superblocks or bitmap say so
//!   assembled again         ──resync──▶    reads agree with each other, then all copies are equal
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_array::{MemberByte, Role};
use braid_block::{Io, Op, Span};
use braid_md::Resync;
use braid_sim::{Client, Load, Oracle, for_each_seed};

use crate::copies::failure::check_crash;
use crate::world::{Assembly, DATA, Shape, World, crash_images, geometry_of, pool, rng};

const LOAD: Load = Load { requests: 40, depth: 6, longest: 24, overlapping: true };

#[test]
fn what_was_flushed_survives_and_copies_become_equal() {
    let name = "crash::what_was_flushed_survives_and_copies_become_equal";
    let crashes = Rc::new(Cell::new(0));
    for_each_seed(name, 50, |seed| {
        let shape = Shape::number(seed);
        let world = World::new(seed, shape);
        let client = Client::new(world.dev.clone(), pool(), rng(seed));
        let (disks, oracle) = (Rc::clone(&world.disks), Rc::clone(&client.oracle));
        let (mut dice, counter) = (rng(!seed), Rc::clone(&crashes));
        world.sim.observe(move || {
            if !dice.percent(10) {
                return;
            }
            let images = crash_images(&disks.borrow(), &mut dice);
            check_crash(&shape, &images, &oracle.borrow());
            if dice.percent(20) {
                counter.set(counter.get() + 1);
                assemble_again(seed, shape, &images, &oracle);
            }
        });
        let pause = world.sleep(12);
        world.run(async move {
            let mut client = client;
            client.run(LOAD).await;
            pause.await;
        });
    });
    assert!(crashes.get() > 100, "{} crashes", crashes.get());
}

/// Puts `images` together, reads everything twice, and waits until the copies are equal.
pub(crate) fn assemble_again(
    seed: u64,
    shape: Shape,
    images: &[Option<Vec<u8>>],
    oracle: &Rc<RefCell<Oracle>>,
) {
    let world = World::with_images(seed, shape, images);
    let (dev, mirror, pause) = (world.dev.clone(), world.array.clone(), world.sleep(1));
    let contents = world.run(async move {
        let first = read_all(&dev).await;
        pause.await;
        let second = read_all(&dev).await;
        let differing = first.chunks(512).zip(second.chunks(512)).position(|(a, b)| a != b);
        assert_eq!(differing, None, "what was read once is read again: {:#?}", mirror.status());
        first
    });
    if let Err(mismatch) = oracle.borrow().check_crash(&contents) {
        panic!("after a crash {mismatch}");
    }
    let (mirror, pause) = (world.array.clone(), world.sleep(30));
    world.run(async move {
        pause.await;
        let status = mirror.status();
        assert!(status.job.is_none() && status.resync == Resync::Clean, "{status:#?}");
        if status.in_sync.iter().all(|in_sync| *in_sync) {
            assert_eq!(status.bitmap.map_or(0, |bitmap| bitmap.set), 0, "{status:#?}");
        }
    });
    world.check_copies_equal();
}

async fn read_all(dev: &braid_engine::Dev) -> Vec<u8> {
    let buf = pool().get(dev.limits().size as usize).unwrap();
    let done = dev.start(Io::read(0, buf)).await;
    assert_eq!(done.result, Ok(()));
    done.payload.to_vec()
}

/// A resync by the bitmap touches no chunk whose bit is clear.
#[test]
fn a_resync_visits_what_the_bitmap_says() {
    let name = "crash::a_resync_visits_what_the_bitmap_says";
    let partial = Rc::new(Cell::new(0));
    for_each_seed(name, 40, |seed| {
        let shape = Shape::number([1, 3, 5, 6, 9][seed as usize % 5]);
        let world = World::new(seed, shape);
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        world.run(async move {
            client.run(Load { requests: 6, depth: 6, longest: 8, overlapping: true }).await;
        });
        let images = crash_images(&world.disks.borrow(), &mut rng(!seed));
        let assembly = Assembly::new(&images);
        let bitmap = assembly.bitmap.clone().unwrap();
        drop(world);
        if assembly.is_clean() {
            return;
        }
        partial.set(partial.get() + usize::from(bitmap.count_set() < bitmap.chunk_count()));

        let world = World::with_images(seed, shape, &images);
        world.run(world.sleep(3));
        let geometry = geometry_of(&shape, shape.members);
        for (member, disk) in world.disks.borrow().iter().enumerate() {
            for record in disk.trace() {
                if record.op == Op::Flush || record.span.offset < DATA {
                    continue;
                }
                let span = Span::new(record.span.offset - DATA, record.span.len);
                for offset in (span.offset..span.end()).step_by(512) {
                    let (role, row) = (Role::nth(member), MemberByte::new(offset));
                    let owner = geometry.owner(role, row).expect("it holds something");
                    let at = owner.offset.get();
                    assert!(bitmap.is_set(bitmap.chunk_of(at)), "{record} touches {at}");
                }
            }
        }
        world.check_copies_equal();
    });
    assert!(partial.get() > 10, "{} bitmaps were set in part", partial.get());
}
