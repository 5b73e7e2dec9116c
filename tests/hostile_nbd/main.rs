//! NBD clients that mean harm, or are broken: whatever they send, or do not send, the volume's
//! process lives, keeps its memory bounded, and serves everybody else.
//!
//! A connection ends in one of two ways, and which it is matters to clients that are only a
//! little wrong: a request that can be skipped is *answered* with an error and the connection
//! goes on; where the next message begins is unknown, the connection is *closed*.
//!
//! The server waits 30 s for a client that stalls in the middle of a message. No test waits that
//! long: each looks at what others can do meanwhile.

#[path = "../common/mod.rs"]
mod common;
mod crowds;
mod negotiation;
mod parts;
mod requests;
mod users;

use braid_nbd::protocol::constants::{
    NBD_FLAG_C_FIXED_NEWSTYLE, NBD_FLAG_C_NO_ZEROES, NBD_REQUEST_MAGIC,
};

/// The flags of every modern client after the greeting.
const FLAGS: u32 = NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES;

/// A volume in memory: small enough for any machine, larger than the longest payload.
const STACK: &str = "raid0(chunk=64K, ram(32M), ram(32M))";
const SIZE: u64 = 64 << 20;

/// The header of a request of 28 bytes, right or wrong.
fn header(flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = NBD_REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}
