//! Lists of slots that are linked in place: a slot is in one list at most.

use crate::slot::Slot;

const NONE: u32 = u32::MAX;

/// The links of all slots, 8 bytes each; lists share them.
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
    /// Those of `slots` slots.
    pub(crate) fn new(slots: u32) -> Links {
        Links { newer: vec![NONE; slots as usize], older: vec![NONE; slots as usize] }
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        (self.newer.len() + self.older.len()) * size_of::<u32>()
    }

    /// The one that came after `slot` in its list.
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
    /// How many slots it has.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Whether it has none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The one that has been in it for longest.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Slot> {
        some(self.oldest)
    }

    /// The one that has been in it for longest, of those that `fit`.
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

    /// Takes out `slot`, which is in this list.
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
        // Neither end is empty, and somebody is newer.
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
