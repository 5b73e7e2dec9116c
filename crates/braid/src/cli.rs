//! Definition of the command line.

mod boot;
mod cache;
mod choice;
mod comfort;
mod groups;
mod lab;
mod member;
mod metadata;
mod metrics;
mod model;
mod model_fit;
mod monitor;
mod rescue;
mod scrub;
mod superblocks;
mod tls;
mod top;
mod trace;
mod web;
mod whole;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use braid_service::volume::{Attach, IoMode, MemberDeadline, ReAdd};

pub(crate) use boot::Incremental;
pub(crate) use cache::{
    Cache, CacheAdvise, CacheAttach, CacheDrain, CacheMode, CacheResize, CacheShare,
};
pub(crate) use comfort::{Forget, Rename};
pub(crate) use groups::command;
pub(crate) use lab::{Lab, LabCompare, LabFormat, LabHow, LabRun, LabTarget};
pub(crate) use member::{Giving, Member, MemberTarget, NewMember, WhichArray};
pub(crate) use metadata::{
    Assemble, BitmapArg, Cat, ConsistencyArg, Create, Disks, Examine, Files, Undo, Wipe,
};
pub(crate) use metrics::Metrics;
pub(crate) use model::{Advise, AdviseNeed, Model, ModelPredict};
pub(crate) use model_fit::ModelFit;
pub(crate) use monitor::Monitor;
pub(crate) use rescue::*;
pub(crate) use scrub::{Scrub, Time as ScrubTime};
pub(crate) use superblocks::{
    Superblocks, SuperblocksList, SuperblocksRestore, SuperblocksSave, SuperblocksShow,
};
pub(crate) use tls::TlsArgs;
pub(crate) use top::Top;
pub(crate) use trace::{Trace, TraceArg, TraceReplay, TraceShow};
pub(crate) use web::{Web, WebCommand, WebToken, WebTokenAdd};
pub(crate) use whole::{Erase, Lock, OneVolume, Resize, Restore, Save};

/// Software RAID in user space, and a laboratory that measures it
///
/// A stack expression describes the devices of a volume:
///
///     raid0(chunk=64K, /dev/sdb, /dev/sdc)     raid5(a.img, b.img, c.img)
///     ram(1G)                                  cache(size=1G, /dev/sdb)
///     holes(a.img, map=a.map)                  cow(a.img, store=changes.cow)
///
/// Exit status: 0 success, 1 failure, 2 wrong usage, 3 refused by a safety rule.
#[derive(Debug, Parser)]
#[command(name = "braid", version, verbatim_doc_comment, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log to standard error which files and volumes are queried and changed
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a volume in the background and print its device or URI
    Up(Up),
    /// Serve a volume over NBD in the foreground, until interrupted
    Serve(Serve),
    /// Stop a volume: detach it, complete the requests in flight, flush
    Down(Down),
    /// Show the state of all volumes in a table, or of one in full
    Status(Status),
    /// Show live rates and latencies of volumes and members, and the progress of passes
    Top(Top),
    /// Print the metrics of volumes in Prometheus format, or serve them
    Metrics(Metrics),
    /// Print the md superblocks of members
    Examine(Examine),
    /// List the block devices of this machine and what is on them
    Disks(Disks),
    /// Create an md array: save the bytes that will be overwritten, then write superblocks
    Create(Create),
    /// Find md arrays and show the state of each, or record one as a volume
    Assemble(Assemble),
    /// Add a device that has appeared, or release one that is gone, for udev
    Incremental(Incremental),
    /// Remove md superblocks from members
    Wipe(Wipe),
    /// Restore the bytes that `create`, `wipe` or another change of metadata overwrote
    Undo(Undo),
    /// Manage copies of md superblocks: save, list, show, restore to members
    #[command(subcommand)]
    Superblocks(Superblocks),
    /// Write the content of a volume to standard output; writes nothing to the members
    Cat(Cat),
    /// Show which files own the given bytes of a volume; writes nothing to the volume
    Files(Files),
    /// Read arrays that do not start, without writing to their members
    #[command(subcommand)]
    Rescue(Rescue),
    /// Print the arrays of running volumes in the format of /proc/mdstat
    Mdstat,
    /// Add, remove, replace or fail members of a running array
    #[command(subcommand)]
    Member(Member),
    /// Compare the copies of a running array, or its data and parity
    Scrub(Scrub),
    /// Add members to an array, use more of each member, or change its write-intent bitmap
    Grow(Grow),
    /// Show or set the speed limits of resync, recovery and scrub
    Speed(Speed),
    /// Make a running volume read-only
    #[command(visible_alias = "readonly")]
    Lock(Lock),
    /// Make a locked volume writable again
    #[command(visible_alias = "readwrite")]
    Unlock(OneVolume),
    /// Remove the record of a stopped volume
    Forget(Forget),
    /// Rename a stopped volume
    Rename(Rename),
    /// Change the size of a running RAM disk
    Resize(Resize),
    /// Discard the content of a RAM disk and free its memory
    Erase(Erase),
    /// Save the content of a volume to a compressed file
    Save(Save),
    /// Load the content of a volume from a file that `save` wrote
    Restore(Restore),
    /// Attach a cache to a volume, change or measure it
    #[command(subcommand)]
    Cache(Cache),
    /// Summarize or replay a trace of requests
    #[command(subcommand)]
    Trace(Trace),
    /// Watch volumes and report events by mail, webhook or program
    Monitor(Monitor),
    /// Show what this machine supports, and how to fix what is missing
    Doctor(Doctor),
    /// Serve a web page and an API to view and control all volumes
    Web(Web),
    /// Measure and compare layouts
    #[command(subcommand)]
    Lab(Lab),
    /// Recommend a layout of given devices for a workload, by prediction
    Advise(Advise),
    /// Device models: list, show, fit to a device, predict a campaign
    #[command(subcommand)]
    Model(Model),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page of a command, or write the pages of all commands
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Open members read-only and refuse writes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Start an array even if members that the superblocks list as in sync are missing
    #[arg(long)]
    pub(crate) degraded: bool,
    /// Use this member even if it carries other data (repeat the member's path; may be given
    /// several times)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) force: Vec<PathBuf>,
    /// Accept TCP connections from other machines without TLS, so without encryption or authentication
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// I/O method
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
    /// Time after which a request to a member counts as failed, such as 30s; 0 disables the limit
    /// [default: 30s for directly used members of an array that survives a failure]
    #[arg(long, value_name = "TIME")]
    pub(crate) member_deadline: Option<MemberDeadline>,
    /// Number of serving threads [default: half of the processors, at most 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) shards: Option<u16>,
    /// Most memory that serving may take, such as 64M, beside the content of RAM disks and caches; a smaller limit means
    /// fewer requests and NBD connections at once
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<braid_stack::ByteSize>,
}

#[derive(Debug, Args)]
#[command(after_help = "NAME.toml records the stack and the identity of its members. Options \
                        apply to this start only; use --remember to keep them.")]
pub(crate) struct Up {
    /// A stack expression, the name of a volume that was up before, or a NAME.toml
    #[arg(value_name = "STACK|NAME|FILE.toml")]
    pub(crate) target: String,
    /// Name of a new volume [default: vol0, vol1, …]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Way to attach the volume as a local block device
    #[arg(long, value_parser = choice::attach())]
    pub(crate) attach: Option<Attach>,
    /// Listen for NBD clients: unix:PATH for the user of the volume, unix:PATH,users=NAME:NAME=read also for other users
    /// of this machine (* for all), tcp:IP:PORT, tcp:PORT (may be given several times)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<String>,
    /// Serve the volume as a disk of a virtual machine (vhost-user-blk), on a new Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) vhost: Option<PathBuf>,
    /// Keep these options for later starts; they replace all options that were kept before. Without
    /// other options, clears the kept options
    #[arg(long)]
    pub(crate) remember: bool,
    /// Accept members without superblocks that differ from the record (another device, size or
    /// order), and update the record
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) accept_members: bool,
    /// Record client requests, without data, in a new file of at most SIZE [default: 64M], as an
    /// iolog that fio can replay
    #[arg(long, value_name = "FILE[,size=SIZE]")]
    pub(crate) trace: Option<TraceArg>,
    /// Action when a member that disappeared comes back: re-add it, report it, or ignore it
    /// [default: auto]
    #[arg(long, value_parser = choice::re_add(), value_name = "POLICY")]
    pub(crate) re_add: Option<ReAdd>,
    /// Stay in the foreground (for a service manager)
    #[arg(long)]
    pub(crate) foreground: bool,
    /// The root file system is on this volume (for an initramfs): follow init into the root file
    /// system, and survive the killing of all processes at shutdown
    #[arg(long, conflicts_with = "foreground")]
    pub(crate) root_storage: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A stack expression
    #[arg(value_name = "STACK")]
    pub(crate) stack: String,
    /// Listen for NBD clients: unix:PATH for the user of the volume, unix:PATH,users=NAME:NAME=read also for other users
    /// of this machine (* for all), tcp:IP:PORT, tcp:PORT (may be given several times)
    #[arg(long, value_name = "ADDRESS", required_unless_present = "vhost")]
    pub(crate) nbd: Vec<String>,
    /// Serve the volume as a disk of a virtual machine (vhost-user-blk), on a new Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) vhost: Option<PathBuf>,
    /// Name of the NBD export
    #[arg(long, default_value = "braid")]
    pub(crate) name: String,
    /// Record client requests, without data, in a new file of at most SIZE [default: 64M], as an
    /// iolog that fio can replay
    #[arg(long, value_name = "FILE[,size=SIZE]")]
    pub(crate) trace: Option<TraceArg>,
    /// Print nothing when ready
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    /// Name of the volume
    pub(crate) name: String,
    /// Detach the device even if it is in use, and kill a process that does not respond
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Name of a volume, which is shown in full [default: a table of all volumes]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Refresh the output every second, with changes in bold, until q is pressed
    #[arg(long)]
    pub(crate) watch: bool,
    /// Refresh interval in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = top::seconds, requires = "watch")]
    pub(crate) interval: std::time::Duration,
    /// Set the exit status to the state of the volume's arrays, as mdadm --detail --test does: 0
    /// healthy, 1 degraded, 2 failed, 4 not found
    #[arg(long, conflicts_with = "watch")]
    pub(crate) test: bool,
    /// Print one line per volume, without a header: name, state, and device, URI or -
    #[arg(long, conflicts_with_all = ["json", "export"])]
    pub(crate) brief: bool,
    /// Show only volumes with problems, as `zpool status -x` does
    #[arg(short = 'x', long = "problems", conflicts_with_all = ["test", "export"])]
    pub(crate) problems: bool,
    /// Print the volume's array as KEY=VALUE lines, as `mdadm --detail --export` does
    #[arg(long, conflicts_with = "json", requires = "name")]
    pub(crate) export: bool,
    #[command(flatten)]
    pub(crate) which: WhichArray,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct GrowBy {
    /// New number of members of a raid1; spares fill the new roles
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=384))]
    pub(crate) raid_devices: Option<u16>,
    /// Number of bytes to use of each member of a raid1, or max for the size of the smallest member
    #[arg(long, value_name = "SIZE|max")]
    pub(crate) size: Option<String>,
    /// Add or remove a write-intent bitmap, or change its chunk size to SIZE
    #[arg(long, short, value_name = "none|internal|SIZE", value_parser = metadata::parse_bitmap)]
    pub(crate) bitmap: Option<metadata::BitmapArg>,
    /// Let write-mostly members of a raid1 with a bitmap carry out up to WRITES writes after the
    /// answer, until a flush; 0 for none
    #[arg(long, value_name = "WRITES")]
    pub(crate) write_behind: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Grow {
    /// Name of the volume
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) by: GrowBy,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    #[command(flatten)]
    pub(crate) how: Giving,
}

#[derive(Debug, Args)]
#[command(after_help = "Without options, shows the current limits. Under client load a pass \
                        runs at the minimum or, with a latency target, as fast as the target \
                        allows; otherwise at the maximum.")]
pub(crate) struct Speed {
    /// Name of the volume
    pub(crate) name: String,
    /// Minimum bytes per second, under any client load [default: 10M; with a latency target, 1M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) min: Option<braid_stack::ByteSize>,
    /// Maximum bytes per second; 0 for unlimited [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max: Option<braid_stack::ByteSize>,
    /// Latency target: 99 of 100 client requests stay below this time, such as 20ms; 0 for no
    /// target [default: 0]
    #[arg(long, value_name = "TIME")]
    pub(crate) latency: Option<String>,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    #[command(flatten)]
    pub(crate) how: Giving,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "To install for bash: braid completions bash > /usr/share/bash-completion/completions/braid"
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, required_unless_present = "names")]
    pub(crate) shell: Option<clap_complete::Shell>,
    /// Print the names of volumes, for completion scripts
    #[arg(long, hide = true)]
    pub(crate) names: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "To read a page without installing it: braid man member fail | man -l -")]
pub(crate) struct Man {
    /// The command, such as `member fail` [default: braid(1)]
    #[arg(value_name = "COMMAND", conflicts_with = "into")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this existing folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    /// Also write a page of section 7 for each document FOLDER/*.md
    #[arg(long, value_name = "FOLDER", requires = "into")]
    pub(crate) docs: Option<PathBuf>,
}
