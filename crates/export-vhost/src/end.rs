//! Ends of a connection, or of one of its queues, with their reasons.

use std::io;

use crate::inflight::InflightFault;
use crate::memory::MemoryFault;
use crate::message::MessageFault;
use crate::ring::RingFault;

/// The end of a connection, with its reason.
#[derive(Debug)]
pub struct End(pub(crate) Why);

/// The reasons.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Why {
    #[error("the front-end disconnected")]
    Disconnected,
    #[error("the volume is going down")]
    Stopped,
    #[error("the front-end left, or waited for {0} s, in the middle of a message")]
    Truncated(u64),
    #[error("{0}")]
    Message(#[from] MessageFault),
    #[error("{0}")]
    Memory(#[from] MemoryFault),
    #[error("notes of requests in flight: {0}")]
    Inflight(#[from] InflightFault),
    #[error("queue {queue}: {fault}")]
    Queue { queue: u32, fault: QueueFault },
    #[error("a message about queue {0}, of {1}")]
    NoQueue(u32, u16),
    #[error("features {0:#x} that were not offered")]
    Features(u64),
    #[error("connection: {0}")]
    Failed(#[from] io::Error),
}

/// The fault of a queue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueueFault {
    #[error(transparent)]
    Ring(#[from] RingFault),
    #[error("notes of requests in flight: {0}")]
    Inflight(#[from] InflightFault),
    #[error("a descriptor for its kicks that is no eventfd")]
    Kick,
    #[error("a descriptor for its interrupts of another kind than eventfd, socket or pipe")]
    Call,
    #[error("no descriptor for its kicks: a queue is not polled")]
    Polled,
    #[error("the shard that serves it has ended")]
    Gone,
    #[error("its kicks: {0}")]
    Failed(#[from] io::Error),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl End {
    /// Returns true if the front-end or the guest is to blame.
    pub fn is_protocol_error(&self) -> bool {
        !matches!(self.0, Why::Disconnected | Why::Stopped | Why::Failed(_))
    }
}
