//! Arenas that begin small, grow while requests wait for more, and give it back.
//!
//! ```text
//!   arena   | floor          | grown                 | only addresses        |
//!             there, for good  by a thread of its own  most
//!   trim    | floor          | only addresses                                |
//! ```
//!
//! Invariants
//! * The thread of a pool never takes memory from the kernel after the pool was made. The kernel may write dirty
//!   pages out first, to the very device that this thread serves. The thread [`GROWER`] may wait for that: whatever
//!   the floor suffices for goes on meanwhile.
//! * Only pages that are there already are lent.
//!
//! Deliberately absent: shrinking by parts. A pool that was not needed beyond its floor for a while has its floor.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::{PAGE, Region};

/// Number of attempts of the grower after the first, and the time before each. Then the pages are lent nevertheless,
/// and each is taken at its first touch, which is better than requests that wait for ever.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(100);

/// Bytes that are taken from the kernel in one call.
const PIECE: usize = 1 << 20;

/// Takes the wishes of all pools of the process, one after another.
static GROWER: OnceLock<Sender<Arc<Growth>>> = OnceLock::new();

thread_local! {
    /// True if pools that are made on this thread begin small.
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// From now on, pools that this thread makes by [`crate::Pool::growing`] begin small; without this call they have all
/// their memory from the start. Starts the thread that lets them grow, if there is none yet.
///
/// # Errors
/// The thread cannot be started.
pub fn let_pools_grow() -> io::Result<()> {
    if GROWER.get().is_none() {
        let (wishes, granted) = channel::<Arc<Growth>>();
        let grower = std::thread::Builder::new().name("braid-memory".to_owned());
        grower.spawn(move || granted.iter().for_each(|growth| growth.grow()))?;
        // Another thread may have been first: then this grower's channel is closed, and it ends.
        let _ = GROWER.set(wishes);
    }
    IS_ON.set(true);
    Ok(())
}

/// True if this thread's pools begin small.
pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// An arena that a pool and the grower share.
#[derive(Debug)]
pub(crate) struct Growth {
    pub(crate) arena: Arc<Region>,
    /// Pages that are there.
    there: AtomicU32,
    /// Pages that are wanted.
    wanted: AtomicU32,
    /// True if pages are to stay in memory.
    pub(crate) is_locked: AtomicBool,
    /// Tasks that wait for more pages.
    waiting: Mutex<Vec<Waker>>,
}

impl Growth {
    /// An arena whose first `floor` pages are there.
    pub(crate) fn new(arena: Arc<Region>, floor: u32) -> Arc<Growth> {
        Arc::new(Growth {
            arena,
            there: AtomicU32::new(floor),
            wanted: AtomicU32::new(floor),
            is_locked: AtomicBool::new(false),
            waiting: Mutex::default(),
        })
    }

    /// Pages that are there.
    pub(crate) fn there(&self) -> u32 {
        self.there.load(Ordering::Acquire)
    }

    /// Asks for pages up to `wanted`.
    pub(crate) fn ask(self: &Arc<Growth>, wanted: u32) {
        let before = self.wanted.fetch_max(wanted, Ordering::Relaxed);
        if before < wanted
            && let Some(grower) = GROWER.get()
        {
            // The grower lives as long as the process.
            let _ = grower.send(Arc::clone(self));
        }
    }

    /// Has `waker` woken when there are more pages than the `opened` ones of the pool, if more are on their way.
    pub(crate) fn wake_when_grown(&self, opened: u32, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.there() > opened {
            drop(waiting);
            waker.wake_by_ref();
        } else if self.wanted.load(Ordering::Relaxed) > opened {
            waiting.push(waker.clone());
        }
    }

    /// Goes back to `floor` pages and returns true, if no page is on its way.
    pub(crate) fn shrink(&self, floor: u32, opened: u32) -> bool {
        if self.wanted.load(Ordering::Relaxed) != opened {
            return false;
        }
        // In this order: a wish that the grower takes up late finds nothing to do.
        self.wanted.store(floor, Ordering::Relaxed);
        self.there.store(floor, Ordering::Release);
        // What the kernel does not take back stays where it is, and is there when it is wanted again.
        let (from, len) = (floor as usize * PAGE, (opened - floor) as usize * PAGE);
        let _ = self.arena.give_back(from, len);
        true
    }

    /// Takes what is wanted: the grower's part.
    fn grow(&self) {
        let (there, wanted) = (self.there(), self.wanted.load(Ordering::Relaxed));
        let (from, len) = (there as usize * PAGE, wanted.saturating_sub(there) as usize * PAGE);
        if len == 0 {
            return;
        }
        // In pieces: the whole process waits for a piece if another thread maps memory meanwhile.
        let mut tries = 0;
        for piece in (from..from + len).step_by(PIECE) {
            let len = PIECE.min(from + len - piece);
            while self.arena.populate_part(piece, len).is_err() && tries < TRIES {
                tries += 1;
                std::thread::sleep(BETWEEN);
            }
        }
        if self.is_locked.load(Ordering::Relaxed) {
            // Where the limit does not allow it, they are lent unlocked: see `Pool::lock`.
            let _ = self.arena.lock_part(from, len);
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.there.store(wanted, Ordering::Release);
        let woken = std::mem::take(&mut *waiting);
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
    }
}
