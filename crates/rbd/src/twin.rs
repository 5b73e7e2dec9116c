//! An image in memory that answers as librbd does: later, in any order, by a counter.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use braid_block::{Errno, Io, Op, Payload};
use rustix::event::{EventfdFlags, eventfd};

use crate::device::{Done, Queue};

/// An image in memory; clones are the same image.
#[derive(Clone)]
pub struct Twin {
    state: Rc<RefCell<State>>,
}

struct State {
    bytes: Vec<u8>,
    held: Vec<(u32, Io)>,
    is_holding: bool,
    failure: Option<Errno>,
    done: Vec<Done>,
    events: OwnedFd,
}

impl Twin {
    /// Makes an image of `size` zeroes.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn new(size: usize) -> io::Result<Twin> {
        let events = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (held, done) = (Vec::new(), Vec::new());
        let state =
            State { bytes: vec![0; size], held, is_holding: false, failure: None, done, events };
        Ok(Twin { state: Rc::new(RefCell::new(state)) })
    }

    /// Holds requests from now on, as a cluster does that is cut off.
    pub fn hold(&self) {
        self.state.borrow_mut().is_holding = true;
    }

    /// Carries out what is held, the last request first, and holds nothing any more.
    pub fn release(&self) {
        let mut state = self.state.borrow_mut();
        state.is_holding = false;
        let held = std::mem::take(&mut state.held);
        held.into_iter().rev().for_each(|(id, io)| state.carry_out(id, io));
    }

    /// Fails every request from now on; `None` ends that.
    pub fn fail(&self, failure: Option<Errno>) {
        self.state.borrow_mut().failure = failure;
    }

    /// Returns the queue of the image.
    #[must_use]
    pub fn queue(&self) -> TwinQueue {
        TwinQueue(self.clone())
    }
}

impl State {
    fn carry_out(&mut self, id: u32, io: Io) {
        let Io { op, span, mut payload, .. } = io;
        let (mut at, end) = (span.offset as usize, span.end() as usize);
        let result = match (self.failure, op) {
            (Some(errno), _) => Err(errno),
            (None, Op::Read) => {
                for buf in payload.bufs_mut() {
                    let len = buf.len();
                    buf.copy_from_slice(&self.bytes[at..at + len]);
                    at += len;
                }
                Ok(())
            }
            (None, Op::Write) => {
                for buf in payload.bufs() {
                    self.bytes[at..at + buf.len()].copy_from_slice(buf);
                    at += buf.len();
                }
                Ok(())
            }
            (None, Op::Discard | Op::WriteZeroes) => {
                self.bytes[at..end].fill(0);
                Ok(())
            }
            (None, Op::Flush) => Ok(()),
        };
        let payload = if op.has_data() { payload } else { Payload::None };
        self.done.push(Done { id, result, payload });
        let _ = rustix::io::write(&self.events, &1u64.to_ne_bytes());
    }
}

/// The queue of an image in memory.
pub struct TwinQueue(Twin);

impl Queue for TwinQueue {
    fn submit(&self, id: u32, io: Io) {
        let mut state = self.0.state.borrow_mut();
        match state.is_holding {
            true => state.held.push((id, io)),
            false => state.carry_out(id, io),
        }
    }

    fn take(&self, done: &mut Vec<Done>) {
        done.append(&mut self.0.state.borrow_mut().done);
    }

    fn events(&self) -> io::Result<OwnedFd> {
        self.0.state.borrow().events.try_clone()
    }
}
