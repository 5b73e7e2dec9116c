//! `braid web`.
