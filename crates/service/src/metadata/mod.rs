//! Members while no volume runs on them: reading what md keeps there, and writing it so that it
//! can be undone.
//!
//! ```text
//!   image    an open member: its superblocks, its bitmap
//!   member   the superblock that holds, and what it points to, checked
//!   look     both of a path that is opened for that alone
//!   host     this machine: its name, its time zone, the time, randomness
//!   allocate room in image files for what is written while an array is used
//!   scan     the block devices of this machine
//!   contents what a member is that carries no superblock; the partitions of an image
//!   change   members opened exclusively, bytes saved, bytes replaced
//!   kept     copies of superblocks, a version for each change of membership
//!   saved    the bytes that were there before, on stable storage: what `braid undo` reads
//! ```
//!
//! Invariants
//! * Reading opens nothing for writing.
//! * No byte of a member is replaced before the bytes that were there are on stable storage.
//! * What a member carries is believed only after `braid_md` has checked it.
//!
//! Deliberately absent: what is written and why, which are the commands'; members of a volume
//! that runs, which are its own.

mod allocate;
mod change;
mod contents;
mod host;
mod image;
mod kept;
mod look;
mod member;
mod saved;
mod scan;

pub use allocate::allocate;
pub use change::{Change, Held, Standing};
pub(crate) use contents::refuse_contents;
pub use contents::{Contents, part, parts};
pub use host::{block_device_name, host_name, now, random_number, random_uuid};
pub use image::Image;
pub use kept::{Carries, Copies, Kept, KeptMember};
pub use member::{Metadata, MetadataError, stripe_log_head};
pub use saved::{Patch, Saved, SavedPatch, Trail};
pub use scan::{block_devices, is_behind_another};
