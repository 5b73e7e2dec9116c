//! Blocks that were here and are not any more: of what was evicted, in the order in which it was.

use crate::directory::Directory;
use crate::list::{Links, List};

/// A memory of blocks, in two lists.
pub(super) struct Ghosts {
    directory: Directory,
    links: Links,
    lists: [List; 2],
    list_of: Vec<u8>,
}

impl Ghosts {
    /// Of up to `most` blocks.
    pub(super) fn new(most: u32) -> Ghosts {
        Ghosts {
            directory: Directory::new(most),
            links: Links::new(most),
            lists: [List::default(); 2],
            list_of: vec![0; most as usize],
        }
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.directory.bytes() + self.links.bytes() + self.list_of.len()
    }

    /// How many are in a list.
    pub(super) fn len(&self, list: u8) -> u32 {
        self.lists[usize::from(list)].len()
    }

    /// Adds `block` to a list, if there is room.
    pub(super) fn remember(&mut self, list: u8, block: u64) {
        if let Some(ghost) = self.directory.insert(block) {
            self.list_of[ghost.index()] = list;
            self.lists[usize::from(list)].push(&mut self.links, ghost);
        }
    }

    /// Whether there is no room for another.
    pub(super) fn is_full(&self) -> bool {
        self.directory.used() == self.directory.slots()
    }

    /// Takes the oldest out of a list.
    pub(super) fn forget_oldest(&mut self, list: u8) {
        if let Some(oldest) = self.lists[usize::from(list)].oldest() {
            self.lists[usize::from(list)].remove(&mut self.links, oldest);
            self.directory.remove(oldest);
        }
    }

    /// The list that `block` is in.
    pub(super) fn find(&self, block: u64) -> Option<u8> {
        self.directory.find(block).map(|ghost| self.list_of[ghost.index()])
    }

    /// Takes `block` out; answers whether it was there.
    pub(super) fn recall(&mut self, block: u64) -> bool {
        let Some(ghost) = self.directory.find(block) else { return false };
        let list = usize::from(self.list_of[ghost.index()]);
        self.lists[list].remove(&mut self.links, ghost);
        self.directory.remove(ghost);
        true
    }
}
