//! The client's side of the protocol, as pure as the server's: for a member
//! that lives on another host, for a load generator, and for tests.
//!
//! ```text
//!   Handshake::advance ──► ClientNegotiated
//!   encode_request(mode, cookie, &Command) ──► RequestHeader   (then the payload of a write)
//!   parse_reply(style, bytes) ──► Reply { cookie, done, body } (then the data of a read)
//! ```
//!
//! Invariants:
//! - no I/O, no clock; nothing a server sends makes a function panic or
//!   buffer without bound;
//! - a breach by the server is an error value, and the connection must then
//!   be closed ("MUST initiate a hard disconnect").
//!
//! Absent on purpose: the table of requests in flight. Only its owner knows
//! whether a cookie is known, whether a chunk lies within its request, and
//! whether a simple reply is followed by data (it answers a read).

mod handshake;
mod reply;
mod request;

pub use handshake::{
    ClientConfig, ClientError, ClientHandshake, ClientNegotiated, ClientProgress, ClientStep,
};
pub use reply::{Body, Extents, MAX_BUFFERED_REPLY, ParsedReply, Reply, ReplyError, parse_reply};
pub use request::{RequestHeader, encode_request};
