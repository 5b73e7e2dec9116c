//! The log of a write-back cache: acknowledged data that the origin lacks.
//!
//! `format` and `ring` are arithmetic on bytes and positions; `scan` reads a log, `store` replays
//! and writes it.

mod bytes;
pub(crate) mod error;
pub mod format;
pub mod ring;
mod scan;
pub(crate) mod store;
