//! The engine: block devices made of block devices, by carrying out plans.
//!
//! * [`Device`]: the interface of a member, an array and a whole volume; [`Dev`] is the seam that every request
//!   passes, checked on both sides.
//! * [`Pending`]: a request in flight, a future of its completion. A request that completes at once (memory, a
//!   mapped request) costs no allocation and no scheduling.
//! * [`Array`]: a geometry over members, the interpreter of [`braid_array::Plan`]s.
//! * [`decorators`]: devices in front of one device.
//! * [`assembled`]: from the contents of members to the setup of an array, without I/O.
//! * [`Offered`]: the device that exports offer, which may be locked or exchanged while they serve.
//! * [`InFlight`]: the requests in flight of a client, polled only after a wake.
//!
//! Invariants: a request's payload comes back in its completion, also on error; a dropped future leaves its
//! memory with the operation that still uses it. Deliberately absent: threads, clocks, randomness, runtimes and
//! system calls. An executor (`braid-uring`, `braid-sim`) supplies leaf devices and polls.

mod array;
pub mod assembled;
mod background;
pub mod canary;
mod clock;
mod contract;
pub mod decorators;
mod device;
mod extents;
mod inflight;
mod offered;
mod pending;
pub mod redundant;
mod signal;

pub use array::Array;
pub use clock::{Clock, Tasks};
pub use device::{Dev, Device};
pub use extents::Extents;
pub use inflight::InFlight;
pub use offered::{Earlier, Offered, WritePermit};
pub use pending::{CompletionSource, Pending, Steps, Ticket, Token, Watch, Watched, join_all};
pub use signal::Signal;
