//! Arguments of `braid rescue`.

use std::ops::Range;
use std::path::PathBuf;

use braid_level::Level;
use braid_md::Version;
use braid_service::volume::{Attach, IoMode};
use braid_stack::ByteSize;
use clap::{Args, Subcommand};

use super::choice;
use super::metadata::parse_range;

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A case is a folder, NAME.rescue, with what is known of the members. Members \
                        are opened for reading only. Write nothing to them meanwhile: do not \
                        create the array anew, assemble it by force, repair or mount it."
)]
pub(crate) enum Rescue {
    /// Show what lies on the members of an array that does not start, and why it does not
    Scan(RescueScan),
    /// Decide which members the array is read from, show what is in doubt, and serve it read-only
    Open(RescueOpen),
    /// Find level, layout, chunk, order and data offsets from the content, without superblocks
    Solve(RescueSolve),
    /// Copy the array's content to an image, with a map of what could not be read
    Copy(RescueCopy),
    /// Show which files own bytes that are lost or in doubt, or any other bytes
    Files(RescueFiles),
    /// Compare data and parity, or copies, in all regions of the array
    Verify(RescueVerify),
    /// Write md superblocks that describe the array as it is read: the last step
    Commit(RescueCommit),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Searches md superblocks in every place and at every 4 KiB of the first and \
                        last 128 MiB, partition tables, and signatures of other formats."
)]
pub(crate) struct RescueScan {
    /// Name of the case: the folder NAME.rescue, which is made if it is not there
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    /// Members, as images or block devices [default: those of the case]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// GNU ddrescue's map of an image: what it does not call read is not used (may be given several
    /// times)
    #[arg(long, value_name = "PATH=FILE")]
    pub(crate) map: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is read, where a case has several answers.
#[derive(Debug, Default, Args)]
pub(crate) struct Meant {
    /// The array, by name or UUID, if the members are of several
    #[arg(long, value_name = "NAME|UUID")]
    pub(crate) array: Option<String>,
    /// The answer of `solve` with this number, instead of what superblocks say
    #[arg(long, value_name = "N", conflicts_with = "array")]
    pub(crate) hypothesis: Option<usize>,
    /// The volume, as `open` names it, if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) volume: Option<String>,
    /// The backup file of a reshape that stopped, which `mdadm --grow --backup-file` named
    #[arg(long, value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 if nothing is in doubt, 4 if something is, 1 if no array \
                        can be read.")]
pub(crate) struct RescueOpen {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) meant: Meant,
    /// Serve it read-only to NBD clients, in the foreground: unix:PATH, tcp:IP:PORT, tcp:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["attach", "json"])]
    pub(crate) nbd: Vec<String>,
    /// Attach it as a read-only block device of this machine
    #[arg(long, value_parser = choice::attach(), conflicts_with = "json")]
    pub(crate) attach: Option<Attach>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Blocks of ext4, xfs, btrfs, NTFS, GPT, LVM2 and LUKS say where they belong; parity \
                        confirms it. At most 1.5 GiB of each member are read. Exit status: 0 if the \
                        geometry is decided and no data is missing, 4 if not."
)]
pub(crate) struct RescueSolve {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    /// The level, if it is known
    #[arg(long)]
    pub(crate) level: Option<Level>,
    /// The layout, if it is known, as `create` takes it; needs --level
    #[arg(long, requires = "level")]
    pub(crate) layout: Option<String>,
    /// The chunk, if it is known
    #[arg(long, value_name = "SIZE")]
    pub(crate) chunk: Option<ByteSize>,
    /// The number of members, missing ones included, if it is known
    #[arg(long, value_name = "N")]
    pub(crate) members: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "A copy that was interrupted is continued by the same command: IMAGE.map \
                        has what was copied, in GNU ddrescue's format. Exit status: 0 if all was \
                        copied and nothing is in doubt, 4 if not.")]
pub(crate) struct RescueCopy {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    /// The image that is written, and IMAGE.map beside it
    #[arg(long, value_name = "IMAGE")]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) meant: Meant,
    /// I/O method
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
}

#[derive(Debug, Args)]
#[command(after_help = "Supports ext2, ext3, ext4 and xfs, also in a partition.")]
pub(crate) struct RescueFiles {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    /// Bytes of the array, such as 40960 or 1G+64K
    #[arg(value_name = "OFFSET[+LENGTH]", value_parser = parse_range)]
    pub(crate) ranges: Vec<Range<u64>>,
    /// The bytes that `open` calls lost or in doubt
    #[arg(long, required_unless_present = "ranges")]
    pub(crate) lost: bool,
    #[command(flatten)]
    pub(crate) meant: Meant,
    /// I/O method
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "A sample of each region is read. A region that differs as a whole has a \
                        wrong or stale member, or a wrong order. Exit status: 0 if all agree, 4 \
                        if some differ or nothing can be compared.")]
pub(crate) struct RescueVerify {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) meant: Meant,
    /// Read everything
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without --write, it prints what would be written. What is overwritten is saved \
                        in CASE.rescue/undo first, and --undo puts it back. The data stay where they \
                        are; a member that is stale becomes a missing one. A commit that was \
                        interrupted is finished by the same command."
)]
pub(crate) struct RescueCommit {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) meant: Meant,
    /// Write the superblocks
    #[arg(long)]
    pub(crate) write: bool,
    /// Put back what was there before the commit
    #[arg(long, conflicts_with_all = ["write", "mdadm", "array", "hypothesis", "volume"])]
    pub(crate) undo: bool,
    /// Print the mdadm command that does the same, and write nothing
    #[arg(long, conflicts_with = "write")]
    pub(crate) mdadm: bool,
    /// You have checked files of the array yourself; otherwise `verify` must have found it right
    #[arg(long)]
    pub(crate) verified: bool,
    /// Version of the superblocks [default: as those that are left, or the first that has room]
    #[arg(long, value_name = "VERSION")]
    pub(crate) metadata: Option<Version>,
    /// A member with a partition table that is of no use; with --undo, one that was written since (may
    /// be given several times)
    #[arg(long, value_name = "PATH")]
    pub(crate) force: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
