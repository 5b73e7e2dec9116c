//! Intrusive lists of slots: a slot is in at most one list.

use crate::slot::Slot;

const NONE: u32 = u32::MAX;

/// Links of all slots, 8 bytes each, shared by the lists.
pub(crate) struct Links {
    newer: Vec<u32>,
    older: Vec<u32>,
}

/// A list of slots, from the oldest to the newest.
#[derive(Clone, Copy)]
pub(crate) struct List {
    oldest: u32,
    newest: u32,
    len: u32,
}

impl Links {
    /// Creates the links of `slots` slots.
    pub(crate) fn new(slots: u32) -> Links {
        Links { newer: vec![NONE; slots as usize], older: vec![NONE; slots as usize] }
    }

    /// Returns its memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.newer.len() + self.older.len()) * size_of::<u32>()
    }

    /// Returns the next newer slot in the list of `slot`.
    #[inline]
    pub(crate) fn newer(&self, slot: Slot) -> Option<Slot> {
        some(self.newer[slot.index()])
    }
}

#[inline]
fn some(number: u32) -> Option<Slot> {
    (number != NONE).then(|| Slot::new(number))
}

impl Default for List {
    fn default() -> List {
        List { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl List {
    /// Returns the number of slots.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the oldest slot.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Slot> {
        some(self.oldest)
    }

    /// Returns the oldest slot that satisfies `fit`.
    pub(crate) fn oldest_that(
        &self,
        links: &Links,
        mut fit: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        let mut next = self.oldest();
        while let Some(slot) = next {
            if fit(slot) {
                return Some(slot);
            }
            next = links.newer(slot);
        }
        None
    }

    /// Adds `slot`, which is in no list, as the newest.
    #[inline]
    pub(crate) fn push(&mut self, links: &mut Links, slot: Slot) {
        let number = slot.get();
        links.older[slot.index()] = self.newest;
        links.newer[slot.index()] = NONE;
        match some(self.newest) {
            Some(before) => links.newer[before.index()] = number,
            None => self.oldest = number,
        }
        self.newest = number;
        self.len += 1;
    }

    /// Removes `slot` from this list.
    #[inline]
    pub(crate) fn remove(&mut self, links: &mut Links, slot: Slot) {
        let (older, newer) = (links.older[slot.index()], links.newer[slot.index()]);
        match some(older) {
            Some(older) => links.newer[older.index()] = newer,
            None => self.oldest = newer,
        }
        match some(newer) {
            Some(newer) => links.older[newer.index()] = older,
            None => self.newest = older,
        }
        self.len -= 1;
    }

    /// Makes `slot`, which is in this list, the newest.
    #[inline]
    pub(crate) fn renew(&mut self, links: &mut Links, slot: Slot) {
        if self.newest == slot.get() {
            return;
        }
        // The list has a newer slot.
        let (older, newer) = (links.older[slot.index()], links.newer[slot.index()]);
        match some(older) {
            Some(older) => links.newer[older.index()] = newer,
            None => self.oldest = newer,
        }
        links.older[Slot::new(newer).index()] = older;
        links.newer[Slot::new(self.newest).index()] = slot.get();
        links.older[slot.index()] = self.newest;
        links.newer[slot.index()] = NONE;
        self.newest = slot.get();
    }
}
