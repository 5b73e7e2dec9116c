//! Arguments of the commands on members that no running volume uses.

use std::ops::Range;
use std::path::PathBuf;

use braid_level::Raid0Layout;
use braid_md::{Level, Uuid, Version};
use braid_stack::ByteSize;
use clap::Args;

use braid_service::volume::IoMode;

use super::choice;

#[derive(Debug, Args)]
pub(crate) struct Examine {
    /// Files or block devices; they are only read
    #[arg(value_name = "MEMBER", required_unless_present = "scan")]
    pub(crate) members: Vec<PathBuf>,
    /// Examine all block devices of this machine; prints one line per array
    #[arg(long, conflicts_with_all = ["members", "json", "export", "explain", "bitmap"])]
    pub(crate) scan: bool,
    /// Print one line per array for mdadm.conf, as `mdadm --examine --brief` does
    #[arg(long, group = "form")]
    pub(crate) brief: bool,
    /// Add level, number of members and devices to the lines for mdadm.conf
    #[arg(long, short, conflicts_with_all = ["json", "export", "explain", "bitmap"])]
    pub(crate) verbose: bool,
    /// Print JSON, with all superblocks found
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Print KEY=VALUE lines, as `mdadm --examine --export` does
    #[arg(long, group = "form")]
    pub(crate) export: bool,
    /// Print each field with its bytes and meaning, and which programs would refuse the superblock
    /// and why
    #[arg(long, group = "form")]
    pub(crate) explain: bool,
    /// Print the write-intent bitmap, as `mdadm --examine-bitmap` does
    #[arg(long, group = "form")]
    pub(crate) bitmap: bool,
    /// Print the bad-block log, as `mdadm --examine-badblocks` does
    #[arg(long, group = "form")]
    pub(crate) badblocks: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Disks {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the array and of its volume
    pub(crate) name: String,
    /// Files or block devices in the order of their roles; `missing` leaves a role free
    #[arg(value_name = "MEMBER|missing", required = true)]
    pub(crate) members: Vec<PathBuf>,
    /// linear, raid0, raid1, raid10, raid4, raid5 or raid6
    #[arg(long, short)]
    pub(crate) level: Level,
    /// Chunk size [default: 512K]
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) chunk: Option<ByteSize>,
    /// Layout in mdadm's notation: n2, f2, o2 (raid10), left-symmetric, … (raid5, raid6)
    #[arg(long, short = 'p')]
    pub(crate) layout: Option<String>,
    /// Metadata version: 1.2, 1.1, 1.0 or 0.90
    #[arg(long, short = 'e', value_name = "VERSION", default_value = "1.2")]
    pub(crate) metadata: Version,
    /// Write-intent bitmap: none, internal, or its chunk size [default: internal for redundant
    /// arrays that use more than 100 GiB of each member]
    #[arg(long, short, value_name = "none|internal|SIZE", value_parser = parse_bitmap)]
    pub(crate) bitmap: Option<BitmapArg>,
    /// Way to consistency after a crash [default: ppl for raid5, log for raid4 and
    /// raid6, otherwise as --bitmap implies]
    #[arg(long, value_name = "POLICY", value_enum)]
    pub(crate) consistency: Option<ConsistencyArg>,
    /// Offset of the data on each member [default: as mdadm chooses]
    #[arg(long, value_name = "SIZE")]
    pub(crate) data_offset: Option<ByteSize>,
    /// Bytes to use of each member [default: the size of the smallest]
    #[arg(long, short = 'z', value_name = "SIZE")]
    pub(crate) size: Option<ByteSize>,
    /// UUID of the array [default: random]
    #[arg(long)]
    pub(crate) uuid: Option<Uuid>,
    /// Host that the array belongs to, or `none` [default: this host]
    #[arg(long, value_name = "HOST")]
    pub(crate) homehost: Option<String>,
    /// Skip the resync: copies, or data and parity, are known to agree
    #[arg(long)]
    pub(crate) assume_clean: bool,
    /// A spare, which replaces a member that fails (may be given several times)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) spare: Vec<PathBuf>,
    /// Avoid reads of this member of a raid1 (repeat the member's path; may be given several times)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) write_mostly: Vec<PathBuf>,
    /// Let write-mostly members of a raid1 carry out up to WRITES writes after the answer, until a
    /// flush; needs a bitmap [default when given: 256]
    #[arg(long, value_name = "WRITES", num_args = 0..=1, require_equals = true, default_missing_value = "256")]
    pub(crate) write_behind: Option<u32>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Use this member even if it carries other data (repeat the member's path; may be given
    /// several times)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) force: Vec<PathBuf>,
}

/// Value of `--bitmap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitmapArg {
    None,
    Internal,
    Chunk(ByteSize),
}

pub(super) fn parse_bitmap(text: &str) -> Result<BitmapArg, String> {
    match text {
        "none" => Ok(BitmapArg::None),
        "internal" => Ok(BitmapArg::Internal),
        size => size
            .parse()
            .map(BitmapArg::Chunk)
            .map_err(|error| format!("not none, internal or a chunk size: {error}")),
    }
}

fn raid0_layout(text: &str) -> Result<Raid0Layout, String> {
    Raid0Layout::from_name(text).ok_or_else(|| "the layouts are alternate and original".to_owned())
}

/// Value of `--consistency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ConsistencyArg {
    /// Resync of the whole array
    Resync,
    /// Resync of the regions marked in the write-intent bitmap
    Bitmap,
    /// md's partial parity log, which closes the write hole (raid5)
    Ppl,
    /// braid's stripe log, which closes the write hole (raid4, raid5, raid6; metadata 1.1 and 1.2)
    Log,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Assemble {
    /// Members of one array: files or block devices
    #[arg(value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Search all block devices of this machine
    #[arg(long)]
    pub(crate) scan: bool,
    /// Search all files in this folder (may be given several times)
    #[arg(long = "in", value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// Take over the arrays listed in this mdadm.conf, and print the lines that make mdadm ignore
    /// them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["uuid", "name", "force"])]
    pub(crate) mdadm_conf: Option<PathBuf>,
    /// Only the array with this UUID
    #[arg(long)]
    pub(crate) uuid: Option<Uuid>,
    /// Only the array with this name, with or without its host
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Read-only: also accepts an array that cannot be written without risk
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Continue without members that the superblocks list as in sync; these become stale with the
    /// first write
    #[arg(long, conflicts_with_all = ["read_only", "force"])]
    pub(crate) degraded: bool,
    /// Layout of a raid0 with unequal members, if its superblocks do not record it: alternate
    /// (Linux since 3.14) or original (before)
    #[arg(long, value_name = "LAYOUT", value_parser = raid0_layout)]
    pub(crate) layout: Option<Raid0Layout>,
    /// Use stale members if the array cannot start without them, and continue without absent ones.
    /// Shows the risks and rewrites superblocks; `undo` restores them
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) force: bool,
    /// Name of the volume [default: name of the array]
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) volume: Option<String>,
    /// Print the verdict; record and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Wipe {
    /// Files or block devices
    #[arg(value_name = "MEMBER", required = true)]
    pub(crate) members: Vec<PathBuf>,
    /// Remove only the superblock of this version: 1.2, 1.1, 1.0 or 0.90
    #[arg(long, short = 'e', value_name = "VERSION")]
    pub(crate) metadata: Option<Version>,
    /// Print what would be removed, and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Name or UUID of an array, or number of a change [default: the latest change]
    #[arg(value_name = "NAME|UUID|NUMBER")]
    pub(crate) change: Option<String>,
    /// List the changes that can be undone
    #[arg(long, conflicts_with_all = ["change", "force"])]
    pub(crate) list: bool,
    /// Restore the bytes even if the place was written again since
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cat {
    /// A stack expression, such as md(a.img, b.img), or the name of a volume that is down
    #[arg(value_name = "STACK|NAME")]
    pub(crate) stack: String,
    /// First byte to write
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub(crate) offset: ByteSize,
    /// Number of bytes to write [default: up to the end]
    #[arg(long, value_name = "SIZE")]
    pub(crate) length: Option<ByteSize>,
    /// I/O method
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
}

#[derive(Debug, Args)]
#[command(after_help = "Supports ext2, ext3, ext4, xfs and btrfs, also in a partition. The \
                        journal of ext is replayed in memory. A running volume is read through its \
                        block device. Exit status of a listing: 0 if nothing is lost or in doubt, \
                        4 if something is.")]
pub(crate) struct Files {
    /// A stack expression, such as md(a.img, b.img), or the name of a volume
    #[arg(value_name = "STACK|NAME")]
    pub(crate) stack: String,
    /// Bytes of the volume whose owners are shown, such as 40960 or 1G+64K; the default length is 4 KiB [default: list
    /// all files]
    #[arg(value_name = "OFFSET[+LENGTH]", value_parser = parse_range)]
    pub(crate) ranges: Vec<Range<u64>>,
    /// I/O method
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses `OFFSET` or `OFFSET+LENGTH`.
pub(super) fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let size = |text: &str| text.parse::<ByteSize>().map_err(|error| error.to_string());
    let (offset, length) = text.split_once('+').unwrap_or((text, "4K"));
    let (offset, length) = (size(offset)?.bytes(), size(length)?.bytes());
    let end = offset.checked_add(length).filter(|end| *end > offset);
    end.map(|end| offset..end).ok_or_else(|| "a range needs at least one byte".to_owned())
}
