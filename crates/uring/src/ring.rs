//! The io_uring driver.
//!
//! Submissions collect in the queue while tasks run; one `io_uring_enter` a turn hands them over
//! and, if there is nothing else to do, waits, at first by a short poll where that pays. The ring is made for one thread (`SINGLE_ISSUER`)
//! whose completions are worked on inside that call (`DEFER_TASKRUN`), so that no interrupt of
//! the tasks, and no lock, is needed.
//!
//! What may have to wait (`fdatasync`, a write that a file system must first find room for) the
//! kernel gives to threads that it makes when it needs them, which takes memory. Where none may be
//! taken ([`Workers::Own`]) such operations go to threads of our own instead: the kernel is told not
//! to wait, and what it then refuses is done again there. [`Ring::reserve`] has it make its
//! descriptions of requests beforehand; it keeps them.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Entry128, Flags};
use io_uring::types::{Fd as RingFd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode};
use slab::Slab;

use crate::entries::Entries;
use crate::eventfd;
use crate::operation::{Operation, Rest, raw};
use crate::short_poll::{ShortPoll, WINDOW};
use crate::table::{After, Table};
use crate::turn::TimeOfTurn;

/// The threads for waits of operations that io_uring carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Workers {
    /// Threads that the kernel makes when it needs them.
    #[default]
    Kernel,
    /// The executor's own, which are there from the start: for a process that must not wait for
    /// memory while it serves.
    Own,
}

/// The user data of the poll on the inbox's descriptor.
const INBOX: u64 = u64::MAX;
/// The user data of cancellations, whose own results say nothing.
const CANCEL: u64 = u64::MAX - 1;

/// The user data of requests that are made so that the kernel has made them.
const RESERVE: u64 = u64::MAX - 2;

/// The bit of user data that tells an entry of a queue, whose number is in the bits from [`QUEUE_SHIFT`] on.
const QUEUE: u64 = 1 << 48;
const QUEUE_SHIFT: u32 = 16;

const SUBMISSIONS: u32 = 256;
/// Twice what all connections may have under way, so that completions never overflow.
const COMPLETIONS: u32 = 8192;

/// With submissions of 128 bytes, as commands to queues need them.
type Uring = IoUring<Entry128>;

pub(crate) struct Ring {
    ring: RefCell<Uring>,
    results: RefCell<Vec<(u64, i32)>>,
    inbox: OwnedFd,
    armed: std::cell::Cell<bool>,
    workers: Workers,
    /// Requests of [`RESERVE`] that are not done.
    reserving: std::cell::Cell<usize>,
    short_poll: ShortPoll,
    /// Queues that have a user, or commands in the kernel.
    queues: RefCell<Slab<Rc<Entries>>>,
}

impl Ring {
    /// A ring that also wakes when `inbox`, an eventfd, is written to.
    ///
    /// # Errors
    /// What `io_uring_setup` answers: `ENOSYS` or `EPERM` where io_uring is not to be had.
    pub(crate) fn new(inbox: OwnedFd, workers: Workers) -> io::Result<Ring> {
        let build = |single: bool| {
            let mut builder = Uring::builder();
            builder.setup_cqsize(COMPLETIONS).setup_clamp();
            if single {
                builder.setup_single_issuer().setup_defer_taskrun();
            }
            builder.build(SUBMISSIONS)
        };
        // Kernels before 6.1 know neither flag and answer EINVAL.
        let ring = build(true).or_else(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => build(false),
            _ => Err(error),
        })?;
        // Receives that wait first and cancellations of everything came with Linux 5.19, without a
        // flag that says so: with SOCKET, which is not used here. Before, a receive would be refused
        // at its second time, and an executor never end.
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let is_new_enough = probe.is_supported(opcode::Socket::CODE)
            && ring.params().is_feature_ext_arg()
            && ring.params().is_feature_nodrop();
        if !is_new_enough {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring is older than Linux 5.19",
            ));
        }
        Ok(Ring {
            ring: RefCell::new(ring),
            results: RefCell::default(),
            inbox,
            armed: std::cell::Cell::new(false),
            workers,
            reserving: std::cell::Cell::new(0),
            short_poll: ShortPoll::default(),
            queues: RefCell::default(),
        })
    }

    /// Returns true if an operation is for a thread of our own.
    pub(crate) fn leaves_to_threads(&self, operation: &Operation) -> bool {
        let own = self.workers == Workers::Own;
        match operation {
            Operation::Sync(_) | Operation::Fallocate { .. } => own,
            Operation::Transfer(transfer) => {
                own && transfer.must_wait || transfer.pause().is_some()
            }
            _ => false,
        }
    }

    pub(crate) fn submit(&self, table: &Table, id: u32) {
        let nowait = self.workers == Workers::Own;
        let entry = table.with(id, |operation| entry_of(operation, nowait)).user_data(id.into());
        self.push(&entry);
    }

    /// Submits `first`, and `then` for when all of it is done: else the result of `then` is `ECANCELED`.
    pub(crate) fn submit_linked(&self, table: &Table, first: u32, then: u32) {
        let nowait = self.workers == Workers::Own;
        let entry = |id| -> Entry {
            table.with(id, |operation| entry_of(operation, nowait)).user_data(u64::from(id))
        };
        let linked = entry(first).flags(Flags::IO_LINK);
        self.push_wide(&[linked.into(), entry(then).into()]);
    }

    /// Has the kernel make `count` descriptions of requests, which it keeps for later ones.
    pub(crate) fn reserve(
        &self,
        table: &Table,
        count: usize,
        time: &TimeOfTurn,
        resubmit: &dyn Fn(u32),
    ) -> io::Result<()> {
        let silent = eventfd::new()?;
        let wait = opcode::PollAdd::new(RingFd(silent.as_raw_fd()), libc::POLLIN as u32).build();
        // All are under way at once, or the first would be used again for the next.
        (0..count).for_each(|_| self.push(&wait.clone().user_data(RESERVE)));
        self.reserving.set(count);
        self.turn(table, None, time, resubmit)?;
        eventfd::ring(&silent);
        while self.reserving.get() > 0 {
            self.turn(table, Some(None), time, resubmit)?;
        }
        Ok(())
    }

    /// Hands submissions over and takes results in; waits for one if `wait` says for how long
    /// at most (`None`: without end). `resubmit` is called for what is not done yet.
    pub(crate) fn turn(
        &self,
        table: &Table,
        wait: Option<Option<Duration>>,
        time: &TimeOfTurn,
        resubmit: &dyn Fn(u32),
    ) -> io::Result<()> {
        if !self.armed.replace(true) {
            let fd = RingFd(self.inbox.as_raw_fd());
            self.push(&opcode::PollAdd::new(fd, libc::POLLIN as u32).build().user_data(INBOX));
        }
        match wait {
            Some(limit) => self.wait(limit, time)?,
            None => self.poll_events()?,
        }
        self.reap(table, resubmit);
        Ok(())
    }

    /// Hands submissions over and waits for a result, for `limit` at most.
    ///
    /// The clock is not read while results come together: where that is a system call, it takes longer than a request.
    fn wait(&self, limit: Option<Duration>, time: &TimeOfTurn) -> io::Result<()> {
        let window = limit.map_or(WINDOW, |limit| limit.min(WINDOW));
        let begin = self.short_poll.is_timed().then(|| time.read());
        let is_found = match begin {
            Some(begin) if self.short_poll.is_worth() => self.poll_until(begin + window, time)?,
            _ => false,
        };
        let mut ring = self.ring.borrow_mut();
        if !is_found {
            passing(match limit {
                Some(limit) => {
                    let timeout = Timespec::from(limit);
                    let args = SubmitArgs::new().timespec(&timeout);
                    ring.submitter().submit_with_args(1, &args)
                }
                None => ring.submitter().submit_and_wait(1),
            })?;
        }
        // This is the time of the turn that begins, too.
        let after = begin.map(|begin| time.read().saturating_duration_since(begin));
        self.short_poll.ended(after, ring.completion().len());
        Ok(())
    }

    /// Asks for results until there are some; false if there is none by `end`.
    fn poll_until(&self, end: Instant, time: &TimeOfTurn) -> io::Result<bool> {
        loop {
            self.poll_events()?;
            if !self.ring.borrow_mut().completion().is_empty() {
                self.short_poll.hit();
                return Ok(true);
            }
            if time.read() >= end {
                self.short_poll.missed();
                return Ok(false);
            }
        }
    }

    /// Has the next waits sleep.
    pub(crate) fn prefer_sleep(&self) {
        self.short_poll.prefer_sleep();
    }

    /// Asks for all that is under way to be cancelled, before the table is waited for.
    pub(crate) fn cancel_all(&self) {
        let any = io_uring::types::CancelBuilder::any().all();
        self.push(&opcode::AsyncCancel2::new(any).build().user_data(CANCEL));
    }

    fn poll_events(&self) -> io::Result<()> {
        const GETEVENTS: u32 = 1;
        let ring = self.ring.borrow();
        // SAFETY: no argument is passed; the entries in the queue obey `push`'s rule.
        let submission = unsafe { ring.submission_shared() };
        let pending = submission.len() as u32;
        drop(submission);
        // SAFETY: as above.
        passing(unsafe { ring.submitter().enter::<libc::sigset_t>(pending, 0, GETEVENTS, None) })
    }

    fn reap(&self, table: &Table, resubmit: &dyn Fn(u32)) {
        let mut results = self.results.take();
        let mut ring = self.ring.borrow_mut();
        results.extend(ring.completion().map(|entry| (entry.user_data(), entry.result())));
        drop(ring);
        for (user_data, result) in results.drain(..) {
            match user_data {
                INBOX => {
                    eventfd::drain(&self.inbox);
                    self.armed.set(false);
                }
                CANCEL => {}
                RESERVE => self.reserving.set(self.reserving.get() - 1),
                entry if entry & QUEUE != 0 => self.take_command(entry, result),
                id => {
                    if let After::Resubmit = table.complete(id as u32, result) {
                        resubmit(id as u32);
                    }
                }
            }
        }
        self.results.replace(results);
    }

    /// Keeps the memory of a queue until [`Ring::leave_queue`], and then until its last command comes back. Returns the
    /// queue's number.
    pub(crate) fn add_queue(&self, queue: &Rc<Entries>) -> usize {
        self.queues.borrow_mut().insert(Rc::clone(queue))
    }

    /// Returns true if commands of queues are in the kernel.
    pub(crate) fn has_commands(&self) -> bool {
        self.queues.borrow().iter().any(|(_, queue)| queue.is_away())
    }

    /// Lets go of queue `key`, which has no user any more.
    pub(crate) fn leave_queue(&self, key: usize) {
        let mut queues = self.queues.borrow_mut();
        if queues.get(key).is_some_and(|queue| !queue.is_away()) {
            queues.remove(key);
        }
    }

    /// Keeps the memory of queues for the life of the process.
    pub(crate) fn forget_queues(&self) {
        std::mem::forget(self.queues.take());
    }

    /// Submits the command of an `entry` of queue `key`.
    pub(crate) fn push_command(&self, command: &Entry128, key: usize, entry: u16) {
        let queue = Rc::clone(&self.queues.borrow()[key]);
        queue.goes(entry);
        let user_data = QUEUE | (key as u64) << QUEUE_SHIFT | u64::from(entry);
        self.push_wide(&[command.clone().user_data(user_data)]);
    }

    fn take_command(&self, user_data: u64, result: i32) {
        let key = ((user_data ^ QUEUE) >> QUEUE_SHIFT) as usize;
        let queue = Rc::clone(&self.queues.borrow()[key]);
        let entry = u16::try_from(user_data & 0xffff).expect("sixteen bits are left");
        queue.comes(entry, result);
        if queue.has_no_user() {
            self.leave_queue(key);
        }
    }

    fn push(&self, entry: &Entry) {
        self.push_wide(&[entry.clone().into()]);
    }

    /// Queues `entries`, all of which go to the kernel by one call: what is linked must.
    fn push_wide(&self, entries: &[Entry128]) {
        let mut ring = self.ring.borrow_mut();
        loop {
            // SAFETY: what the entries point at is owned by the operation table (or by the ring
            // itself, for the inbox) until the kernel's result came in.
            if unsafe { ring.submission().push_multiple(entries) }.is_ok() {
                return;
            }
            // The queue is full: hand it over without waiting. A passing failure (EBUSY, EINTR)
            // is met by trying again.
            if let Err(error) = ring.submit() {
                let passing = [libc::EBUSY, libc::EINTR, libc::EAGAIN];
                assert!(
                    error.raw_os_error().is_some_and(|number| passing.contains(&number)),
                    "io_uring_enter: {error}"
                );
            }
        }
    }
}

/// Takes an error that passes by itself for success: the time is over; a signal came; completions must be taken first.
fn passing(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        },
    }
}

/// The submission for an operation.
fn entry_of(operation: &mut Operation, nowait: bool) -> Entry {
    match operation {
        Operation::Transfer(transfer) => {
            let (fd, offset) = (RingFd(raw(&transfer.fd)), transfer.position());
            // A file that never waits need not support the flag.
            transfer.nowait = nowait && !transfer.fd.is_prompt();
            let (flags, write) = (transfer.flags(), transfer.write);
            match (transfer.rest(), write) {
                (Rest::One { base, len }, false) => {
                    opcode::Read::new(fd, base, len).offset(offset).rw_flags(flags).build()
                }
                (Rest::One { base, len }, true) => {
                    opcode::Write::new(fd, base, len).offset(offset).rw_flags(flags).build()
                }
                (Rest::Many(parts), false) => {
                    opcode::Readv::new(fd, parts.as_ptr(), parts.len() as u32)
                        .offset(offset)
                        .rw_flags(flags)
                        .build()
                }
                (Rest::Many(parts), true) => {
                    opcode::Writev::new(fd, parts.as_ptr(), parts.len() as u32)
                        .offset(offset)
                        .rw_flags(flags)
                        .build()
                }
            }
        }
        Operation::Sync(fd) => {
            opcode::Fsync::new(RingFd(raw(fd))).flags(FsyncFlags::DATASYNC).build()
        }
        Operation::Fallocate { fd, mode, offset, len } => {
            opcode::Fallocate::new(RingFd(raw(fd)), *len).offset(*offset).mode(*mode).build()
        }
        Operation::Recv { fd, buf, from, wait_first, whole } => {
            let fd = RingFd(raw(fd));
            let rest = &mut buf[*from..];
            /// `IORING_RECVSEND_POLL_FIRST`: wait for data before the first attempt.
            const POLL_FIRST: u16 = 1;
            let first = if *wait_first { POLL_FIRST } else { 0 };
            let flags = if *whole { libc::MSG_WAITALL } else { 0 };
            opcode::Recv::new(fd, rest.as_mut_ptr(), rest.len() as u32)
                .ioprio(first)
                .flags(flags)
                .build()
        }
        Operation::Accept(fd) => {
            opcode::Accept::new(RingFd(raw(fd)), std::ptr::null_mut(), std::ptr::null_mut())
                .flags(libc::SOCK_CLOEXEC)
                .build()
        }
        Operation::Poll { fd, interest } => {
            opcode::PollAdd::new(RingFd(raw(fd)), interest.events() as u32).build()
        }
        Operation::Command { fd, command, data } => {
            opcode::UringCmd16::new(RingFd(raw(fd)), *command).cmd(*data).build()
        }
        Operation::Blocking => unreachable!("run by the pool"),
    }
}
