//! Reading from any kind of array: from one member first, and with care after a failure.
//!
//! ```text
//!   one member ── ok ──▶ answer                        the usual case: nothing is allocated
//!       │ error
//!       ▼
//!   piece by piece, from the other copies or by parity; halves, down to blocks ──▶ answer
//!       │ a member failed where others did not
//!       ▼
//!   afterwards: locked, read again, rewritten from the others, read back
//! ```
//!
//! Invariant: an answer counts only if its member was not removed meanwhile. The device may have been added again, and
//! hold the data of another role by the time it reads.

use std::rc::Rc;

use braid_array::{ArraySpan, Fan, MemberSpan, Role};
use braid_block::{Completion, Errno, Flags, Io, Payload};

use super::core::Core;
use super::fan::{gather, scatter};
use super::keeping::{Finder, Inner};
use super::layout::SyncSpan;
use super::roster::Member;
use crate::device::addressed;
use crate::pending::{Token, Watch, Watched};
use crate::{Pending, join_all};

/// Largest read from one member after a failure, in bytes.
pub(super) const CAREFUL: u64 = 64 << 10;
/// Number of read errors in an hour after which a member is taken out: md's
/// `MD_DEFAULT_MAX_CORRECTED_READ_ERRORS`.
const MOST_ERRORS: u32 = 20;

impl Inner {
    #[inline]
    pub(super) fn start_read(self: &Rc<Self>, io: Io) -> Pending {
        if !self.core.work.is_timing() {
            return self.keeping.read(self, io);
        }
        let pending = self.keeping.read(self, io);
        let inner = Rc::clone(self);
        let start = self.core.clock.now();
        Pending::task(async move {
            let completion = pending.await;
            let now = inner.core.clock.now();
            inner.core.work.record_latency(now, now - start);
            completion
        })
    }

    /// Reads the stretches of `fan`, all at once, each from the member that `holder` returns; with care if one
    /// of them fails.
    pub(super) fn read_fan<'a>(
        self: &Rc<Self>,
        io: Io,
        fan: Fan,
        holder: &dyn Fn(Role) -> &'a Rc<Member>,
    ) -> Pending {
        let Io { span, payload, .. } = io;
        let span = addressed(span);
        let payloads = scatter(&fan, payload);
        let mut asked = Vec::with_capacity(fan.spans.len());
        let mut started = Vec::with_capacity(fan.spans.len());
        for (one, payload) in fan.spans.iter().zip(payloads) {
            let member = holder(one.role);
            let offset = member.on_device(one.span.offset);
            started.push(member.dev.start(Io::read(offset, payload)));
            asked.push(Reading::new(Rc::clone(member)));
        }
        let inner = Rc::clone(self);
        Pending::task(async move {
            let mut completions = join_all(started).await;
            let counts = asked.iter().all(|one| inner.core.roster.has(&one.member));
            drop(asked);
            let result: Result<(), Errno> = completions.iter().try_for_each(|one| one.result);
            let payload = gather(&fan, &mut completions);
            match result {
                Ok(()) if counts => Completion { result, payload },
                // The careful read finds the piece that failed.
                _ => inner.retry(span, payload, None).await,
            }
        })
    }

    /// Examines the completion of the one member that was asked.
    pub(super) fn follow(
        self: &Rc<Self>,
        member: Rc<Member>,
        span: ArraySpan,
        pending: Pending,
    ) -> Pending {
        match pending {
            Pending::Ready(Some(completion)) => {
                self.retry(span, completion.payload, Some(member.number))
            }
            Pending::Ticket(ticket) => {
                member.reads.set(member.reads.get() + 1);
                let token = Token { member: member.serial(), offset: span.offset };
                Pending::Watched(Watched::new(ticket, Rc::clone(self) as Rc<dyn Watch>, token))
            }
            pending => {
                let inner = Rc::clone(self);
                Pending::task(async move {
                    let reading = Reading::new(member);
                    let completion = pending.await;
                    let member =
                        inner.core.roster.has(&reading.member).then_some(reading.member.number);
                    drop(reading);
                    inner.judge(member, span, completion).await
                })
            }
        }
    }

    /// Judges the answer of the member with this number, which is `None` if it was removed meanwhile.
    #[inline]
    fn judge(
        self: &Rc<Self>,
        member: Option<u32>,
        span: ArraySpan,
        completion: Completion,
    ) -> Pending {
        match completion.result {
            Ok(()) if member.is_some() => Pending::ready(completion),
            _ => self.retry(span, completion.payload, member),
        }
    }

    /// Notes that a read is over. Returns the number of its member, unless that was removed meanwhile.
    #[inline]
    fn leave(&self, token: Token) -> Option<u32> {
        let members = self.core.roster.members();
        let member = members.iter().find(|member| member.serial() == token.member)?;
        member.reads.set(member.reads.get().saturating_sub(1));
        Some(member.number)
    }

    /// Reads again, with care, after a failed read; `failed` is the member that was asked first.
    pub(super) fn retry(
        self: &Rc<Self>,
        span: ArraySpan,
        payload: Payload,
        failed: Option<u32>,
    ) -> Pending {
        let inner = Rc::clone(self);
        self.core.background.request(async move {
            let (result, payload) =
                inner.keeping.read_carefully(&inner, span, payload, failed).await;
            Completion { result, payload }
        })
    }

    /// Starts rewriting `place` on `member`, which could not read it.
    pub(super) fn heal_later(self: &Rc<Self>, member: Rc<Member>, place: SyncSpan, finder: Finder) {
        if self.core.read_only || self.core.limits.read_only {
            return;
        }
        let inner = Rc::clone(self);
        self.core
            .background
            .spawn(async move { inner.keeping.heal(&inner, member, place, finder).await });
    }
}

impl Core {
    /// Rewrites `place` of `member`, which it could not read, and reads it back. Returns true if the member has
    /// it now, and the payload.
    pub(super) async fn write_again(
        self: &Rc<Self>,
        member: &Rc<Member>,
        place: MemberSpan,
        payload: Payload,
        finder: Finder,
    ) -> (bool, Payload) {
        let at = member.on_device(place.offset);
        let mut done = member.dev.start(Io::write(at, payload, Flags::FUA)).await;
        if done.result.is_ok() {
            done = member.dev.start(Io::read(at, done.payload)).await;
        }
        match done.result {
            Ok(()) => {
                member.corrected.set(member.corrected.get() + 1);
                self.is_good_again(member, place).await;
                self.note(format!(
                    "{}: {} bytes at {} could not be read and were written again",
                    member.label, place.len, place.offset
                ));
                if finder == Finder::Request
                    && member.count_error(self.clock.now(), place) > MOST_ERRORS
                    && !self.fail(member, "more than 20 read errors within an hour")
                {
                    self.note(format!(
                        "{} has the only copy of something: it is kept",
                        member.label
                    ));
                }
            }
            Err(errno) => {
                let why = format!("what could not be read could not be written again: {errno}");
                if !self.fail(member, &why) {
                    self.note(format!("{}: {why}; it is needed, and kept", member.label));
                }
            }
        }
        // A stopped array returns its own error to the next caller.
        let _ = self.fence().await;
        (done.result.is_ok(), done.payload)
    }
}

impl Watch for Inner {
    #[inline]
    fn completed(self: Rc<Self>, token: Token, completion: Completion) -> Pending {
        let member = self.leave(token);
        let span = ArraySpan::new(token.offset, completion.payload.len());
        self.judge(member, span, completion)
    }

    #[inline]
    fn abandoned(&self, token: Token) {
        self.leave(token);
    }
}

/// A read in flight on a member, which the choice of copies counts.
pub(super) struct Reading {
    member: Rc<Member>,
}

impl Reading {
    pub(super) fn new(member: Rc<Member>) -> Reading {
        member.reads.set(member.reads.get() + 1);
        Reading { member }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.member.reads.set(self.member.reads.get().saturating_sub(1));
    }
}
