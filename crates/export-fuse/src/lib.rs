//! A volume as a block device, on kernels that have neither ublk nor nbd: one file of a FUSE
//! file system, and a loop device on that file.
//!
//! ```text
//!  /dev/loopN ── loop driver ── MOUNT/volume ── FUSE ── /dev/fuse ── serve() ── Dev
//!  (Attachment)  direct I/O     (Mount)                 (shard's thread)
//! ```
//!
//! * [`protocol`]: the wire format, pure.
//! * [`session`]: what each request is answered with, pure.
//! * [`serve()`]: the system calls of the data path, on a shard's executor.
//! * [`serve_queues`]: the data path over io_uring, where the kernel offers it ([`agree`]).
//! * [`fuzz`]: an entry point that takes `&[u8]` and asserts the invariants.
//! * [`Mount`]: the file system in the tree of files; [`Attachment`]: the loop device.
//!
//! # Order of things
//!
//! [`Mount::new`] answers the connection's descriptor, which goes to [`serve()`] on a shard's
//! thread. Only then, and from another thread, [`Attachment::attach`]: opening the file and
//! setting the loop device up wait for answers of that shard. In the same way everything in
//! [`Attachment`] that could wait for the shard is called from elsewhere; the serving thread
//! itself never touches a path.
//!
//! # When the process dies
//!
//! The kernel ends the connection with the last descriptor of it: whatever waits gets an error,
//! nothing hangs. What is left are a dead mount and a loop device without a file behind it,
//! which [`Attachment::find`] and [`Attachment::detach_force`] clear away.
//!
//! Deliberately absent: a general file system, and the page cache.

mod attach;
pub mod canary;
pub mod fuzz;
mod mount;
mod mountinfo;
pub mod protocol;
mod queues;
mod seek;
mod serve;
pub mod session;

pub use attach::{AttachError, AttachedDevice, Attachment, DetachError, Forced};
pub use mount::{Aborter, Mount, MountError};
pub use queues::{
    QUEUES_PARAMETER, agree, queue_count, queues_are_offered, serve_beside_queues, serve_queues,
};
pub use serve::{Counters, ServeError, serve};
pub use session::Transport;
