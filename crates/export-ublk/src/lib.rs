//! A volume as a block device of the kernel's ublk driver: `/dev/ublkbN`.
//!
//! ```text
//!  /dev/ublkbN ── ublk_drv ── descriptors, 24 bytes a tag ──▶ request ──▶ Dev
//!   (clients)        │                                          ▲
//!                    └── data: one copy, by io_uring ───────────┘ buffers of the shard's pool
//! ```
//!
//! * [`request`]: descriptors that the driver hands over, pure.
//! * [`params`]: the limits of a device in the driver's form, and back, pure.
//! * [`Device`]: the device at the driver: add, start, take over, stop, delete.
//! * [`serve()`]: the data path of one queue, on a shard's executor.
//!
//! # Stable buffers
//!
//! The driver copies the data of a write once, into memory of the shard (`UBLK_F_USER_COPY`). All copies and parity are
//! made of that memory: a client that changes its buffer during a write never makes members differ.
//!
//! # When the process dies
//!
//! A device that was added as one to recover stays: its requests wait, those under way included, until a process takes
//! it over ([`Device::begin_recovery`]) or deletes it. Other devices are stopped by the kernel, and their requests fail
//! ([decision 114](../../../docs/decisions/0114-ublk-first-and-a-device-outlives-its-server.md)).
//!
//! Deliberately absent: devices of users without privileges, for which the driver refuses `UBLK_F_USER_COPY`; zero copy,
//! which saves nothing where memory or parity is involved; zones.

mod device;
pub mod params;
pub mod request;
mod serve;

pub use device::{AddError, Device, Features, State, find, known_fault, tag};
pub use serve::{Counters, Counts, ServeError, serve};
