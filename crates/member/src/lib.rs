//! Members: what a stack stands on, opened once for all shards of a volume.
//!
//! ```text
//!   a leaf of a stack ──open──▶ Box<dyn Kind> ──▶ Member: label, counts, deadline
//!                                                   │ Member::device, once for each shard
//!                                                   ▼
//!                                                 Dev: metered, with the deadline
//! ```
//!
//! | kind | file |
//! |---|---|
//! | a regular file or a block device, or a part of one | `file` |
//! | a RAM disk | `ram` |
//! | a device that behaves as a profile says | `modelled` |
//! | an export of an NBD server | `remote` |
//! | an image of a Ceph cluster | `rbd` |
//! | a place of which no byte can be read | `unreadable` |
//!
//! A new kind is a file here that implements [`Kind`], a leaf of `braid_stack::Node`, and a line of [`open()`].
//!
//! Invariants
//! * A member is locked from its opening to its end; [`open_file`] is the one place that opens files, also those
//!   of stores ([`open_store`]).
//! * Everything that differs between kinds is asked of [`Kind`]; nothing else looks at which kind a member is.
//!
//! Deliberately absent: whether a path may be used (`braid_probe` and the service judge before), and md's
//! metadata.

mod file;
mod kind;
mod member;
mod modelled;
mod named;
mod open;
pub mod profile;
mod ram;
mod rbd;
mod remote;
mod store;
mod unreadable;

pub use braid_remote::TrafficRead;
pub use file::open_file;
pub use kind::{Kind, MemberError, OnShard};
pub use member::Member;
pub use named::Named;
pub use open::{Opening, open};
pub use ram::available_memory;
pub use rbd::Ceph;
pub use remote::Remote;
pub use store::open_store;
