//! The Network Block Device protocol, without anything that moves its bytes: bytes in, values and bytes out.
//! The owner of the connection (a server's session, a client, a test, a fuzzer, a simulated network) drives it.
//!
//! ```text
//!   server                                       client
//!
//!   handshake::Handshake ◄──── options ────── client::ClientHandshake
//!        │               ───── replies ─────►      │
//!    Negotiated                               ClientNegotiated
//!        │ (header mode, reply style)              │ (size, flags, reply style)
//!        ▼                                         ▼
//!   protocol::parse ──► RawRequest ◄──────── client::encode_request
//!   protocol::check ──► CheckedRequest | Refusal
//!        │ (the command is carried out)
//!        ▼
//!   protocol::ReplyStyle ──► ReplyHeader ──► client::parse_reply ──► Reply
//! ```
//!
//! Modules:
//!
//! - [`protocol`]: constants, requests, replies, options, error values;
//! - [`handshake`]: the server's side of the newstyle negotiation;
//! - [`client`]: the other end of all that, for remote members, load
//!   generators, the laboratory and tests;
//! - [`uri`]: addresses of exports, as text;
//! - [`fuzz`]: entry points that take `&[u8]` and assert the invariants.
//!
//! Invariants:
//!
//! - no bytes of either end make anything here panic, or buffer without bound;
//! - no input is consumed that was not there, and how it is split makes no
//!   difference;
//! - bytes of a client are believed only as a [`protocol::CheckedRequest`];
//! - no clock, no allocation on the path of a request and its reply.
//!
//! Absent on purpose: sockets, and everything that waits (`braid-export-nbd`
//! has the server's); the table of requests under way, which is its owner's;
//! what a request does; every other crate of braid; TLS.
//!
//! The protocol's facts come from its specification, `doc/proto.md` of the
//! NetworkBlockDevice project; a *section* named in these comments is a
//! section there. Extended headers are specified in the same document's
//! `EXTENDED_HEADERS` extension, addresses in its `doc/uri.md`.

pub mod client;
pub mod fuzz;
pub mod handshake;
pub mod protocol;
pub mod uri;
