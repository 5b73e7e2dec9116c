//! The NBD export: a volume served over the Network Block Device protocol.
//!
//! This crate's *pure half* is a codec and a handshake that never touch a
//! socket: bytes in, values and bytes out. Whoever owns the socket (the
//! session, a test, a fuzzer, a simulated network) drives it.
//!
//! ```text
//!   client bytes ──► handshake::Handshake ──► Negotiated
//!                                                 │ (header mode, reply style, export)
//!   client bytes ──► protocol::request::parse ──► RawRequest
//!                    protocol::check::check   ──► CheckedRequest | Refusal
//!                                                 │ (the engine does it)
//!   server bytes ◄── protocol::reply::ReplyStyle ◄┘
//! ```
//!
//! Modules:
//!
//! - [`protocol`]: constants, requests, replies, options, error values;
//! - [`handshake`]: the server's side of the newstyle negotiation;
//! - [`client`]: the other end of all that, for remote members, load
//!   generators and tests;
//! - [`fuzz`]: entry points that take `&[u8]` and assert the invariants.
//!
//! The protocol's facts come from its specification, `doc/proto.md` of the
//! NetworkBlockDevice project; a *section* named in these comments is a
//! section there. Extended headers are specified in the same document's
//! `EXTENDED_HEADERS` extension.

pub mod client;
pub mod fuzz;
pub mod handshake;
pub mod protocol;

mod address;
mod connection;
mod counters;
mod inbox;
mod outbox;
mod payload;
mod serve;
mod session;
mod stop;
mod stream;
mod watch;

pub use address::{Address, AddressError, ListenError, Listener};
pub use connection::Export;
pub use counters::{Counters, Counts};
pub use serve::{Bounds, Server};
pub use session::End;
pub use stop::Stop;
pub use stream::Stream;
