//! Which blocks have something under way at the origin: one request at a time in each.
//!
//! Whoever comes second finds what the first brought. A block whose change was given up before the
//! origin had answered is never held again: nobody knows when it arrives.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use braid_engine::Signal;

#[derive(Default)]
pub(crate) struct Ranges {
    taken: RefCell<Vec<Range<u64>>>,
    given_up: RefCell<Vec<Range<u64>>>,
    changed: Signal,
}

/// Blocks that are taken until this is dropped.
pub(crate) struct Taken {
    ranges: Rc<Ranges>,
    blocks: Range<u64>,
    /// The origin is changing them, and has not answered.
    is_changing: bool,
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Ranges {
    /// Whether nobody has any of `blocks`.
    pub(crate) fn is_free(&self, blocks: &Range<u64>) -> bool {
        !self.taken.borrow().iter().any(|one| overlap(one, blocks))
    }

    /// Takes `blocks` once nobody has them.
    pub(crate) async fn take(self: &Rc<Self>, blocks: Range<u64>) -> Taken {
        self.changed.until(|| self.is_free(&blocks)).await;
        self.take_free(blocks)
    }

    /// Takes `blocks`, which nobody has.
    pub(crate) fn take_free(self: &Rc<Self>, blocks: Range<u64>) -> Taken {
        self.taken.borrow_mut().push(blocks.clone());
        Taken { ranges: Rc::clone(self), blocks, is_changing: false }
    }

    /// As [`Ranges::take`], to change them until [`Taken::finish`].
    pub(crate) async fn take_to_change(self: &Rc<Self>, blocks: Range<u64>) -> Taken {
        let mut taken = self.take(blocks).await;
        taken.is_changing = true;
        taken
    }

    /// Whether any block was given up.
    pub(crate) fn has_given_up(&self) -> bool {
        !self.given_up.borrow().is_empty()
    }

    /// Whether some of `blocks` was given up.
    pub(crate) fn was_given_up(&self, blocks: &Range<u64>) -> bool {
        self.given_up.borrow().iter().any(|one| overlap(one, blocks))
    }
}

impl Taken {
    /// The origin has answered.
    pub(crate) fn finish(mut self) {
        self.is_changing = false;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut taken = self.ranges.taken.borrow_mut();
        if let Some(index) = taken.iter().position(|one| *one == self.blocks) {
            taken.swap_remove(index);
        }
        drop(taken);
        if self.is_changing {
            self.ranges.given_up.borrow_mut().push(self.blocks.clone());
        }
        self.ranges.changed.notify();
    }
}
