//! Sizes of the memory that serving takes, computed from the volume: by its exports, their queue depths and its members.
//!
//! ```text
//!   shard    | floor | grows while requests wait ─────────▶ most |   reserve, if a member may be silent
//!   process  | heap, if attached | arrays: at most a constant each | connections: at most a number
//! ```
//!
//! Invariants
//! * A floor suffices for the longest requests, one after another: the kernel may wait for a block device while it has
//!   no page to give.
//! * The heap of an attached volume suffices for as many requests as its block device has at once, on all members.
//! * With `--memory`, the sum of all of it is at most that size, or the volume does not come up.
//!
//! Deliberately absent: the content of RAM disks and caches, which status calls promised; the program and its threads'
//! stacks, which are the same for all volumes.

use braid_engine::redundant::STRIPE_CACHE;
use braid_stack::{ByteSize, Node, Stack};

use super::deadline::MemberDeadline;
use super::promises;
use super::spec::{Spec, Way};
use crate::control::ArrayStatus;

/// The longest request of a block device of this machine, in bytes: FUSE's and ublk's.
const LONGEST: usize = 1 << 20;
/// Requests that a queue of the block device has at once: `hw_queue_depth` of loop, `queue_depth` of the kernel's NBD client,
/// and the depth of ublk's queues.
const DEPTH: usize = 128;
/// The smallest chunk of an array, in bytes.
const LEAST_CHUNK: usize = 4 << 10;
/// Requests of network clients that the heap of an attached volume is prepared for: those of eight busy connections.
const OF_NETWORK: usize = 8 * DEPTH;
/// Most memory of a shard for requests under way, in bytes.
const POOL: usize = 64 << 20;
/// The least of it where NBD is served: a payload of 32 MiB, which clients may send without asking, and a third as much
/// that is left for short ones.
const POOL_OF_NBD: usize = 44 << 20;
/// Memory for requests whose own memory a member holds that does not answer, in bytes of a shard. As much as the floor
/// of any volume, and so as much as can be under way when the kernel has no page for more.
const RESERVE: usize = 4 << 20;

/// Heap that comes and goes without requests, in bytes: a status, a change of members.
const HEAP: usize = 768 << 10;
/// Heap of a request, of one to an array with parity, and of a request's part on a member, in bytes. By measurement,
/// and half as much again: see decision 122.
const OF_REQUEST: usize = 2 << 10;
const OF_PARITY_REQUEST: usize = 12 << 10;
const OF_PART: usize = 768;
/// Most parts on members that are under way in an array with parity: as many pages as its stripe cache has.
const MOST_PARTS: usize = STRIPE_CACHE / braid_mem::PAGE;

/// Most memory of an array's stripes with parity, passes and superblocks, in bytes.
const OF_PARITY: usize = STRIPE_CACHE + ((16 + 1) << 20);
/// The same of an array of copies.
const OF_COPIES: usize = (16 + 1) << 20;
/// Memory with which a cache writes back, in bytes.
const OF_CACHE: usize = 8 << 20;

/// Memory of a connection, in bytes: receive buffer, 128 requests in flight, state.
const CONNECTION: usize = 48 << 10;
/// Share of the machine's memory that connections may take, as a divisor, and its bounds in bytes.
const SHARE: u64 = 64;
const SHARE_BOUNDS: (u64, u64) = (16 << 20, 128 << 20);
/// The least connections that a shard takes.
const LEAST_CONNECTIONS: usize = 16;

/// Sizes of memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    shards: usize,
    /// Requests of all exports at once that heap is there for.
    requests: usize,
    /// Memory of a shard for requests that is there from the start.
    pub(super) floor: usize,
    /// Most memory of a shard for requests.
    pub(super) pool: usize,
    /// Memory that replaces what silent members hold, per shard; 0 for none.
    pub(super) reserve: usize,
    /// Heap that is there before the volume is attached.
    pub(super) heap: usize,
    /// Most memory of arrays and caches, beside content.
    arrays: usize,
    /// NBD connections of a shard.
    pub(super) connections: usize,
}

/// The memory that a volume may have is too little.
#[derive(Debug, thiserror::Error)]
#[error("this volume needs up to {least:#} of memory, and may have {given:#}")]
pub struct TooLittle {
    given: ByteSize,
    /// The least that it can be given.
    pub(super) least: ByteSize,
}

impl TooLittle {
    /// Returns the next command.
    pub(super) fn next(&self) -> String {
        format!("`--memory {}`, or without it: memory is taken as requests need it", self.least)
    }
}

impl Budget {
    /// Returns the sizes for the volume of `spec`.
    ///
    /// # Errors
    /// `--memory` is less than the least.
    pub(super) fn of(spec: &Spec) -> Result<Budget, TooLittle> {
        Budget::within(spec, spec.way(), spec.shard_count().max(1), promises::total_memory())
    }

    fn within(
        spec: &Spec,
        way: Option<Way>,
        shards: usize,
        machine: u64,
    ) -> Result<Budget, TooLittle> {
        let (has_nbd, has_network) = (!spec.nbd.is_empty(), spec.serves_network());
        let share = (machine / SHARE).clamp(SHARE_BOUNDS.0, SHARE_BOUNDS.1) as usize;
        let queued = match way {
            None => 0,
            Some(Way::Fuse) => DEPTH,
            Some(Way::Ublk | Way::Nbd) => DEPTH * shards,
        };
        // A page each of those that wait while the longest are carried out.
        let of_device = if way.is_some() { 2 * LONGEST + DEPTH * braid_mem::PAGE } else { 0 };
        // Without a device of the kernel's that waits for it, two requests are enough, and so they are of a cache's.
        let others = has_network || way.is_none() || has_cache(&spec.stack);
        let floor = of_device + if others { 2 * LONGEST } else { 0 };
        let requests = queued + if has_network { OF_NETWORK } else { 0 };
        // The chunks are not known yet.
        let has_parity = sum(&spec.stack, &|node| usize::from(may_have_parity(node))) > 0;
        let parts = requests * (spec.stack.leaves().len() + LONGEST / LEAST_CHUNK);
        let is_attached = way.is_some();
        let mut budget = Budget {
            shards,
            requests,
            floor,
            pool: POOL,
            reserve: if is_attached && may_be_silent(spec) { RESERVE } else { 0 },
            heap: if is_attached { heap_of(requests, parts, has_parity) } else { 0 },
            arrays: of_arrays(&spec.stack),
            connections: if has_nbd { share / CONNECTION / shards } else { 0 },
        };
        if let Some(given) = spec.memory {
            budget.shrink(given, if has_nbd { POOL_OF_NBD } else { floor }, has_nbd)?;
        }
        Ok(budget)
    }

    /// Brings the most of all to `given`: what is left above the least goes to requests, and a quarter to connections.
    fn shrink(&mut self, given: ByteSize, pool: usize, has_nbd: bool) -> Result<(), TooLittle> {
        let wanted = *self;
        self.pool = pool;
        self.connections = if has_nbd { LEAST_CONNECTIONS } else { 0 };
        let least = self.most();
        let Some(left) = given.bytes().checked_sub(least) else {
            return Err(TooLittle { given, least: ByteSize(least) });
        };
        let left = usize::try_from(left).unwrap_or(usize::MAX) / self.shards;
        let of_connections = if has_nbd { left / 4 } else { 0 };
        let connections = self.connections + of_connections / CONNECTION;
        self.connections = connections.min(wanted.connections.max(self.connections));
        self.pool =
            (self.pool + (left - of_connections) / braid_mem::PAGE * braid_mem::PAGE).min(POOL);
        Ok(())
    }

    /// The same with no more heap than the `arrays` need, which are all that the volume has.
    pub(super) fn for_arrays(self, arrays: &[ArrayStatus]) -> Budget {
        let parts = |array: &ArrayStatus| {
            let chunk = array.chunk_bytes.unwrap_or(u64::MAX).max(1);
            array.raid_disks + array.members.len() + 2 * (LONGEST as u64 / chunk) as usize
        };
        let parts: usize = arrays.iter().map(parts).sum();
        let has_parity = arrays.iter().any(|array| is_parity(&array.level));
        let heap = heap_of(self.requests, self.requests * parts, has_parity);
        Budget { heap: self.heap.min(heap), ..self }
    }

    /// Memory that is kept for the time in which the kernel has no page to give, in bytes: floors, heap and reserves.
    pub(super) fn kept(&self) -> u64 {
        (self.shards * (self.floor + self.reserve) + self.heap) as u64
    }

    /// The most that serving takes, in bytes.
    pub(super) fn most(&self) -> u64 {
        let of_shard = self.pool + self.reserve + self.connections * CONNECTION;
        (self.shards * of_shard + self.heap + self.arrays) as u64
    }
}

/// Heap of `requests` that have so many `parts` on members.
fn heap_of(requests: usize, parts: usize, has_parity: bool) -> usize {
    match has_parity {
        true => HEAP + requests * OF_PARITY_REQUEST + parts.min(MOST_PARTS) * OF_PART,
        false => HEAP + requests * OF_REQUEST + parts.min(MOST_PARTS) * OF_PART,
    }
}

fn is_parity(level: &str) -> bool {
    matches!(level, "raid4" | "raid5" | "raid6")
}

/// An array that describes itself may have parity.
fn may_have_parity(node: &Node) -> bool {
    is_parity(node.name()) || node.name() == "md"
}

/// The sum of `of` the levels of a stack.
fn sum(stack: &Stack, of: &dyn Fn(&Node) -> usize) -> usize {
    of(&stack.node) + stack.node.members().iter().map(|member| sum(member, of)).sum::<usize>()
}

fn has_cache(stack: &Stack) -> bool {
    sum(stack, &|node| usize::from(matches!(node, Node::Cache(_)))) > 0
}

fn of_arrays(stack: &Stack) -> usize {
    sum(stack, &|node| match node.name() {
        "raid1" | "raid10" => OF_COPIES,
        "cache" => OF_CACHE,
        _ if may_have_parity(node) => OF_PARITY,
        _ => 0,
    })
}

/// Returns true if a request to a member can be given up while the member holds its memory: by the rule of
/// [`MemberDeadline`], below levels that survive a loss.
fn may_be_silent(spec: &Spec) -> bool {
    let survives = |node: &Node| {
        usize::from(!matches!(node.name(), "ram" | "file" | "part" | "slice" | "linear" | "raid0"))
    };
    match spec.member_deadline {
        MemberDeadline::Never => false,
        MemberDeadline::Usual => sum(&spec.stack, &survives) > 0,
        MemberDeadline::After(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: usize = 1 << 20;

    fn spec(stack: &str, nbd: &[&str]) -> Spec {
        serde_json::from_value(serde_json::json!({
            "name": "x", "stack": stack, "nbd": nbd, "insecure": false, "attach": "none", "read_only": false,
            "accepted": [], "io": "auto", "shards": 0, "control": null, "mount": "",
        }))
        .expect("a specification")
    }

    fn budget(spec: &Spec, way: Option<Way>, shards: usize) -> Budget {
        Budget::within(spec, way, shards, 8 * GIB).expect("no limit")
    }

    #[test]
    fn a_floor_has_room_for_the_longest_requests_of_each_export() {
        let alone = budget(&spec("raid1(/a, /b)", &[]), Some(Way::Fuse), 1);
        assert_eq!(alone.floor, 2 * MIB + MIB / 2);
        assert_eq!((alone.reserve, alone.connections), (4 * MIB, 0));
        let both = budget(&spec("raid1(/a, /b)", &["unix:/x"]), Some(Way::Fuse), 1);
        assert_eq!(both.floor, alone.floor + 2 * MIB);
        assert!(both.heap > alone.heap, "network clients have requests, too");
        let served = budget(&spec("raid1(/a, /b)", &["unix:/x"]), None, 1);
        assert_eq!((served.floor, served.reserve, served.heap), (2 * MIB, 0, 0));
    }

    #[test]
    fn heap_grows_with_queues_members_and_small_chunks() {
        let requests = |way, shards| budget(&spec("md(/a, /b)", &[]), Some(way), shards).requests;
        assert_eq!((requests(Way::Fuse, 4), requests(Way::Ublk, 4)), (DEPTH, 4 * DEPTH));
        let of = |members, chunk, has_parity| {
            heap_of(DEPTH, DEPTH * (members + 2 * LONGEST / chunk), has_parity)
        };
        assert!(of(12, 512 << 10, false) > of(2, 512 << 10, false));
        assert!(of(4, 512 << 10, true) > of(4, 512 << 10, false));
        assert!(of(4, 4 << 10, true) > of(4, 512 << 10, true));
        assert!(of(4, 512 << 10, true) <= 3 * MIB, "{}", of(4, 512 << 10, true));
    }

    #[test]
    fn only_members_with_a_deadline_need_a_reserve() {
        let reserve = |stack: &str, deadline| {
            let mut spec = spec(stack, &[]);
            spec.member_deadline = deadline;
            budget(&spec, Some(Way::Fuse), 1).reserve
        };
        let after = MemberDeadline::After(braid_stack::Latency(2_000_000_000));
        assert_eq!(reserve("linear(/a, /b)", MemberDeadline::Usual), 0);
        assert_eq!(reserve("linear(/a, /b)", after), RESERVE);
        assert_eq!(reserve("raid0(/a, raid1(/b, /c))", MemberDeadline::Usual), RESERVE);
        assert_eq!(reserve("raid1(/a, /b)", MemberDeadline::Never), 0);
    }

    #[test]
    fn connections_are_limited_by_memory() {
        let of = |machine, shards| {
            let spec = spec("ram(1G)", &["unix:/x"]);
            Budget::within(&spec, None, shards, machine).expect("no limit").connections
        };
        assert!(of(GIB / 2, 1) > 256, "{}", of(GIB / 2, 1));
        assert_eq!(of(8 * GIB, 1), 128 * MIB / CONNECTION);
        assert_eq!(of(8 * GIB, 2), of(8 * GIB, 1) / 2);
        assert_eq!(of(64 * GIB, 1), of(8 * GIB, 1));
    }

    #[test]
    fn with_a_limit_the_sum_of_all_is_below_it_or_nothing_comes_up() {
        for (stack, nbd, way) in [
            ("ram(1G)", true, None),
            ("raid1(/a, /b)", false, Some(Way::Fuse)),
            ("raid5(/a, /b, /c, /d)", true, Some(Way::Ublk)),
            ("md(/a, /b, /c)", false, Some(Way::Fuse)),
        ] {
            let mut spec = spec(stack, if nbd { &["unix:/x"] } else { &[] });
            let free = budget(&spec, way, 2);
            let mut came_up = 0;
            for mib in 1..512 {
                spec.memory = Some(ByteSize(mib << 20));
                match Budget::within(&spec, way, 2, 8 * GIB) {
                    Ok(small) => {
                        came_up += 1;
                        assert!(small.most() <= mib << 20, "{stack} in {mib} MiB: {small:?}");
                        assert!(small.pool >= small.floor && small.pool <= free.pool);
                        assert!(small.kept() == free.kept() && small.kept() <= small.most());
                        assert!(small.connections <= free.connections);
                    }
                    Err(error) => {
                        assert!(error.least.bytes() > mib << 20, "{error}");
                        assert_eq!(came_up, 0, "more memory is enough, too");
                    }
                }
            }
            spec.memory = Some(ByteSize(8 * GIB));
            assert_eq!(Budget::within(&spec, way, 2, 8 * GIB).expect("enough"), free);
            assert!(came_up > 256, "{stack}");
        }
    }
}
