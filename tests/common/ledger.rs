//! A write load that keeps books: for each block, what the volume has acknowledged and what it
//! may have begun.
//!
//! ```text
//!   block   acknowledged   under way        may be found after the end
//!     0          7             -            7
//!     1          5            9             5 or 9
//! ```
//!
//! The end of a process loses nothing that the kernel has, so each write counts from its own
//! acknowledgement on, and not only from the next flush.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_nbd::protocol::Command;

use super::client::Client;
use super::pattern::{Random, pattern};

/// The unit of writes and comparisons.
pub(crate) const BLOCK: u64 = 4096;
/// The number of writes in flight.
const DEPTH: usize = 8;
/// The longest write, in blocks: over the ends of chunks.
const LONGEST: u64 = 12;

pub(crate) struct Ledger {
    /// By block: the version that was acknowledged last; 0 where nothing was ever written.
    acknowledged: Vec<u64>,
    /// By cookie: first block, count of blocks, version.
    under_way: HashMap<u64, (u64, u64, u64)>,
    version: u64,
    random: Random,
}

impl Ledger {
    /// Books of a volume of `size` bytes of zeroes.
    pub(crate) fn new(size: u64, seed: u64) -> Ledger {
        Ledger {
            acknowledged: vec![0; (size / BLOCK) as usize],
            under_way: HashMap::new(),
            version: 0,
            random: Random::new(seed),
        }
    }

    /// Writes until the connection ends. `done` counts what was acknowledged.
    pub(crate) fn write_to_the_end(&mut self, client: &mut Client, done: &AtomicU64) {
        self.under_way.clear();
        loop {
            while client.unanswered() < DEPTH {
                if !self.send_one(client) {
                    // Answers to what was sent before may still come.
                    while client.unanswered() > 0 && self.take_one(client, done) {}
                    return;
                }
            }
            if !self.take_one(client, done) {
                return;
            }
        }
    }

    /// Sends a flush now and then, else a write to blocks that no other write is under way to.
    fn send_one(&mut self, client: &mut Client) -> bool {
        if self.random.below(20) == 0 {
            return client.send(Command::Flush, &[]).is_ok();
        }
        let (first, count) = loop {
            let first = self.random.below(self.acknowledged.len() as u64);
            let count = 1 + self.random.below(LONGEST);
            let count = count.min(self.acknowledged.len() as u64 - first);
            let overlaps =
                |&(start, len, _): &(u64, u64, u64)| first < start + len && start < first + count;
            if !self.under_way.values().any(overlaps) {
                break (first, count);
            }
        };
        self.version += 1;
        let version = self.version;
        let bytes: Vec<u8> =
            (first..first + count).flat_map(|block| contents(block, version)).collect();
        let fua = self.random.below(8) == 0;
        let command = Command::Write { offset: first * BLOCK, length: bytes.len() as u32, fua };
        // What fails here may have been sent in part, which is no request; or whole.
        let cookie = client.send(command, &bytes);
        let known = cookie.as_ref().copied().unwrap_or(u64::MAX);
        self.under_way.insert(known, (first, count, version));
        cookie.is_ok()
    }

    fn take_one(&mut self, client: &mut Client, done: &AtomicU64) -> bool {
        let Ok((cookie, answer)) = client.receive() else { return false };
        answer.expect("nothing is wrong with these requests");
        if let Some((first, count, version)) = self.under_way.remove(&cookie) {
            for block in first..first + count {
                self.acknowledged[block as usize] = version;
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Reads everything back and compares it with the books; what is found is what is there from
    /// now on.
    #[track_caller]
    pub(crate) fn check(&mut self, client: &mut Client) {
        self.compare(client, false);
    }

    /// The same, but what a write was under way to may hold anything: those blocks get zeroes.
    #[track_caller]
    pub(crate) fn check_acknowledged(&mut self, client: &mut Client) {
        self.compare(client, true);
    }

    #[track_caller]
    fn compare(&mut self, client: &mut Client, may_be_torn: bool) {
        let size = self.acknowledged.len() as u64 * BLOCK;
        let found = client.read(0, size as u32).expect("a read is answered");
        for (block, bytes) in found.chunks(BLOCK as usize).enumerate() {
            let may_be = |version: u64| bytes == contents(block as u64, version);
            let acknowledged = self.acknowledged[block];
            if may_be(acknowledged) {
                continue;
            }
            let begun = self.under_way.values().find(|(first, count, version)| {
                (*first..first + count).contains(&(block as u64)) && may_be(*version)
            });
            match begun {
                Some((_, _, version)) => self.acknowledged[block] = *version,
                None if may_be_torn && self.is_under_way(block as u64) => {
                    let zeroes = [0; BLOCK as usize];
                    client.write(block as u64 * BLOCK, &zeroes, false).expect("a write");
                    self.acknowledged[block] = 0;
                }
                None => panic!(
                    "block {block} is neither version {acknowledged}, which was acknowledged, nor \
                     one under way; its first bytes are {:?}",
                    &bytes[..16]
                ),
            }
        }
        self.under_way.clear();
    }
}

impl Ledger {
    fn is_under_way(&self, block: u64) -> bool {
        self.under_way.values().any(|(first, count, _)| (*first..first + count).contains(&block))
    }
}

/// A block of some version; version 0 is zeroes.
fn contents(block: u64, version: u64) -> Vec<u8> {
    match version {
        0 => vec![0; BLOCK as usize],
        version => pattern(version << 32, block * BLOCK, BLOCK),
    }
}
