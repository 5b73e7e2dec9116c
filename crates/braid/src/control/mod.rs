//! The control socket of a volume process: HTTP and JSON over a Unix socket.
//!
//! | request             | answer                                                        |
//! |---------------------|---------------------------------------------------------------|
//! | `GET /v1/status`    | [`Status`]                                                    |
//! | `POST /v1/stop`     | when it has detached and takes no more requests; 409 if held  |
//!
//! The socket is its owner's (0600) and there is nothing else to reach it by.

mod client;
mod server;
mod status;

pub(crate) use client::{ControlError, get_status, post_stop};
pub(crate) use server::{Event, StopAnswer, serve};
pub(crate) use status::{
    AttachedStatus, DeviceStatus, ExportStatus, MemberStatus, OUTPUT_VERSION, Status,
};
