//! Contents and holders of a path, before anything is written there.
//!
//! ```text
//!  path ── identity   which file or device is it really      stat
//!       ── place      which part of that is it              partition table
//!       ── duplicates is it listed twice, or beside its disk stat, sysfs
//!       ── facts      size, block sizes, model, serial       lseek, sysfs
//!       ── usage      mounted, held, swap, open              mountinfo, sysfs, O_EXCL, /proc/*/fd
//!       ── stands    does it stand on a volume of its own   sysfs, mountinfo, /proc/PID/fd
//!       ── untouched  was it written since                 stat, sysfs
//!       ── signature  ext4, md, GPT, LUKS, qcow2, …          reads of a few KiB
//!       ▼
//!  check_member ──▶ MemberFacts, or a Refusal that says what, why and the next command
//! ```
//!
//! Invariants:
//! - Nothing is ever written, and no file is opened for writing.
//! - Nothing waits for a process that serves a file system or a device, but for the member's own.
//! - Default-deny: what cannot be examined is refused.
//! - Signature detection is pure over [`ReadAt`]; it never trusts an offset or a length that it read.
//!
//! Deliberately absent: assembly of what the signatures describe, wiping, `udev`'s database (sysfs
//! and the bytes themselves are the source), users that hold a file only through a memory map, and
//! ioctls (they would need `unsafe`).
//!
//! A check is a snapshot: the member can be mounted a moment later. A caller that opens it for writing
//! keeps `O_EXCL` on block devices.

mod disk;
mod duplicates;
mod error;
mod facts;
mod ground;
mod identity;
mod mounts;
mod place;
mod refusal;
pub mod signature;
mod stands;
mod sysfs;
mod table;
mod text;
mod untouched;
mod usage;

pub use disk::{Disk, disk_of};
pub use duplicates::{Duplicate, Relation, find_duplicates};
pub use error::ProbeError;
pub use facts::{MemberFacts, Named, named_devices, physical_device, physical_devices, served_by};
pub use identity::{DeviceNumber, FileKind, Identity, identify};
pub use mounts::{Mount, leads_to, mount_of, parse_mounts};
pub use place::{Place, partitions};
pub use refusal::{
    Policy, Purpose, Reason, Refusal, check_apart, check_member, check_members, look_at,
};
pub use signature::{CACHE_LOG, Class, Part, ReadAt, Signature, scan_signatures};
pub use stands::stands_on;
pub use sysfs::BlockDevice;
pub use table::{Partition, TableError, read_table};
pub use text::read_text;
pub use untouched::last_change;
pub use usage::{Holder, Usage, find_users, find_users_by_kernel};
