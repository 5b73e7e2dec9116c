//! The vhost-user-blk export: a volume as a disk of a virtual machine, whose requests are in the machine's own memory.
//!
//! ```text
//!   virtual machine                                              this process
//!   front-end (qemu, …) ── socket: memory, addresses, eventfds ──▶ Export (thread of its own)
//!   guest's driver ─────── virtqueues in shared memory ──────────▶ Server (shards) ──▶ Io ──▶ Dev
//! ```
//!
//! Invariants
//! * Everything that comes from the socket or the guest's memory is checked: lengths, addresses, indices, chains.
//! * Data are copied once between the guest's memory and that of the pool, in either direction. The guest may change its
//!   buffers at any time: copies and parity are made of bytes that it cannot reach.
//! * A request that was in flight when a server ended is carried out by the next one, if the front-end keeps the notes
//!   ([`inflight`]).
//!
//! Modules that others see:
//!
//! - [`fuzz`]: any bytes as a message, or as a guest's memory.
//!
//! Absent on purpose: arrays; packed queues, migration of a running guest, and polling of queues.

pub mod canary;
pub mod fuzz;

mod config;
mod control;
mod data;
mod disk;
mod end;
mod export;
mod inflight;
mod memory;
mod message;
mod queue;
mod request;
mod ring;
mod server;
mod socket;
mod stopper;

pub use disk::{ForServer, OnShard};
pub use end::End;
pub use export::Export;
pub use server::{Counters, Counts, Server};
