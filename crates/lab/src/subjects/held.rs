//! Objects that a run has made, in the order of their creation.
//!
//! Invariants:
//!
//! * an object is recorded before it is made if its name is known then, else as soon as it exists, and objects
//!   are removed in reverse order; superblocks are removed last, when no other object has their members open;
//! * between trials no force is used: an object that cannot be removed stays recorded and is an error;
//! * at the very end all objects are tried; busy ones are removed by force and named;
//! * a claim ends with this process, so it is not recorded.
//!
//! Deliberately absent: the removal of each kind (`things.rs`).

use std::fs::File;
use std::rc::Rc;

use super::hand::Hand;
use super::journal::Journal;
use super::things::Thing;
use crate::error::LabError;

/// Keys of objects in the journal, the last one on top.
pub(super) struct Held {
    keys: Vec<u64>,
    /// A block device that is claimed exclusively.
    claim: Option<File>,
    journal: Rc<Journal>,
}

impl Held {
    /// Returns an empty list whose objects are recorded in `journal`.
    pub(super) fn noted_in(journal: &Rc<Journal>) -> Self {
        Self { keys: Vec::new(), claim: None, journal: Rc::clone(journal) }
    }

    /// Records an object; the returned key withdraws it.
    pub(super) fn push(&mut self, thing: Thing) -> u64 {
        let goes_last = matches!(thing, Thing::Superblocks { .. });
        let key = self.journal.note(thing);
        let place = if goes_last { 0 } else { self.keys.len() };
        self.keys.insert(place, key);
        key
    }

    /// Keeps the claim of a device.
    pub(super) fn claim(&mut self, claim: File) {
        self.claim = Some(claim);
    }

    /// Removes the record of an object that was not made after all.
    pub(super) fn withdraw(&mut self, key: u64) {
        self.keys.retain(|one| *one != key);
        self.journal.strike(key);
    }

    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Adds an object of an earlier run, recorded under `key`.
    pub(super) fn adopt(&mut self, key: u64) {
        self.keys.push(key);
    }

    /// Removes all objects; `is_the_end` allows force.
    ///
    /// # Errors
    ///
    /// The first object that was not removed. Unless it is the end, it and older objects stay.
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
                // It stays recorded: the next run here tries again.
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
