//! The log of a write-back cache: what it acknowledged as durable and the origin does not have yet.
//!
//! `format` and `ring` are arithmetic on bytes and positions; `found` reads what is there, `store` replays and
//! writes.

mod bytes;
pub(crate) mod error;
pub mod format;
mod found;
pub mod ring;
pub(crate) mod store;
