//! The refusals of the interface: requests and devices that break the contract are bugs, and panic.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_array::ArrayByte;
use braid_block::{Completion, Errno, Flags, Io, Limits, Op, Payload, Span};
use braid_device::Ram;
use braid_engine::{
    CompletionSource, Dev, Device, Extents, Pending, Ticket, Token, Watch, Watched,
};
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
        fn extents(&self, span: Span) -> Extents {
            Extents::data(span.len + 512)
        }
    }
    drop(Dev::new(Boastful).extents(Span::new(0, 512)));
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

/// The ways in which a device can answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    AtOnce,
    Ticket,
    Watched,
    Task,
    /// Passed on to another device behind the seam, as a request for what the answer holds.
    PassedOn,
}

/// A device that changes answers before it gives them.
struct Wrong {
    way: Way,
    change: fn(&mut Completion),
}

/// Completions that are there when they are asked for, as often as they are asked for.
struct Source(RefCell<Option<Completion>>);

impl CompletionSource for Source {
    fn poll_completion(&self, _: u32, _: &mut Context<'_>) -> Poll<Completion> {
        let none = Completion { result: Ok(()), payload: Payload::None };
        Poll::Ready(self.0.borrow_mut().replace(none).expect("there from the start"))
    }

    fn abandon(&self, _: u32) {}
}

/// Changes the answer when it comes.
struct Changes(fn(&mut Completion));

impl Watch for Changes {
    fn completed(self: Rc<Self>, _: Token, mut completion: Completion) -> Pending {
        self.0(&mut completion);
        Pending::ready(completion)
    }

    fn abandoned(&self, _: Token) {}
}

impl Device for Wrong {
    fn limits(&self) -> Limits {
        Limits::new(SIZE, 512)
    }

    fn start(&self, io: Io) -> Pending {
        let right = io.complete(Ok(()));
        let ticket = |done| Ticket::new(Rc::new(Source(RefCell::new(Some(done)))), 0);
        if self.way == Way::Watched {
            let token = Token { member: 0, offset: ArrayByte::new(0) };
            let watch = Rc::new(Changes(self.change));
            return Pending::Watched(Watched::new(ticket(right), watch, token));
        }
        let mut wrong = right;
        (self.change)(&mut wrong);
        match self.way {
            Way::AtOnce => Pending::ready(wrong),
            Way::Ticket => Pending::Ticket(ticket(wrong)),
            Way::PassedOn => {
                let change: fn(&mut Completion) = |_| ();
                Dev::new(Wrong { way: Way::Ticket, change }).start(Io::read(0, wrong.payload))
            }
            _ => {
                let (mut is_first, mut wrong) = (true, Some(wrong));
                Pending::task(std::future::poll_fn(move |_| {
                    // The first step is made at the start.
                    if std::mem::take(&mut is_first) {
                        return Poll::Pending;
                    }
                    let none = Completion { result: Ok(()), payload: Payload::None };
                    Poll::Ready(wrong.replace(none).expect("there from the start"))
                }))
            }
        }
    }
}

fn poll(pending: &mut Pending) -> Poll<Completion> {
    Pin::new(pending).poll(&mut Context::from_waker(Waker::noop()))
}

/// The panic message for a device that answers `op` in this `way`, changed, when it is polled `times`.
fn said_of(way: Way, op: Op, times: usize, change: fn(&mut Completion)) -> Option<String> {
    let pool = Pool::new(1 << 20).unwrap();
    let buf = || pool.get(1024).unwrap();
    let io = match op {
        Op::Read => Io::read(512, buf()),
        Op::Write => Io::write(512, buf(), Flags::NONE),
        Op::Flush => Io::flush(),
        Op::Discard => Io::discard(Span::new(512, 1024), Flags::NONE),
        Op::WriteZeroes => Io::write_zeroes(Span::new(512, 1024), Flags::NONE),
    };
    let dev = Dev::new(Wrong { way, change });
    let run = || {
        let mut pending = dev.start(io);
        (0..times).for_each(|_| assert!(poll(&mut pending).is_ready()));
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    Some(text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a panic with words"))
}

const WAYS: [Way; 4] = [Way::AtOnce, Way::Ticket, Way::Watched, Way::Task];
const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes];

fn assert_said(way: Way, op: Op, times: usize, change: fn(&mut Completion), words: &str) {
    let said = said_of(way, op, times, change);
    assert!(said.as_ref().is_some_and(|said| said.contains(words)), "{way:?} {op:?}: {said:?}");
}

fn add_bytes(completion: &mut Completion) {
    completion.payload.append(Pool::new(1 << 20).unwrap().get(512).unwrap().into());
}

#[test]
fn answers_that_keep_the_contract_pass() {
    for (way, op) in WAYS.into_iter().flat_map(|way| OPS.map(|op| (way, op))) {
        assert_eq!(said_of(way, op, 1, |_| ()), None, "{way:?} {op:?}");
        let failed = |done: &mut Completion| done.result = Err(Errno::IO);
        assert_eq!(said_of(way, op, 1, failed), None, "{way:?} {op:?}");
    }
    assert_eq!(said_of(Way::PassedOn, Op::Read, 1, |_| ()), None);
}

#[test]
fn a_payload_of_another_length_is_refused_whenever_it_comes() {
    for way in WAYS {
        for op in OPS {
            assert_said(way, op, 1, add_bytes, &format!("{op:?} was answered with a payload of"));
        }
        for op in [Op::Read, Op::Write] {
            let none = |done: &mut Completion| done.payload = Payload::None;
            assert_said(way, op, 1, none, "a payload of 0 bytes instead of 1024");
            let shorter = |done: &mut Completion| {
                done.result = Err(Errno::IO);
                done.payload = done.payload.take_front(512);
            };
            assert_said(way, op, 1, shorter, "a payload of 512 bytes instead of 1024");
        }
    }
}

#[test]
fn an_error_that_the_device_has_to_retry_is_refused_whenever_it_comes() {
    for (way, op) in WAYS.into_iter().flat_map(|way| OPS.map(|op| (way, op))) {
        for change in [(|done| done.result = Err(Errno::INTR)) as fn(&mut Completion), |done| {
            done.result = Err(Errno::AGAIN)
        }] {
            match op.has_data() {
                true => assert_said(way, op, 1, change, "which the device has to retry"),
                false => assert_eq!(said_of(way, op, 1, change), None, "{way:?} {op:?}"),
            }
        }
    }
}

#[test]
fn a_second_answer_is_refused() {
    for way in WAYS {
        let words = match way {
            Way::AtOnce | Way::Watched => "a completion is taken once",
            _ => "answered, and polled again",
        };
        assert_said(way, Op::Flush, 2, |_| (), words);
    }
}

#[test]
fn one_answer_does_not_serve_two_different_requests() {
    let shorter = |done: &mut Completion| done.payload = done.payload.take_front(512);
    assert_said(Way::PassedOn, Op::Read, 1, shorter, "was passed on as");
    assert_said(Way::PassedOn, Op::Write, 1, |_| (), "was passed on as");
}
