//! Buffers drawn from one arena, that can be cut and joined without copying.
//!
//! ```text
//! arena   | page | page | page | page | page | page | …
//! block          |<------- order 2 (four pages) ------>|        refs = 3
//! Buf             [ chunk 0 ][ chunk 1 ][   the rest   ]         three cuts of one block
//! ```
//!
//! Invariants
//! * The byte ranges of all live `Buf`s are disjoint, so each may be borrowed mutably. The exception are lent
//!   windows ([`Buf::share`]), which may not be borrowed mutably until all their copies are gone
//!   ([`Buf::reclaim`]).
//! * A block goes back to the arena when its last `Buf` is dropped (`refs` counts them).
//! * Every `Buf` from [`Pool::get`] starts on a page boundary. Its bytes are left over from its previous
//!   holder: the reader of a device must overwrite all bytes that it passes on.
//!
//! A pool and its buffers stay on one thread (`Rc`): each shard has its own.

use std::cell::RefCell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use crate::arena::{self, Block, Growing, Inner, State};
use crate::buddy::Buddy;
use crate::growth::{self, Growth};
use crate::{Advice, HUGE_PAGE, PAGE, Region, arenas, limit};

/// An arena of page-aligned buffers; cheap to clone, all clones are the same pool.
#[derive(Clone, Debug)]
pub struct Pool {
    inner: Rc<Inner>,
}

impl Pool {
    /// Maps and faults in an arena of `bytes` (rounded up to whole pages).
    ///
    /// # Errors
    /// The error of `mmap`.
    pub fn new(bytes: usize) -> io::Result<Pool> {
        Pool::of(bytes, bytes)
    }

    /// The same, of which only the first `floor` bytes are there at first, if this thread's pools may grow
    /// ([`crate::let_pools_grow`]). A request that the floor does not suffice for may wait until the kernel has freed
    /// memory: it must not be one on which the kernel waits for that.
    ///
    /// # Errors
    /// The error of `mmap`.
    pub fn growing(most: usize, floor: usize) -> io::Result<Pool> {
        Pool::of(most, if growth::is_on() { floor.min(most) } else { most })
    }

    fn of(bytes: usize, floor: usize) -> io::Result<Pool> {
        let pages = |bytes: usize| {
            u32::try_from(bytes.div_ceil(PAGE).max(1)).map_err(|_| io::ErrorKind::InvalidInput)
        };
        let (pages, floor) = (pages(bytes)?, pages(floor)?);
        let total = pages as usize * PAGE;
        let arena = match arenas::kept(total) {
            Some(arena) => arena,
            None => {
                // Huge pages only for what is there from the start: the kernel may have to move others first.
                let is_whole = floor == pages;
                let advice = if is_whole { Advice::SparseHuge } else { Advice::Sparse };
                let arena = Region::new(total, advice)?;
                if floor as usize * PAGE >= HUGE_PAGE {
                    arena.prefer_huge(floor as usize * PAGE);
                }
                // What there was no memory for is faulted in when it is written.
                let _ = arena.populate_part(0, floor as usize * PAGE);
                arena
            }
        };
        let arena = Arc::new(arena);
        let growing = (floor < pages).then(|| Growing {
            growth: Growth::new(Arc::clone(&arena), floor),
            floor,
            opened: floor,
        });
        let is_growing = growing.is_some();
        let state = State {
            buddy: Buddy::new(pages, floor),
            blocks: vec![Block::default(); pages as usize],
            waiting: Vec::new(),
            lent: 0,
            most: 0,
            growing,
        };
        let inner = Rc::new(Inner {
            base: arena.base(),
            arena: Some(arena),
            total,
            largest: Buddy::largest(pages) as usize * PAGE,
            state: RefCell::new(state),
            #[cfg(feature = "limit")]
            is_exempt: std::cell::Cell::default(),
        });
        if is_growing {
            arena::register(&inner);
        }
        Ok(Pool { inner })
    }

    /// Keeps the arena in memory: what is there, and what it grows by where the limit allows.
    ///
    /// # Errors
    /// `ENOMEM` or `EPERM` when the limit on locked memory is too low.
    pub fn lock(&self) -> io::Result<()> {
        let state = self.inner.state.borrow();
        let Some(arena) = &self.inner.arena else { return Ok(()) };
        let Some(growing) = &state.growing else { return arena.lock() };
        arena.lock_part(0, growing.opened as usize * PAGE)?;
        growing.growth.is_locked.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A buffer of exactly `len` bytes, or `None` when the arena is spent for now.
    ///
    /// # Panics
    /// If `len` is 0 or more than [`Pool::largest`].
    #[inline]
    pub fn get(&self, len: usize) -> Option<Buf> {
        let order = self.order_of(len);
        if self.is_limited(PAGE << order) {
            return None;
        }
        let page = self.inner.state.borrow_mut().take(order)?;
        Some(self.buf(page, len))
    }

    #[inline]
    fn order_of(&self, len: usize) -> u8 {
        assert!(
            len > 0 && len <= self.inner.largest,
            "a buffer of {len} bytes from a pool that gives up to {}",
            self.inner.largest
        );
        Buddy::order_for(len.div_ceil(PAGE) as u32)
    }

    #[inline]
    fn buf(&self, page: u32, len: usize) -> Buf {
        Buf { pool: Rc::clone(&self.inner), page, start: 0, len: len as u32, hold: Hold::Only }
    }

    /// Buffers of exactly `lens` bytes, or `None` when there is no room for all of them now. Two callers that each
    /// held a part while they wait for the rest would wait for each other.
    ///
    /// # Panics
    /// As [`Pool::get`].
    pub fn get_all(&self, lens: &[usize]) -> Option<Vec<Buf>> {
        let bytes = lens.iter().map(|len| PAGE << self.order_of(*len)).sum();
        if bytes > self.free_bytes() || self.is_limited(bytes) {
            return None;
        }
        let mut state = self.inner.state.borrow_mut();
        let mut pages = Vec::with_capacity(lens.len());
        for len in lens {
            let order = self.order_of(*len);
            let Some(page) = state.take(order) else {
                // No task is woken: there is as much as before.
                pages.into_iter().for_each(|(page, order)| state.give(page, order));
                return None;
            };
            pages.push((page, order));
        }
        Some(pages.iter().zip(lens).map(|((page, _), len)| self.buf(*page, *len)).collect())
    }

    /// As [`Pool::get_all`], registering to be woken when a buffer comes back.
    pub fn poll_get_all(&self, lens: &[usize], cx: &mut Context<'_>) -> Poll<Vec<Buf>> {
        let bufs = self.get_all(lens);
        bufs.map_or_else(|| self.wait(cx), Poll::Ready)
    }

    /// Has the task woken when a buffer comes back.
    fn wait<T>(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.inner.state.borrow_mut();
        state.waiting.push(cx.waker().clone());
        if let Some(growing) = &state.growing {
            growing.growth.wake_when_grown(growing.opened, cx.waker());
        }
        Poll::Pending
    }

    /// As [`Pool::get`], registering to be woken when a buffer comes back.
    pub fn poll_get(&self, len: usize, cx: &mut Context<'_>) -> Poll<Buf> {
        self.get(len).map_or_else(|| self.wait(cx), Poll::Ready)
    }

    /// Waits until `bytes` are not lent out. Any of them may be lent to others before they are asked for.
    pub fn poll_free(&self, bytes: usize, cx: &mut Context<'_>) -> Poll<()> {
        if self.free_bytes() >= bytes && !self.is_limited(bytes) {
            return Poll::Ready(());
        }
        self.wait(cx)
    }

    /// As [`Pool::get`], waiting until there is one.
    pub async fn get_wait(&self, len: usize) -> Buf {
        std::future::poll_fn(|cx| self.poll_get(len, cx)).await
    }

    /// The same pool, to which [`crate::set_limit`] does not apply.
    #[cfg(feature = "limit")]
    #[must_use]
    pub fn without_limit(self) -> Pool {
        self.inner.is_exempt.set(true);
        self
    }

    /// True if the limit of tests keeps `more` bytes back for now.
    #[inline]
    fn is_limited(&self, more: usize) -> bool {
        #[cfg(feature = "limit")]
        if self.inner.is_exempt.get() {
            return false;
        }
        limit::is_beyond(|| self.total_bytes() - self.free_bytes(), more)
    }

    /// As [`Pool::get_all`], waiting until there is room.
    pub async fn get_all_wait(&self, lens: &[usize]) -> Vec<Buf> {
        std::future::poll_fn(|cx| self.poll_get_all(lens, cx)).await
    }

    /// True if a request waits for a buffer.
    pub fn is_wanted(&self) -> bool {
        !self.inner.state.borrow().waiting.is_empty()
    }

    /// Bytes not lent out now, those that are yet to be grown by included.
    pub fn free_bytes(&self) -> usize {
        self.inner.total - self.inner.state.borrow().lent as usize * PAGE
    }

    /// Longest buffer that it can ever give, in bytes: the largest power of two in it.
    pub fn largest(&self) -> usize {
        self.inner.largest
    }

    /// Bytes in all.
    pub fn total_bytes(&self) -> usize {
        self.inner.total
    }
}

/// An exclusive window onto pool memory. Dropping it gives the memory back.
pub struct Buf {
    pool: Rc<Inner>,
    /// First page of the block this is a window of.
    page: u32,
    /// Start of the window in the block, in bytes.
    start: u32,
    len: u32,
    hold: Hold,
}

/// The sharing of a window's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// It is the only window on them.
    Only,
    /// Copies of it were made.
    Lent,
    /// It is a copy.
    Copy,
}

impl Buf {
    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if the window has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Cuts the window: `self` keeps `..at`, the rest is returned.
    ///
    /// # Panics
    /// If `at` is past the end.
    pub fn split_off(&mut self, at: usize) -> Buf {
        assert!(at <= self.len(), "cut at {at} of {} bytes", self.len);
        let tail = self.second(self.start + at as u32, self.len - at as u32, self.hold);
        self.len = at as u32;
        tail
    }

    /// A second window on the same bytes, so that several devices can store them at the same
    /// time. Until [`Buf::reclaim`], neither can be borrowed mutably.
    pub fn share(&mut self) -> Buf {
        if self.hold == Hold::Only {
            self.hold = Hold::Lent;
        }
        self.second(self.start, self.len, Hold::Copy)
    }

    /// Makes a window that was lent the only one again, if no copy of any window of its block is
    /// left; answers whether it is.
    pub fn reclaim(&mut self) -> bool {
        let copies = self.pool.state.borrow().blocks[self.page as usize].copies;
        if self.hold == Hold::Lent && copies == 0 {
            self.hold = Hold::Only;
        }
        self.hold == Hold::Only
    }

    /// Gives a window that was lent memory of its own, with the same bytes, where a copy of it does not
    /// come back: the kernel may read that one for as long as it likes. Answers whether the window is
    /// the only one on its bytes now.
    pub fn detach(&mut self) -> bool {
        if self.reclaim() || self.hold == Hold::Copy || self.is_empty() {
            return self.hold == Hold::Only;
        }
        let Ok(mut own) = Buf::apart(self.len()) else { return false };
        own.copy_from_slice(self);
        *self = own;
        true
    }

    /// Another window on this block.
    fn second(&self, start: u32, len: u32, hold: Hold) -> Buf {
        let mut state = self.pool.state.borrow_mut();
        let block = &mut state.blocks[self.page as usize];
        block.refs += 1;
        block.copies += u32::from(hold == Hold::Copy);
        Buf { pool: Rc::clone(&self.pool), page: self.page, start, len, hold }
    }

    /// Takes `next` in, if it is the memory right behind `self` in the same block.
    ///
    /// # Errors
    /// `next` unchanged, if it is not.
    pub fn join(&mut self, next: Buf) -> Result<(), Buf> {
        let adjacent = Rc::ptr_eq(&self.pool, &next.pool)
            && self.page == next.page
            && self.hold == next.hold
            && self.start + self.len == next.start;
        if !adjacent {
            return Err(next);
        }
        self.len += next.len;
        Ok(())
    }

    /// Shortens the window to its first `len` bytes; what is cut off stays with the block.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len as u32);
    }

    /// Address of the first byte, for handing to the kernel. It stays the same for the life of
    /// this value, also when the value moves.
    #[inline]
    ///
    /// # Panics
    /// If the window was lent.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        assert!(self.hold == Hold::Only, "a lent buffer is not to be written");
        self.address()
    }

    #[inline]
    fn address(&self) -> *mut u8 {
        let offset = self.page as usize * PAGE + self.start as usize;
        // SAFETY: `page` is a page of the arena and the window lies inside its block, so the
        // result is inside (or one past) the mapping.
        unsafe { self.pool.base.as_ptr().add(offset) }
    }
}

impl Deref for Buf {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the window lies in the arena, which is mapped, initialised (zeroes at first) and outlives
        // `self`; other windows are disjoint, or copies through which `deref_mut` and `as_mut_ptr` refuse to
        // write, so these bytes are not written meanwhile.
        unsafe { std::slice::from_raw_parts(self.address(), self.len()) }
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        assert!(self.hold == Hold::Only, "a lent buffer is not to be written");
        // SAFETY: as in `deref`, and `&mut self` makes this the only borrow of the window, which
        // is the only one on its bytes.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.len()) }
    }
}

impl Drop for Buf {
    #[inline]
    fn drop(&mut self) {
        let mut state = self.pool.state.borrow_mut();
        let block = &mut state.blocks[self.page as usize];
        block.refs -= 1;
        block.copies -= u32::from(self.hold == Hold::Copy);
        if block.refs == 0 {
            let order = block.order;
            state.give(self.page, order);
            if !state.waiting.is_empty() {
                let waiting = std::mem::take(&mut state.waiting);
                drop(state);
                waiting.into_iter().for_each(Waker::wake);
            }
        }
    }
}

impl std::fmt::Debug for Buf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[test]
    fn cut_pieces_keep_their_bytes_and_join_again() {
        let pool = Pool::new(64 << 10).unwrap();
        let mut buf = pool.get(10_000).unwrap();
        for (index, byte) in buf.iter_mut().enumerate() {
            *byte = index as u8;
        }
        let mut tail = buf.split_off(4096);
        let rest = tail.split_off(100);
        assert_eq!((buf.len(), tail.len(), rest.len()), (4096, 100, 5804));
        assert_eq!(rest[0], (4196 % 256) as u8);
        let rest = buf.join(rest).unwrap_err();
        buf.join(tail).unwrap();
        buf.join(rest).unwrap();
        assert_eq!(buf.len(), 10_000);
        assert!(buf.iter().enumerate().all(|(index, byte)| *byte == index as u8));
    }

    #[test]
    fn a_block_comes_back_with_its_last_window() {
        let pool = Pool::new(16 << 10).unwrap();
        let mut buf = pool.get(16 << 10).unwrap();
        let tail = buf.split_off(5);
        drop(buf);
        assert!(pool.get(1).is_none());
        drop(tail);
        assert_eq!(pool.free_bytes(), 16 << 10);
        assert!(pool.get(16 << 10).is_some());
    }

    /// A task that is woken by what it gives back itself would never rest.
    #[test]
    fn several_buffers_are_lent_at_once_or_none_and_none_wakes() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Count>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let pool = Pool::new(16 << 10).unwrap();
        let pages: Vec<Buf> = (0..4).map(|_| pool.get(PAGE).unwrap()).collect();
        let lone: Vec<Buf> = pages.into_iter().step_by(2).collect();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        // Two pages are free, and no two of them are one block.
        assert!(pool.poll_get_all(&[2 * PAGE], &mut cx).is_pending());
        let three = [PAGE; 3];
        assert!(pool.poll_get_all(&three, &mut cx).is_pending());
        assert_eq!((pool.free_bytes(), count.0.load(Ordering::Relaxed)), (2 * PAGE, 0));
        assert_eq!(pool.get_all(&[PAGE, 100]).unwrap().len(), 2);
        assert!(count.0.load(Ordering::Relaxed) > 0, "what came back wakes");
        drop(lone);
        assert_eq!(pool.get_all(&three).unwrap().len(), 3);
        assert_eq!(pool.free_bytes(), 16 << 10);
    }

    #[test]
    fn the_largest_buffer_can_be_had_from_any_size_of_pool() {
        for pages in 1..40 {
            let pool = Pool::new(pages * PAGE).unwrap();
            assert!(pool.largest() * 2 > pages * PAGE);
            assert!(pool.get(pool.largest()).is_some(), "{pages} pages");
        }
    }

    #[test]
    #[should_panic(expected = "from a pool that gives up to 8192")]
    fn what_can_never_be_had_is_not_waited_for() {
        let pool = Pool::new(3 * PAGE).unwrap();
        let _ = pool.get(3 * PAGE);
    }

    #[test]
    fn a_lent_window_is_its_owners_again_when_the_copies_are_gone() {
        let pool = Pool::new(64 << 10).unwrap();
        let mut buf = pool.get(8192).unwrap();
        buf.fill(7);
        let mut copy = buf.share();
        let tail = copy.split_off(4096);
        assert!(copy.iter().chain(tail.iter()).all(|byte| *byte == 7));
        assert!(!buf.reclaim() && !copy.reclaim());
        drop(copy);
        assert!(!buf.reclaim());
        drop(tail);
        assert!(buf.reclaim());
        buf.fill(8);
        drop(buf);
        assert_eq!(pool.free_bytes(), 64 << 10);
    }

    #[test]
    fn a_window_whose_copy_does_not_come_back_gets_memory_of_its_own() {
        let pool = Pool::new(64 << 10).unwrap();
        let mut buf = pool.get(5000).unwrap();
        buf.fill(7);
        let copy = buf.share();
        assert!(buf.detach());
        assert!(buf.len() == 5000 && buf.iter().all(|byte| *byte == 7));
        buf.fill(8);
        assert!(copy.iter().all(|byte| *byte == 7), "who has the copy sees what it was given");
        drop(copy);
        assert_eq!(pool.free_bytes(), 64 << 10, "the pool has its memory back");
        let address = buf.as_ptr();
        assert!(buf.detach());
        assert_eq!(buf.as_ptr(), address, "nothing is copied without need");
    }

    #[test]
    #[should_panic(expected = "a lent buffer is not to be written")]
    fn a_lent_window_is_not_written() {
        let pool = Pool::new(64 << 10).unwrap();
        let mut buf = pool.get(8192).unwrap();
        let _copy = buf.share();
        buf.fill(1);
    }

    /// Waits for a buffer as a task does.
    fn wait_for(pool: &Pool, len: usize) -> Buf {
        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Unpark>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match pool.poll_get(len, &mut Context::from_waker(&waker)) {
                Poll::Ready(buf) => return buf,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    #[test]
    fn a_pool_grows_while_it_is_wanted_and_goes_back_to_its_floor() {
        crate::let_pools_grow().unwrap();
        let pool = Pool::growing(1 << 20, 64 << 10).unwrap();
        let opened = || pool.inner.state.borrow().growing.as_ref().map(|growing| growing.opened);
        assert_eq!(
            (pool.total_bytes(), pool.free_bytes(), pool.largest()),
            (1 << 20, 1 << 20, 1 << 20)
        );
        let low = pool.get(64 << 10).unwrap();
        assert_eq!(opened(), Some(16), "the floor suffices");
        let mut high = wait_for(&pool, 300 << 10);
        high.fill(1);
        assert_eq!(pool.free_bytes(), (1 << 20) - (64 << 10) - (512 << 10));
        let grown = opened();
        assert!(grown > Some(128), "{grown:?}");
        crate::trim_pools();
        assert_eq!(opened(), grown, "it is in use");
        drop(high);
        crate::trim_pools();
        assert_eq!(opened(), grown, "it was in use since the last look");
        crate::trim_pools();
        assert_eq!(opened(), Some(16));
        drop(low);
        let mut all = wait_for(&pool, 1 << 20);
        assert_eq!((opened(), pool.free_bytes()), (Some(256), 0));
        all.fill(2);
        drop(all);
        let pages: Vec<Buf> = (0..256).map(|_| pool.get(PAGE).unwrap()).collect();
        assert!(pool.get(1).is_none());
        drop(pages);
        // On another thread nothing of that is the case.
        let fixed = || Pool::growing(1 << 20, PAGE).unwrap().get(1 << 20).is_some();
        assert!(std::thread::spawn(fixed).join().unwrap());
    }

    #[test]
    fn buffers_start_on_pages() {
        let pool = Pool::new(1 << 20).unwrap();
        let bufs: Vec<Buf> = (1..20).map_while(|n| pool.get(n * 1000)).collect();
        assert!(bufs.len() > 10);
        assert!(bufs.iter().all(|buf| buf.as_ptr().addr() % PAGE == 0));
    }

    proptest! {
        /// Live buffers never share a byte: each is filled with its own value and keeps it.
        #[test]
        fn live_buffers_are_disjoint(lens in prop::collection::vec(1usize..20_000, 1..40), cuts in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
            let pool = Pool::new(256 << 10).unwrap();
            let mut live: Vec<Buf> = Vec::new();
            for (len, cut) in lens.into_iter().zip(cuts) {
                if let Some(mut buf) = pool.get(len) {
                    let at = cut.index(len);
                    live.push(buf.split_off(at));
                    live.push(buf);
                } else {
                    live.swap_remove(cut.index(live.len()));
                }
                for (index, buf) in live.iter_mut().enumerate() {
                    buf.fill(index as u8);
                }
                for (index, buf) in live.iter().enumerate() {
                    prop_assert!(buf.iter().all(|byte| *byte == index as u8));
                }
            }
        }
    }
}
