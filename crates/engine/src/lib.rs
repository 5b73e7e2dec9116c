//! The engine: block devices made of block devices, by carrying out plans.
//!
//! * [`Device`]: what a member, an array and a whole volume have in common; [`Dev`] is the seam
//!   that every request passes, checked on both sides.
//! * [`Pending`]: a request under way, a future of its completion. What is done at once (memory,
//!   a mapped request) costs no allocation and no scheduling.
//! * [`Array`]: a geometry over members, the interpreter of [`braid_array::Plan`]s.
//! * [`assembled`]: from what members carry to what an array of them is given, without I/O.
//! * [`Offered`]: what exports offer, which may be locked or exchanged while they serve.
//! * [`InFlight`]: the requests a client has under way, polled only when one of them moved.
//!
//! Invariants: a request's payload comes back in its completion, also on error; a future that is
//! dropped leaves memory with whoever is still using it. Deliberately absent: threads, clocks,
//! randomness, runtimes and system calls. An executor (`braid-uring`, `braid-sim`) supplies
//! leaf devices and polls.

mod array;
pub mod assembled;
pub mod canary;
mod clock;
mod contract;
mod device;
mod inflight;
mod offered;
mod pending;
pub mod redundant;
mod signal;

pub use array::Array;
pub use clock::{Clock, Tasks};
pub use device::{Dev, Device};
pub use inflight::InFlight;
pub use offered::{Earlier, Offered, WritePermit};
pub use pending::{CompletionSource, Pending, Steps, Ticket, Token, Watch, Watched, join_all};
pub use signal::Signal;
