//! The production executor: one thread a shard, everything it waits for in one place.
//!
//! ```text
//!   tasks ──submit──▶ operation table ──▶ driver: io_uring      one enter a turn
//!     ▲                     │                     or poll(2) and a pool of threads
//!     └──────wake───────────┘◀── results
//! ```
//!
//! * [`Executor`] runs tasks on the thread that made it; [`Handle`] is how they reach it;
//!   [`Remote`] reaches it from other threads.
//! * Operations own what the kernel works on (buffers, descriptors) from submission to
//!   completion, whatever happens to the future that waits for them.
//! * Two drivers behind one operation table: io_uring, and for machines that forbid it, `poll`
//!   for sockets with a pool of threads for files. The same conformance tests run on both.
//!
//! Deliberately absent: work stealing, priorities, and anything that knows what a block is for:
//! devices and exports are built on top.

pub mod canary;
mod clock;
mod entries;
mod eventfd;
mod executor;
mod fd;
mod file;
mod net;
mod operation;
mod pool;
mod queue;
mod ring;
mod short_poll;
mod stream;
mod submitted;
mod table;
mod threads;
mod timer;
mod turn;
pub mod ublk;

pub use clock::ExecutorClock;
pub use entries::{QUEUE_HEADER, QueueShape};
pub use executor::{Config, Executor, Handle, Mode, Remote};
pub use fd::{Failures, Fd};
pub use net::Receive;
pub use operation::Interest;
pub use queue::Queue;
pub use ring::Workers;
pub use stream::{Socket, Stream};
