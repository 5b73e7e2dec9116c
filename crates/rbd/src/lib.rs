//! Images of a Ceph cluster, through librbd.
//!
//! ```text
//!   shard                                           threads of librbd
//!   Io ──▶ Device ──▶ Queue: keeps the memory ──▶ rbd_aio_… ──▶ cluster
//!             │          │                                        │
//!   Completion ◀─────────┘◀── rbd_poll_io_events ◀── eventfd ◀────┘
//! ```
//!
//! | to know | open |
//! |---|---|
//! | how an image is opened, locked and closed | `image` |
//! | which memory librbd works on, and how long it stays | `ceph` |
//! | requests, flushes behind durable writes, the task that takes answers | `device` |
//! | an image in memory, for tests on machines without Ceph | `twin` |
//!
//! Invariants
//! * Nothing of Ceph is needed to build or start braid: the libraries are loaded when the first image is opened.
//! * An image is written only under its exclusive lock, which is never taken from a client that is alive.
//! * Opening, connecting and closing block no shard, and end after their limit even if the cluster does not answer.
//! * All devices of an image are on one shard: librbd has one event descriptor for an image.
//!
//! Deliberately absent: keys and passwords, which Ceph's configuration names; deadlines, which the meter in front of a
//! member keeps; making, resizing and removing images, which `rbd` does.

mod call;
mod ceph;
mod device;
mod error;
mod image;
mod library;
mod twin;

pub use ceph::CephQueue;
pub use device::{Done, Queue, RbdDevice};
pub use error::RbdError;
pub use image::{Image, Source};
pub use twin::{Twin, TwinQueue};
