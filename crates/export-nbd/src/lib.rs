//! The NBD export: a volume served over the Network Block Device protocol.
//!
//! The protocol itself, with nothing that moves its bytes, is `braid-nbd`.
//! This crate has a *session* for each connection, over any [`Stream`] (a
//! socket, or a simulated pipe), and a [`Server`] that accepts connections.
//!
//! ```text
//!   client bytes ──► inbox ──► handshake, then parse and check ──► Io ──► Dev
//!                              (braid-nbd)        (session)               │
//!   client bytes ◄── outbox ◄── reply headers ◄─────────────── Completion ┘
//! ```
//!
//! Modules that others see:
//!
//! - [`fuzz`]: any bytes as a whole connection, and what it must come to.
//!
//! A session inside TLS is the same over another stream, which wraps the first.
//!
//! Absent on purpose: what the protocol's bytes mean; arrays; certificates (`braid-tls`).

pub mod canary;
pub mod fuzz;

mod address;
mod connection;
mod counters;
mod end;
mod outbox;
mod overlaps;
mod payload;
mod secure;
mod serve;
mod session;
mod stop;
mod users;
mod watch;

pub use address::{Address, AddressError, ListenError, Listener, Protection};
pub use braid_uring::Stream;
pub use connection::Export;
pub use counters::{Counters, Counts};
pub use end::End;
pub use overlaps::Overlaps;
pub use secure::{Required, Security};
pub use serve::{Bounds, Server};
pub use stop::Stop;
pub use users::{Rights, Users, Visitor};
