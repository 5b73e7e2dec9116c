//! A hard disk: seeks, rotation, zones, a write cache.
//!
//! ```text
//! |command|── seek: by distance ──|─ rotation: by the angle ─|── transfer: by the zone ──|
//! ```
//!
//! * The seek curve is `track + a √x + b x` of the distance x as a share of the disk, with `a` and `b` so
//!   that x = 1 takes the full stroke and that uniform random distances take the average that
//!   a data sheet gives (E √x = 8/15, E x = 1/3).
//! * The rate falls linearly from the outer to the inner zone.
//! * The angle is that of the time: what a request waits is what is left of the revolution.
//! * A read that continues the one before comes from the read-ahead: no seek, no rotation. A short
//!   skip forward passes below the head.
//! * Writes are done when they are in the write cache, and are carried out in order behind it.
//!
//! Deliberately absent: reordering within the disk's queue. Whoever sorts is above.

use std::collections::VecDeque;

use crate::bus::Bus;
use crate::constants::{Constants, ProfileError};
use crate::place::Place;

/// The constants of a hard disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// What a command costs, in nanoseconds.
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
            let why = "no seek curve that rises goes from seek_track_ms over this average to seek_full_ms: \
                       the average lies between a third and 8/15 of the way";
            return Err(constants.contradiction("seek_average_ms", why.to_owned()));
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
        if !at.write || self.write_cache == 0 {
            let begin = ready.max(state.medium_free_ns);
            let end = self.medium(state, begin, at);
            state.medium_free_ns = end;
            return end.max(transferred);
        }
        // Behind the cache: the medium works on, in order; a full cache is waited for.
        let room = state.room_ns(self.write_cache, at.bytes, ready);
        let begin = state.medium_free_ns.max(transferred.max(room));
        let end = self.medium(state, begin, at);
        state.medium_free_ns = end;
        state.cached.push_back((end, at.bytes));
        transferred.max(room)
    }

    /// Head, rotation, transfer: the end of a request that the medium begins at `begin_ns`.
    fn medium(&self, state: &mut DiskState, begin_ns: u64, at: &Place) -> u64 {
        let size = state.size.max(1) as f64;
        let rate = self.rate(at.offset as f64 / size);
        let transfer = (at.bytes as f64 / rate * 1e9).ceil() as u64;
        let track = rate * self.revolution_ns as f64 / 1e9;
        let from = std::mem::replace(&mut state.head, at.offset + at.bytes);
        if let Some(skip) = at.offset.checked_sub(from).filter(|skip| (*skip as f64) < track) {
            return begin_ns + (skip as f64 / rate * 1e9) as u64 + transfer;
        }
        let there = begin_ns + self.seek_ns(at.offset.abs_diff(from) as f64 / size) as u64;
        let angle = ((at.offset as f64 % track) / track * self.revolution_ns as f64) as u64;
        let wait = (angle + self.revolution_ns - there % self.revolution_ns) % self.revolution_ns;
        there + wait + transfer
    }
}

/// Where a disk is.
#[derive(Clone, Debug)]
pub(crate) struct DiskState {
    size: u64,
    head: u64,
    medium_free_ns: u64,
    /// Writes in the cache: when each is on the medium, and its bytes.
    cached: VecDeque<(u64, u64)>,
}

impl DiskState {
    pub(crate) fn new(size: u64) -> DiskState {
        DiskState { size, head: 0, medium_free_ns: 0, cached: VecDeque::new() }
    }

    /// From `now_ns` until all that is in the cache is on the medium.
    pub(crate) fn drained(&self, now_ns: u64) -> u64 {
        self.medium_free_ns.saturating_sub(now_ns)
    }

    /// When there is room for `bytes` in a cache of `most`, not before `from_ns`.
    fn room_ns(&mut self, most: u64, bytes: u64, from_ns: u64) -> u64 {
        while self.cached.front().is_some_and(|(done, _)| *done <= from_ns) {
            self.cached.pop_front();
        }
        let mut held: u64 = self.cached.iter().map(|(_, bytes)| bytes).sum();
        let mut at = from_ns;
        while held > 0 && held + bytes > most {
            let Some((done, bytes)) = self.cached.pop_front() else { break };
            held -= bytes;
            at = done;
        }
        at
    }
}
