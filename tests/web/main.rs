//! `braid web` as it is used and as it is attacked: over real sockets, on real volumes, in a real browser.

#[path = "../common/mod.rs"]
mod common;

mod api;
mod browser;
mod case;
mod client;
mod foreign;
mod hostile;
mod programs;
mod server;
mod slow;
