//! Properties of every volume in every world.
//!
//! Each body takes a world and the number of its run, which chooses the stack; in the simulation
//! the number is the seed, and orders and latencies follow from it too.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_block::{Completion, Errno, Flags, Io, Op, Payload, Span};
use braid_engine::{Pending, join_all};
use braid_mem::Pool;
use braid_sim::{Client, Fault, Load, Target};
use braid_uring::Mode;

use crate::stack::Volume;
use crate::world::{World, in_ram, in_simulation, on_files, rng, run, volume};

/// Makes a test of each body in each world.
macro_rules! in_every_world {
    ($($body:ident: $seeds:expr),* $(,)?) => { $(
        mod $body {
            use super::*;
            const NAME: &str = concat!("conformance::", stringify!($body));
            #[test]
            fn simulation() {
                in_simulation(&format!("{NAME}::simulation"), $seeds, super::$body);
            }
            #[test]
            fn ram() {
                in_ram(&format!("{NAME}::ram"), super::$body);
            }
            #[test]
            fn files_uring() {
                on_files(&format!("{NAME}::files_uring"), Mode::Uring, super::$body);
            }
            #[test]
            fn files_threads() {
                on_files(&format!("{NAME}::files_threads"), Mode::Threads, super::$body);
            }
        }
    )* };
}

in_every_world! {
    random_requests_agree_with_the_oracle: 200,
    random_requests_agree_with_the_oracle_while_a_member_fails: 100,
    every_payload_comes_back_whole: 40,
    a_members_error_reaches_the_requests_that_touch_it_and_no_others: 60,
    of_several_errors_the_first_in_the_request_is_answered: 60,
    a_flush_reaches_every_member_also_when_one_fails: 40,
    extents_cover_what_they_are_asked_for: 40,
    a_read_only_member_makes_the_volume_read_only: 20,
    requests_that_are_dropped_give_their_memory_back: 60,
    zeroes_and_discards_keep_to_their_span: 40,
}

fn random_requests_agree_with_the_oracle(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let (dev, pool) = (volume.dev.clone(), world.pool());
    let overlapping = world.keeps_blocks_whole();
    run(world, async move {
        let mut client = Client::new(dev, pool.clone(), rng(number));
        let load = Load { requests: 80, depth: 12, longest: 40, overlapping };
        let report = client.run(load).await;
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        assert_eq!(pool.free_bytes(), pool.total_bytes(), "memory that did not come back");
    });
}

fn random_requests_agree_with_the_oracle_while_a_member_fails(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let mut rng = rng(number);
    let bad = rng.index(volume.members.len());
    let size = volume.members[bad].dev.limits().size;
    let first = rng.below(size / volume.block()) * volume.block();
    let bad_span = Span::new(first, volume.block() * 20);
    let faults = &volume.members[bad].faults;
    faults.add(Target::op(Op::Read).touching(bad_span), Fault::Error(Errno::IO));
    faults.add(Target::op(Op::Write).touching(bad_span), Fault::Error(Errno::NOSPC));
    let (pool, overlapping) = (world.pool(), world.keeps_blocks_whole());
    run(world, async move {
        let mut client = Client::new(volume.dev.clone(), pool, rng);
        let load = Load { requests: 80, depth: 12, longest: 20, overlapping };
        for (op, span, errno) in client.run(load).await.errors {
            let expected = if op == Op::Read { Errno::IO } else { Errno::NOSPC };
            assert_eq!(errno, expected, "{op:?} of {span}");
            assert!(touches(&volume, span, bad, bad_span), "{op:?} of {span} failed");
        }
    });
}

/// True if any block of `span` lies in `part` of `member`.
fn touches(volume: &Volume, span: Span, member: usize, part: Span) -> bool {
    blocks(span, volume.block()).any(|offset| {
        let there = volume.offset_at(offset);
        volume.member_at(offset) == member && there >= part.offset && there < part.end()
    })
}

fn blocks(span: Span, block: u64) -> impl Iterator<Item = u64> {
    (span.offset..span.end()).step_by(block as usize)
}

/// Memory in several buffers, each block with its own bytes.
fn gathered(pool: &Pool, lens: &[u64], stamp: u64) -> Payload {
    let mut payload = Payload::None;
    for (index, len) in lens.iter().enumerate() {
        let mut buf = pool.get(*len as usize).expect("a pool with room");
        for (word, bytes) in buf.chunks_exact_mut(8).enumerate() {
            let value = stamp << 40 | (index as u64) << 24 | word as u64;
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        payload.append(buf.into());
    }
    payload
}

fn every_payload_comes_back_whole(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let (pool, mut rng) = (world.pool(), rng(number));
    run(world, async move {
        let (block, size) = (volume.block(), volume.size());
        for round in 0..12 {
            let failing = round % 3 == 2;
            for member in &volume.members {
                member.faults.clear();
                if failing {
                    member.faults.add(Target::ALL, Fault::Error(Errno::IO));
                }
            }
            let lens: Vec<u64> = (0..4).map(|_| rng.within(1..=12) * block).collect();
            let total: u64 = lens.iter().sum();
            let offset = rng.within(0..=(size - total) / block) * block;
            let sent = gathered(&pool, &lens, round);
            let bytes = sent.to_vec();
            let done = volume.dev.start(Io::write(offset, sent, Flags::NONE)).await;
            assert_eq!(done.result.is_err(), failing);
            assert!(done.payload.to_vec() == bytes, "a write's payload");

            let done = volume.dev.start(Io::read(offset, gathered(&pool, &lens, 99))).await;
            assert_eq!(done.result.is_err(), failing);
            assert_eq!(done.payload.len(), total);
            assert!(failing || done.payload.to_vec() == bytes, "a read's payload");
        }
        assert_eq!(pool.free_bytes(), pool.total_bytes(), "memory that did not come back");
    });
}

fn a_members_error_reaches_the_requests_that_touch_it_and_no_others(
    world: &dyn World,
    number: u64,
) {
    let volume = volume(world, number);
    let (pool, mut rng) = (world.pool(), rng(number));
    let bad = rng.index(volume.members.len());
    let (op, errno) = match rng.percent(50) {
        true => (Op::Read, Errno::IO),
        false => (Op::Write, Errno::NOSPC),
    };
    volume.members[bad].faults.add(Target::op(op), Fault::Error(errno));
    run(world, async move {
        // One after the other through the volume, all under way at once, crossing chunks.
        let step = volume.block() * rng.within(3..=9);
        let spans: Vec<Span> = (0..volume.size() / step)
            .map(|index| Span::new(index * step, step.min(volume.size() - index * step)))
            .collect();
        let ask = |span: &Span| {
            let payload = gathered(&pool, &[span.len], 1);
            let io = match op {
                Op::Read => Io::read(span.offset, payload),
                _ => Io::write(span.offset, payload, Flags::NONE),
            };
            volume.dev.start(io)
        };
        let done = join_all(spans.iter().map(ask).collect()).await;
        for (span, done) in spans.iter().zip(done) {
            let everywhere = Span::new(0, u64::MAX);
            let expected =
                if touches(&volume, *span, bad, everywhere) { Err(errno) } else { Ok(()) };
            assert_eq!(done.result, expected, "{op:?} of {span}, member {bad} fails");
        }
    });
}

/// Whatever order the members answer in. A stretch that continues on a member counts where it
/// began.
fn of_several_errors_the_first_in_the_request_is_answered(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let (pool, mut rng) = (world.pool(), rng(number));
    // Every member fails in its own way.
    let errno = |member: usize| Errno::from_raw(100 + member as i32);
    for (index, member) in volume.members.iter().enumerate() {
        member.faults.add(Target::ALL, Fault::Error(errno(index)));
    }
    run(world, async move {
        let (block, size) = (volume.block(), volume.size());
        for _ in 0..10 {
            let len = rng.within(1..=size / block);
            let offset = rng.within(0..=size / block - len) * block;
            let payload = gathered(&pool, &[len * block], 0);
            let done = volume.dev.start(Io::read(offset, payload)).await;
            assert_eq!(done.result, Err(errno(volume.member_at(offset))));
        }
        let done = volume.dev.start(Io::flush()).await;
        assert_eq!(done.result, Err(errno(0)));
    });
}

fn a_flush_reaches_every_member_also_when_one_fails(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let bad = rng(number).index(volume.members.len());
    run(world, async move {
        let flushes = |volume: &Volume| -> Vec<usize> {
            let count = |log: Vec<(Op, Span)>| log.iter().filter(|one| one.0 == Op::Flush).count();
            volume.members.iter().map(|member| count((member.log)())).collect()
        };
        let done = volume.dev.start(Io::flush()).await;
        assert_eq!((done.result, done.payload.len()), (Ok(()), 0));
        assert_eq!(flushes(&volume), vec![1; volume.members.len()]);
        volume.members[bad].faults.add(Target::op(Op::Flush), Fault::Error(Errno::IO));
        assert_eq!(volume.dev.start(Io::flush()).await.result, Err(Errno::IO));
        assert_eq!(flushes(&volume), vec![2; volume.members.len()]);
    });
}

fn extents_cover_what_they_are_asked_for(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let (pool, mut rng) = (world.pool(), rng(number));
    run(world, async move {
        let (block, size) = (volume.block(), volume.size());
        for _ in 0..8 {
            let len = rng.within(1..=9);
            let offset = rng.within(0..=size / block - len) * block;
            let payload = gathered(&pool, &[len * block], 1);
            volume.dev.start(Io::write(offset, payload, Flags::NONE)).await.result.unwrap();
        }
        let done = volume.dev.start(Io::read(0, pool.get(size as usize).unwrap())).await;
        let contents = done.payload.to_vec();
        for _ in 0..20 {
            let len = rng.within(1..=size / block);
            let asked = Span::new(rng.within(0..=size / block - len) * block, len * block);
            let mut offset = asked.offset;
            while offset < asked.end() {
                for extent in volume.dev.extents(Span::new(offset, asked.end() - offset)).await {
                    assert!(extent.len > 0);
                    let there = &contents[offset as usize..][..extent.len as usize];
                    assert!(
                        !extent.zero || there.iter().all(|byte| *byte == 0),
                        "zero at {offset}"
                    );
                    offset += extent.len;
                }
            }
            assert_eq!(offset, asked.end());
        }
    });
}

fn a_read_only_member_makes_the_volume_read_only(world: &dyn World, number: u64) {
    let (pool, mut made) = (world.pool(), 0);
    let volume = crate::stack::Stack::number(number).build(world.unit(), &mut |size| {
        made += 1;
        world.member(size, made == 1)
    });
    run(world, async move {
        assert!(volume.dev.limits().read_only);
        let all = Span::new(0, volume.size());
        let write = Io::write(0, gathered(&pool, &[all.len], 0), Flags::FUA);
        let refused = [write, Io::discard(all, Flags::NONE), Io::write_zeroes(all, Flags::NONE)];
        for io in refused {
            let len = io.payload.len();
            let done = volume.dev.start(io).await;
            assert_eq!((done.result, done.payload.len()), (Err(Errno::PERM), len));
        }
        assert!(
            volume.members.iter().all(|member| (member.log)().is_empty()),
            "nothing came through"
        );
        let done = volume.dev.start(Io::read(0, gathered(&pool, &[all.len], 1))).await;
        assert_eq!(done.result, Ok(()));
        assert!(done.payload.to_vec().iter().all(|byte| *byte == 0));
        assert_eq!(volume.dev.start(Io::flush()).await.result, Ok(()));
    });
}

fn requests_that_are_dropped_give_their_memory_back(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let (pool, mut rng) = (world.pool(), rng(number));
    run(world, async move {
        let (block, size) = (volume.block(), volume.size());
        let mut touched = BTreeSet::new();
        let mut held = Vec::new();
        for stamp in 0..10 {
            let len = rng.within(1..=30);
            let offset = rng.within(0..=size / block - len) * block;
            let payload = gathered(&pool, &[len * block], stamp);
            let mut pending = match rng.percent(50) {
                true => volume.dev.start(Io::read(offset, payload)),
                false => {
                    touched.extend(blocks(Span::new(offset, len * block), block));
                    volume.dev.start(Io::write(offset, payload, Flags::NONE))
                }
            };
            if rng.percent(50) {
                // Asked once, so that there is a waker to forget.
                poll_once(&mut pending).await;
            }
            match rng.percent(50) {
                true => drop(pending),
                false => held.push(pending),
            }
        }
        // Time passes: some of these are done by now, and their completions were not taken.
        volume.dev.start(Io::flush()).await.result.unwrap();
        drop(held);
        // This takes the whole pool: it is free only when every request has released its memory.
        drop(pool.get_wait(pool.total_bytes()).await);
        let done = volume.dev.start(Io::read(0, pool.get(size as usize).unwrap())).await;
        assert_eq!(done.result, Ok(()));
        let contents = done.payload.to_vec();
        let untouched = blocks(Span::new(0, size), block).filter(|at| !touched.contains(at));
        for offset in untouched {
            let there = &contents[offset as usize..][..block as usize];
            assert!(there.iter().all(|byte| *byte == 0), "at {offset}");
        }
    });
}

async fn poll_once(pending: &mut Pending) {
    poll_fn(|cx| {
        // A completion that is there already is dropped with its memory.
        let _: Poll<Completion> = std::pin::Pin::new(&mut *pending).poll(cx);
        Poll::Ready(())
    })
    .await;
}

fn zeroes_and_discards_keep_to_their_span(world: &dyn World, number: u64) {
    let volume = volume(world, number);
    let (pool, mut rng) = (world.pool(), rng(number));
    run(world, async move {
        let (block, size) = (volume.block(), volume.size());
        let payload = gathered(&pool, &[size], 7);
        let mut expected = payload.to_vec();
        volume.dev.start(Io::write(0, payload, Flags::NONE)).await.result.unwrap();
        for round in 0..6 {
            let len = rng.within(1..=size / block / 2);
            let span = Span::new(rng.within(0..=size / block - len) * block, len * block);
            let range = span.offset as usize..span.end() as usize;
            let discard = round % 3 == 2;
            let io = match round % 3 {
                0 => Io::write_zeroes(span, Flags::NONE),
                1 => Io::write_zeroes(span, Flags::NO_UNMAP.union(Flags::FUA)),
                _ => Io::discard(span, Flags::NONE),
            };
            volume.dev.start(io).await.result.unwrap();
            let done = volume.dev.start(Io::read(0, pool.get(size as usize).unwrap())).await;
            let contents = done.payload.to_vec();
            match discard {
                true => expected[range.clone()].copy_from_slice(&contents[range]),
                false => expected[range].fill(0),
            }
            assert!(contents == expected, "round {round}, {span}");
        }
    });
}

/// A request that is done at once completes without being polled from an executor.
#[test]
fn memory_answers_at_once() {
    let volume = crate::stack::Stack::number(1).build(512, &mut |size| {
        let dev = braid_engine::Dev::new(braid_device::Ram::new(size).unwrap().device());
        crate::world::Member { dev, faults: Default::default(), log: Box::new(Vec::new) }
    });
    let pool = Pool::new(1 << 20).unwrap();
    let mut pending = volume.dev.start(Io::read(0, pool.get(volume.size() as usize).unwrap()));
    assert!(matches!(pending, Pending::Ready(Some(_))));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(std::pin::Pin::new(&mut pending).poll(&mut cx).is_ready());
    drop(Rc::new(volume));
}
