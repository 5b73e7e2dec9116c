//! The control socket of a volume process: HTTP and JSON over a Unix socket.
//!
//! | request             | answer                                                        |
//! |---------------------|---------------------------------------------------------------|
//! | `GET /v1/status`    | [`Status`]                                                    |
//! | `POST /v1/stop`     | when it has detached and takes no more requests; 409 if held  |
//! | `POST /v1/order`    | an [`Order`] carried out, or why not: [`OrderAnswer`]         |
//!
//! The socket is its owner's (0600) and there is nothing else to reach it by.

mod client;
mod order;
mod server;
mod status;

pub(crate) use client::{ControlError, get_status, post_order, post_stop};
pub(crate) use order::{Order, OrderAnswer, Outcome};
pub(crate) use server::{Event, Server, StopAnswer, Volume, serve};
pub(crate) use status::{
    ArrayMember, ArrayStatus, AttachedStatus, DeviceStatus, ExportStatus, JobStatus, LogCostStatus,
    MemberStatus, OUTPUT_VERSION, ScrubStatus, Status, SuspectStatus,
};
