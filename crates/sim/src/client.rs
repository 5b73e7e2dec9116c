//! A random load that holds a volume to its oracle.
//!
//! Closed loop: a fixed number of requests is kept under way, each drawn from the client's own
//! generator. Every answer is checked: the result, the payload's length and order (also after an
//! error), and the bytes of a read against the oracle.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;

use braid_block::{Completion, Errno, Flags, Io, Op, Payload, Span};
use braid_engine::{Dev, InFlight};
use braid_mem::Pool;

use crate::{Oracle, ReadToken, Rng, WriteToken};

/// The load of a client.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests in all.
    pub requests: usize,
    /// Requests under way at once.
    pub depth: usize,
    /// Longest request, in logical blocks.
    pub longest: u64,
    /// True if requests in flight may overlap although one of them modifies.
    pub overlapping: bool,
}

/// The observations of a client.
#[derive(Debug, Default)]
pub struct Report {
    /// The requests that failed, in the order of their completions.
    pub errors: Vec<(Op, Span, Errno)>,
    /// The requests that did not.
    pub succeeded: usize,
}

/// A random load on one volume.
pub struct Client {
    /// The volume.
    pub dev: Dev,
    /// The source of payloads.
    pub pool: Pool,
    /// The source of every choice.
    pub rng: Rng,
    /// The possible answers of the volume; shared with code that asks for the possible results of a crash.
    pub oracle: Rc<RefCell<Oracle>>,
}

/// A request in flight.
struct Asked {
    op: Op,
    span: Span,
    flags: Flags,
    token: Token,
    /// The expected payload of a write when it comes back.
    data: Vec<u8>,
}

enum Token {
    Read(ReadToken),
    Write(WriteToken),
    Flush(u64),
}

impl Client {
    /// A client of a volume that holds zeroes.
    pub fn new(dev: Dev, pool: Pool, rng: Rng) -> Client {
        let limits = dev.limits();
        let zeroes = vec![0; limits.size as usize];
        let oracle = Rc::new(RefCell::new(Oracle::new(&zeroes, limits.logical_block)));
        Client { dev, pool, rng, oracle }
    }

    /// Carries out `load`, then reads everything once.
    ///
    /// # Panics
    /// If the volume gives an answer that it must not.
    pub async fn run(&mut self, load: Load) -> Report {
        let mut report = Report::default();
        let mut inflight = InFlight::new(load.depth);
        // By the slot numbers that tags carry: what is under way, for the overlap rule.
        let mut asked: Vec<Option<Asked>> = Vec::new();
        asked.resize_with(load.depth, || None);
        let mut left = load.requests;
        while left > 0 || !inflight.is_empty() {
            while left > 0 && !inflight.is_full() {
                let (op, span, flags) = self.draw(load.longest);
                let conflicts = |other: &Asked| !load.overlapping && conflict(op, span, other);
                if asked.iter().flatten().any(conflicts) {
                    break;
                }
                left -= 1;
                let slot = asked.iter().position(Option::is_none).expect("not full");
                let (io, request) = self.ask(op, span, flags).await;
                inflight.push(slot, self.dev.start(io));
                asked[slot] = Some(request);
            }
            if inflight.is_empty() {
                continue;
            }
            let (slot, completion) = poll_fn(|cx| inflight.poll_next(cx)).await;
            let request = asked[slot].take().expect("under way");
            self.check(request, completion, &mut report);
        }
        self.read_everything(&mut report).await;
        report
    }

    /// Reads the volume from front to back.
    async fn read_everything(&mut self, report: &mut Report) {
        let limits = *self.dev.limits();
        let step = u64::from(limits.logical_block) * 64;
        let mut offset = 0;
        while offset < limits.size {
            let span = Span::new(offset, step.min(limits.size - offset));
            let (io, request) = self.ask(Op::Read, span, Flags::NONE).await;
            let completion = self.dev.start(io).await;
            self.check(request, completion, report);
            offset = span.end();
        }
    }

    fn draw(&mut self, longest: u64) -> (Op, Span, Flags) {
        let limits = *self.dev.limits();
        let block = u64::from(limits.logical_block);
        let len = self.rng.within(1..=longest.min(limits.size / block));
        let start = self.rng.within(0..=limits.size / block - len);
        let span = Span::new(start * block, len * block);
        let op = match self.rng.below(100) {
            0..40 => Op::Read,
            40..80 => Op::Write,
            80..87 => Op::WriteZeroes,
            87..92 => Op::Discard,
            _ => return (Op::Flush, Span::default(), Flags::NONE),
        };
        let mut flags = Flags::NONE;
        if op.is_modifying() && self.rng.percent(15) {
            flags = flags.union(Flags::FUA);
        }
        if op == Op::WriteZeroes && self.rng.percent(50) {
            flags = flags.union(Flags::NO_UNMAP);
        }
        (op, span, flags)
    }

    /// The request, and the oracle's note that it begins.
    async fn ask(&mut self, op: Op, span: Span, flags: Flags) -> (Io, Asked) {
        let payload = if op.has_data() { self.memory(span.len).await } else { Payload::None };
        let mut io = Io { op, span, flags, payload };
        let mut data = Vec::new();
        if op == Op::Write {
            self.fill(&mut io.payload);
            data = bytes_of(&io.payload);
        }
        let mut oracle = self.oracle.borrow_mut();
        let token = match op {
            Op::Read => Token::Read(oracle.begin_read(span)),
            Op::Write => Token::Write(oracle.begin_write(span, Some(&data))),
            Op::WriteZeroes => {
                Token::Write(oracle.begin_write(span, Some(&vec![0; span.len as usize])))
            }
            Op::Discard => Token::Write(oracle.begin_write(span, None)),
            Op::Flush => Token::Flush(oracle.begin_flush()),
        };
        (io, Asked { op, span, flags, token, data })
    }

    /// Memory in one buffer, or in several that lie apart.
    async fn memory(&mut self, len: u64) -> Payload {
        let block = u64::from(self.dev.limits().logical_block);
        let mut payload = Payload::None;
        while payload.len() < len {
            let left = len - payload.len();
            let part = match self.rng.percent(75) {
                true => left,
                false => self.rng.within(1..=left / block) * block,
            };
            payload.append(self.pool.get_wait(part as usize).await.into());
        }
        payload
    }

    /// Fills blocks with bytes that tell them from any other.
    fn fill(&mut self, payload: &mut Payload) {
        for buf in payload.bufs_mut() {
            for word in buf.chunks_exact_mut(8) {
                word.copy_from_slice(&self.rng.next_u64().to_le_bytes());
            }
        }
    }

    fn check(&mut self, asked: Asked, completion: Completion, report: &mut Report) {
        let Asked { op, span, flags, token, data } = asked;
        let Completion { result, payload } = completion;
        let expected = if op.has_data() { span.len } else { 0 };
        assert_eq!(payload.len(), expected, "{op:?} of {span}: the payload's length, {result:?}");
        if op == Op::Write {
            assert!(
                bytes_of(&payload) == data,
                "{op:?} of {span}: the payload's bytes, {result:?}"
            );
        }
        let mut oracle = self.oracle.borrow_mut();
        match token {
            Token::Read(read) => {
                let shown = result.is_ok().then(|| bytes_of(&payload));
                if let Err(mismatch) = oracle.end_read(read, shown.as_deref()) {
                    panic!("{op:?} of {span}: {mismatch}");
                }
            }
            Token::Write(write) => {
                oracle.end_write(write, result.is_ok(), flags.contains(Flags::FUA));
            }
            Token::Flush(began) if result.is_ok() => oracle.end_flush(began),
            Token::Flush(_) => {}
        }
        match result {
            Ok(()) => report.succeeded += 1,
            Err(errno) => report.errors.push((op, span, errno)),
        }
    }
}

/// The bytes of `payload`, copied a buffer at a time: the simulation moves many of them in
/// builds that are not optimised.
pub(crate) fn bytes_of(payload: &Payload) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() as usize);
    payload.bufs().iter().for_each(|buf| bytes.extend_from_slice(buf));
    bytes
}

fn conflict(op: Op, span: Span, other: &Asked) -> bool {
    let modifies = op.is_modifying() || other.op.is_modifying();
    modifies && span.overlaps(other.span)
}
