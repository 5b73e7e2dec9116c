//! Orders on their way to the shard on which arrays and caches live.
//!
//! Invariant: an order is begun after its checks, and before its first change; a plan is never begun.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use braid_uring::{Handle, Remote};

use super::shard::{Local, call};
use crate::control::{Answer, Giver};
use crate::failure::Failure;
use crate::why::{Why, given_up};

/// The way of an order to the shard on which arrays live.
pub(super) struct Orders {
    remote: Remote,
    giver: Arc<Giver>,
}

impl Orders {
    pub(super) fn new(remote: Remote, giver: Arc<Giver>) -> Orders {
        Orders { remote, giver }
    }

    /// For an order of the volume's own.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn own(remote: &Remote) -> io::Result<Orders> {
        Ok(Orders::new(remote.clone(), Arc::new(Giver::own()?)))
    }

    /// The shard.
    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Begins the order on the thread of the caller, right before its first change; see [`Giver::begin`].
    ///
    /// # Errors
    /// The giver has gone, or only wants a plan. Nothing may be changed.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        match self.giver.begin() || self.giver.is_waiting() {
            true => Ok(()),
            false => Err(given_up("the order was not begun: the client that gave it has gone")),
        }
    }

    /// Returns true if the order is a question, and never begins.
    pub(super) fn is_plan(&self) -> bool {
        self.giver.is_plan()
    }

    /// Returns true if the order was begun, and the client still waits for it.
    pub(super) fn is_waiting(&self) -> bool {
        self.giver.is_waiting()
    }

    /// Has the shard call `check` and then, if the order may begin, `act` with the result, in one turn of the shard.
    /// Returns the answer that `act` sends within `limit`, or the one by which `check` ends the order.
    pub(super) fn carry_out<T>(
        &self,
        limit: Duration,
        check: impl FnOnce(&Handle, &Local) -> Result<T, Answer> + Send + 'static,
        act: impl FnOnce(&Handle, &Local, T, Sender<Answer>) + Send + 'static,
    ) -> Answer {
        let (send, receive) = channel();
        let giver = Arc::clone(&self.giver);
        call(&self.remote, move |handle, local| match check(handle, local) {
            // The receiver may have lost patience.
            Err(answer) => drop(send.send(answer)),
            Ok(checked) if giver.begin() || giver.is_waiting() => act(handle, local, checked, send),
            Ok(_) => {}
        });
        let seconds = limit.as_secs();
        match receive.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) if self.giver.give_up() => Err(given_up(
                "the volume is ending: the order was not carried out, and will not be",
            )),
            Err(_) if self.giver.give_up() => Err(Why::NotReached { seconds }.into()),
            Err(_) => Err(Why::NotThrough { seconds }.into()),
        }
    }

    /// Has the shard call `check`, and begins nothing.
    ///
    /// # Errors
    /// Those of `check`; the shard does not come to it within `limit`.
    pub(super) fn check(
        &self,
        limit: Duration,
        check: impl FnOnce(&Handle, &Local) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let checked = move |handle: &Handle, local: &Local| -> Result<(), Answer> {
            Err(check(handle, local).map(|()| String::new()))
        };
        self.carry_out(limit, checked, |_, _, (), _| {}).map(drop)
    }
}
