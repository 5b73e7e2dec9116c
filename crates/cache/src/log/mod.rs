//! The log of a write-back cache: what it acknowledged as durable and the origin does not have yet.
//!
//! `format` and `ring` are arithmetic on bytes and positions; `store` reads and writes.

pub mod format;
pub mod ring;
pub(crate) mod store;
