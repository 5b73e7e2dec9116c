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
    /// Copy the array's content to an image, or its files to a folder, and tell what could not be read
    Copy(RescueCopy),
    /// List the files with what of them is lost or in doubt, or show which files own bytes
    Files(RescueFiles),
    /// Check an answer: parity or copies, the file system by its own checker, files by their checksums
    Verify(RescueVerify),
    /// Serve an overlay of a volume to a checker, for `verify`
    #[command(hide = true)]
    RunChecker(RescueRunChecker),
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

/// The choice among several answers of a case.
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
                        has what was copied, in GNU ddrescue's format; FOLDER.lost names the files \
                        that are not good. Files are copied from ext2, ext3, ext4, xfs and btrfs. \
                        Exit status: 0 if all was copied and nothing is in doubt, 4 if not.")]
pub(crate) struct RescueCopy {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    /// The image that is written, and IMAGE.map beside it; or a folder for the files, which is there
    /// or ends with a slash, and FOLDER.lost beside it
    #[arg(long, value_name = "IMAGE|FOLDER/")]
    pub(crate) to: PathBuf,
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
#[command(
    after_help = "Supports ext2, ext3, ext4, xfs and btrfs. Without ranges, all files are listed. \
                        Exit status: 0 if nothing is lost or in doubt, 4 if something is."
)]
pub(crate) struct RescueFiles {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    /// Bytes of the volume whose owners are shown, such as 40960 or 1G+64K
    #[arg(value_name = "OFFSET[+LENGTH]", value_parser = parse_range)]
    pub(crate) ranges: Vec<Range<u64>>,
    /// List only the files of which something is lost or in doubt
    #[arg(long, conflicts_with = "ranges")]
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
#[command(
    after_help = "Samples are read: of parity or copies in each region, and of files that carry \
                        checksums of their own. The checker of the file system sees an overlay; \
                        members are never written. Exit status: 0 if something was checked and \
                        all of it is right, 4 if not."
)]
pub(crate) struct RescueVerify {
    /// Name of the case
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) meant: Meant,
    /// Read everything, and let the checker take as long as it needs
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RescueRunChecker {
    /// The volume
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,
    /// Its file system
    #[arg(long)]
    pub(crate) format: String,
    /// The folder that the overlay is mounted on, and with `.cow` at its end the store
    #[arg(long)]
    pub(crate) place: PathBuf,
    /// Time after which the checker is ended
    #[arg(long)]
    pub(crate) seconds: u64,
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
