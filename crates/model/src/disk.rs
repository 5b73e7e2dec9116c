//! A hard disk: seeks, rotation, zones, a command queue, a write cache.
//!
//! ```text
//! |command|── seek: by distance ──|─ rotation: by the angle ─|── transfer: by the zone ──|
//!
//!  reads    ▒▒▒▒▒▒▒▒ queue_depth of them ──┐ the one that the head reaches soonest
//!  writes ──▶ cache ▒▒▒▒ the oldest ▒▒▒▒ ──┴──▶ medium
//! ```
//!
//! * The seek curve is `track + a √x + b x` of the distance x as a share of the disk, with `a` and `b` so
//!   that x = 1 takes the full stroke and that uniform random distances take the average that
//!   a data sheet gives (E √x = 8/15, E x = 1/3).
//! * The rate falls linearly from the outer to the inner zone.
//! * The angle is that of the time: what a request waits is what is left of the revolution.
//! * A read that continues the one before comes from the read-ahead: no seek, no rotation. A short
//!   skip forward passes below the head.
//! * Of the requests that wait the head takes the one that it reaches soonest, seek and rotation together
//!   (shortest positioning time first: Jacobson and Wilkes, HPL-CSP-91-7; Worthington, Ganger and Patt,
//!   SIGMETRICS 1994), among the oldest `queue_depth`; the oldest of all when others have gone before it
//!   [`PATIENCE`] times for each place in the queue.
//! * Writes are done when they are in the write cache. From there the medium takes them in the same way, once
//!   no read has come for [`QUIET_NS`]; a write that finds no room waits until one has left.
//!
//! Deliberately absent: which reads wait (`queue`), and reads that a cached write could answer.

use std::collections::VecDeque;

use crate::bus::Bus;
use crate::constants::{Constants, ProfileError};
use crate::place::{Place, Work};

/// The constants of a hard disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Overhead of a command, in nanoseconds.
    pub command_ns: u64,
    /// A revolution, in nanoseconds.
    pub revolution_ns: u64,
    /// A seek to the next track, in nanoseconds.
    pub seek_track_ns: f64,
    /// `a` of the seek curve, in nanoseconds.
    pub seek_root_ns: f64,
    /// `b` of the seek curve, in nanoseconds.
    pub seek_linear_ns: f64,
    /// Bytes per second at the beginning.
    pub outer_rate: f64,
    /// Bytes per second at the end.
    pub inner_rate: f64,
    /// The write cache, in bytes; 0 for none.
    pub write_cache: u64,
    /// Requests among which the head takes the one that it reaches soonest; 1 for the order in which they came.
    pub queue_depth: usize,
}

impl Disk {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Disk, ProfileError> {
        let rpm = constants.positive("rpm")?;
        let track = constants.positive("seek_track_ms")? * 1e6;
        let average = constants.positive("seek_average_ms")? * 1e6;
        let full = constants.positive("seek_full_ms")? * 1e6;
        let seek_root_ns = ((average - track) - (full - track) / 3.0) / (8.0 / 15.0 - 1.0 / 3.0);
        let seek_linear_ns = (full - track) - seek_root_ns;
        if track > average || seek_root_ns < 0.0 || seek_linear_ns < 0.0 {
            let between = |share: f64| (track + (full - track) * share) / 1e6;
            let why = format!(
                "no seek curve that rises goes from seek_track_ms over this average to seek_full_ms: it lies between \
                 {:.2} and {:.2}, a third and 8/15 of the way",
                between(1.0 / 3.0),
                between(8.0 / 15.0)
            );
            return Err(constants.contradiction("seek_average_ms", why));
        }
        let outer_rate = constants.positive("outer_rate")?;
        let inner_rate = constants.positive("inner_rate")?;
        if inner_rate > outer_rate {
            let why = format!("{inner_rate} is above outer_rate, which is {outer_rate}");
            return Err(constants.contradiction("inner_rate", why));
        }
        Ok(Disk {
            command_ns: (constants.at_least_zero("command_us")? * 1e3) as u64,
            revolution_ns: (60e9 / rpm) as u64,
            seek_track_ns: track,
            seek_root_ns,
            seek_linear_ns,
            outer_rate,
            inner_rate,
            write_cache: constants.at_least_zero("write_cache")? as u64,
            queue_depth: constants.positive("queue_depth")?.ceil() as usize,
        })
    }

    /// A seek over `share` of the disk, in nanoseconds.
    pub fn seek_ns(&self, share: f64) -> f64 {
        if share <= 0.0 {
            return 0.0;
        }
        self.seek_track_ns + self.seek_root_ns * share.sqrt() + self.seek_linear_ns * share
    }

    /// The rate at `share` of the disk, in bytes per second.
    pub fn rate(&self, share: f64) -> f64 {
        self.outer_rate + (self.inner_rate - self.outer_rate) * share.clamp(0.0, 1.0)
    }

    /// When a request is done.
    pub(crate) fn serve(&self, state: &mut DiskState, bus: &mut Bus, at: &Place) -> u64 {
        let ready = at.begin_ns + self.command_ns;
        let transferred = bus.reserve(at.now_ns, ready, at.bytes, at.direction());
        self.write_behind(state, at.begin_ns);
        if !at.write || self.write_cache == 0 {
            let begin = ready.max(state.medium_free_ns);
            self.medium(state, begin, at.offset, at.bytes);
            state.read_ns = state.medium_free_ns.max(transferred);
            return state.read_ns;
        }
        let since_ns = transferred.max(self.room_ns(state, at.bytes, ready));
        state.hold(since_ns, at.offset, at.bytes);
        since_ns
    }

    /// Returns the wait of a request that is taken at `at_ns`: a read until the head is there; a write not at
    /// all if the cache has room, and else until the head is at the next place of the cache.
    pub(crate) fn wait_ns(&self, state: &DiskState, at_ns: u64, work: Work) -> Option<u64> {
        let begin = (at_ns + self.command_ns).max(state.medium_free_ns);
        let reach = |offset| self.reach_ns(state, begin, offset);
        let reached = match work {
            Work::Command => return None,
            Work::Write { bytes, .. } if state.held + bytes <= self.write_cache => return Some(0),
            Work::Write { .. } if self.write_cache > 0 => {
                let next = state.cached.iter().take(self.queue_depth);
                next.map(|write| reach(write.offset)).min().unwrap_or(0)
            }
            Work::Read { offset, .. } | Work::Write { offset, .. } => reach(offset),
        };
        Some(begin - at_ns + reached)
    }

    /// Begins the cached writes that the medium has begun by `until_ns`, if no read comes before.
    pub(crate) fn write_behind(&self, state: &mut DiskState, until_ns: u64) {
        let quiet_ns = state.read_ns + QUIET_NS;
        while let Some(oldest) = state.cached.front()
            && state.medium_free_ns.max(oldest.since_ns).max(quiet_ns) < until_ns
        {
            self.write_one(state, quiet_ns);
        }
        state.left(until_ns);
    }

    /// From `now_ns` until all that is in the cache is on the medium.
    pub(crate) fn drained_ns(&self, state: &mut DiskState, now_ns: u64) -> u64 {
        state.read_ns = state.read_ns.min(now_ns.saturating_sub(QUIET_NS));
        self.write_behind(state, u64::MAX);
        state.medium_free_ns.saturating_sub(now_ns)
    }

    /// The medium takes the next of the writes in the cache, as soon as it is free, and not before `from_ns`.
    fn write_one(&self, state: &mut DiskState, from_ns: u64) {
        let Some(oldest) = state.cached.front() else { return };
        let begin = state.medium_free_ns.max(oldest.since_ns).max(from_ns);
        let there = state.cached.iter().take_while(|write| write.since_ns <= begin);
        let waits = there.map(|write| self.reach_ns(state, begin, write.offset));
        let mut order = state.order;
        let next = order.next(self.queue_depth, waits);
        let next = state.cached.remove(next).expect("one of those that are there");
        state.order = order;
        self.medium(state, begin, next.offset, next.bytes);
        state.leaves = next.bytes;
    }

    /// When there is room for `bytes` in the cache, not before `from_ns`.
    fn room_ns(&self, state: &mut DiskState, bytes: u64, from_ns: u64) -> u64 {
        let mut at = from_ns;
        state.left(at);
        while state.held > 0 && state.held + bytes > self.write_cache {
            if state.leaves == 0 {
                self.write_one(state, 0);
            }
            at = at.max(state.medium_free_ns);
            state.left(at);
        }
        at
    }

    /// Head, rotation, transfer of a request that the medium begins at `begin_ns`.
    fn medium(&self, state: &mut DiskState, begin_ns: u64, offset: u64, bytes: u64) {
        let there = begin_ns + self.reach_ns(state, begin_ns, offset);
        let transfer = (bytes as f64 / self.rate(state.share(offset)) * 1e9).ceil() as u64;
        state.left(begin_ns);
        state.medium_free_ns = there + transfer;
        state.busy_ns += state.medium_free_ns - begin_ns;
        state.moving_ns += there - begin_ns;
        state.head = offset + bytes;
    }

    /// Returns the time from `begin_ns` until the head is at `offset`.
    fn reach_ns(&self, state: &DiskState, begin_ns: u64, offset: u64) -> u64 {
        let rate = self.rate(state.share(offset));
        let track = rate * self.revolution_ns as f64 / 1e9;
        let ahead = offset.checked_sub(state.head);
        if let Some(skip) = ahead.filter(|skip| (*skip as f64) < track) {
            return (skip as f64 / rate * 1e9) as u64;
        }
        let there = begin_ns + self.seek_ns(state.share(offset.abs_diff(state.head))) as u64;
        let angle = ((offset as f64 % track) / track * self.revolution_ns as f64) as u64;
        let wait = (angle + self.revolution_ns - there % self.revolution_ns) % self.revolution_ns;
        there + wait - begin_ns
    }
}

/// Time without a read after which the medium turns to the cache, in nanoseconds: an assumption, longer than a
/// host takes from an answer to the next request.
const QUIET_NS: u64 = 1_000_000;

/// Number of requests that pass the oldest, for each place in the queue: an assumption, since disks do not say.
const PATIENCE: usize = 4;

/// The choice of the next waiting request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    /// Number of requests that have passed the oldest.
    passed: usize,
}

impl Order {
    /// The index of the one that waits least, of the oldest `depth`; of equals the oldest.
    pub(crate) fn next(&mut self, depth: usize, waits: impl Iterator<Item = u64>) -> usize {
        let soonest = waits.take(depth).enumerate().min_by_key(|(_, wait)| *wait);
        let next = soonest.map_or(0, |(index, _)| index);
        let is_patient = self.passed < PATIENCE * depth;
        self.passed = if next > 0 && is_patient { self.passed + 1 } else { 0 };
        if is_patient { next } else { 0 }
    }
}

/// A write in the cache that the medium has not begun.
#[derive(Clone, Copy, Debug)]
struct Cached {
    since_ns: u64,
    offset: u64,
    bytes: u64,
}

/// The state of a disk.
#[derive(Clone, Debug)]
pub(crate) struct DiskState {
    size: u64,
    head: u64,
    /// When the medium ends what it does.
    medium_free_ns: u64,
    /// When the last read was done.
    read_ns: u64,
    /// Writes in the cache, the oldest first.
    cached: VecDeque<Cached>,
    order: Order,
    /// Bytes that the cache holds, and of these those that leave it when the medium ends what it does.
    held: u64,
    leaves: u64,
    /// Busy time of the medium, with the head's movement; and of the head alone.
    busy_ns: u64,
    moving_ns: u64,
}

impl DiskState {
    pub(crate) fn new(size: u64) -> DiskState {
        DiskState {
            size,
            head: 0,
            medium_free_ns: 0,
            read_ns: 0,
            cached: VecDeque::new(),
            order: Order::default(),
            held: 0,
            leaves: 0,
            busy_ns: 0,
            moving_ns: 0,
        }
    }

    /// Returns the busy time, and the part of it in which the head moved, in nanoseconds.
    pub(crate) fn busy_ns(&self) -> (u64, u64) {
        (self.busy_ns, self.moving_ns)
    }

    /// So many bytes as a share of the disk.
    fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.size.max(1) as f64
    }

    /// A write is in the cache.
    fn hold(&mut self, since_ns: u64, offset: u64, bytes: u64) {
        self.cached.push_back(Cached { since_ns, offset, bytes });
        self.held += bytes;
    }

    /// Removes the bytes that have left the cache by `now_ns`.
    fn left(&mut self, now_ns: u64) {
        if self.medium_free_ns <= now_ns {
            self.held -= std::mem::take(&mut self.leaves);
        }
    }
}
