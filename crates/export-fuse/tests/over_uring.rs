//! All tests of a mount and of a loop device once more, with requests that come through queues of io_uring.

#![allow(clippy::duplicate_mod, reason = "both files have their support, as they have alone")]

#[path = "attached.rs"]
mod attached;
#[path = "mounted.rs"]
mod mounted;
