//! Random reads and writes: `seeker`, sysbench.

use braid_model::Host;
use braid_seed::Rng;

use crate::machine::{Machine, Next};

/// Requests at random places.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// The number of requests.
    pub count: u64,
    /// The bytes of each request; its offset is a multiple of them.
    pub request: u64,
    /// Within so many bytes from the beginning.
    pub range: u64,
    /// By so many processes at once.
    pub processes: u64,
}

/// Reads; requests per second. `hits` of them, as a share, are in the page cache.
pub fn random_reads(machine: &mut Machine, host: &Host, load: Random, hits: f64) -> f64 {
    let mut places = Rng::new(0x005e_edba);
    let slots = (load.range / load.request).max(1);
    let hit_ns = host.call_ns + load.request as f64 / host.copy_rate * 1e9;
    let (mut asked, mut answered) = (0, 0);
    let mut happened = Vec::new();
    let mut owner = 0;
    let mut one = |machine: &mut Machine, asked: &mut u64| {
        if *asked == load.count {
            return;
        }
        *asked += 1;
        owner += 1;
        if (places.below(1 << 32) as f64) < hits * (1u64 << 32) as f64 {
            machine.wake_at(machine.now_ns() + hit_ns as u64, owner);
        } else {
            machine.submit(owner, false, places.below(slots) * load.request, load.request);
            machine.unplug();
        }
    };
    for _ in 0..load.processes.max(1) {
        one(machine, &mut asked);
    }
    while answered < load.count && machine.next(&mut happened) {
        for next in &happened {
            if matches!(next, Next::Woke(_) | Next::Moved { left: 0, .. }) {
                answered += 1;
                one(machine, &mut asked);
            }
        }
    }
    answered as f64 / (machine.now_ns() as f64 / 1e9)
}

/// Buffered writes with an fsync after every `fsync_every` of them; requests per second. Between two
/// of these they are in the page cache; then they go out sorted, and the writers wait.
pub fn random_writes(machine: &mut Machine, load: Random, fsync_every: u64) -> f64 {
    let mut places = Rng::new(0x005e_edba);
    let slots = (load.range / load.request).max(1);
    let mut owner = 0;
    let mut happened = Vec::new();
    while owner < load.count {
        let batch = fsync_every.max(1).min(load.count - owner);
        for _ in 0..batch {
            owner += 1;
            machine.submit(owner, true, places.below(slots) * load.request, load.request);
        }
        machine.unplug();
        while machine.next(&mut happened) {}
        machine.drain();
    }
    owner as f64 / (machine.now_ns() as f64 / 1e9)
}
