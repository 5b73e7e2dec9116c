//! Arguments of `braid member`, and of all orders to running arrays.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Member {
    /// Mark a member as failed; `detached` selects all members whose device is gone
    Fail(MemberTarget),
    /// Remove a failed member or a spare; `failed` selects all failed members, `detached` all whose
    /// device is gone
    Remove(MemberTarget),
    /// Add a device. A former member is brought up to date; any other device becomes a spare, which
    /// replaces a missing member
    Add(NewMember),
    /// Add a former member again, and copy only the data written since it left
    ReAdd(NewMember),
    /// Copy a working member to another device, which then replaces it
    Replace(Replace),
    /// Clear the bad-block lists: rewrite each listed block from the other members. A block that no
    /// other member has is read, and is accepted as it is if the read succeeds
    Retest(AllMembers),
}

#[derive(Debug, Args)]
pub(crate) struct AllMembers {
    /// Name of the volume
    #[arg(value_name = "NAME")]
    pub(crate) volume: String,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    #[command(flatten)]
    pub(crate) how: Giving,
}

/// The form in which an order is given to a running volume.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Giving {
    /// Show the effect of the order, or why it is refused; change nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WhichArray {
    /// Name or UUID of the array, if the stack has several
    #[arg(long, value_name = "NAME|UUID")]
    pub(crate) array: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MemberTarget {
    /// Name of the volume
    #[arg(value_name = "NAME")]
    pub(crate) volume: String,
    /// Path of the member
    pub(crate) member: PathBuf,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    #[command(flatten)]
    pub(crate) how: Giving,
}

#[derive(Debug, Args)]
pub(crate) struct NewMember {
    #[command(flatten)]
    pub(crate) target: MemberTarget,
    /// Use the device even if it carries other data
    #[arg(long)]
    pub(crate) force: bool,
    /// Read the device only if no other member has the data: a slow or remote member of a raid1
    #[arg(long)]
    pub(crate) write_mostly: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replace {
    #[command(flatten)]
    pub(crate) target: MemberTarget,
    /// The device that replaces the member
    pub(crate) with: PathBuf,
    /// Use the device even if it carries other data
    #[arg(long)]
    pub(crate) force: bool,
    /// Read the device only if no other member has the data: a slow or remote member of a raid1
    #[arg(long)]
    pub(crate) write_mostly: bool,
}
