//! The control socket of a volume process: HTTP and JSON over a Unix socket.
//!
//! | request             | answer                                                        |
//! |---------------------|---------------------------------------------------------------|
//! | `GET /v1/status`    | [`Status`]                                                    |
//! | `GET /v1/curves`    | a [`CacheCurve`] of each cache; `null` if they do not answer  |
//! | `POST /v1/stop`     | when it has detached and takes no more requests; 409 if held  |
//! | `POST /v1/order`    | an [`Order`] carried out, or why not: [`OrderAnswer`]         |
//!
//! What is posted is answered in three steps: `102` with `braid-order: accepted`, `102` with
//! `braid-order: begun` right before anything is changed, and the answer. If the connection is gone
//! before the second, it is not carried out.
//!
//! The socket is its owner's (0600) and there is nothing else to reach it by.

mod cache_order;
mod cache_status;
mod client;
#[cfg(test)]
mod fuzz;
mod giver;
mod order;
mod server;
mod status;

pub(crate) use cache_order::one_cache;
pub(crate) use cache_status::{
    AsideFigures, AsideStatus, CacheCurve, CacheStatus, CurvePoint, WriteBackStatus,
};
pub(crate) use client::{
    ControlError, get_curves, get_status, get_statuses, post_order, post_stop, time_for,
};
pub(crate) use giver::Giver;
pub(crate) use order::{CacheOrder, Order, OrderAnswer, Outcome, WholeOrder};
pub(crate) use server::{Event, Server, StopAnswer, Volume, serve};
pub(crate) use status::{
    ArrayMember, ArrayStatus, AttachedStatus, DeviceStatus, ExportStatus, JobStatus, LeftOutStatus,
    LogCostStatus, MemberStatus, OUTPUT_VERSION, RamStatus, ScrubStatus, Status, SuspectStatus,
    TraceStatus,
};
