//! The contract of a completion: what the seam demands of every completion, at once or later.
//!
//! * The payload has the length of the request's span for a read or a write, and no bytes otherwise.
//! * The status of a read or a write is not an error that asks for another attempt: the device
//!   makes that attempt itself.
//! * A request completes once.
//!
//! A build with debug assertions keeps the contract beside the request in flight and checks the completion. In
//! any other build a [`Contract`] has no size, and nothing is checked.
//!
//! Deliberately absent: a check that the payload is the memory of the request. A member that did not answer in
//! time keeps the memory, and the request gets other memory.

#[cfg(debug_assertions)]
use braid_block::Errno;
use braid_block::{Completion, Op};

/// The contract of one completion, if the request passed the seam.
#[derive(Default)]
pub(crate) struct Contract {
    #[cfg(debug_assertions)]
    asked: Option<Asked>,
    #[cfg(debug_assertions)]
    is_answered: bool,
}

#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    op: Op,
    /// Length of the payload in bytes.
    len: u64,
}

#[cfg(debug_assertions)]
impl Contract {
    /// Returns the contract of the completion of `op` with `len` bytes of payload.
    pub(crate) fn of(op: Op, len: u64) -> Contract {
        Contract { asked: Some(Asked { op, len }), is_answered: false }
    }

    /// Adds the contract of a layer that passes this request on.
    ///
    /// # Panics
    /// If the two layers were asked for different things: one completion cannot serve both.
    pub(crate) fn join(&mut self, other: Contract) {
        if let (Some(inner), Some(outer)) = (self.asked, other.asked) {
            assert!(inner == outer, "{outer:?} was passed on as {inner:?}");
        }
        self.asked = self.asked.or(other.asked);
    }

    /// Checks the completion, which must be the first.
    ///
    /// # Panics
    /// If the completion breaks the contract.
    pub(crate) fn check(&mut self, answer: &Completion) {
        self.check_unanswered();
        self.is_answered = true;
        let Some(Asked { op, len }) = self.asked else { return };
        let has = answer.payload.len();
        assert!(has == len, "{op:?} was answered with a payload of {has} bytes instead of {len}");
        if let Err(errno) = answer.result {
            let is_passing = op.has_data() && [Errno::INTR, Errno::AGAIN].contains(&errno);
            assert!(!is_passing, "{op:?} was answered with {errno}, which the device has to retry");
        }
    }

    /// Checks that the request has not completed yet.
    ///
    /// # Panics
    /// If the request has completed.
    pub(crate) fn check_unanswered(&self) {
        assert!(!self.is_answered, "a request was answered, and polled again");
    }
}

#[cfg(not(debug_assertions))]
impl Contract {
    #[inline(always)]
    pub(crate) fn of(_: Op, _: u64) -> Contract {
        Contract {}
    }

    #[inline(always)]
    pub(crate) fn join(&mut self, _: Contract) {}

    #[inline(always)]
    pub(crate) fn check(&mut self, _: &Completion) {}

    #[inline(always)]
    pub(crate) fn check_unanswered(&self) {}
}
