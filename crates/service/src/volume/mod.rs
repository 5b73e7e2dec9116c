//! A volume: one process, its shards, its exports, its end.
//!
//! ```text
//!   main thread          events: signals, control requests, shards that end
//!      │
//!      ├─ shard 0        executor, pool, devices, NBD sessions; accepts; serves FUSE
//!      ├─ shard 1 …      executor, pool, devices, NBD sessions
//!      ├─ control        HTTP on a Unix socket (its own runtime)
//!      ├─ returning      looks for members that went away
//!      ├─ keeper         keeps copies of superblocks
//!      └─ signals        SIGTERM, SIGINT
//! ```
//!
//! Invariant: the main thread owns the volume's life and is the only one that ends it: detach
//! (or refuse to), stop taking requests, answer those under way, flush, exit.

mod admission;
mod all_shards;
mod arrays;
mod asking;
mod bridge;
mod budget;
mod build;
mod cache_log;
mod caches;
mod caching;
mod deadline;
mod decorated;
mod elsewhere;
mod error;
mod exports;
mod following;
mod front;
mod given_up;
mod health;
mod held;
mod image;
mod keeper;
mod left;
mod live;
mod long_orders;
mod md;
mod media;
mod members;
mod memory;
mod name_lock;
mod new_root;
mod newcomer;
mod notify;
mod options;
mod orders;
mod own;
mod own_export;
mod prepare;
mod promises;
mod ready;
mod recorded;
mod restart;
mod returning;
mod run;
mod scrubs;
mod shard;
mod shared;
mod sides;
mod slow;
mod slow_requests;
mod spec;
mod tls;
mod to_shard;
mod to_write_back;
mod trace;
mod unopened;
mod verdict;
mod warm;
mod warnings;
mod watcher;

pub use admission::{admit, check_patiently, logs};
pub use braid_engine::assembled::log_troubles;
pub use braid_tls::Client as NbdClient;
pub use build::{Built, build};
pub use deadline::MemberDeadline;
pub use error::RunError;
pub use exports::{backing_file, clean_up_after};
pub use md::is_served;
pub use media::Media;
pub use name_lock::NameLock;
pub use notify::Notify;
pub use options::{Accepted, OpenOptions, Unusable};
pub use promises::{check_stack, total_memory};
pub use ready::{Printed, Ready};
pub use run::run;
pub use spec::{Attach, IoMode, LastResort, ReAdd, Spec, ublk_ability};
pub use tls::{TlsMode, TlsOptions, TlsRefusal};
pub use trace::TraceTo;
pub(crate) use unopened::member_failure;
