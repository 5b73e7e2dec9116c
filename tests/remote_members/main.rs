//! Remote members under the whole program: servers that go and come back, lie, or are the volume itself.
//!
//! ```text
//!   near: braid ── raid1 ──┬── a.img
//!                          └── nbd(…) ── socket ── far: braid serve, nbdkit, qemu-nbd
//! ```

#[path = "../common/mod.rs"]
mod common;

mod behind;
mod cable;
mod created;
mod far;
mod itself;
mod mirror;
mod predicted;
mod restarts;
mod servers;
mod two_machines;

/// The exit status of a refusal by a rule of safety.
const REFUSED: i32 = 3;
