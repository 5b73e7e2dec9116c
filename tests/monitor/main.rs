//! `braid monitor`: what it sees of real volumes, whom it tells, and the spares that it moves.

#[path = "../common/mod.rs"]
mod common;

mod disks;
mod running;
mod silent;
mod spares;
mod tls;
mod told;
