//! What every change of data stands in, in the order that a crash at any moment asks for.
//!
//! ```text
//!   1  the superblocks say "active"             so that a crash is known to need a resync
//!   2  no lock is in the way                    so that nothing is made of half of it
//!   3  the bits of its chunks are on members    so that the resync is short
//!   4  the members                              at the same time
//!   5  whoever failed is out, by superblocks    so that what is stale is never believed
//!   6  the answer
//! ```
//!
//! 1 to 3 and 5 usually hold already. What 4 is depends on how the array keeps its data.

use std::rc::Rc;

use braid_block::{Completion, Errno, Io, Span};

use super::Inner;
use super::data::Data;
use super::member::{Member, MemberState};
use super::ranges::Entered;
use crate::{Pending, join_all};

impl Inner {
    #[inline]
    pub(super) fn start_write(self: &Rc<Self>, io: Io) -> Pending {
        let is_copies = matches!(self.data, Data::Copies(_));
        if is_copies && self.open.get() && self.immediate.get() && self.may_write_now(io.span) {
            return self.store_now(io);
        }
        let inner = Rc::clone(self);
        self.background.request(async move {
            let start = inner.clock.now();
            let completion = match is_copies {
                true => Rc::clone(&inner).write_copies(io).await,
                false => Rc::clone(&inner).write_data(io).await,
            };
            if inner.work.is_timing() {
                let now = inner.clock.now();
                inner.work.record_latency(now, now - start);
            }
            completion
        })
    }

    /// All that goes before a change of `span`, in sync bytes.
    ///
    /// # Errors
    /// Nothing can be written any more.
    pub(super) async fn begin_write(self: &Rc<Self>, span: Span) -> Result<Guard, Errno> {
        let writer = Writer::new(self);
        self.activate().await?;
        let entered = self.ranges.enter(span).await;
        let ready = match &mut *self.intent.borrow_mut() {
            Some(intent) => intent.begin(span),
            None => true,
        };
        if !ready {
            self.store_bits(span).await;
        }
        // A member that failed meanwhile does not have the bits: nobody must count on it any more.
        self.fence().await;
        let guard = Guard { span, entered, writer };
        match self.broken.get() {
            false => Ok(guard),
            true => Err(guard.finish(true).await.err().unwrap_or(Errno::IO)),
        }
    }

    /// Takes out the members that failed to store `span`, in sync bytes, unless that leaves bytes
    /// that cannot be read: then it is the write that failed, and members may not agree.
    pub(super) fn judge_failed_writes(
        &self,
        span: Span,
        failed: &[(Rc<Member>, Errno)],
    ) -> Result<(), Errno> {
        if self.take_out_failed(failed, "a write") {
            return Ok(());
        }
        self.note(format!("a write of {span} failed on the last members: they may not agree"));
        match &self.data {
            // What is missing there can be worked out no more, and nothing can make that good but
            // the log, at the next start: superblocks go on saying that it was being written.
            Data::Parity(parity) if self.degraded.get() => {
                parity.mark_torn(span);
                self.broken.set(true);
                self.reopen();
            }
            _ => self.doubt(span.offset),
        }
        Err(failed[0].1)
    }

    /// Takes out the members that failed at `what`, but for those in sync if some byte cannot be
    /// read without them; answers whether all of them are out.
    fn take_out_failed(&self, failed: &[(Rc<Member>, Errno)], what: &str) -> bool {
        let in_sync: Vec<&Rc<Member>> =
            failed.iter().map(|(member, _)| member).filter(|member| member.is_in_sync()).collect();
        let bearable = self.can_do_without(&in_sync);
        for (member, errno) in failed {
            if bearable || !member.is_in_sync() {
                self.take_out(member, &format!("{what} failed: {errno}"));
            }
        }
        bearable
    }

    /// Makes what was written durable on every member.
    pub(in crate::redundant) fn start_flush(self: &Rc<Self>, io: Io) -> Pending {
        let inner = Rc::clone(self);
        self.background.request(async move {
            let members = inner.written_members();
            let stored = inner.data.log().map_or(0, |log| log.written());
            let started = members.iter().map(|member| member.dev.start(Io::flush())).collect();
            let completions = join_all(started).await;
            let failed = failures(members, &completions);
            let mut result = Ok(());
            if !failed.is_empty() {
                result = inner.judge_failed_flush(&failed);
            } else if let Some(log) = inner.data.log() {
                log.is_flushed(stored);
            }
            inner.fence().await;
            if inner.broken.get() {
                result = Err(Errno::IO);
            }
            io.complete(result)
        })
    }

    fn judge_failed_flush(&self, failed: &[(Rc<Member>, Errno)]) -> Result<(), Errno> {
        if self.take_out_failed(failed, "a flush") {
            return Ok(());
        }
        // Nobody knows what of the only copy is durable, and no later flush can tell: a system
        // that answered an error once may have dropped what it could not write.
        self.note(format!(
            "a flush of the last members failed ({}): nothing is written any more",
            failed[0].1
        ));
        self.broken.set(true);
        self.reopen();
        Err(failed[0].1)
    }

    /// Those that writes go to, each once.
    pub(in crate::redundant) fn written_members(&self) -> Vec<Rc<Member>> {
        let slots = self.slots.borrow();
        slots.iter().flat_map(|slot| slot.written().cloned()).collect()
    }

    /// Sees to it that the superblocks say that writes may be under way.
    async fn activate(self: &Rc<Self>) -> Result<(), Errno> {
        if !self.active.get() {
            self.publisher.require();
            self.set_active(true);
            self.activated.notify();
        }
        // Also the writer that comes while another has the superblocks written waits for them.
        self.fence().await;
        if self.broken.get() { Err(Errno::IO) } else { Ok(()) }
    }

    /// Whether a member is being filled.
    pub(in crate::redundant) fn is_recovering(&self) -> bool {
        let members = self.members.borrow();
        members.iter().any(|member| matches!(member.state.get(), MemberState::Recovering(_)))
    }
}

/// Those of `members` whose requests failed, each once, with its first error.
pub(super) fn failures(
    members: Vec<Rc<Member>>,
    completions: &[Completion],
) -> Vec<(Rc<Member>, Errno)> {
    let mut failed: Vec<(Rc<Member>, Errno)> = Vec::new();
    for (member, completion) in members.into_iter().zip(completions) {
        if let Err(errno) = completion.result
            && !failed.iter().any(|(one, _)| Rc::ptr_eq(one, &member))
        {
            failed.push((member, errno));
        }
    }
    failed
}

/// A change of data that may go on.
pub(super) struct Guard {
    span: Span,
    entered: Entered,
    writer: Writer,
}

impl Guard {
    /// All that comes after it; `everywhere` if every member has it.
    ///
    /// # Errors
    /// What became of a member could not be recorded.
    pub(super) async fn finish(self, everywhere: bool) -> Result<(), Errno> {
        let inner = Rc::clone(&self.writer.inner);
        let everywhere = everywhere && !inner.degraded.get();
        if let Some(intent) = &mut *inner.intent.borrow_mut() {
            intent.end(self.span, everywhere);
        }
        drop(self.entered);
        inner.fence().await;
        inner.touched.set(true);
        if inner.broken.get() { Err(Errno::IO) } else { Ok(()) }
    }
}

/// A write that keeps the array from being marked clean.
struct Writer {
    inner: Rc<Inner>,
}

impl Writer {
    fn new(inner: &Rc<Inner>) -> Writer {
        inner.writers.set(inner.writers.get() + 1);
        Writer { inner: Rc::clone(inner) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inner.writers.set(self.inner.writers.get() - 1);
    }
}
