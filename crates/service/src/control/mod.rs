//! The serving end of a volume's control socket, and what a cache's orders mean. What is said over it, and
//! the asking end, are the crate `control`.

mod cache_order;
mod server;

pub use braid_control::*;
pub use cache_order::{apply, one_cache};
pub(crate) use server::{Event, Server, StopSender, Volume, serve};
