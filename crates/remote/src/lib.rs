//! Remote members: the client's end of NBD connections that break and come back.
//!
//! ```text
//!   Io ──▶ Device ──▶ session: held, sent, repeated ──▶ wire 1 .. wire n ──▶ server
//!             │          │  journal: not flushed yet       link: one connection
//!   Completion ◀─────────┘◀──────── answers ───────────────┘
//! ```
//!
//! | to know | open |
//! |---|---|
//! | which requests are sent when, and which again | `session`, `journal` (pure) |
//! | which servers are refused | `offer` (pure) |
//! | the tasks that connect, send and receive | `device`, `link` |
//! | TLS | `secure` |
//! | reads and writes before the member is at work | `direct` |
//!
//! Invariants
//! * No acknowledged change is lost if the server, its machine or the network fails and comes back with what was durable.
//! * A request waits at most for its deadline (a flush twice as long), then it fails with `ETIMEDOUT`.
//! * Connecting blocks no shard: a thread of its own resolves the name and connects.
//! * All devices of one member are on one shard, because an unknown outcome concerns every later request.
//!
//! Deliberately absent: block status, which devices are asked for without waiting:
//! all of a remote member counts as data.

mod connect;
mod device;
mod direct;
mod journal;
mod link;
mod offer;
mod secure;
mod session;
mod traffic;

pub use connect::{Address, Connect, Dial};
pub use device::{Config, RemoteDevice};
pub use direct::{Direct, DirectError};
pub use offer::{Offer, Unfit};
pub use secure::Line;
pub use traffic::{Traffic, TrafficRead};
