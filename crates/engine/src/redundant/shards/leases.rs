//! Leases of stripes: which shard may write where, in memory that all shards of a volume share.
//!
//! ```text
//!   a branch   enters ── is its view the one that may write? ── no ──▶ the write goes home
//!                              │ yes
//!                        its blocks are free, or leased to it? ── no ──▶ home, which waits for them
//!                              │ yes: leased
//!                        the members ── gives the blocks back, leaves ── is it awaited? ──▶ tells home
//!
//!   home       closes ── is a branch inside? ── yes ──▶ awaits it
//!                              │ no
//!                        locks, clears bits, says "clean"
//! ```
//!
//! A *block* is a stretch of sync bytes; blocks far apart share a word. A block is leased to one shard at a time, for as many
//! writes as it has there. So writes of two shards never change the same stripe at once; writes of one shard are ordered by
//! its own [`Ranges`](crate::redundant::ranges::Ranges).
//!
//! Invariants
//! * A branch that is inside, and found its view open, is seen by a home shard that has closed: each of both writes its own
//!   word before it reads the other's, in one order for all (`SeqCst`).
//! * A branch that leaves tells the home shard if that awaits something: home says so before it looks whether to wait.
//! * Only the home shard waits for blocks. A branch never waits, so no two shards wait for each other.
//!
//! Deliberately absent: the message that tells ([`super::Home::left`]), and the state of an array that may be written by
//! others (`shown`).

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::BranchId;
use crate::canary::Canary;
use crate::redundant::layout::SyncSpan;

/// Bytes of a block: more than usual writes, and few words for the longest.
const BLOCK: u64 = 64 << 10;

/// Number of words for blocks. Two blocks share one if they are a multiple of 256 MiB apart.
const WORDS: u64 = 4096;

/// Most branches that may write. Others send their writes home.
const MOST: usize = 64;

/// The parts of a block's word: the number of writes, whether home waits, the tenant.
const COUNT: u32 = (1 << 23) - 1;
const WANTED: u32 = 1 << 23;
const TENANT_SHIFT: u32 = 24;

/// A shard that leases blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redundant) struct Tenant(u32);

impl Tenant {
    pub(in crate::redundant) const HOME: Tenant = Tenant(1);

    /// Returns the tenant of a branch, if it may write.
    pub(super) fn of(branch: BranchId) -> Option<Tenant> {
        (branch.0 < MOST).then(|| Tenant(u32::try_from(branch.0).unwrap_or(u32::MAX) + 2))
    }

    fn place(self) -> usize {
        self.0 as usize - 2
    }
}

/// The number of writes that a branch has on their way, on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Inside(AtomicU32);

/// The leases of an array. They are on cache lines of their own: each write of each shard reads them.
#[repr(align(128))]
pub(in crate::redundant) struct Leases {
    /// The number of the view by which branches may write; 0 if none may.
    open_for: AtomicU64,
    /// The home shard waits for a branch.
    awaited: AtomicBool,
    /// A branch wrote something since home looked last.
    touched: AtomicBool,
    inside: Box<[Inside]>,
    words: Box<[AtomicU32]>,
}

impl Leases {
    pub(super) fn new() -> Leases {
        Leases {
            open_for: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            inside: (0..MOST).map(|_| Inside::default()).collect(),
            words: (0..WORDS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Has branches write by the view of this number; by none if it is 0.
    pub(in crate::redundant) fn open_for(&self, view: u64) {
        self.open_for.store(view, SeqCst);
    }

    /// Returns true if no branch has a write on its way. If not, the last one to leave tells home.
    pub(in crate::redundant) fn are_left(&self) -> bool {
        if Canary::BranchesNotAwaited.is_planted() {
            return true;
        }
        let are_left = || self.inside.iter().all(|one| one.0.load(SeqCst) == 0);
        are_left() || {
            self.awaited.store(true, SeqCst);
            are_left()
        }
    }

    /// Notes that a branch told home that it left.
    pub(in crate::redundant) fn is_told(&self) {
        self.awaited.store(false, SeqCst);
    }

    /// Returns true if a branch wrote something since the last call.
    pub(in crate::redundant) fn were_touched(&self) -> bool {
        self.touched.swap(false, SeqCst)
    }

    /// Enters a write of `tenant`, a branch whose view is `view`. Returns true if it may go on; [`Leases::leave`] is to follow
    /// in either case.
    #[inline]
    pub(super) fn enter(&self, tenant: Tenant, view: u64) -> bool {
        self.inside[tenant.place()].0.fetch_add(1, SeqCst);
        self.open_for.load(SeqCst) == view
    }

    /// Notes that `tenant` writes.
    #[inline]
    pub(super) fn touch(&self) {
        if !self.touched.load(SeqCst) {
            self.touched.store(true, SeqCst);
        }
    }

    /// Ends a write that `tenant` entered, after its blocks were given back. Returns true if home is to be told.
    #[inline]
    pub(super) fn leave(&self, tenant: Tenant) -> bool {
        self.inside[tenant.place()].0.fetch_sub(1, SeqCst);
        self.awaited.load(SeqCst)
    }

    /// Leases the blocks of `span` to `tenant`, all or none. What home does not get is kept for it, and home is told when a
    /// branch leaves.
    #[inline]
    pub(in crate::redundant) fn lease(&self, tenant: Tenant, span: SyncSpan) -> bool {
        if Canary::BlocksNotLeased.is_planted() || self.take_all(tenant, span) {
            return true;
        }
        if tenant != Tenant::HOME {
            return false;
        }
        // Said before it looks once more.
        self.awaited.store(true, SeqCst);
        for word in words(span) {
            self.words[word].fetch_or(WANTED, SeqCst);
        }
        self.take_all(tenant, span)
    }

    #[inline]
    fn take_all(&self, tenant: Tenant, span: SyncSpan) -> bool {
        for word in words(span) {
            if !self.take(tenant, word) {
                let taken = words(span).take_while(|before| *before != word);
                taken.for_each(|before| self.give_back_one(before, WANTED));
                return false;
            }
        }
        true
    }

    #[inline]
    fn take(&self, tenant: Tenant, word: usize) -> bool {
        let take = |now: u32| match now >> TENANT_SHIFT {
            // What is kept for home is home's next.
            _ if now & WANTED != 0 && tenant != Tenant::HOME => None,
            0 => Some(tenant.0 << TENANT_SHIFT | now & WANTED | 1),
            of if of == tenant.0 => Some(now + 1),
            _ => None,
        };
        self.words[word].fetch_update(SeqCst, SeqCst, take).is_ok()
    }

    /// Gives back the blocks of `span`, which are leased to `tenant`.
    #[inline]
    pub(in crate::redundant) fn give_back(&self, tenant: Tenant, span: SyncSpan) {
        if !Canary::BlocksNotLeased.is_planted() {
            let kept = if tenant == Tenant::HOME { 0 } else { WANTED };
            words(span).for_each(|word| self.give_back_one(word, kept));
        }
    }

    /// Gives a block back once. If it becomes free, it stays wanted if it is, and `kept` says so.
    #[inline]
    fn give_back_one(&self, word: usize, kept: u32) {
        let less = |now: u32| match now & COUNT {
            0 => panic!("a block that is not leased is given back"),
            1 => Some(now & kept),
            _ => Some(now - 1),
        };
        let _counted = self.words[word].fetch_update(SeqCst, SeqCst, less);
    }
}

/// Returns the words of the blocks of `span`, each once.
#[inline]
fn words(span: SyncSpan) -> impl Iterator<Item = usize> {
    let first = span.offset / BLOCK;
    let count = (span.end().get().div_ceil(BLOCK) - first).clamp(1, WORDS);
    (first..first + count).map(|block| (block % WORDS) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redundant::layout::SyncByte;

    const ONE: Tenant = Tenant(2);
    const OTHER: Tenant = Tenant(3);

    fn span(block: u64, blocks: u64) -> SyncSpan {
        SyncSpan::new(SyncByte::new(block * BLOCK), blocks * BLOCK)
    }

    #[test]
    fn a_block_has_one_tenant_at_a_time() {
        let leases = Leases::new();
        assert!(leases.lease(ONE, span(1, 1)) && leases.lease(ONE, span(1, 1)), "two writes");
        assert!(!leases.lease(OTHER, span(0, 2)), "a part of it");
        assert!(leases.lease(OTHER, span(0, 1)), "which leaves nothing leased");
        leases.give_back(ONE, span(1, 1));
        assert!(!leases.lease(OTHER, span(1, 1)), "one write is left");
        leases.give_back(ONE, span(1, 1));
        assert!(leases.lease(OTHER, span(1, 1)));
    }

    #[test]
    fn what_home_waits_for_goes_to_home_next() {
        let leases = Leases::new();
        let (tenants, all) = ([ONE, OTHER], span(0, 8));
        assert!(leases.lease(ONE, span(2, 1)) && leases.lease(OTHER, span(5, 1)));
        assert!(!leases.lease(Tenant::HOME, all));
        for block in 0..8 {
            assert!(tenants.iter().all(|one| !leases.lease(*one, span(block, 1))), "{block}");
        }
        leases.give_back(ONE, span(2, 1));
        assert!(!leases.lease(Tenant::HOME, all), "a block is missing");
        leases.give_back(OTHER, span(5, 1));
        assert!(leases.lease(Tenant::HOME, all));
        leases.give_back(Tenant::HOME, all);
        assert!(tenants.iter().all(|one| leases.lease(*one, span(one.place() as u64, 1))));
    }

    #[test]
    fn a_span_beyond_all_words_has_each_once() {
        let leases = Leases::new();
        let all = span(7, 3 * WORDS);
        assert!(leases.lease(ONE, all));
        assert!(!leases.lease(OTHER, span(WORDS - 1, 1)));
        leases.give_back(ONE, all);
        assert!(leases.lease(OTHER, all));
    }

    #[test]
    fn a_branch_enters_by_the_view_that_may_write_and_is_awaited() {
        let leases = Leases::new();
        assert!(!leases.enter(ONE, 3), "closed");
        assert!(!leases.leave(ONE), "home does not wait");
        leases.open_for(3);
        assert!(leases.enter(ONE, 3) && !leases.enter(OTHER, 2), "an older view");
        leases.open_for(0);
        assert!(!leases.are_left());
        assert!(leases.leave(OTHER) && leases.leave(ONE), "home is told");
        assert!(leases.are_left());
    }

    /// Threads write where they have leases; home closes now and then, and then changes everything. A counter that is no
    /// atomic one shows if two wrote at once.
    #[test]
    fn no_two_threads_write_a_block_at_once() {
        use std::sync::atomic::Ordering::Relaxed;
        const BLOCKS: u64 = 3;
        let leases = Leases::new();
        let places: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
        // Not in one step: another thread's addition between would be lost.
        let add = |place: u64| {
            let place = &places[place as usize];
            let before = place.load(Relaxed);
            std::hint::spin_loop();
            place.store(before + 1, Relaxed);
        };
        let done = AtomicU64::new(0);
        let branch = |tenant: Tenant| {
            for round in 0.. {
                if done.load(Relaxed) == u64::MAX {
                    return;
                }
                let block = round % BLOCKS;
                if leases.enter(tenant, 1) && leases.lease(tenant, span(block, 1)) {
                    add(block);
                    done.fetch_add(1, SeqCst);
                    leases.give_back(tenant, span(block, 1));
                }
                leases.leave(tenant);
            }
        };
        let mut by_home = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| branch(ONE));
            scope.spawn(|| branch(OTHER));
            leases.open_for(1);
            while done.load(Relaxed) < 20_000 {
                if leases.lease(Tenant::HOME, span(1, 2)) {
                    (1..3).for_each(&add);
                    by_home += 2;
                    leases.give_back(Tenant::HOME, span(1, 2));
                }
                leases.open_for(0);
                while !leases.are_left() {
                    std::hint::spin_loop();
                }
                (0..BLOCKS).for_each(&add);
                by_home += BLOCKS;
                leases.open_for(1);
            }
            leases.open_for(0);
            while !leases.are_left() {
                std::hint::spin_loop();
            }
            let by_branches = done.swap(u64::MAX, SeqCst);
            let sum: u64 = places.iter().map(|place| place.load(Relaxed)).sum();
            assert_eq!(sum, by_branches + by_home, "no write was lost");
        });
    }
}
