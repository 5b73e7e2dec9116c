//! All tests of a mount and of a loop device once more, with requests that come through queues of io_uring.

#[path = "attached.rs"]
mod attached;
#[path = "mounted.rs"]
mod mounted;
