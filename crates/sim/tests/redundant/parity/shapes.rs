//! Writes and reads of every shape within two stripes, with all members present and with every loss that parity
//! can compensate for.
//!
//! ```text
//!   stripe 0   | D0 | D1 | D2 | P |     every offset and every length in blocks of 4 KiB,
//!   stripe 1   | D0 | D1 | P | D2 |     and some in blocks of 512 bytes
//! ```
//!
//! A vector holds the expected bytes of the array. The test computes from the disks' images, with plain
//! arithmetic, that they contain these bytes, also without any members that parity can replace.

use std::rc::Rc;

use braid_array::Geometry;
use braid_block::{Errno, Flags, Io, Op, Span};
use braid_engine::Dev;
use braid_engine::redundant::{Consistency, MemberState};
use braid_md::Level;
use braid_sim::{Fault, Rng, Sim, Target};

use crate::parity::images::{check_recoverable, images_with, losses};
use crate::world::{DATA, Shape, World, images_of, parity, pool, rng};

/// One of each kind: data in one piece, parity that rotates in either direction, DDF's Q, a Q with a fixed
/// place; with each kind of log.
const SHAPES: [Shape; 10] = [
    small(Level::Raid4, 0, 4, Consistency::Resync),
    small(Level::Raid4, 0, 3, Consistency::Log),
    small(Level::Raid5, 2, 4, Consistency::Bitmap),
    small(Level::Raid5, 1, 3, Consistency::Ppl),
    small(Level::Raid5, 0, 5, Consistency::Ppl),
    small(Level::Raid5, 3, 4, Consistency::Log),
    small(Level::Raid6, 2, 4, Consistency::Resync),
    small(Level::Raid6, 10, 5, Consistency::Log),
    small(Level::Raid6, 18, 5, Consistency::Bitmap),
    small(Level::Raid6, 3, 6, Consistency::Log),
];

const fn small(level: Level, layout: u32, members: usize, consistency: Consistency) -> Shape {
    Shape { member_size: 24 << 10, ..parity(level, layout, members, consistency) }
}

/// The expected content of an array, and a client of it.
struct Checked {
    dev: Dev,
    bytes: Vec<u8>,
    rng: Rng,
}

impl Checked {
    /// The array, and the disks it consists of, without those that are `missing`.
    fn new(seed: u64, shape: Shape, missing: &[usize]) -> (World, Checked) {
        let mut rng = rng(seed);
        let mut bytes = vec![0; shape.size() as usize];
        fill(&mut bytes, &mut rng);
        let mut images = images_with(&shape, &bytes);
        missing.iter().for_each(|index| images[*index] = None);
        let sim = Sim::new(seed);
        sim.be_punctual();
        let world = World::on(sim, shape, &images, |_| {});
        let dev = world.dev.clone();
        (world, Checked { dev, bytes, rng })
    }

    /// Writes random bytes to `span`, and records them as the expected content if the write succeeds.
    async fn write(&mut self, span: Span, flags: Flags) -> Result<(), Errno> {
        let mut buf = pool().get(span.len as usize).unwrap();
        fill(&mut buf, &mut self.rng);
        let there = &mut self.bytes[span.offset as usize..span.end() as usize];
        there.copy_from_slice(&buf);
        let done = self.dev.start(Io::write(span.offset, buf, flags)).await;
        assert_eq!(done.payload.to_vec(), there, "the payload comes back");
        done.result
    }

    async fn zero(&mut self, span: Span) -> Result<(), Errno> {
        self.bytes[span.offset as usize..span.end() as usize].fill(0);
        self.dev.start(Io::write_zeroes(span, Flags::NONE)).await.result
    }

    /// Discards `span`: the whole stripes in it are zeroes then.
    async fn discard(&mut self, span: Span, stripe: u64) -> Result<(), Errno> {
        let end = span.end() / stripe * stripe;
        let start = span.offset.next_multiple_of(stripe).min(end);
        self.bytes[start as usize..end as usize].fill(0);
        self.dev.start(Io::discard(span, Flags::NONE)).await.result
    }

    async fn read(&self, span: Span) {
        let mut buf = pool().get(span.len as usize).unwrap();
        buf.fill(0xee);
        let done = self.dev.start(Io::read(span.offset, buf)).await;
        assert_eq!(done.result, Ok(()), "{span}");
        let there = &self.bytes[span.offset as usize..span.end() as usize];
        assert!(done.payload.to_vec() == there, "{span} is read as something else");
    }
}

fn fill(bytes: &mut [u8], rng: &mut Rng) {
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()));
}

/// Every span of whole blocks within two stripes.
fn spans(shape: &Shape, block: u64) -> Vec<Span> {
    let end = 2 * shape.stripes().stripe();
    let starts = (0..end).step_by(block as usize);
    starts
        .flat_map(|start| {
            let ends = (start + block..=end).step_by(block as usize);
            ends.map(move |end| Span::new(start, end - start))
        })
        .collect()
}

/// All spans in blocks of 4 KiB, and some in blocks of 512 bytes.
fn some_spans(shape: &Shape, rng: &mut Rng, more: usize) -> Vec<Span> {
    let (mut spans, fine) = (spans(shape, 4096), spans(shape, 512));
    spans.extend((0..more).map(|_| fine[rng.index(fine.len())]));
    spans
}

/// Every set of members that may be missing from the start.
#[test]
fn every_write_and_read_with_any_members_missing() {
    for shape in SHAPES {
        let most = shape.stripes().parities();
        for (number, missing) in losses(shape.members, most).into_iter().enumerate() {
            let (world, mut checked) = Checked::new(number as u64, shape, &missing);
            let spans = some_spans(&shape, &mut checked.rng, 60);
            let disks = Rc::clone(&world.disks);
            world.run(async move {
                for (index, span) in spans.into_iter().enumerate() {
                    let done = match index % 10 {
                        9 => checked.zero(span).await,
                        7 => checked.discard(span, shape.stripes().stripe()).await,
                        8 => checked.write(span, Flags::FUA).await,
                        _ => checked.write(span, Flags::NONE).await,
                    };
                    assert_eq!(done, Ok(()), "{shape:?} without {missing:?}: {span}");
                    checked.read(span).await;
                    if index % 16 == number % 16 {
                        let images = images_of(&disks.borrow());
                        check_recoverable(&shape, &images, &checked.bytes);
                    }
                }
                for span in some_spans(&shape, &mut checked.rng, 100) {
                    checked.read(span).await;
                }
                check_recoverable(&shape, &images_of(&disks.borrow()), &checked.bytes);
            });
        }
    }
}

/// The fault of the lost members, during the very write that is checked.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// Their writes of data fail.
    Writes,
    /// All their requests fail, including reads of old data.
    All,
    /// Their reads fail, except reads of bytes that the array writes again.
    Reads,
}

#[test]
fn every_write_at_which_members_fail() {
    for shape in SHAPES {
        let most = shape.stripes().parities();
        let all = spans(&shape, 4096);
        for (number, bad) in losses(shape.members, most).into_iter().enumerate().skip(1) {
            // Each loss gets its share of the spans, and each span every kind of loss.
            let share = if bad.len() == 1 { 11 } else { 29 };
            for (index, span) in all.iter().copied().enumerate() {
                if index % share == number % share {
                    let blow = [Blow::Writes, Blow::All, Blow::Reads][(index / share) % 3];
                    check_blow(index as u64, shape, &bad, blow, span);
                }
            }
        }
    }
}

fn check_blow(seed: u64, shape: Shape, bad: &[usize], blow: Blow, span: Span) {
    let (world, mut checked) = Checked::new(seed, shape, &[]);
    let (array, disks) = (world.array.clone(), Rc::clone(&world.disks));
    let bad = bad.to_vec();
    let (pause, rest) = (world.sleep(1), world.sleep(1));
    world.run(async move {
        let what = format!("{shape:?}: {blow:?} of {bad:?} at {span}");
        for index in &bad {
            let faults = disks.borrow()[*index].faults().clone();
            let data = Span::new(DATA, shape.member_size);
            match blow {
                Blow::Writes => {
                    faults.add(Target::op(Op::Write).touching(data), Fault::Error(Errno::IO));
                    faults.add(Target::op(Op::WriteZeroes).touching(data), Fault::Error(Errno::IO));
                }
                Blow::All => faults.add(Target::ALL, Fault::Error(Errno::IO)),
                Blow::Reads => faults.add_latent(data),
            }
        }
        assert_eq!(checked.write(span, Flags::NONE).await, Ok(()), "{what}");
        checked.read(span).await;
        let images = images_of(&disks.borrow());
        let status = array.status();
        for (index, member) in status.members.iter().enumerate() {
            let faulty = member.state == MemberState::Faulty;
            assert!(!faulty || bad.contains(&index), "{what}: {status:#?}");
            assert!(!faulty || !matches!(blow, Blow::Reads), "{what}: {status:#?}");
        }
        // The repair after a failed read runs beside the write, which does not wait for it.
        check_recoverable(&shape, &images, &checked.bytes);
        pause.await;
        checked.read(Span::new(0, checked.bytes.len() as u64)).await;
        rest.await;
        check_recoverable(&shape, &images_of(&disks.borrow()), &checked.bytes);
    });
}
