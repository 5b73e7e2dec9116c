//! A client at work: its requests over NBD, every answer held to the oracle.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use braid_block::{Op, Span};
use braid_nbd::protocol::Command;

use crate::birth::fill;
use crate::nbd::{Answer, Nbd};
use crate::pipe::Pipe;
use crate::scenario::{Connection, Request};
use crate::timeline::Timeline;
use crate::{Handle, Oracle, ReadToken, Rng, WriteToken};

/// The longest time of a request, in nanoseconds of virtual time: longer than the worst faults that are placed.
const BOUND_NS: u64 = 400_000_000_000;

/// The shared state of clients.
#[derive(Clone)]
pub(crate) struct Clients {
    /// The simulation.
    pub handle: Handle,
    /// The possible answers of the volume.
    pub oracle: Rc<RefCell<Oracle>>,
    /// Tells which requests may be answered with errors.
    pub excuse: Rc<dyn Fn(Op, Span) -> bool>,
    /// The timeline of events.
    pub timeline: Timeline,
}

/// A request in flight.
struct Asked {
    op: Op,
    span: Span,
    fua: bool,
    token: Token,
    since_ns: u64,
}

enum Token {
    Read(ReadToken),
    Write(WriteToken),
    Flush(u64),
}

impl Clients {
    /// Has `plan` carried out on `pipe`, by whom people call `name`.
    ///
    /// # Errors
    /// An answer that must not be.
    pub(crate) async fn work(
        &self,
        name: String,
        pipe: Pipe,
        plan: Connection,
    ) -> Result<(), String> {
        let mut nbd = match Nbd::connect(pipe, plan.style).await {
            Ok(nbd) => nbd,
            Err(why) => return Err(format!("{name}: {why}")),
        };
        let mut asked: BTreeMap<u64, Asked> = BTreeMap::new();
        for (cookie, request) in (1..).zip(&plan.requests) {
            if request.pause_ns > 0 {
                self.handle.sleep(request.pause_ns).await;
            }
            while asked.len() >= plan.depth {
                let answer = nbd.answer().await.map_err(|why| format!("{name}: {why}"))?;
                self.take(&name, answer, &mut asked)?;
            }
            let (op, span, fua) = place(request, nbd.size);
            let (token, data) = self.begin(request, op, span);
            let command = command(op, span, fua, request.data);
            self.timeline.note(&self.handle, &name, || {
                let fua = if fua { " fua" } else { "" };
                format!("#{cookie} {op:?} {span}{fua}")
            });
            let since_ns = self.handle.now();
            asked.insert(cookie, Asked { op, span, fua, token, since_ns });
            nbd.ask(cookie, &command, &data).await.map_err(|why| format!("{name}: {why}"))?;
        }
        if plan.leaves {
            self.timeline.note(&self.handle, &name, || "goes in the middle of a message".into());
            let bytes = plan.requests.len() % 28;
            nbd.leave_in_the_middle(&Command::Write { offset: 0, length: 512, fua: false }, bytes)
                .await;
            return Ok(());
        }
        while !asked.is_empty() {
            let answer = nbd.answer().await.map_err(|why| format!("{name}: {why}"))?;
            self.take(&name, answer, &mut asked)?;
        }
        nbd.leave().await;
        Ok(())
    }

    /// Tells the oracle that a request begins; what a write carries.
    fn begin(&self, request: &Request, op: Op, span: Span) -> (Token, Vec<u8>) {
        let mut oracle = self.oracle.borrow_mut();
        let mut data = Vec::new();
        let token = match op {
            Op::Read => Token::Read(oracle.begin_read(span)),
            Op::Flush => Token::Flush(oracle.begin_flush()),
            Op::Discard => Token::Write(oracle.begin_write(span, None)),
            Op::WriteZeroes => {
                Token::Write(oracle.begin_write(span, Some(&vec![0; span.len as usize])))
            }
            Op::Write => {
                data = vec![0; span.len as usize];
                fill(&mut data, &mut Rng::new(request.data));
                Token::Write(oracle.begin_write(span, Some(&data)))
            }
        };
        (token, data)
    }

    /// Holds an answer to the oracle.
    fn take(
        &self,
        name: &str,
        answer: Answer,
        asked: &mut BTreeMap<u64, Asked>,
    ) -> Result<(), String> {
        let Answer { cookie, result, data } = answer;
        let Asked { op, span, fua, token, since_ns } =
            asked.remove(&cookie).ok_or_else(|| format!("{name}: an answer to nothing"))?;
        self.timeline.note(&self.handle, name, || match result {
            Ok(()) => format!("#{cookie} done"),
            Err(errno) => format!("#{cookie} failed: {errno}"),
        });
        let what = || format!("{name} #{cookie} {op:?} {span}");
        let took_ns = self.handle.now() - since_ns;
        if took_ns > BOUND_NS {
            return Err(format!("{} took {} s", what(), took_ns / 1_000_000_000));
        }
        let mut oracle = self.oracle.borrow_mut();
        match token {
            Token::Read(read) => {
                let shown = data.as_deref().filter(|_| result.is_ok());
                oracle.end_read(read, shown).map_err(|why| format!("{}: {why}", what()))?;
            }
            Token::Write(write) => oracle.end_write(write, result.is_ok(), fua),
            Token::Flush(began) if result.is_ok() => oracle.end_flush(began),
            Token::Flush(_) => {}
        }
        drop(oracle);
        match result {
            Err(errno) if !(self.excuse)(op, span) => {
                Err(format!("{} failed: error {errno}", what()))
            }
            _ => Ok(()),
        }
    }
}

/// The range of a request on a volume of `size` bytes.
fn place(request: &Request, size: u64) -> (Op, Span, bool) {
    if request.op == Op::Flush {
        return (Op::Flush, Span::default(), false);
    }
    let blocks = size / 512;
    let count = request.blocks.min(blocks);
    let start = request.block % (blocks - count + 1);
    (request.op, Span::new(start * 512, count * 512), request.fua)
}

fn command(op: Op, span: Span, fua: bool, data: u64) -> Command {
    let Span { offset, len: length } = span;
    let short = length as u32;
    match op {
        Op::Read => Command::Read { offset, length: short, dont_fragment: false },
        Op::Write => Command::Write { offset, length: short, fua },
        Op::Flush => Command::Flush,
        Op::Discard => Command::Trim { offset, length, fua },
        Op::WriteZeroes => {
            let no_hole = data.is_multiple_of(2);
            Command::WriteZeroes { offset, length, fua, no_hole, fast_zero: false }
        }
    }
}
