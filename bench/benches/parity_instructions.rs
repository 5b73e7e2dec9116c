//! Instructions of one request of arrays with parity over RAM members, by valgrind.
//!
//! `cargo bench -p braid-bench --bench parity_instructions` counts, with gungraun:
//!
//! * `raid5_write`, `raid5_write_ppl`: one write of 4 KiB to four healthy members, for which old
//!   data and parity are read, without a log and with md's partial parity log; `raid6_write`,
//!   `raid6_write_log`: the same to six members, without a log and with braid's stripe log;
//! * `raid5_read`, `raid5_read_degraded`: one read of 4 KiB, from its member, or recovered from the
//!   three others;
//! * `raid5_stripe`: one write of a whole stripe, of 192 KiB;
//! * `bare_update`, `bare_stripe`: what the writes must do at least: two copies out, two XORs and
//!   two copies in; one XOR of three chunks and four copies in.
//!
//! The superblocks say "active", and every array has answered such a request before.
//!
//! Valgrind knows no AVX-512, so XOR and copies take the instructions of AVX2.

#![allow(missing_docs)] // The macros make items that have none.

use std::hint::black_box;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_bench::mirrored::NoTimers;
use braid_bench::parity::{DATA_OFFSET, Kind, ParityPlan};
use braid_block::{Completion, Flags, Io, Payload};
use braid_device::Ram;
use braid_engine::redundant::Redundant;
use braid_engine::{Dev, Pending};
use braid_mem::{Advice, Buf, Pool, Region};
use gungraun::prelude::*;

const BLOCK: usize = 4096;
const CHUNK: u64 = 64 << 10;
/// Small: valgrind counts the same for memory that is far away.
const MEMBER: u64 = 1 << 20;
/// In the second chunk of the third stripe of four members.
const PLACE: u64 = 7 * CHUNK + 3 * BLOCK as u64;

#[inline(always)]
fn at_once(dev: &Dev, io: Io) -> Completion {
    match dev.start(io) {
        Pending::Ready(Some(completion)) if completion.result.is_ok() => completion,
        _ => unreachable!("a RAM disk answers at once"),
    }
}

/// An array with parity that has already answered requests of `len` bytes, and a buffer. If it is `degraded`,
/// it lacks the member of [`PLACE`], and no request has written to it since.
fn parity_array(kind: Kind, len: usize, degraded: bool) -> (Dev, Payload) {
    let pool = Pool::new(1 << 20).expect("memory");
    let members = 2 + 2 * kind.parities();
    let plan = ParityPlan::new(kind, MEMBER, members, CHUNK).expect("an array");
    let (missing, _) = plan.place_of(PLACE);
    let member = |role| {
        let ram = Ram::new(DATA_OFFSET + MEMBER).expect("memory");
        (!degraded || role != missing).then(|| Dev::new(ram.device()))
    };
    let array = Redundant::new(plan.setup((0..members).map(member).collect(), Rc::new(NoTimers)));
    let array = array.expect("memory");
    let restarted = pin!(array.restart()).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(restarted, Poll::Ready(Ok(())));
    let dev = Dev::new(array);
    let mut payload = Payload::from(pool.get(len).expect("a buffer"));
    for _ in 0..3 {
        if !degraded {
            payload = at_once(&dev, Io::write(0, payload, Flags::NONE)).payload;
        }
        payload = at_once(&dev, Io::read(0, payload)).payload;
    }
    (dev, payload)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid5, BLOCK, false))]
fn raid5_read((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::read(black_box(PLACE), payload));
    (dev, completion)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid5, BLOCK, true))]
fn raid5_read_degraded((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::read(black_box(PLACE), payload));
    (dev, completion)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid5, BLOCK, false))]
fn raid5_write((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::write(black_box(PLACE), payload, Flags::NONE));
    (dev, completion)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid5Ppl, BLOCK, false))]
fn raid5_write_ppl((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::write(black_box(PLACE), payload, Flags::NONE));
    (dev, completion)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid6, BLOCK, false))]
fn raid6_write((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::write(black_box(PLACE), payload, Flags::NONE));
    (dev, completion)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid6Log, BLOCK, false))]
fn raid6_write_log((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::write(black_box(PLACE), payload, Flags::NONE));
    (dev, completion)
}

#[library_benchmark]
#[bench::one(parity_array(Kind::Raid5, 3 * CHUNK as usize, false))]
fn raid5_stripe((dev, payload): (Dev, Payload)) -> (Dev, Completion) {
    let completion = at_once(&dev, Io::write(black_box(6 * CHUNK), payload, Flags::NONE));
    (dev, completion)
}

/// Four members, a stripe, and room for parity.
fn stripe() -> (Vec<Region>, Buf, Buf) {
    let member = || Region::new(MEMBER as usize, Advice::SparseHuge).expect("memory");
    let members: Vec<Region> = (0..4).map(|_| member()).collect();
    let pool = Pool::new(1 << 20).expect("memory");
    let buf = |len| pool.get(len).expect("a buffer");
    (members, buf(3 * CHUNK as usize), buf(CHUNK as usize))
}

#[library_benchmark]
#[bench::one(stripe())]
fn bare_stripe((members, data, mut parity): (Vec<Region>, Buf, Buf)) -> (Vec<Region>, Buf, Buf) {
    let at = black_box(2 * CHUNK) as usize;
    let chunks: Vec<&[u8]> = data.chunks(CHUNK as usize).collect();
    braid_parity::xor(&mut parity, &chunks);
    chunks.iter().zip(&members).for_each(|(chunk, member)| member.write(at, chunk));
    members[3].write(at, &parity);
    (members, data, parity)
}

#[library_benchmark]
#[bench::one(stripe())]
fn bare_update((members, mut old, new): (Vec<Region>, Buf, Buf)) -> (Vec<Region>, Buf, Buf) {
    let at = black_box(PLACE / 3) as usize & !(BLOCK - 1);
    let (data, parity) = old[..2 * BLOCK].split_at_mut(BLOCK);
    members[0].read(at, data);
    members[3].read(at, parity);
    braid_parity::xor_into(data, &new[..BLOCK]);
    braid_parity::xor_into(parity, data);
    members[0].write(at, &new[..BLOCK]);
    members[3].write(at, parity);
    (members, old, new)
}

library_benchmark_group!(
    name = parity_instructions,
    benchmarks = [
        raid5_read,
        raid5_read_degraded,
        raid5_write,
        raid5_write_ppl,
        raid6_write,
        raid6_write_log,
        raid5_stripe,
        bare_update,
        bare_stripe,
    ]
);
main!(library_benchmark_groups = parity_instructions);
