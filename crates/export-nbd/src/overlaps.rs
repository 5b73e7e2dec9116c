//! Keeps a write of parts of blocks apart from every other write to these blocks.
//!
//! ```text
//!   whole blocks   enter ──▶ device ──▶ leave            counted by the shard's lane, no lock
//!   parts          alone ──▶ read, change, write ──▶ done  listed; waits for the lanes to be empty
//! ```
//!
//! A part is written by writing its whole blocks. A write to the same blocks between the read and the write would
//! be undone by the old bytes.
//!
//! Invariants
//! * While a range is listed in `alone`, no other listed range overlaps it, and once its owner has it, no write that
//!   overlaps it is with a device.
//! * While no part is being written, a write of whole blocks changes a counter of its own shard, and reads a flag.
//! * `partial` is raised before the lanes are looked at, and a lane is counted before `partial` is looked at (both
//!   sequentially consistent): one of the two sees the other.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use braid_block::Span;

use crate::canary::Canary;

/// The writes to one volume, over all shards. Cheap to clone, all clones are the same.
#[derive(Clone, Default)]
pub struct Overlaps(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Ranges in `alone`.
    partial: AtomicU32,
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    /// Writes of whole blocks that each shard has under way.
    lanes: Vec<Arc<Count>>,
    /// Blocks of which parts are being written, or will be when the lanes are empty.
    alone: Vec<Span>,
    /// Writes of whole blocks that began while parts of others were being written.
    beside: Vec<Span>,
    waiting: Vec<Waker>,
}

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Count(AtomicU32);

impl Lists {
    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }

    fn wake_all(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Shared {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes out one range that is equal to `span`.
fn remove(list: &mut Vec<Span>, span: Span) {
    if let Some(index) = list.iter().position(|one| *one == span) {
        list.swap_remove(index);
    }
}

/// One shard's way in.
#[derive(Clone)]
pub(crate) struct Lane(Rc<Inner>);

struct Inner {
    count: Arc<Count>,
    shared: Arc<Shared>,
}

impl Overlaps {
    /// The way in of one more shard.
    pub(crate) fn lane(&self) -> Lane {
        let (count, shared) = (Arc::<Count>::default(), Arc::clone(&self.0));
        shared.lists().lanes.push(Arc::clone(&count));
        Lane(Rc::new(Inner { count, shared }))
    }
}

impl Inner {
    fn leave(&self) {
        self.count.0.fetch_sub(1, Ordering::SeqCst);
        if self.shared.partial.load(Ordering::SeqCst) != 0 {
            self.shared.lists().wake_all();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.lists().lanes.retain(|lane| !Arc::ptr_eq(lane, &self.count));
    }
}

impl Lane {
    /// Lets a write of whole blocks in, unless parts of any block are being written.
    #[inline]
    pub(crate) fn try_enter(&self) -> Option<Entered> {
        self.0.count.0.fetch_add(1, Ordering::SeqCst);
        // From here on it is left when this is dropped.
        let entered = Entered { lane: self.clone(), beside: None };
        (self.0.shared.partial.load(Ordering::SeqCst) == 0).then_some(entered)
    }

    /// Lets a write of these whole blocks in, when no part of one of them is being written.
    pub(crate) async fn enter(&self, span: Span) -> Entered {
        poll_fn(|cx| {
            let mut lists = self.0.shared.lists();
            if lists.alone.iter().any(|other| other.overlaps(span)) {
                lists.wait(cx);
                return Poll::Pending;
            }
            lists.beside.push(span);
            Poll::Ready(Entered { lane: self.clone(), beside: Some(span) })
        })
        .await
    }

    /// Waits until no other write has to do with these blocks, and keeps later ones away.
    pub(crate) async fn alone(&self, span: Span) -> Alone {
        let mut listed = None;
        poll_fn(|cx| {
            let shared = &self.0.shared;
            let mut lists = shared.lists();
            if listed.is_none() {
                let mut others = lists.alone.iter().chain(&lists.beside);
                let is_free = Canary::PartsNotKeptApart.is_planted();
                if others.any(|other| other.overlaps(span)) && !is_free {
                    lists.wait(cx);
                    return Poll::Pending;
                }
                lists.alone.push(span);
                shared.partial.fetch_add(1, Ordering::SeqCst);
                listed = Some(Alone { shared: Arc::clone(shared), span });
            }
            // Those that come now are in no lane.
            if lists.lanes.iter().any(|lane| lane.0.load(Ordering::SeqCst) != 0) {
                lists.wait(cx);
                return Poll::Pending;
            }
            listed.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// A write of whole blocks that was let in, until it is answered.
pub(crate) struct Entered {
    lane: Lane,
    /// The span, if it is listed rather than counted.
    beside: Option<Span>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        match self.beside {
            None => self.lane.0.leave(),
            Some(span) => {
                let mut lists = self.lane.0.shared.lists();
                remove(&mut lists.beside, span);
                lists.wake_all();
            }
        }
    }
}

/// Blocks of which parts are written, until they are.
pub(crate) struct Alone {
    shared: Arc<Shared>,
    span: Span,
}

impl Drop for Alone {
    fn drop(&mut self) {
        let mut lists = self.shared.lists();
        remove(&mut lists.alone, self.span);
        self.shared.partial.fetch_sub(1, Ordering::SeqCst);
        lists.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Wake;
    use std::thread::{self, Thread};

    use super::*;

    const BLOCK: usize = 8;

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Two blocks, of which a thread copies one out or in at a time.
    #[derive(Default)]
    struct Disk(Mutex<[u8; 2 * BLOCK]>);

    impl Disk {
        fn read(&self, span: Span) -> Vec<u8> {
            let at = span.offset as usize;
            self.0.lock().unwrap()[at..at + span.len as usize].to_vec()
        }

        fn write(&self, span: Span, bytes: &[u8]) {
            let at = span.offset as usize;
            self.0.lock().unwrap()[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Three shards each count in a byte of their own, of block 0 and of both blocks; a fourth writes whole
    /// blocks, and finds the bytes that are its own as it wrote them.
    #[test]
    fn neighbours_in_a_block_are_not_lost() {
        const ROUNDS: u8 = 200;
        let (disk, overlaps) = (Disk::default(), Overlaps::default());
        let block = |index: u64| Span::new(index * BLOCK as u64, BLOCK as u64);
        thread::scope(|scope| {
            for owner in 0..3_usize {
                let (disk, overlaps) = (&disk, overlaps.clone());
                scope.spawn(move || {
                    let lane = overlaps.lane();
                    // One of them has parts in both blocks.
                    let span = if owner == 2 { Span::new(0, 2 * BLOCK as u64) } else { block(0) };
                    for _ in 0..ROUNDS {
                        let _alone = block_on(lane.alone(span));
                        let mut bytes = disk.read(span);
                        thread::yield_now();
                        bytes[owner] += 1;
                        disk.write(span, &bytes);
                    }
                });
            }
            let (disk, overlaps) = (&disk, overlaps.clone());
            scope.spawn(move || {
                let lane = overlaps.lane();
                for round in 0..ROUNDS {
                    let entered = match lane.try_enter() {
                        Some(entered) => entered,
                        None => block_on(lane.enter(block(1))),
                    };
                    disk.write(block(1), &[round; BLOCK]);
                    drop(entered);
                    assert_eq!(disk.read(block(1)), [round; BLOCK]);
                }
            });
        });
        assert_eq!(disk.read(block(0))[..3], [ROUNDS; 3]);
        let lists = overlaps.0.lists();
        assert!(lists.alone.is_empty() && lists.beside.is_empty() && lists.lanes.is_empty());
        assert_eq!(overlaps.0.partial.load(Ordering::SeqCst), 0);
    }

    /// Whole blocks that were let in beside a part of others are listed: a part of them waits.
    #[test]
    fn a_part_waits_for_whole_blocks_that_began_beside_another_part() {
        let lane = Overlaps::default().lane();
        let mut cx = Context::from_waker(Waker::noop());
        let blocks = Span::new(512, 512);
        let _part = block_on(lane.alone(Span::new(0, 512)));
        let whole = block_on(lane.enter(blocks));
        let mut alone = pin!(lane.alone(blocks));
        assert!(alone.as_mut().poll(&mut cx).is_pending(), "they are being written");
        drop(whole);
        assert!(alone.as_mut().poll(&mut cx).is_ready());
    }

    #[test]
    fn who_waits_and_goes_leaves_nothing_behind() {
        let overlaps = Overlaps::default();
        let (one, other) = (overlaps.lane(), overlaps.lane());
        let span = Span::new(0, 512);
        let entered = one.try_enter().expect("no part is being written");
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut alone = pin!(other.alone(span));
            assert!(alone.as_mut().poll(&mut cx).is_pending(), "a write is under way");
            assert!(one.try_enter().is_none(), "later writes wait, or are looked at");
            assert!(pin!(one.enter(span)).poll(&mut cx).is_pending());
            assert!(pin!(one.enter(Span::new(512, 512))).poll(&mut cx).is_ready());
        }
        drop(entered);
        assert!(one.try_enter().is_some());
    }
}
