//! Writes of a healthy array on a shard that it does not live on.
//!
//! ```text
//!   may it write, now and there? ── no ──▶ home
//!        │ yes: inside, its blocks leased, its bits on the members
//!   all members ── all have it ──▶ answer
//!        │ some failed
//!   home judges ── superblocks without them ──▶ answer
//! ```
//!
//! Copies are written within the call or in steps; data with its parity within the call, if it is a small write: all
//! else goes home, where writes are joined to whole stripes.
//!
//! Invariants
//! * From the first request to a member until the answer of the last, or of home, the write is inside and has its blocks,
//!   also if its caller is gone.
//! * A write that was begun here is never begun anew at home: of data with half of its parity, the old parity is no base
//!   of a new one.

use std::rc::Rc;
use std::sync::Arc;

use braid_array::geometry::Raid456;
use braid_array::plan::plan_span_with;
use braid_array::{Mirrored, Plan, Role};
use braid_block::{Completion, Errno, Io, Payload, Span};

use super::branch::{Inner, Present, Source, Sources};
use super::{Cause, Tenant};
use crate::device::addressed;
use crate::redundant::copies::{each_place, in_sync_bytes as of_copies};
use crate::redundant::layout::{Layout, SyncSpan};
use crate::redundant::parity::{Small, in_sync_bytes as of_rows, take_if_all_done};
use crate::redundant::ranges::Entered;
use crate::{Pending, join_all};

/// Largest write of data and parity here, in bytes: others are no small ones.
const MOST: u64 = 64 << 10;

/// A write that is inside. It leaves when this is dropped.
struct Permit {
    inner: Rc<Inner>,
    tenant: Tenant,
    entered: Option<Entered>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.entered.take();
        // No count of references to the leases is changed for a write: all shards would write it.
        if self.inner.ranges.leases().is_some_and(|leases| leases.leave(self.tenant)) {
            self.inner.home.left();
        }
    }
}

impl Inner {
    #[inline]
    pub(super) fn write(self: &Rc<Self>, io: Io) -> Pending {
        let present = self.present.borrow();
        let result = match present.content.as_ref().map(|content| &content.layout) {
            Some(Layout::Copies(geometry)) => self.write_copies(&present, geometry, io),
            Some(Layout::Parity(geometry)) => self.write_parity(&present, geometry, io),
            None => Err(io),
        };
        drop(present);
        result.unwrap_or_else(|io| self.home.start(io, Cause::NotHere))
    }

    /// Begins a write of `span`, if the shard may write there now.
    #[inline]
    fn permit(self: &Rc<Self>, present: &Present, span: SyncSpan) -> Option<Permit> {
        let writes = present.content.as_ref()?.writes.as_ref()?;
        let tenant = present.tenant?;
        // A device could not be opened here.
        if !present.is_whole {
            return None;
        }
        let may_enter = writes.leases.enter(tenant, present.number);
        let mut permit = Permit { inner: Rc::clone(self), tenant, entered: None };
        if !may_enter {
            return None;
        }
        permit.entered = Some(self.ranges.enter_now(span)?);
        if writes.bits.as_ref().is_some_and(|bits| !bits.touch(span)) {
            return None;
        }
        writes.leases.touch();
        Some(permit)
    }

    #[inline]
    fn write_copies(
        self: &Rc<Self>,
        present: &Present,
        geometry: &Arc<dyn Mirrored>,
        mut io: Io,
    ) -> Result<Pending, Io> {
        let Some(sources) = &present.sources else { return Err(io) };
        let Some(permit) = self.permit(present, of_copies(addressed(io.span))) else {
            return Err(io);
        };
        let Io { op, span, flags, .. } = io;
        let mut before = None;
        if present.is_immediate {
            match store_in_the_call(&**geometry, sources, io) {
                Ok(completion) => return Ok(Pending::ready(completion)),
                Err(pending) => before = Some(pending),
            }
            // It is repeated: the same bytes in the same places.
            io = Io { op, span, flags, payload: Payload::None };
        }
        let (inner, geometry, sources) =
            (Rc::clone(self), Arc::clone(geometry), Rc::clone(sources));
        Ok(self.background.request(async move {
            if let Some(before) = before {
                io.payload = before.await.payload;
            }
            inner.store_copies(permit, &*geometry, &sources, io).await
        }))
    }

    async fn store_copies(
        self: Rc<Self>,
        permit: Permit,
        geometry: &dyn Mirrored,
        sources: &Sources,
        mut io: Io,
    ) -> Completion {
        let (mut serials, mut started) = (Vec::new(), Vec::new());
        each_place(geometry, sources.len(), &mut io, &mut |role, span, part: &mut Io| {
            let source = source_of(sources, role);
            // After a wait a member may be gone. Then it is out, and may be used for something else.
            if !self.has(source.serial()) {
                return;
            }
            let at = Span::new(source.on_device(span.offset), span.len);
            let payload = part.payload.share();
            started.push(source.dev.start(Io { span: at, payload, ..*part }));
            serials.push(source.serial());
        });
        let completions = join_all(started).await;
        let failed = failures(serials, &completions);
        drop(completions);
        match failed.is_empty() {
            true => io.payload.reclaim(),
            false => io.payload.detach(),
        }
        self.end(permit, io, failed).await
    }

    #[inline]
    fn write_parity(
        self: &Rc<Self>,
        present: &Present,
        geometry: &Raid456,
        io: Io,
    ) -> Result<Pending, Io> {
        let small = Small::of(geometry, &io).filter(|_| present.is_immediate);
        let small = small.filter(|small| small.rows.len <= MOST);
        let (Some(small), Some(sources)) = (small, &present.sources) else { return Err(io) };
        let Some(memory) = self.pool.as_ref().and_then(|pool| pool.get(small.memory())) else {
            return Err(io);
        };
        let Some(permit) = self.permit(present, of_rows(small.rows)) else { return Err(io) };
        let place = |role: Role| {
            let source = source_of(sources, role);
            Some((&source.dev, source.on_device(small.rows.offset)))
        };
        let Some(mut old) = small.read(memory, false, place) else { return Err(io) };
        small.update(&mut old, &io.payload);
        let (span, flags) = (io.span, io.flags);
        let mut started = small.start(old, flags, io.payload, place);
        if let Some(payload) = take_if_all_done(&mut started) {
            return Ok(Pending::ready(Completion { result: Ok(()), payload }));
        }
        let serials = small.roles().map(|role| source_of(sources, role).serial()).collect();
        let inner = Rc::clone(self);
        Ok(self.background.request(async move {
            let mut completions = join_all(started.into_iter().flatten().collect()).await;
            let failed = failures(serials, &completions);
            let payload = std::mem::take(&mut completions[0].payload);
            drop(completions);
            let io = Io { span, payload, ..Io::write(0, Payload::None, flags) };
            inner.end(permit, io, failed).await
        }))
    }

    /// Ends a write that all members but the `failed` ones have.
    async fn end(self: Rc<Self>, permit: Permit, io: Io, failed: Vec<(u32, Errno)>) -> Completion {
        if failed.is_empty() {
            return io.complete(Ok(()));
        }
        let completion = self.home.start(io, Cause::HalfWritten(failed)).await;
        drop(permit);
        completion
    }
}

/// Stores on members that answer within the call. Returns the I/O of the member that did not, with the payload, if one of
/// them did not.
#[inline]
fn store_in_the_call(
    geometry: &dyn Mirrored,
    sources: &Sources,
    mut io: Io,
) -> Result<Completion, Pending> {
    let Io { op, span, flags, .. } = io;
    for copy in 0..geometry.copies() {
        let locate = |offset| geometry.locate(offset, copy);
        let plan = plan_span_with(sources.len(), addressed(span), locate);
        let Plan::Forward { role, offset } = plan else {
            return Err(Pending::ready(io.complete(Ok(()))));
        };
        let source = source_of(sources, role);
        let at = Span::new(source.on_device(offset), span.len);
        let mut pending = source.dev.start(Io { span: at, ..io });
        let Pending::Ready(completion @ Some(Completion { result: Ok(()), .. })) = &mut pending
        else {
            return Err(pending);
        };
        let payload = completion.take().map(|one| one.payload).unwrap_or_default();
        io = Io { op, span, flags, payload };
    }
    Ok(io.complete(Ok(())))
}

/// Returns the source of `role`; every role has one for a write that is inside.
#[inline]
fn source_of(sources: &Sources, role: Role) -> &Rc<Source> {
    sources[role].as_ref().expect("asked for when the write began")
}

/// Returns the serial numbers of the members whose requests failed, each once, with its first error.
fn failures(serials: Vec<u32>, completions: &[Completion]) -> Vec<(u32, Errno)> {
    let mut failed: Vec<(u32, Errno)> = Vec::new();
    for (serial, completion) in serials.into_iter().zip(completions) {
        if let Err(errno) = completion.result
            && !failed.iter().any(|(one, _)| *one == serial)
        {
            failed.push((serial, errno));
        }
    }
    failed
}
