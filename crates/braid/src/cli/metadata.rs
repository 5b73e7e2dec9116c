//! What can be typed about members while no volume runs on them.

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
    /// Files or block devices; nothing is written to them
    #[arg(value_name = "MEMBER", required_unless_present = "scan")]
    pub(crate) members: Vec<PathBuf>,
    /// All block devices of this machine, a line for each array
    #[arg(long, conflicts_with_all = ["members", "json", "export", "explain", "bitmap"])]
    pub(crate) scan: bool,
    /// Print a line for each array, for mdadm.conf, as `mdadm --examine --brief` does
    #[arg(long, group = "form")]
    pub(crate) brief: bool,
    /// Of lines for mdadm.conf: with level, number of members, and devices
    #[arg(long, short, conflicts_with_all = ["json", "export", "explain", "bitmap"])]
    pub(crate) verbose: bool,
    /// Print JSON, with all superblocks that were found
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Print KEY=VALUE lines, as `mdadm --examine --export` does
    #[arg(long, group = "form")]
    pub(crate) export: bool,
    /// Print each field with its bytes and meaning, and who would refuse the superblock and why
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
pub(crate) struct Create {
    /// What to call the array, and the volume that it becomes
    pub(crate) name: String,
    /// Members in the order of their roles: files or block devices; `missing` leaves a role free
    #[arg(value_name = "MEMBER|missing", required = true)]
    pub(crate) members: Vec<PathBuf>,
    /// linear, raid0, raid1, raid10, raid4, raid5 or raid6
    #[arg(long, short)]
    pub(crate) level: Level,
    /// Chunk size [default: 512K]
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) chunk: Option<ByteSize>,
    /// Layout as mdadm spells it: n2, f2, o2 (raid10), left-symmetric, … (raid5, raid6)
    #[arg(long, short = 'p')]
    pub(crate) layout: Option<String>,
    /// Version of the metadata: 1.2, 1.1, 1.0 or 0.90
    #[arg(long, short = 'e', value_name = "VERSION", default_value = "1.2")]
    pub(crate) metadata: Version,
    /// Write-intent bitmap: none, internal, or the size of its chunk
    /// [default: internal for redundant arrays that use more than 100 GiB of each member]
    #[arg(long, short, value_name = "none|internal|SIZE", value_parser = parse_bitmap)]
    pub(crate) bitmap: Option<BitmapArg>,
    /// What makes good what a crash interrupts [default: ppl for raid5, log for raid4 and raid6,
    /// else what --bitmap implies]
    #[arg(long, value_name = "POLICY", value_enum)]
    pub(crate) consistency: Option<ConsistencyArg>,
    /// Where the data starts on each member [default: as mdadm chooses]
    #[arg(long, value_name = "SIZE")]
    pub(crate) data_offset: Option<ByteSize>,
    /// How much of each member to use [default: as much as the smallest has]
    #[arg(long, short = 'z', value_name = "SIZE")]
    pub(crate) size: Option<ByteSize>,
    /// The array's identifier [default: a random one]
    #[arg(long)]
    pub(crate) uuid: Option<Uuid>,
    /// The host that the array belongs to, or `none` [default: this one]
    #[arg(long, value_name = "HOST")]
    pub(crate) homehost: Option<String>,
    /// The copies, or data and parity, agree already: no resync
    #[arg(long)]
    pub(crate) assume_clean: bool,
    /// A spare, which waits for a member to fail (may be repeated)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) spare: Vec<PathBuf>,
    /// Reads avoid this member (give the path again; may be repeated; raid1)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) write_mostly: Vec<PathBuf>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Take this member whatever it carries (give the path again; may be repeated)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) force: Vec<PathBuf>,
}

/// `--bitmap`.
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
            .map_err(|error| format!("neither none nor internal nor the size of a chunk: {error}")),
    }
}

fn raid0_layout(text: &str) -> Result<Raid0Layout, String> {
    Raid0Layout::from_name(text).ok_or_else(|| "there are alternate and original".to_owned())
}

/// `--consistency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ConsistencyArg {
    /// A resync of everything
    Resync,
    /// A resync of what the write-intent bitmap says
    Bitmap,
    /// md's partial parity log, which closes the write hole (raid5)
    Ppl,
    /// braid's stripe log, which closes the write hole (raid4, raid5, raid6; metadata 1.1 and 1.2)
    Log,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Assemble {
    /// The members of one array: files or block devices
    #[arg(value_name = "MEMBER")]
    pub(crate) members: Vec<PathBuf>,
    /// Look at all block devices of this machine
    #[arg(long)]
    pub(crate) scan: bool,
    /// Look at all files in this folder (may be repeated)
    #[arg(long = "in", value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// Take over the arrays that this mdadm.conf names, and print what keeps mdadm from them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["uuid", "name", "force"])]
    pub(crate) mdadm_conf: Option<PathBuf>,
    /// Only the array with this identifier
    #[arg(long)]
    pub(crate) uuid: Option<Uuid>,
    /// Only the array with this name, with its host or without
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// For reading only: also what cannot be written without a risk
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Go on without members that the array was last seen with: they become stale once it is
    /// written
    #[arg(long, conflicts_with_all = ["read_only", "force"])]
    pub(crate) degraded: bool,
    /// How a raid0 over members of unequal sizes is laid out, where its superblocks do not say:
    /// alternate (Linux since 3.14) or original (before)
    #[arg(long, value_name = "LAYOUT", value_parser = raid0_layout)]
    pub(crate) layout: Option<Raid0Layout>,
    /// Take stale members in where the array cannot start without, and go on without members
    /// that are not here: the risks are shown, superblocks are rewritten, `undo` puts them back
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) force: bool,
    /// What to call the volume [default: the array's name]
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) volume: Option<String>,
    /// Print the verdict, and remember or write nothing
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
    /// Only the superblock of this version: 1.2, 1.1, 1.0 or 0.90
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
    /// An array's name or identifier, or the number of a change [default: the latest change]
    #[arg(value_name = "NAME|UUID|NUMBER")]
    pub(crate) change: Option<String>,
    /// List what can be undone
    #[arg(long, conflicts_with_all = ["change", "force"])]
    pub(crate) list: bool,
    /// Put the bytes back though something else was written there since
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cat {
    /// A stack expression, for instance md(a.img, b.img), or the name of a volume that is down
    #[arg(value_name = "STACK|NAME")]
    pub(crate) stack: String,
    /// Where to begin
    #[arg(long, value_name = "SIZE", default_value = "0")]
    pub(crate) offset: ByteSize,
    /// How much to write [default: all that follows]
    #[arg(long, value_name = "SIZE")]
    pub(crate) length: Option<ByteSize>,
    /// How input and output are carried out
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Of ext2, ext3, ext4 and xfs, in a partition, too. A journal is not replayed: files and names are \
                        those of the last checkpoint. A volume that is up is read through its block device."
)]
pub(crate) struct Files {
    /// A stack expression, for instance md(a.img, b.img), or the name of a volume
    #[arg(value_name = "STACK|NAME")]
    pub(crate) stack: String,
    /// Bytes of the volume, such as 40960 or 1G+64K; 4 KiB of them if no length is given
    #[arg(value_name = "OFFSET[+LENGTH]", required = true, value_parser = parse_range)]
    pub(crate) ranges: Vec<Range<u64>>,
    /// How input and output are carried out
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads `OFFSET` or `OFFSET+LENGTH`.
fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let size = |text: &str| text.parse::<ByteSize>().map_err(|error| error.to_string());
    let (offset, length) = text.split_once('+').unwrap_or((text, "4K"));
    let (offset, length) = (size(offset)?.bytes(), size(length)?.bytes());
    let end = offset.checked_add(length).filter(|end| *end > offset);
    end.map(|end| offset..end).ok_or_else(|| "a range has at least one byte".to_owned())
}
