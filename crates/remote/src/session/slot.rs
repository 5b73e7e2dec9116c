//! Requests of a session, and their states.

use std::task::Waker;
use std::time::Duration;

use braid_block::{Errno, Extent, Flags, Op, Payload, Span};

/// The state of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no connection, since that moment.
    Down(Duration),
    /// So many changes are not repeated yet.
    Repeating(usize),
    Up,
}

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Held: no connection, or another change of its range is in flight, or the journal has no room.
    Held,
    /// To be sent.
    Ready,
    /// Sent at that moment; a flush covers the journal before `mark`.
    Sent {
        at: Duration,
        mark: u64,
    },
    /// A change that was sent over a connection that is gone.
    Unknown,
    Done(Result<(), Errno>),
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// To be carried out.
    Io(Op),
    /// A question for holes.
    Status,
}

impl Ask {
    pub(super) fn is_modifying(self) -> bool {
        matches!(self, Ask::Io(op) if op.is_modifying())
    }

    pub(crate) fn has_data(self) -> bool {
        matches!(self, Ask::Io(op) if op.has_data())
    }
}

/// The origin of a request.
pub(super) enum Owner {
    Caller(Option<Waker>),
    /// The caller has gone, and the request goes on.
    None,
    /// A piece of the journal that is repeated.
    Journal(Vec<u8>),
    /// A flush that makes room in the journal.
    Room,
}

pub(super) struct Slot {
    pub(super) ask: Ask,
    pub(super) flags: Flags,
    pub(super) span: Span,
    pub(super) payload: Payload,
    pub(super) owner: Owner,
    pub(super) state: State,
    pub(super) started: Duration,
    /// Tells the answers to this request from those to an earlier one of the slot.
    pub(super) turn: u32,
    /// It is repeated before anything else is sent.
    pub(super) is_repeat: bool,
    /// The ranges of a read that have come.
    pub(super) received: Vec<Span>,
    /// The answer to a question for holes.
    pub(super) extents: Vec<Extent>,
    pub(super) error: Option<Errno>,
}

/// A request that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) cookie: u64,
    pub(crate) ask: Ask,
    pub(crate) flags: Flags,
    pub(crate) span: Span,
}

/// The fault of a server's answer, which ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("an answer to a request that was not made")]
    UnknownCookie,
    #[error("data outside of the read that they answer, or twice")]
    StrayData,
    #[error("a read without all of its data")]
    ShortRead,
    #[error("data in the answer to a request that is no read")]
    DataWithoutRead,
    #[error("block status that nothing asked for, or twice, or none where it was asked for")]
    StrayStatus,
}

/// Counts for a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Changes that were sent again.
    pub(crate) repeated: u64,
    /// Requests that failed with the deadline.
    pub(crate) overdue: u64,
}
