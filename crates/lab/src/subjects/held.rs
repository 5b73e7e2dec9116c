//! What exists because of us, in the order in which it came.
//!
//! Invariants:
//!
//! * a thing is noted before it comes where its name is known then, else as soon as it exists, and
//!   goes in the reverse order;
//! * a server is told by its environment and a claim ends with this process, so neither is noted.
//!
//! Deliberately absent: how each of it goes away, which its provider knows (`release.rs`).

use std::path::PathBuf;
use std::rc::Rc;

use super::hand::remove_file;
use super::journal::{Journal, Thing};
use crate::world::{Claim, Service};

/// A server of ours, with the socket that it leaves.
pub(super) struct Server {
    pub(super) service: Box<dyn Service>,
    pub(super) socket: PathBuf,
    pub(super) command: String,
}

/// Something that goes away again.
pub(super) enum Kept {
    /// Noted under this key, if it is.
    Thing(Thing, Option<u64>),
    Server(Server),
    /// A block device that nobody else is to take meanwhile.
    Claim(#[expect(dead_code, reason = "it is let go when it is dropped")] Claim),
}

/// Things, the last one on top, and what strikes each from the journal.
#[derive(Default)]
pub(super) struct Held {
    pub(super) things: Vec<Kept>,
    journal: Option<Rc<Journal>>,
}

impl Held {
    /// Nothing yet; what comes is noted.
    pub(super) fn noted_in(journal: &Rc<Journal>) -> Self {
        Self { things: Vec::new(), journal: Some(Rc::clone(journal)) }
    }

    pub(super) fn push(&mut self, thing: Thing) {
        let key = self.journal.as_ref().map(|journal| journal.note(thing.clone()));
        self.things.push(Kept::Thing(thing, key));
    }

    /// A server that has been started.
    pub(super) fn serve(&mut self, server: Server) {
        self.things.push(Kept::Server(server));
    }

    /// A device that has been claimed.
    pub(super) fn claim(&mut self, claim: Claim) {
        self.things.push(Kept::Claim(claim));
    }

    /// Strikes the thing that came last: it was noted before it came, and did not come.
    pub(super) fn withdraw(&mut self) {
        if let Some(Kept::Thing(_, key)) = self.things.pop() {
            self.strike(key);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.things.len()
    }

    /// What an earlier run left and noted under `key`.
    pub(super) fn adopt(&mut self, thing: Thing, key: u64) {
        self.things.push(Kept::Thing(thing, Some(key)));
    }

    pub(super) fn strike(&self, key: Option<u64>) {
        if let Some((journal, key)) = self.journal.as_ref().zip(key) {
            journal.strike(key);
        }
    }

    /// The server among them, if any.
    pub(super) fn server(&mut self) -> Option<&mut Box<dyn Service>> {
        self.things.iter_mut().find_map(|kept| match kept {
            Kept::Server(server) => Some(&mut server.service),
            _ => None,
        })
    }

    /// Strikes a server that has ended by itself; its socket goes too.
    pub(super) fn forget_server(&mut self) {
        self.things.retain(|kept| {
            if let Kept::Server(server) = kept {
                // Most servers remove it; one that is in the way is told when the next one starts.
                let _ = remove_file(&server.socket);
            }
            !matches!(kept, Kept::Server(_))
        });
    }
}
