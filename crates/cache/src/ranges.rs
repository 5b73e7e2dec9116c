//! Locks on blocks: one request at a time accesses a block of the origin.
//!
//! A second request finds what the first one cached. A block whose change was abandoned before the
//! origin completed it is never cached again, because the change may still arrive.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use braid_engine::Signal;

#[derive(Default)]
pub(crate) struct Ranges {
    taken: RefCell<Vec<Range<u64>>>,
    abandoned: RefCell<Vec<Range<u64>>>,
    changed: Signal,
}

/// Locked blocks; dropping it unlocks them.
pub(crate) struct Locked {
    ranges: Rc<Ranges>,
    blocks: Range<u64>,
    /// The origin has not completed a change of the blocks.
    is_changing: bool,
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Ranges {
    /// Returns whether all `blocks` are unlocked.
    pub(crate) fn is_free(&self, blocks: &Range<u64>) -> bool {
        !self.taken.borrow().iter().any(|one| overlap(one, blocks))
    }

    /// Waits until `blocks` are unlocked, and locks them.
    pub(crate) async fn take(self: &Rc<Self>, blocks: Range<u64>) -> Locked {
        self.changed.until(|| self.is_free(&blocks)).await;
        self.take_free(blocks)
    }

    /// Locks `blocks`, which are unlocked.
    pub(crate) fn take_free(self: &Rc<Self>, blocks: Range<u64>) -> Locked {
        self.taken.borrow_mut().push(blocks.clone());
        Locked { ranges: Rc::clone(self), blocks, is_changing: false }
    }

    /// Locks `blocks` for a change, until [`Locked::finish`].
    pub(crate) async fn take_to_change(self: &Rc<Self>, blocks: Range<u64>) -> Locked {
        let mut taken = self.take(blocks).await;
        taken.is_changing = true;
        taken
    }

    /// Returns whether a change of any block was abandoned.
    pub(crate) fn has_abandoned(&self) -> bool {
        !self.abandoned.borrow().is_empty()
    }

    /// Returns whether a change of one of `blocks` was abandoned.
    pub(crate) fn was_abandoned(&self, blocks: &Range<u64>) -> bool {
        self.abandoned.borrow().iter().any(|one| overlap(one, blocks))
    }
}

impl Locked {
    /// Unlocks the blocks: the origin completed the change.
    pub(crate) fn finish(mut self) {
        self.is_changing = false;
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut taken = self.ranges.taken.borrow_mut();
        if let Some(index) = taken.iter().position(|one| *one == self.blocks) {
            taken.swap_remove(index);
        }
        drop(taken);
        if self.is_changing {
            self.ranges.abandoned.borrow_mut().push(self.blocks.clone());
        }
        self.ranges.changed.notify();
    }
}
