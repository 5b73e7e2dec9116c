//! Writes: their payload as it comes, and how they get to the device.

use std::task::{Context, Poll};

use braid_block::{Completion, Errno, Flags, Io};
use braid_engine::{Pending, WritePermit};
use braid_nbd::protocol::CheckedRequest;

use super::blocks::{self, Blocks, Edges};
use super::{Session, fua_flag};
use crate::canary::Canary;
use crate::overlaps::Entered;
use crate::payload::{Incoming, PIECE, get_payload};
use braid_uring::Stream;

/// Length of the parts in which a long write goes to a device that answers at once, in bytes:
/// less than a socket holds.
const PART: u64 = 128 << 10;

/// A write whose payload is coming in.
///
/// A device that carries requests out in the call gets each part as it is whole: while it is
/// copied, the client fills the socket again. (A client that leaves in the middle leaves a part
/// written, as a disk does that loses power.) Any other device gets one request, and so does one to which parts of
/// blocks are written.
pub(super) struct Write {
    request: CheckedRequest,
    flags: Flags,
    /// Offset of the next part.
    offset: u64,
    pub(super) incoming: Incoming,
    /// The memory around it, if its range is not whole blocks.
    edges: Option<Edges>,
    /// Result of the earlier parts.
    result: Result<(), Errno>,
    permit: WritePermit,
}

/// The claim of a write on its blocks, until it is answered.
pub(super) struct Admitted {
    _permit: WritePermit,
    _entered: Option<Entered>,
}

impl<S: Stream> Session<S> {
    /// Begins to take a write's payload; pending if there is no memory for it now.
    pub(super) fn begin_write(
        &mut self,
        request: CheckedRequest,
        (offset, length): (u64, u32),
        fua: bool,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let limits = self.parts.dev.limits();
        let blocks = Blocks::of(offset, length.into(), limits.logical_block);
        let whole = blocks.are_whole();
        let piece = if limits.immediate && whole { PART } else { PIECE };
        let wanted = blocks.span.len + blocks.scratch();
        let Poll::Ready(memory) = get_payload(&self.parts.pool, wanted, piece, cx) else {
            return Poll::Pending;
        };
        let (edges, payload) = match whole {
            true => (None, memory),
            false => {
                let (edges, payload) = Edges::divide(blocks, memory);
                (Some(edges), payload)
            }
        };
        self.counts.written_bytes += u64::from(length);
        self.incoming = Some(Write {
            request,
            flags: fua_flag(fua),
            offset,
            incoming: Incoming::new(payload),
            edges,
            result: Ok(()),
            permit: self.parts.offered.permit(),
        });
        Poll::Ready(())
    }

    /// Moves what was received to the payload it belongs to; false if that wants more.
    pub(super) fn take_payload(&mut self) -> bool {
        if self.drain > 0 {
            let count = self.drain.min(self.inbox.bytes().len());
            self.inbox.consume(count);
            self.drain -= count;
            if self.drain > 0 {
                return false;
            }
            self.outbox.push_bytes(std::mem::take(&mut self.refused));
            return true;
        }
        let Some(write) = &mut self.incoming else { return true };
        let count = write.incoming.fill(self.inbox.bytes());
        self.inbox.consume(count);
        if !write.incoming.is_whole() {
            self.write_part();
            return false;
        }
        if let Some(write) = self.incoming.take() {
            self.write_rest(write);
        }
        true
    }

    /// Writes what has come of a payload, where that is done in the call.
    fn write_part(&mut self) {
        let dev = &self.parts.dev;
        let Some(write) = self.incoming.as_mut().filter(|_| dev.limits().immediate) else { return };
        if write.edges.is_some() {
            return;
        }
        // While a part of a block is being written, this one waits until it is whole.
        let Some(_entered) = self.parts.lane.try_enter() else { return };
        let Some(payload) = write.incoming.take_filled() else { return };
        let io = Io::write(write.offset, payload, write.flags);
        write.offset += io.span.len;
        let Pending::Ready(Some(completion)) = dev.start(io) else {
            panic!("an immediate device answers at once")
        };
        write.result = write.result.and(completion.result);
    }

    /// Writes what is left of a write that came whole.
    fn write_rest(&mut self, mut write: Write) {
        let Some(payload) = write.incoming.take_filled() else { return };
        let Write { request, flags, offset, edges, result: before, permit, .. } = write;
        let (mut pending, entered) = match edges {
            None => self.start_whole(Io::write(offset, payload, flags)),
            Some(edges) => {
                let (dev, lane) = (self.parts.dev.clone(), self.parts.lane.clone());
                (Pending::task(edges.write(dev, lane, payload, flags)), None)
            }
        };
        if before.is_err() && !Canary::FailedPartForgotten.is_planted() {
            pending = match pending {
                Pending::Ready(Some(done)) => Pending::ready(Completion { result: before, ..done }),
                pending => {
                    Pending::task(async move { Completion { result: before, ..pending.await } })
                }
            };
        }
        self.answer(request, Some(Admitted { _permit: permit, _entered: entered }), pending);
    }

    /// Starts what modifies whole blocks, when no part of one of them is being written.
    fn start_whole(&self, io: Io) -> (Pending, Option<Entered>) {
        if let Some(entered) = self.parts.lane.try_enter() {
            return (self.parts.dev.start(io), Some(entered));
        }
        let (dev, lane, span) = (self.parts.dev.clone(), self.parts.lane.clone(), io.span);
        let waits = async move {
            let _entered = lane.enter(span).await;
            dev.start(io).await
        };
        (Pending::task(waits), None)
    }

    /// Starts what modifies whole blocks and has no payload, unless the volume is locked.
    pub(super) fn start_modifying(&mut self, request: CheckedRequest, io: Io) {
        if self.parts.offered.is_locked() {
            return self.refuse_locked(request, 0);
        }
        if io.span.is_empty() {
            return self.reply_ok(request);
        }
        let permit = self.parts.offered.permit();
        let (pending, entered) = self.start_whole(io);
        self.answer(request, Some(Admitted { _permit: permit, _entered: entered }), pending);
    }

    /// Writes zeroes; pending if there is no memory for parts of blocks now.
    pub(super) fn start_zeroes(
        &mut self,
        request: CheckedRequest,
        (offset, length): (u64, u64),
        flags: Flags,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let blocks = Blocks::of(offset, length, self.parts.dev.limits().logical_block);
        if blocks.are_whole() || self.parts.offered.is_locked() {
            self.start_modifying(request, Io::write_zeroes(blocks.span, flags));
            return Poll::Ready(());
        }
        let Poll::Ready(scratch) = get_payload(&self.parts.pool, blocks.scratch(), PIECE, cx)
        else {
            return Poll::Pending;
        };
        let (dev, lane) = (self.parts.dev.clone(), self.parts.lane.clone());
        let pending = Pending::task(blocks::write_zeroes(blocks, dev, lane, scratch, flags));
        let permit = self.parts.offered.permit();
        self.answer(request, Some(Admitted { _permit: permit, _entered: None }), pending);
        Poll::Ready(())
    }
}
