//! The requests of a leaf and their latencies: counted where requests complete, added up by readers.
//!
//! Each shard has [`Counts`] of its own for each leaf, which it alone writes, with plain relaxed stores; a
//! [`Tally`] has those of all shards. So counting causes no traffic between processors.

use std::array;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use braid_block::Op;
use braid_status::{Latencies, MemberIo};

/// Buckets of [`Latencies`]: the last one begins at 2^30 µs, which is 18 minutes.
const BUCKETS: usize = 32;

/// The requests of one leaf, by all shards. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    shards: Arc<Mutex<Vec<Arc<Counts>>>>,
    /// Requests that were answered for the leaf, which still has them.
    overdue: Arc<AtomicUsize>,
}

impl Tally {
    /// Counts for one more shard.
    pub(crate) fn of_shard(&self) -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        self.shards.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counts));
        counts
    }

    /// The number of requests that were answered for the leaf, which still has them: one for all shards.
    pub(crate) fn overdue(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.overdue)
    }

    /// All shards together, as of about now.
    pub fn read(&self) -> MemberIo {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |of: fn(&Counts) -> &AtomicU64| shards.iter().map(|one| load(of(one))).sum();
        let times = |of: fn(&Counts) -> &Times| latencies(shards.iter().map(|one| of(one)));
        MemberIo {
            read_bytes: sum(|counts| &counts.read_bytes),
            written_bytes: sum(|counts| &counts.written_bytes),
            in_flight: sum(|counts| &counts.in_flight),
            overdue: sum(|counts| &counts.overdue),
            timeouts: sum(|counts| &counts.timeouts),
            reads: times(|counts| &counts.reads),
            writes: times(|counts| &counts.writes),
            flushes: times(|counts| &counts.flushes),
        }
    }
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn latencies<'a>(shards: impl Iterator<Item = &'a Times>) -> Latencies {
    let mut sum = Latencies::default();
    for times in shards {
        sum.sum_us += load(&times.sum_ns) / 1000;
        for (index, count) in times.buckets.iter().map(load).enumerate().filter(|one| one.1 > 0) {
            sum.buckets.resize(sum.buckets.len().max(index + 1), 0);
            sum.buckets[index] += count;
            sum.count += count;
        }
    }
    sum
}

/// The requests of one shard to a leaf. Written by that shard alone.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    in_flight: AtomicU64,
    overdue: AtomicU64,
    timeouts: AtomicU64,
    reads: Times,
    writes: Times,
    flushes: Times,
}

#[derive(Debug)]
struct Times {
    sum_ns: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Times {
    fn default() -> Times {
        Times { sum_ns: AtomicU64::new(0), buckets: array::from_fn(|_| AtomicU64::new(0)) }
    }
}

/// There is one writer, so this loses nothing, and needs no locked instruction.
#[inline]
fn add(to: &AtomicU64, count: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

impl Counts {
    /// A request went to the medium.
    #[inline]
    pub(crate) fn begun(&self) {
        add(&self.in_flight, 1);
    }

    /// The medium is through with a request that had begun.
    #[inline]
    pub(crate) fn ended(&self) {
        add(&self.in_flight, u64::MAX);
    }

    /// Counts a completed request, by the medium or for it, after `took`.
    #[inline]
    pub(crate) fn answered(&self, op: Op, bytes: u64, took: Duration) {
        let times = match op {
            Op::Read => {
                add(&self.read_bytes, bytes);
                &self.reads
            }
            Op::Write => {
                add(&self.written_bytes, bytes);
                &self.writes
            }
            Op::Discard | Op::WriteZeroes => &self.writes,
            Op::Flush => &self.flushes,
        };
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        add(&times.sum_ns, ns);
        add(&times.buckets[bucket(ns)], 1);
    }

    /// A request was answered for the medium, which still has it if it `has_begun`.
    pub(crate) fn timed_out(&self, has_begun: bool) {
        add(&self.timeouts, 1);
        add(&self.overdue, u64::from(has_begun));
    }

    /// The medium is through with a request that was overdue.
    pub(crate) fn came_back(&self) {
        add(&self.overdue, u64::MAX);
        self.ended();
    }
}

/// Which bucket has what took `ns`.
#[inline]
fn bucket(ns: u64) -> usize {
    let us = ns / 1000;
    ((u64::BITS - us.leading_zeros()) as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        assert_eq!([0, 999, 1000, 1999, 2000, 3999, 4000].map(bucket), [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn a_request_lies_in_the_bucket_that_its_time_says(ns in any::<u64>()) {
            let (us, index) = (ns / 1000, bucket(ns));
            prop_assert!(index == BUCKETS - 1 || us < 1 << index);
            prop_assert!(us >= (1u64 << index) / 2);
        }

        #[test]
        fn shards_add_up(times in proptest::collection::vec((0..3usize, 0..10_000u64), 0..50)) {
            let tally = Tally::default();
            let shards = [tally.of_shard(), tally.of_shard(), tally.of_shard()];
            for (shard, us) in &times {
                shards[*shard].begun();
                shards[*shard].answered(Op::Read, 512, Duration::from_micros(*us));
                shards[*shard].ended();
            }
            let sum = tally.read();
            prop_assert_eq!(sum.reads.count, times.len() as u64);
            prop_assert_eq!(sum.reads.sum_us, times.iter().map(|(_, us)| us).sum::<u64>());
            prop_assert_eq!((sum.read_bytes, sum.in_flight), (512 * times.len() as u64, 0));
        }
    }
}
