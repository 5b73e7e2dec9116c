//! Replies of a session: one for each request, put into its outbox and counted.

use braid_block::{Completion, Span};
use braid_nbd::protocol::constants::{NBD_STATE_HOLE, NBD_STATE_ZERO};
use braid_nbd::protocol::{
    CheckedRequest, Command, Extent, NbdErrno, Payload, Refusal, RefusalReason,
};

use super::blocks::Blocks;
use super::{Session, Wait};
use crate::end::End;
use braid_uring::Stream;

impl<S: Stream> Session<S> {
    #[inline]
    pub(super) fn reply(&mut self, request: CheckedRequest, completion: Completion) {
        let style = self.parts.negotiated.style;
        match (completion.result, request.command) {
            (Err(errno), command) => {
                let errno = command.answerable(NbdErrno::from_os(errno.raw()));
                self.counts.replies += 1;
                self.counts.errors += 1;
                self.outbox.push_header(style.error(request.to, errno));
            }
            (Ok(()), Command::Read { offset, length, .. }) => {
                self.counts.replies += 1;
                self.outbox.push_header(style.read_data(request.to, offset, length, true));
                let payload = match completion.payload {
                    whole if whole.len() == u64::from(length) => whole,
                    blocks => self.blocks(offset, length.into()).cut(blocks),
                };
                self.outbox.push_payload(payload);
            }
            (Ok(()), _) => self.reply_ok(request),
        }
    }

    pub(super) fn reply_ok(&mut self, request: CheckedRequest) {
        self.counts.replies += 1;
        self.outbox.push_header(self.parts.negotiated.style.ok(request.to));
    }

    /// Asks for the extents behind `span`, in a turn of its own: each question may be hundreds of system calls, or go to
    /// another machine.
    pub(super) fn ask_status(&self, span: Span) -> Wait<Vec<braid_block::Extent>> {
        let (turn, dev) = (self.parts.stream.turn(), self.parts.dev.clone());
        let blocks = self.blocks(span.offset, span.len);
        Box::pin(async move {
            turn.await;
            dev.extents(blocks.span).await
        })
    }

    pub(super) fn reply_status(
        &mut self,
        request: CheckedRequest,
        span: Span,
        one_extent: bool,
        extents: &[braid_block::Extent],
    ) {
        let blocks = self.blocks(span.offset, span.len);
        let mut extents: Vec<Extent> = extents.iter().map(extent_of).collect();
        // An extent has at least a block.
        if let Some(first) = extents.first_mut() {
            first.length = first.length.saturating_sub(blocks.head);
        }
        let id = self.parts.negotiated.base_allocation.unwrap_or_default();
        let style = self.parts.negotiated.style;
        let mut bytes = Vec::new();
        style.block_status(request.to, id, span.len, one_extent, &extents, &mut bytes);
        self.counts.replies += 1;
        self.outbox.push_bytes(bytes);
    }

    fn blocks(&self, offset: u64, len: u64) -> Blocks {
        Blocks::of(offset, len, self.parts.dev.limits().logical_block)
    }

    /// Refuses what modifies, as a read-only export does; `payload` bytes of it are still to come.
    pub(super) fn refuse_locked(&mut self, request: CheckedRequest, payload: u32) {
        self.refuse(Refusal {
            to: request.to,
            errno: NbdErrno::Perm,
            reason: RefusalReason::ReadOnly,
            payload: Payload::Drain(payload),
        });
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        let mut bytes = Vec::new();
        let reason = refusal.reason.to_string();
        let style = self.parts.negotiated.style;
        style.error_message(refusal.to, refusal.errno, &reason, &mut bytes);
        self.counts.replies += 1;
        self.counts.errors += 1;
        match refusal.payload {
            // A client that is still sending takes an answer for that of no request.
            Payload::Drain(count) if count > 0 => {
                (self.drain, self.refused) = (count as usize, bytes);
                return;
            }
            Payload::Drain(_) => {}
            Payload::Close => self.end = Some(End::Refused(refusal.reason)),
        }
        self.outbox.push_bytes(bytes);
    }
}

fn extent_of(extent: &braid_block::Extent) -> Extent {
    let hole = if extent.allocated { 0 } else { NBD_STATE_HOLE };
    let zero = if extent.zero { NBD_STATE_ZERO } else { 0 };
    Extent { length: extent.len, status: hole | zero }
}
