//! Arguments of `braid superblocks`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(after_help = "A copy is saved automatically at each change of membership; the last \
                        16 of each array are kept. A copy contains no data and no bits of a \
                        write-intent bitmap.")]
pub(crate) enum Superblocks {
    /// Save a copy of an array's superblocks now
    Save(SuperblocksSave),
    /// List the saved copies
    List(SuperblocksList),
    /// Show the array and the members in a copy
    Show(SuperblocksShow),
    /// Write the superblocks of a copy to members that lost theirs
    Restore(SuperblocksRestore),
}

#[derive(Debug, Args)]
pub(crate) struct SuperblocksSave {
    /// Name of a volume, or its members (files or block devices); they are only read
    #[arg(value_name = "NAME|MEMBER", required = true)]
    pub(crate) what: Vec<PathBuf>,
    /// Write the copy to this new file instead, for example for another machine
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SuperblocksList {
    /// Only copies of the array with this UUID or name
    #[arg(value_name = "UUID|NAME")]
    pub(crate) array: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SuperblocksShow {
    /// Number of a copy, or a file that `save --to` wrote
    #[arg(value_name = "NUMBER|FILE")]
    pub(crate) copy: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Members with a valid superblock keep it. `braid undo` restores what \
                        was overwritten.")]
pub(crate) struct SuperblocksRestore {
    /// Number of a copy, or a file that `save --to` wrote
    #[arg(value_name = "NUMBER|FILE")]
    pub(crate) copy: String,
    /// Members to restore. ID=PATH names a member by its ID in `show`, if it is now another device
    /// at another path [default: all members of the copy]
    #[arg(value_name = "MEMBER|ID=MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Write to this member even if it carries other data or is another device than before (repeat
    /// the member's path; may be given several times)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) force: Vec<PathBuf>,
    /// Use this copy even if a later copy of the array exists
    #[arg(long)]
    pub(crate) older: bool,
    /// Print what would be overwritten, and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
