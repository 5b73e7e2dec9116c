//! Arenas of pools that were dropped, kept for pools to come.

use std::cell::RefCell;

use crate::{Region, steady};

thread_local! {
    /// Arenas of pools that were dropped, where they are to be kept.
    static KEPT: RefCell<Option<Vec<Region>>> = const { RefCell::new(None) };
}

/// From now on, this thread keeps the arenas of dropped pools for new pools, and the process up to 1 GiB of heap that
/// is freed: for a program that makes and drops thousands of arrays and disks (a simulation), page faults in new
/// memory would be most of the work.
pub fn keep_arenas() {
    KEPT.with(|kept| {
        kept.borrow_mut().get_or_insert_with(|| {
            steady::keep_freed(1 << 30);
            Vec::new()
        });
    });
}

/// Takes one of `len` bytes out of those that were kept.
pub(crate) fn kept(len: usize) -> Option<Region> {
    KEPT.with(|kept| {
        let mut kept = kept.borrow_mut();
        let kept = kept.as_mut()?;
        let index = kept.iter().position(|arena| arena.len() == len)?;
        Some(kept.swap_remove(index))
    })
}

/// Keeps `arena`, if this thread keeps some, or unmaps it.
pub(crate) fn keep(arena: Region) {
    // At the end of a thread the arena cannot be kept any more.
    let _ = KEPT.try_with(|kept| {
        if let Some(kept) = &mut *kept.borrow_mut() {
            kept.push(arena);
        }
    });
}
