//! An arena of pages, and what is lent of it: what a pool and its buffers share.
//!
//! Invariant: all of it stays on the thread of its pool; only [`Growth`] is shared with the grower.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;

use crate::buddy::Buddy;
use crate::growth::Growth;
use crate::{Region, arenas};

thread_local! {
    /// The pools of this thread that can grow.
    static POOLS: RefCell<Vec<Weak<Inner>>> = const { RefCell::new(Vec::new()) };
}

/// Gives back what this thread's pools have grown by, where they did not need it since the last call.
pub fn trim_pools() {
    POOLS.with_borrow_mut(|pools| {
        pools.retain(|pool| {
            let pool = pool.upgrade();
            pool.as_deref().inspect(|pool| pool.trim()).is_some()
        });
    });
}

/// Has `pool` looked after by [`trim_pools`].
pub(crate) fn register(pool: &Rc<Inner>) {
    POOLS.with_borrow_mut(|pools| pools.push(Rc::downgrade(pool)));
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// It is taken out when the pool is dropped.
    pub(crate) arena: Option<Arc<Region>>,
    /// First byte of the arena.
    pub(crate) base: NonNull<u8>,
    pub(crate) total: usize,
    pub(crate) largest: usize,
    pub(crate) state: RefCell<State>,
    #[cfg(feature = "limit")]
    pub(crate) is_exempt: std::cell::Cell<bool>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) buddy: Buddy,
    /// For the first page of each taken block: how many `Buf`s hold it, and its order.
    pub(crate) blocks: Vec<Block>,
    pub(crate) waiting: Vec<Waker>,
    /// Pages lent now, and the most that were at once since the last [`Inner::trim`].
    pub(crate) lent: u32,
    pub(crate) most: u32,
    pub(crate) growing: Option<Growing>,
}

/// The part of an arena that is there, if it is not all of it.
#[derive(Debug)]
pub(crate) struct Growing {
    pub(crate) growth: Arc<Growth>,
    pub(crate) floor: u32,
    /// Pages that can be lent.
    pub(crate) opened: u32,
}

impl State {
    /// Takes a block, whose first `Buf` is to be made.
    #[inline]
    pub(crate) fn take(&mut self, order: u8) -> Option<u32> {
        let page = match self.buddy.take(order) {
            Some(page) => page,
            None => self.take_grown(order)?,
        };
        self.lent += 1 << order;
        self.most = self.most.max(self.lent);
        self.blocks[page as usize] = Block { refs: 1, copies: 0, order };
        Some(page)
    }

    /// Takes a block of what the arena has grown by; has it grow if that does not suffice.
    #[cold]
    fn take_grown(&mut self, order: u8) -> Option<u32> {
        let (total, size) = (self.blocks.len() as u32, 1 << order);
        let growing = self.growing.as_mut()?;
        let there = growing.growth.there();
        if there > growing.opened {
            self.buddy.fill(growing.opened, there);
            growing.opened = there;
            if let Some(page) = self.buddy.take(order) {
                return Some(page);
            }
        }
        if growing.opened < total {
            let wanted = growing.opened.next_multiple_of(size).saturating_add(size);
            growing.growth.ask(wanted.max(2 * growing.opened).min(total));
        }
        None
    }

    pub(crate) fn give(&mut self, page: u32, order: u8) {
        self.lent -= 1 << order;
        self.buddy.give(page, order);
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Block {
    pub(crate) refs: u32,
    /// The number of references that are copies made by `share`.
    pub(crate) copies: u32,
    pub(crate) order: u8,
}

impl Inner {
    /// Gives back what the arena has grown by, if the floor has sufficed since the last call, and does now.
    pub(crate) fn trim(&self) {
        let State { buddy, lent, most, growing, .. } = &mut *self.state.borrow_mut();
        let most = std::mem::replace(most, *lent);
        let Some(Growing { growth, floor, opened }) = growing else { return };
        if *opened == *floor || most > *floor || !buddy.close(*floor, *opened) {
            return;
        }
        match growth.shrink(*floor, *opened) {
            true => *opened = *floor,
            false => buddy.fill(*floor, *opened),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The grower may have the arena still; it unmaps it then.
        self.state.get_mut().growing = None;
        if let Some(Ok(arena)) = self.arena.take().map(Arc::try_unwrap) {
            arenas::keep(arena);
        }
    }
}
