//! The worlds of seeds: bits of a seed that say which kind of scenario it draws.

/// Seeds with this bit are of scenarios in which more goes wrong at once, and in the same places: bugs
/// that need several rare events together show there first. (Of the commits every other one has such
/// seeds in its tests.)
pub const HARSH: u64 = 1 << 40;

/// Seeds with this bit are of scenarios in which operators give an array a bitmap, other chunks, or none, and
/// hold its passes.
pub const ORDERS: u64 = 1 << 41;

/// Seeds with this bit are of arrays whose bitmap has two pages. Their members are a hundred times as large as
/// others, and so is the time that such a seed takes.
pub const WIDE: u64 = 1 << 42;

/// Seeds with this bit are of members that hang, and are given up at a deadline.
pub const HANGS: u64 = 1 << 43;

/// Seeds with this bit are of arrays that are split in [halves](crate::halves).
pub const HALVES: u64 = 1 << 44;

/// Seeds with this bit are of clocks that go back, stand, and jump ahead, before starts and in lives.
pub const CLOCKS: u64 = 1 << 45;

/// Seeds with this bit are of memory that is spent: limits on what pools lend, which change. A member that hangs keeps
/// memory for ever, so none does in these.
pub const MEMORY: u64 = 1 << 46;

/// Seeds with this bit are of stacks that nest: a cache in front of the array, which may be a part of a linear one.
pub const NESTS: u64 = 1 << 47;

/// Seeds with this bit are of clients that come to several shards. With [`AT_ONCE`] all of them also write stripes with
/// parity.
pub const SHARDS: u64 = 1 << 48;

/// Seeds with this bit are of members that answer in the call, as memory does.
pub const AT_ONCE: u64 = 1 << 49;

/// Bits of worlds that each commit runs seeds of, one at a time.
pub const WORLDS: &[u64] =
    &[HANGS, HALVES, CLOCKS, MEMORY, NESTS, SHARDS, AT_ONCE, SHARDS | AT_ONCE];
