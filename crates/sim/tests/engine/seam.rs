//! What the seam refuses: requests and devices that break the contract are bugs, and panic.

use braid_block::{Errno, Flags, Io, Limits, Op, Payload, Span};
use braid_device::Ram;
use braid_engine::{Dev, Device, Pending};
use braid_mem::Pool;

const SIZE: u64 = 64 << 10;

fn start(io: impl FnOnce(&Pool) -> Io) -> Pending {
    let pool = Pool::new(1 << 20).unwrap();
    Dev::new(Ram::new(SIZE).unwrap().device()).start(io(&pool))
}

#[test]
#[should_panic(expected = "outside 65536 bytes")]
fn a_request_past_the_end_panics() {
    start(|pool| Io::read(SIZE - 512, pool.get(1024).unwrap()));
}

#[test]
#[should_panic(expected = "outside 65536 bytes")]
fn a_request_whose_end_overflows_panics() {
    start(|_| Io::discard(Span::new(u64::MAX - 511, 1024), Flags::NONE));
}

#[test]
#[should_panic(expected = "unaligned")]
fn an_unaligned_offset_panics() {
    start(|pool| Io::read(100, pool.get(512).unwrap()));
}

#[test]
#[should_panic(expected = "unaligned")]
fn an_unaligned_length_panics() {
    start(|_| Io::write_zeroes(Span::new(0, 700), Flags::NONE));
}

#[test]
#[should_panic(expected = "payload")]
fn a_payload_of_the_wrong_length_panics() {
    start(|pool| Io { span: Span::new(0, 4096), ..Io::read(0, pool.get(512).unwrap()) });
}

#[test]
#[should_panic(expected = "payload")]
fn a_payload_where_none_belongs_panics() {
    start(|pool| Io { op: Op::Discard, ..Io::read(0, pool.get(512).unwrap()) });
}

#[test]
#[should_panic(expected = "extents")]
fn extents_past_what_was_asked_panic() {
    struct Boastful;
    impl Device for Boastful {
        fn limits(&self) -> Limits {
            Limits::new(SIZE, 512)
        }
        fn start(&self, io: Io) -> Pending {
            Pending::ready(io.complete(Ok(())))
        }
        fn extents(&self, span: Span) -> Vec<braid_block::Extent> {
            vec![braid_block::Extent::data(span.len + 512)]
        }
    }
    Dev::new(Boastful).extents(Span::new(0, 512));
}

struct Claims(Limits);

impl Device for Claims {
    fn limits(&self) -> Limits {
        self.0
    }

    fn start(&self, io: Io) -> Pending {
        Pending::ready(io.complete(Err(Errno::IO)))
    }
}

#[test]
#[should_panic(expected = "a logical block of 1000 bytes")]
fn a_block_that_is_no_power_of_two_panics() {
    Dev::new(Claims(Limits::new(10_000, 1000)));
}

#[test]
#[should_panic(expected = "are not whole blocks of 4096")]
fn a_device_that_ends_inside_a_block_panics() {
    Dev::new(Claims(Limits::new(10_240, 4096)));
}

#[test]
fn a_request_of_no_bytes_is_done_without_the_device() {
    let dev = Dev::new(Claims(Limits::new(SIZE, 512)));
    let io =
        Io { op: Op::Read, span: Span::new(SIZE, 0), flags: Flags::NONE, payload: Payload::None };
    let Pending::Ready(Some(done)) = dev.start(io) else { panic!("not at once") };
    assert_eq!(done.result, Ok(()));
    let Pending::Ready(Some(done)) = dev.start(Io::flush()) else { panic!("not at once") };
    assert_eq!(done.result, Err(Errno::IO), "a flush has no bytes and goes through");
}
