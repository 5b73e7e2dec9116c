//! The control socket of a volume's process, without the volume: what is said over it, and the asking end.
//!
//! | request             | answer                                                        |
//! |---------------------|---------------------------------------------------------------|
//! | `GET /v1/status`    | [`Status`]                                                    |
//! | `GET /v1/curves`    | a [`CacheCurve`] of each cache; `null` if they do not answer  |
//! | `GET /v1/slow?seconds=N` | requests followed for N seconds, 1 to 60: [`SlowStatus`]; `null` while another asker has some followed |
//! | `GET /metrics`      | the status as Prometheus reads it: `crates/metrics`           |
//! | `POST /v1/plan`     | what an [`Order`] would do, or why it would be refused; nothing is changed: [`Plan`] |
//! | `POST /v1/stop`     | when it has detached and takes no more requests; 409 if held  |
//! | `POST /v1/order`    | an [`Order`] carried out, or why not: [`OrderAnswer`]         |
//!
//! Orders and stops are answered in three steps: `102` with `braid-order: accepted`, `102` with
//! `braid-order: begun` right before anything is changed, and the answer. If the connection is gone
//! before the second, they are not carried out.
//!
//! The socket is its owner's (0600) and there is nothing else to reach it by.
//!
//! Deliberately absent: the serving end, which is a part of the volume's process, and carries orders out.

mod array_status;
mod cache_status;
mod client;
mod disk_status;
mod error_code;
mod event_log;
mod export_status;
mod failure;
mod fuzz;
mod giver;
mod health;
mod job;
mod member_status;
mod order;
mod problem;
mod process;
mod remote_status;
mod slow_status;
mod sockets;
mod spares;
mod status;
mod stop;
mod tls_status;

pub use array_status::{
    ArrayMember, ArrayStatus, JobStatus, LeftOutStatus, MismatchMember, MismatchStatus,
    ScrubPlaceStatus, ScrubStatus, SuspectStatus,
};
pub use braid_status::{CacheCounts, Counters, ExportCounts, Latencies, MemberIo};
pub use cache_status::{
    AsideFigures, AsideStatus, CacheCurve, CacheStatus, CurvePoint, WriteBackStatus,
};
pub use client::{
    ControlError, get_curves, get_slow, get_status, get_status_within, get_statuses, post_order,
    post_plan, post_stop, time_for,
};
pub use disk_status::{DiskStatus, SmartStatus};
pub use error_code::ErrorCode;
pub use event_log::{EventLog, LoggedEvent, are_missed, read_events};
pub use export_status::{ClientIo, ExportStatus};
pub use failure::{Failure, FailureKind, with_next};
pub use fuzz::fuzz_bodies;
pub use giver::Giver;
pub use health::Health;
pub use job::{Job, JobState};
pub use member_status::MemberStatus;
pub use order::{
    Answer, CacheOrder, Carried, DeviceOrder, Effect, Order, OrderAnswer, Plan, WholeOrder,
};
pub use problem::{Problem, Severity};
pub use process::{Process, is_ending};
pub use remote_status::RemoteStatus;
pub use slow_status::{SlowPart, SlowRequest, SlowStatus, worked_us};
pub use sockets::{EVENTS, MONITOR, Named, volumes};
pub use spares::{SpareMove, plan_moves};
pub use status::{DeviceStatus, OUTPUT_VERSION, RamStatus, Status, TraceStatus};
pub use stop::StopAnswer;
pub use tls_status::TlsStatus;
