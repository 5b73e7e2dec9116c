//! The connection of the client that gave an order, as the volume sees it: still open, or closed.
//!
//! ```text
//!   command                          volume
//!   POST /v1/order ────────────────▶ takes it          102 accepted ──▶ the volume is there
//!                                      │ opens the device, waits for the shard
//!   hangs up if that takes too long    ▼
//!        │ 1. says so (EOF)          begin(): 1. says "begun" (102)
//!        │ 2. has it begun?                   2. has the giver hung up?
//!        ▼                             ▼
//!   not begun: never will be         no: carries it out ──▶ 200, what became of it
//! ```
//!
//! A plan is an order that stops where it would begin: its giver lets it run up to [`Giver::begin`], and no
//! further. So the checks of a plan are those of the order.
//!
//! Invariants
//! * All checks of an order come before it is begun, and all changes after that.
//! * An order is begun at most once, and only while the client that gave it is connected.
//! * Both ends report before they look, so at least one of them sees the other: a client that was told that an
//!   order was not begun can rely on that.
//!
//! The interim answers (RFC 9110, 15.2: any number of 1xx may come before the answer) are written to the socket
//! itself, because the HTTP library reports neither when it has written nor whether the client is still
//! connected. Nothing else is written meanwhile: the library waits for the answer. Deliberately absent: the
//! effect of orders.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

/// The header of an interim answer that says how far an order has come.
pub(crate) const PHASE: &str = "braid-order";
pub(crate) const ACCEPTED: &str = "accepted";
pub(crate) const BEGUN: &str = "begun";

const WAITING: u8 = 0;
const IS_BEGUN: u8 = 1;
const IS_GIVEN_UP: u8 = 2;
const IS_PLAN: u8 = 3;
const IS_PLANNED: u8 = 4;

/// The giver of one order.
#[derive(Debug)]
pub struct Giver {
    /// `None` for a plan.
    connection: Option<Arc<OwnedFd>>,
    state: AtomicU8,
    /// The other end, for a client in this process.
    _peer: Option<UnixStream>,
}

impl Giver {
    /// Returns the giver at the other end of `connection`.
    pub fn new(connection: Arc<OwnedFd>) -> Giver {
        Giver { connection: Some(connection), state: AtomicU8::new(WAITING), _peer: None }
    }

    /// Returns a giver whose order is a question: it never begins.
    pub fn of_plan() -> Giver {
        Giver { connection: None, state: AtomicU8::new(IS_PLAN), _peer: None }
    }

    /// The volume itself, which does not go before the order is carried out.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn own() -> std::io::Result<Giver> {
        let (here, there) = UnixStream::pair()?;
        Ok(Giver {
            connection: Some(Arc::new(here.into())),
            state: AtomicU8::new(WAITING),
            _peer: Some(there),
        })
    }

    /// Tells the giver that the volume has received the order.
    pub fn accept(&self) {
        self.say(ACCEPTED);
    }

    /// Returns true if the order may be begun now; then it counts as begun. False if the giver has gone, or was
    /// told that the order will not be carried out. To be called right before the first change.
    pub fn begin(&self) -> bool {
        if !self.pass(WAITING, IS_BEGUN) {
            self.pass(IS_PLAN, IS_PLANNED);
            return false;
        }
        self.say(BEGUN);
        let is_there = !self.has_hung_up();
        if !is_there {
            self.state.store(IS_GIVEN_UP, Ordering::SeqCst);
        }
        is_there
    }

    /// Returns true if the order is a question, and never begins.
    pub fn is_plan(&self) -> bool {
        self.connection.is_none()
    }

    /// Returns true if an order that is a question came to the point where it would begin.
    pub fn is_planned(&self) -> bool {
        self.state.load(Ordering::SeqCst) == IS_PLANNED
    }

    /// Returns true if the order was begun.
    pub fn has_begun(&self) -> bool {
        self.state.load(Ordering::SeqCst) == IS_BEGUN
    }

    /// True if the order was begun, and its giver still waits for it. If it is false, an order that has changed
    /// nothing yet may be given up.
    pub fn is_waiting(&self) -> bool {
        self.has_begun() && !self.has_hung_up()
    }

    /// Keeps the order from being begun later; false if it was begun already.
    pub fn give_up(&self) -> bool {
        self.pass(WAITING, IS_GIVEN_UP) || !self.has_begun()
    }

    fn pass(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// A giver that cannot be told has gone, which the next check finds out.
    fn say(&self, phase: &str) {
        let Some(connection) = &self.connection else { return };
        let text = format!("HTTP/1.1 102 Processing\r\n{PHASE}: {phase}\r\n\r\n");
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(connection, text.as_bytes(), flags);
    }

    /// True if the other end is closed, or will send nothing more.
    fn has_hung_up(&self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let mut polled = [PollFd::new(connection, PollFlags::RDHUP)];
        // If the state of the connection is unknown, no answer can be delivered either.
        poll(&mut polled, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, Giver) {
        let (command, volume) = UnixStream::pair().unwrap();
        (command, Giver::new(Arc::new(volume.into())))
    }

    #[test]
    fn an_order_is_begun_once_and_its_giver_hears_of_it() {
        let (mut command, giver) = pair();
        giver.accept();
        assert!(giver.begin());
        assert!(!giver.begin(), "once");
        assert!(giver.is_waiting());
        assert!(!giver.give_up(), "it was begun");
        drop(giver);
        let mut heard = String::new();
        command.read_to_string(&mut heard).unwrap();
        assert_eq!(heard.matches("HTTP/1.1 102 ").count(), 2);
        assert!(heard.ends_with("braid-order: begun\r\n\r\n"));
    }

    #[test]
    fn a_plan_comes_to_where_it_would_begin_and_no_further() {
        let giver = Giver::of_plan();
        giver.accept();
        assert!(!giver.is_planned(), "its checks are to come");
        assert!(!giver.begin() && giver.is_planned());
        assert!(!giver.begin() && !giver.is_waiting() && !giver.has_begun());
        assert!(giver.give_up() && giver.is_planned(), "it is not begun later, either");
    }

    #[test]
    fn an_order_whose_giver_has_gone_is_not_begun() {
        let (command, giver) = pair();
        drop(command);
        assert!(!giver.begin());
        assert!(giver.give_up(), "nor later");
        let (command, giver) = pair();
        command.shutdown(Shutdown::Write).unwrap();
        assert!(!giver.begin(), "a giver that hung up may still listen");
        let (command, giver) = pair();
        assert!(!giver.is_waiting(), "it is not begun");
        assert!(giver.begin() && giver.is_waiting());
        drop(command);
        assert!(!giver.is_waiting());
        let (_command, giver) = pair();
        assert!(giver.give_up());
        assert!(!giver.begin(), "it was given up");
    }
}
