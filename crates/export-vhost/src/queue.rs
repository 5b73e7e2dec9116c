//! One queue on a shard: requests out of the guest's memory, answers into it.
//!
//! ```text
//!   kick ──▶ take a head ──▶ note it ──▶ copy and check ──▶ Io ──▶ Dev
//!                                                                  │
//!   interrupt ◀── tell ◀── note ◀── used ring ◀── copy ◀── Completion
//! ```
//!
//! Invariants
//! * Data of a write is copied out of the guest's memory once, before the request starts: copies and parity are made of
//!   that copy, whatever the guest writes meanwhile.
//! * A head is in flight once.
//! * A queue that stops takes no more requests, and ends when those in flight are answered.
//! * A fault ends the queue and the connection. Requests in flight complete, and are not answered: the guest is told of
//!   nothing by a ring that cannot be trusted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use braid_block::{Completion, Errno, Flags, Io, Payload};
use braid_engine::{InFlight, Offered, WritePermit};
use braid_mem::Pool;
use braid_status::{ExportCounts, Shared};
use braid_uring::{Fd, Handle, Interest};

use crate::canary::Canary;
use crate::data::{copy_back, copy_out, payload};
use crate::end::QueueFault;
use crate::inflight::Inflight;
use crate::memory::Memory;
use crate::request::{self, Command, HEADER, Lengths, SEGMENT, SERIAL, Status};
use crate::ring::{Chain, Ring, RingFault, total};
use crate::stopper::Stopper;

/// Requests of one queue in flight at once.
const MOST_IN_FLIGHT: u16 = 256;
/// Requests that are taken before other tasks of the shard have their turn.
const MOST_A_TURN: usize = 256;

/// The descriptor by which a guest is interrupted, which a front-end may exchange at any time.
pub(crate) type Call = Arc<Mutex<Option<File>>>;

/// The parts of a queue.
pub(crate) struct Setup {
    pub(crate) ring: Ring,
    pub(crate) memory: Arc<Memory>,
    pub(crate) inflight: Option<Inflight>,
    /// Heads that a server has left in flight.
    pub(crate) left: VecDeque<u16>,
    pub(crate) kick: OwnedFd,
    pub(crate) call: Call,
    pub(crate) stopper: Arc<Stopper>,
    /// Each write is durable before it is answered.
    pub(crate) is_write_through: bool,
    /// The serial number of the disk.
    pub(crate) serial: [u8; SERIAL],
}

/// A request that was taken.
struct Taken {
    head: u16,
    /// Its buffers; of a write only the one of the status.
    chain: Chain,
    command: Command,
    _permit: Option<WritePermit>,
}

type Kick = Pin<Box<dyn Future<Output = std::io::Result<()>>>>;

/// A queue that is served.
pub(crate) struct Queue {
    setup: Setup,
    handle: Handle,
    offered: Offered,
    pool: Pool,
    counters: Arc<Shared<ExportCounts>>,
    counts: ExportCounts,
    kick: Fd,
    kicks: File,
    kicked: Option<Kick>,
    in_flight: InFlight<Taken>,
    heads: Vec<bool>,
    /// A request for whose data there is no memory yet.
    waiting: Option<Taken>,
    /// Chains to be used again.
    spare: Vec<Chain>,
    fault: Option<QueueFault>,
}

impl Queue {
    /// # Errors
    /// No descriptor is left for a second one of the kicks.
    pub(crate) fn new(
        handle: &Handle,
        offered: Offered,
        pool: Pool,
        counters: Arc<Shared<ExportCounts>>,
        setup: Setup,
    ) -> Result<Queue, QueueFault> {
        let kick = setup.kick.try_clone()?;
        let kicks = File::from(setup.kick.try_clone()?);
        let size = setup.ring.size();
        Ok(Queue {
            handle: handle.clone(),
            offered,
            pool,
            counters,
            counts: ExportCounts::default(),
            kick: Fd::new(kick),
            kicks,
            kicked: None,
            in_flight: InFlight::new(size.min(MOST_IN_FLIGHT).into()),
            heads: vec![false; size.into()],
            waiting: None,
            spare: Vec::new(),
            fault: None,
            setup,
        })
    }

    /// Serves the queue to its end. Returns the number of the next request.
    ///
    /// # Errors
    /// The fault of the guest, or of the front-end.
    pub(crate) async fn run(mut self, failed: impl FnOnce()) -> Result<u16, QueueFault> {
        let mut failed = Some(failed);
        std::future::poll_fn(|cx| {
            let poll = self.turn(cx);
            self.counters.add(&mut self.counts);
            if self.fault.is_some() {
                failed.take().into_iter().for_each(|failed| failed());
            }
            poll
        })
        .await;
        self.let_go_of_kick().await;
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(self.setup.ring.next_available()),
        }
    }

    /// The kernel holds the descriptor until it is readable.
    async fn let_go_of_kick(&mut self) {
        if let Some(kicked) = self.kicked.take() {
            // Full, it is readable.
            let _ = self.kicks.write(&1u64.to_ne_bytes());
            let _ = kicked.await;
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let result = self.advance(cx);
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
        if self.fault.is_some() {
            // What is in flight has memory that the driver may be using.
            while self.in_flight.poll_next(cx).is_ready() {}
            self.waiting = None;
            return if self.in_flight.is_empty() { Poll::Ready(()) } else { Poll::Pending };
        }
        let has_none = self.in_flight.is_empty() && self.waiting.is_none();
        let is_over = has_none && self.setup.left.is_empty() && self.setup.stopper.is_stopped(cx);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Moves until nothing can.
    fn advance(&mut self, cx: &mut Context<'_>) -> Result<(), QueueFault> {
        if self.fault.is_some() {
            return Ok(());
        }
        self.setup.ring.be_busy()?;
        let mut taken = 0;
        loop {
            let is_stopped = self.setup.stopper.is_stopped(cx);
            let moved = self.take_requests(is_stopped, cx)?;
            taken += moved;
            let completed = self.take_completions(cx)?;
            if moved > 0 && taken >= MOST_A_TURN {
                self.tell()?;
                cx.waker().wake_by_ref();
                return Ok(());
            }
            if moved > 0 || completed {
                continue;
            }
            self.tell()?;
            if is_stopped || self.is_full() {
                return Ok(());
            }
            if self.setup.ring.listen()? {
                continue;
            }
            if self.poll_kick(cx)?.is_pending() {
                return Ok(());
            }
        }
    }

    /// Returns true if no request is taken until another has completed, or there is memory.
    fn is_full(&self) -> bool {
        self.waiting.is_some() || self.in_flight.is_full()
    }

    fn poll_kick(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, QueueFault> {
        let kicked = self.kicked.get_or_insert_with(|| {
            let (handle, kick) = (self.handle.clone(), self.kick.clone());
            Box::pin(async move { handle.ready(&kick, Interest::Readable).await })
        });
        let Poll::Ready(result) = kicked.as_mut().poll(cx) else { return Ok(Poll::Pending) };
        self.kicked = None;
        result?;
        self.counts.receives += 1;
        match self.kicks.read(&mut [0; 8]) {
            Ok(_) => Ok(Poll::Ready(())),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(Poll::Ready(())),
            Err(error) => Err(error.into()),
        }
    }

    /// Starts requests. Returns their number.
    fn take_requests(
        &mut self,
        is_stopped: bool,
        cx: &mut Context<'_>,
    ) -> Result<usize, QueueFault> {
        let mut count = 0;
        if let Some(taken) = self.waiting.take() {
            if self.begin(taken, cx)?.is_pending() {
                return Ok(0);
            }
            count += 1;
        }
        while count < MOST_A_TURN && !self.in_flight.is_full() {
            let head = match self.setup.left.front().copied() {
                Some(head) => head,
                None if is_stopped || self.setup.ring.waiting()? == 0 => break,
                None => self.setup.ring.take()?,
            };
            if std::mem::replace(&mut self.heads[usize::from(head)], true) {
                return Err(RingFault::Twice(head).into());
            }
            if self.setup.left.pop_front().is_none()
                && let Some(inflight) = &mut self.setup.inflight
            {
                inflight.begin(head).map_err(RingFault::from)?;
            }
            self.counts.requests += 1;
            count += 1;
            if self.take(head, cx)?.is_pending() {
                break;
            }
        }
        Ok(count)
    }

    /// Reads the request at `head`, and starts it.
    fn take(&mut self, head: u16, cx: &mut Context<'_>) -> Result<Poll<()>, QueueFault> {
        let mut chain = self.spare.pop().unwrap_or_default();
        let memory = Arc::clone(&self.setup.memory);
        self.setup.ring.collect(&memory, head, &mut chain)?;
        let (given, wanted) = (total(&chain.readable), total(&chain.writable));
        let (Some(given), Some(wanted)) = (given.checked_sub(HEADER as u64), wanted.checked_sub(1))
        else {
            return Err(RingFault::Short.into());
        };
        let mut header = [0; HEADER];
        copy_out(&memory, &chain.readable, 0, &mut header)?;
        // Checked before it starts: the answer of a request that was carried out has to find its place.
        for piece in &chain.writable {
            memory.check(piece.address, piece.len).map_err(RingFault::from)?;
        }
        let dev = self.offered.dev();
        let lengths = Lengths { given, wanted };
        let segment = || {
            let mut segment = [0; SEGMENT];
            copy_out(&memory, &chain.readable, HEADER as u64, &mut segment).ok().map(|()| segment)
        };
        match request::check(header, lengths, dev.limits(), segment) {
            Ok(command) => self.begin(Taken { head, chain, command, _permit: None }, cx),
            Err(status) => {
                self.answer(head, chain, 0, status)?;
                Ok(Poll::Ready(()))
            }
        }
    }

    /// Starts a request; pending, and then it waits here, if there is no memory for its data.
    fn begin(&mut self, mut taken: Taken, cx: &mut Context<'_>) -> Result<Poll<()>, QueueFault> {
        let is_durable = self.setup.is_write_through && !Canary::WriteThroughLost.is_planted();
        let durable = if is_durable { Flags::FUA } else { Flags::NONE };
        let is_modifying = match taken.command {
            Command::Write(_) | Command::Discard(_) | Command::Zeroes { .. } => true,
            Command::Read(_) | Command::Flush | Command::Id => false,
        };
        if is_modifying && self.offered.is_locked() {
            self.answer(taken.head, taken.chain, 0, Status::IoError)?;
            return Ok(Poll::Ready(()));
        }
        let io = match taken.command {
            Command::Read(span) | Command::Write(span) => {
                let Poll::Ready(payload) = payload(&self.pool, span.len, cx) else {
                    self.waiting = Some(taken);
                    return Ok(Poll::Pending);
                };
                match taken.command {
                    Command::Read(_) => Io::read(span.offset, payload),
                    _ => {
                        let payload = self.copy_in(&taken.chain, payload)?;
                        Io::write(span.offset, payload, durable)
                    }
                }
            }
            Command::Flush => Io::flush(),
            Command::Discard(span) => Io::discard(span, durable),
            Command::Zeroes { span, may_unmap } => {
                let may_unmap = may_unmap || Canary::SpaceGivenUp.is_planted();
                let keep = if may_unmap { Flags::NONE } else { Flags::NO_UNMAP };
                Io::write_zeroes(span, keep.union(durable))
            }
            Command::Id => {
                self.answer_id(taken)?;
                return Ok(Poll::Ready(()));
            }
        };
        taken._permit = is_modifying.then(|| self.offered.permit());
        let dev = self.offered.dev();
        // A request that waited for memory may be out of range by now.
        if !io.span.is_within(dev.limits().size) || !io.span.is_aligned(dev.limits().logical_block)
        {
            self.answer(taken.head, taken.chain, 0, Status::IoError)?;
            return Ok(Poll::Ready(()));
        }
        let mut pending = dev.start(io);
        if let braid_engine::Pending::Ready(completion) = &mut pending
            && let Some(completion) = completion.take()
        {
            self.complete(taken, completion)?;
        } else {
            self.in_flight.push(taken, pending);
        }
        Ok(Poll::Ready(()))
    }

    /// Fills `payload` with the data of a write.
    fn copy_in(&mut self, chain: &Chain, mut payload: Payload) -> Result<Payload, QueueFault> {
        let mut at = HEADER as u64;
        for buf in payload.bufs_mut() {
            copy_out(&self.setup.memory, &chain.readable, at, buf)?;
            at += buf.len() as u64;
        }
        Ok(payload)
    }

    fn take_completions(&mut self, cx: &mut Context<'_>) -> Result<bool, QueueFault> {
        let mut any = false;
        while let Poll::Ready((taken, completion)) = self.in_flight.poll_next(cx) {
            self.complete(taken, completion)?;
            any = true;
        }
        Ok(any)
    }

    fn complete(&mut self, taken: Taken, completion: Completion) -> Result<(), QueueFault> {
        let mut written = 0;
        let status = match (completion.result, taken.command) {
            (Ok(()), Command::Read(span)) => {
                let mut at = 0;
                for buf in completion.payload.bufs() {
                    copy_back(&self.setup.memory, &taken.chain.writable, at, buf)?;
                    at += buf.len() as u64;
                }
                self.counts.read_bytes += span.len;
                // At most `MOST_DATA`.
                written = u32::try_from(span.len).unwrap_or(u32::MAX);
                Status::Ok
            }
            (Ok(()), Command::Write(span)) => {
                self.counts.written_bytes += span.len;
                Status::Ok
            }
            (Ok(()), _) => Status::Ok,
            (Err(Errno::OPNOTSUPP), Command::Discard(_) | Command::Zeroes { .. }) => {
                Status::Unsupported
            }
            (Err(_), _) => Status::IoError,
        };
        self.answer(taken.head, taken.chain, written, status)
    }

    fn answer_id(&mut self, taken: Taken) -> Result<(), QueueFault> {
        let room = usize::try_from(total(&taken.chain.writable) - 1).unwrap_or(usize::MAX);
        let serial = &self.setup.serial[..room.min(SERIAL)];
        copy_back(&self.setup.memory, &taken.chain.writable, 0, serial)?;
        // At most `SERIAL`.
        let written = u32::try_from(serial.len()).unwrap_or(u32::MAX);
        self.answer(taken.head, taken.chain, written, Status::Ok)
    }

    /// Answers the request at `head`, of which `written` bytes of data were written.
    fn answer(
        &mut self,
        head: u16,
        chain: Chain,
        written: u32,
        status: Status,
    ) -> Result<(), QueueFault> {
        let last = total(&chain.writable) - 1;
        copy_back(&self.setup.memory, &chain.writable, last, &[status.byte()])?;
        if let Some(inflight) = &mut self.setup.inflight {
            inflight.before_answer(head).map_err(RingFault::from)?;
        }
        self.setup.ring.answer(head, written.saturating_add(1))?;
        if let Some(inflight) = &mut self.setup.inflight {
            let used = self.setup.ring.next_used();
            inflight.after_answer(head, used).map_err(RingFault::from)?;
        }
        self.heads[usize::from(head)] = false;
        self.spare.push(chain);
        self.counts.replies += 1;
        self.counts.errors += u64::from(status != Status::Ok);
        Ok(())
    }

    /// Interrupts the guest, if it wants to hear of the answers.
    fn tell(&mut self) -> Result<(), QueueFault> {
        if self.setup.ring.must_tell()? {
            let call = self.setup.call.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(mut call) = call.as_ref() {
                // A full counter is an interrupt that has not been taken yet.
                let _ = call.write(&1u64.to_ne_bytes());
                self.counts.sends += 1;
            }
        }
        Ok(())
    }
}
