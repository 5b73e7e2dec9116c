//! The command line of `braid superblocks`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Each change of an array's members keeps a copy of its superblocks by itself, the last 16 of an array. \
                        A copy holds no data, and no bits of a write-intent bitmap."
)]
pub(crate) enum Superblocks {
    /// Keep a copy of the superblocks of an array now
    Save(SuperblocksSave),
    /// List the copies that are kept
    List(SuperblocksList),
    /// Show what a copy says of the array and its members
    Show(SuperblocksShow),
    /// Write superblocks of a copy to members that lost theirs
    Restore(SuperblocksRestore),
}

#[derive(Debug, Args)]
pub(crate) struct SuperblocksSave {
    /// The name of a volume, or members: files or block devices; nothing is written to them
    #[arg(value_name = "NAME|MEMBER", required = true)]
    pub(crate) what: Vec<PathBuf>,
    /// Write the copy to this new file instead, for another machine or a safe
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SuperblocksList {
    /// Only of the array with this identifier or name
    #[arg(value_name = "UUID|NAME")]
    pub(crate) array: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SuperblocksShow {
    /// The number of a copy, or a file that `save --to` wrote
    #[arg(value_name = "NUMBER|FILE")]
    pub(crate) copy: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Members whose superblock is in order keep it. `braid undo` puts back what was overwritten."
)]
pub(crate) struct SuperblocksRestore {
    /// The number of a copy, or a file that `save --to` wrote
    #[arg(value_name = "NUMBER|FILE")]
    pub(crate) copy: String,
    /// Members that are to get their superblocks back, as ID=PATH where the path is not that of the copy and
    /// the device another; IDs are those of `show` [default: all of the copy]
    #[arg(value_name = "MEMBER|ID=MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Write to this member whatever it carries, and if it is another device than it was (give the path again;
    /// may be repeated)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) force: Vec<PathBuf>,
    /// Take this copy though a later one of the array is kept
    #[arg(long)]
    pub(crate) older: bool,
    /// Print what would be overwritten, and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
