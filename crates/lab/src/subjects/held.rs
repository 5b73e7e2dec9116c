//! What exists because of us, in the order in which it came.
//!
//! Invariants:
//!
//! * a thing is noted before it comes where its name is known then, else as soon as it exists, and
//!   goes in the reverse order; but superblocks last, when nothing has their members any more;
//! * between trials nothing is taken by force: what does not go stays noted and is an error;
//! * at the very end everything is tried, and what is busy is taken by force and named;
//! * a claim ends with this process, so it is not noted.
//!
//! Deliberately absent: how each of it goes away (`things.rs`).

use std::fs::File;
use std::rc::Rc;

use super::hand::Hand;
use super::journal::Journal;
use super::things::Thing;
use crate::error::LabError;

/// Keys of things in the journal, the last one on top.
pub(super) struct Held {
    keys: Vec<u64>,
    /// A block device that nobody else is to take meanwhile.
    claim: Option<File>,
    journal: Rc<Journal>,
}

impl Held {
    /// Nothing yet; what comes is noted.
    pub(super) fn noted_in(journal: &Rc<Journal>) -> Self {
        Self { keys: Vec::new(), claim: None, journal: Rc::clone(journal) }
    }

    /// Notes a thing; the answer withdraws it.
    pub(super) fn push(&mut self, thing: Thing) -> u64 {
        let goes_last = matches!(thing, Thing::Superblocks { .. });
        let key = self.journal.note(thing);
        let place = if goes_last { 0 } else { self.keys.len() };
        self.keys.insert(place, key);
        key
    }

    /// A device that has been claimed.
    pub(super) fn claim(&mut self, claim: File) {
        self.claim = Some(claim);
    }

    /// Strikes a thing that was noted before it came, and did not come.
    pub(super) fn withdraw(&mut self, key: u64) {
        self.keys.retain(|one| *one != key);
        self.journal.strike(key);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// What an earlier run left and noted under `key`.
    pub(super) fn adopt(&mut self, key: u64) {
        self.keys.push(key);
    }

    /// Lets everything go; `is_the_end` means by force where it must be.
    ///
    /// # Errors
    ///
    /// The first thing that did not go. Unless it is the end, it and what came before it stay.
    pub(super) fn release(
        &mut self,
        hand: &mut Hand<'_>,
        is_the_end: bool,
    ) -> Result<(), LabError> {
        self.claim = None;
        let mut first = Ok(());
        while let Some(key) = self.keys.pop() {
            let thing = self.journal.get(key);
            match thing.map_or(Ok(()), |thing| thing.release(hand, is_the_end)) {
                Ok(()) => self.journal.strike(key),
                // It stays noted: the next run here tries again.
                Err(error) if is_the_end => first = first.and(Err(error)),
                Err(error) => {
                    self.keys.push(key);
                    return Err(error);
                }
            }
        }
        first
    }
}
