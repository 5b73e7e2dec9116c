//! The memory the data path runs on.
//!
//! * [`Region`]: one anonymous mapping that several threads read and write by copying: the body
//!   of a RAM disk, or the arena of a pool.
//! * [`Pool`] and [`Buf`]: page-aligned buffers drawn from one arena that is mapped once,
//!   faulted in and (where the limit allows) locked, so that the data path neither allocates nor
//!   faults while a request is under way. A `Buf` can be cut in two and joined again without
//!   copying, which is how a request that crosses chunks is spread over members.
//!
//!   A pool that may grow ([`Pool::growing`]) begins with what its holder needs to go on at all, and has at most
//!   what makes it fast.
//!
//! All `unsafe` that turns addresses into slices is here. Deliberately absent: file I/O, and any
//! notion of a block or a request. A pool answers "not now" when it is spent, so that memory pressure
//! becomes back-pressure.

mod arena;
mod arenas;
mod buddy;
mod growth;
mod limit;
mod pool;
mod region;
mod reserve;
pub mod steady;
mod stream;

pub use arena::trim_pools;
pub use arenas::keep_arenas;
pub use growth::let_pools_grow;
#[cfg(feature = "limit")]
pub use limit::set_limit;
pub use pool::{Buf, Pool};
pub use region::{Advice, HUGE_PAGE, Pages, Region};

/// The unit of allocation and of alignment, in bytes. O_DIRECT needs no more on any device with
/// blocks of up to 4096 bytes.
pub const PAGE: usize = 4096;
