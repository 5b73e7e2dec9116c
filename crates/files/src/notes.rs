//! The remarks beside the answer: a bounded list of sentences.

use std::collections::BTreeSet;

/// Sentences that are kept.
const MOST: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Notes {
    kept: Vec<String>,
    known: BTreeSet<String>,
    more: u64,
}

impl Notes {
    /// Adds a sentence, unless it is there.
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.known.contains(&note) {
            return;
        }
        if self.kept.len() == MOST {
            self.more += 1;
            return;
        }
        self.known.insert(note.clone());
        self.kept.push(note);
    }

    /// Adds that `what` is not told completely, with the reason, if there is one.
    pub(crate) fn incomplete<T>(
        &mut self,
        what: impl FnOnce() -> String,
        tried: crate::error::Tried<T>,
    ) -> Option<T> {
        tried.map_err(|why| self.add(format!("{}: {why}", what()))).ok()
    }

    /// Takes the sentences out.
    pub(crate) fn take(&mut self) -> Vec<String> {
        let Notes { mut kept, more, .. } = std::mem::take(self);
        if more > 0 {
            kept.push(format!("{more} more places could not be read or were not believed"));
        }
        kept
    }
}
