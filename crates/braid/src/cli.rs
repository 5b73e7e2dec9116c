//! What can be typed.

mod boot;
mod cache;
mod choice;
mod comfort;
mod lab;
mod metadata;
mod metrics;
mod model;
mod model_fit;
mod monitor;
mod scrub;
mod superblocks;
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
pub(crate) use lab::{Lab, LabCompare, LabFormat, LabHow, LabRun, LabTarget};
pub(crate) use metadata::{
    Assemble, BitmapArg, Cat, ConsistencyArg, Create, Examine, Files, Undo, Wipe,
};
pub(crate) use metrics::Metrics;
pub(crate) use model::{Advise, AdviseNeed, Model, ModelPredict};
pub(crate) use model_fit::ModelFit;
pub(crate) use monitor::Monitor;
pub(crate) use scrub::{Scrub, Time as ScrubTime};
pub(crate) use superblocks::{
    Superblocks, SuperblocksList, SuperblocksRestore, SuperblocksSave, SuperblocksShow,
};
pub(crate) use top::Top;
pub(crate) use trace::{Trace, TraceArg, TraceReplay, TraceShow};
pub(crate) use web::Web;
pub(crate) use whole::{Erase, Lock, OneVolume, Resize, Restore, Save};

/// Software RAID in user space, and the laboratory that measures it
///
/// A stack expression says what a volume is made of:
///
///     raid0(chunk=64K, /dev/sdb, /dev/sdc)     raid5(a.img, b.img, c.img)
///     ram(1G)                                  cache(size=1G, /dev/sdb)
///
/// Exit status: 0 well, 1 failed, 2 wrong usage, 3 refused by a safety rule.
#[derive(Debug, Parser)]
#[command(name = "braid", version, verbatim_doc_comment, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say on standard error which files and volumes are asked and changed
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring a volume up in the background and print its device or URI
    Up(Up),
    /// Serve a volume over NBD in the foreground, until interrupted
    Serve(Serve),
    /// End a volume: detach it, answer what is under way, flush
    Down(Down),
    /// Say how volumes are
    Status(Status),
    /// Show volumes and members as they work: rates, latencies, what runs and how long it takes
    Top(Top),
    /// Print what volumes say of themselves as Prometheus reads it, or serve that
    Metrics(Metrics),
    /// Print what md's superblocks on members say
    Examine(Examine),
    /// Make a new md array: plan it, save what will be overwritten, write its superblocks
    Create(Create),
    /// Find the members of md arrays, say what state each array is in, and remember one
    Assemble(Assemble),
    /// Take in a device that has just come, or let go of one that went, as `mdadm --incremental` does
    Incremental(Incremental),
    /// Remove md's superblocks from members
    Wipe(Wipe),
    /// Put back what `create`, `wipe`, `assemble --force` or `superblocks restore` overwrote
    Undo(Undo),
    /// Copies of md's superblocks: keep, list, show, write back to members that lost theirs
    #[command(subcommand)]
    Superblocks(Superblocks),
    /// Write a volume's content to standard output, reading only
    Cat(Cat),
    /// Say which files own bytes of a volume, reading only
    Files(Files),
    /// Show the arrays of volumes that are up as /proc/mdstat shows md's
    Mdstat,
    /// Take members of an array out, in, or replace them, while it works
    #[command(subcommand)]
    Member(Member),
    /// Compare the copies of an array, or its data and parity, while it works
    Scrub(Scrub),
    /// Let an array have more members, or use more of each
    Grow(Grow),
    /// Set how fast resync, recovery and scrub may go
    Speed(Speed),
    /// Refuse writes to a volume while it is up
    #[command(visible_alias = "readonly")]
    Lock(Lock),
    /// Let a volume that was locked be written to again
    #[command(visible_alias = "readwrite")]
    Unlock(OneVolume),
    /// Remember nothing of a volume that is down
    Forget(Forget),
    /// Give a volume that is down another name
    Rename(Rename),
    /// Give a RAM disk another size while it is up
    Resize(Resize),
    /// Forget all that a RAM disk holds, and give its memory back
    Erase(Erase),
    /// Write a volume's content to a file, compressed
    Save(Save),
    /// Take a volume's content from a file that `save` wrote
    Restore(Restore),
    /// Put a cache in front of a volume, change it, ask what it is good for
    #[command(subcommand)]
    Cache(Cache),
    /// Look at a trace of requests, or replay it
    #[command(subcommand)]
    Trace(Trace),
    /// Watch volumes, and tell somebody of what happens to them: by mail, webhook, program
    Monitor(Monitor),
    /// Say what this machine offers, and what to do about what it lacks
    Doctor(Doctor),
    /// Serve a page and an interface for programs that show all volumes, and run them
    Web(Web),
    /// Measure layouts against each other
    #[command(subcommand)]
    Lab(Lab),
    /// Say which layout of given members suits a workload, by prediction
    Advise(Advise),
    /// Models of devices: list and show them, fit one to a device, predict a campaign
    #[command(subcommand)]
    Model(Model),
    /// Print what completes braid's command line in a shell
    Completions(Completions),
    /// Print the manual page of a command, or write the pages of all commands
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Open members for reading only, and refuse writes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Start an array without members that it was last seen with
    #[arg(long)]
    pub(crate) degraded: bool,
    /// Accept this member whatever it carries (give the path again; may be repeated)
    #[arg(long, value_name = "MEMBER")]
    pub(crate) force: Vec<PathBuf>,
    /// Let TCP be reached from other machines, without encryption or authentication
    #[arg(long)]
    pub(crate) insecure: bool,
    /// How input and output are carried out
    #[arg(long, value_parser = choice::io(), default_value = "auto")]
    pub(crate) io: IoMode,
    /// How long a member may take for a request until it counts as failed, such as 30s; 0 for ever
    /// [default: 30s of members that are used directly and whose array survives a failure]
    #[arg(long, value_name = "TIME")]
    pub(crate) member_deadline: Option<MemberDeadline>,
    /// Threads that serve [default: half of the processors, at most 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) shards: Option<u16>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "NAME.toml keeps the stack and what its members are. Options hold for this \
                        time, unless --remember is given."
)]
pub(crate) struct Up {
    /// A stack expression, the name of a volume that was up before, or a NAME.toml
    #[arg(value_name = "STACK|NAME|FILE.toml")]
    pub(crate) target: String,
    /// What to call a new volume [default: vol0, vol1, …]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// How it becomes a block device of this machine
    #[arg(long, value_parser = choice::attach())]
    pub(crate) attach: Option<Attach>,
    /// Listen for NBD clients: unix:PATH, tcp:IP:PORT, tcp:PORT (may be repeated)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<String>,
    /// Bring it up with these options from now on, in place of those that were remembered before;
    /// alone it takes all of them back
    #[arg(long)]
    pub(crate) remember: bool,
    /// Members without superblocks that are not what they were (another device, another size,
    /// another order) are the members from now on
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) accept_members: bool,
    /// Record what clients ask for, without data, in a new file of at most SIZE [default: 64M], as an
    /// iolog that fio can replay
    #[arg(long, value_name = "FILE[,size=SIZE]")]
    pub(crate) trace: Option<TraceArg>,
    /// What becomes of a member that went away and is back: re-added, said, nothing [default: auto]
    #[arg(long, value_parser = choice::re_add(), value_name = "POLICY")]
    pub(crate) re_add: Option<ReAdd>,
    /// Stay in the foreground (for a service manager)
    #[arg(long)]
    pub(crate) foreground: bool,
    /// The root file system is on this volume: follow init into it, and be passed over when all
    /// processes are ended (for an initramfs)
    #[arg(long, conflicts_with = "foreground")]
    pub(crate) root_storage: bool,
    /// Print what is ready as JSON
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
    /// Listen for NBD clients: unix:PATH, tcp:IP:PORT, tcp:PORT (may be repeated)
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) nbd: Vec<String>,
    /// What to call the export
    #[arg(long, default_value = "braid")]
    pub(crate) name: String,
    /// Record what clients ask for, without data, in a new file of at most SIZE [default: 64M], as an
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
    /// The volume's name
    pub(crate) name: String,
    /// Take the device away from whoever holds it, and end a process that does not answer
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The volume's name [default: all]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again every second, with what changed in bold, until q is pressed
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = top::seconds, requires = "watch")]
    pub(crate) interval: std::time::Duration,
    /// Say by the exit status how the volume's arrays are, as mdadm --detail --test does: 0 well,
    /// 1 degraded, 2 failed, 4 not to be found
    #[arg(long, conflicts_with = "watch")]
    pub(crate) test: bool,
    /// Print a line for each volume, without a header: name, state, and device, URI or -
    #[arg(long, conflicts_with_all = ["json", "export"])]
    pub(crate) brief: bool,
    /// Show only the volumes of which something is wrong, as `zpool status -x` does
    #[arg(short = 'x', long = "problems", conflicts_with_all = ["test", "export"])]
    pub(crate) problems: bool,
    /// Print the volume's array as KEY=VALUE lines, as `mdadm --detail --export` does
    #[arg(long, conflicts_with = "json", requires = "name")]
    pub(crate) export: bool,
    #[command(flatten)]
    pub(crate) which: WhichArray,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Member {
    /// Take a member out, as if it had failed; `detached` for all whose device has gone
    Fail(MemberTarget),
    /// Let go of a member that failed, or of a spare; `failed` for all that did, `detached` for all
    /// whose device has gone
    Remove(MemberTarget),
    /// Take a device in: one that was a member is brought up to date, another becomes a spare,
    /// which takes over where a member is missing
    Add(NewMember),
    /// Take a device in again as the member that it was, copying only what was written meanwhile
    ReAdd(NewMember),
    /// Fill a device beside a member that still works, and let it take over
    Replace(Replace),
    /// Empty bad-block lists: write what they list again from the other members; what no member can give
    /// is read, and counts as it lies there if it can be
    Retest(AllMembers),
}

#[derive(Debug, Args)]
pub(crate) struct AllMembers {
    /// The volume's name
    #[arg(value_name = "NAME")]
    pub(crate) volume: String,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WhichArray {
    /// Which array of a stack that has several: its name or identifier
    #[arg(long, value_name = "NAME|UUID")]
    pub(crate) array: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct MemberTarget {
    /// The volume's name
    #[arg(value_name = "NAME")]
    pub(crate) volume: String,
    /// The member's path
    pub(crate) member: PathBuf,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewMember {
    #[command(flatten)]
    pub(crate) target: MemberTarget,
    /// Accept it whatever it carries
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replace {
    #[command(flatten)]
    pub(crate) target: MemberTarget,
    /// The device that takes over
    pub(crate) with: PathBuf,
    /// Accept it whatever it carries
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct GrowBy {
    /// Let a raid1 have so many members; spares take the new roles
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=384))]
    pub(crate) raid_devices: Option<u16>,
    /// Use so many bytes of each member of a raid1, or all that all of them have
    #[arg(long, value_name = "SIZE|max")]
    pub(crate) size: Option<String>,
    /// Add a write-intent bitmap, give the one that is there chunks of SIZE, or take it away
    #[arg(long, short, value_name = "none|internal|SIZE", value_parser = metadata::parse_bitmap)]
    pub(crate) bitmap: Option<metadata::BitmapArg>,
}

#[derive(Debug, Args)]
pub(crate) struct Grow {
    /// The volume's name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) by: GrowBy,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without any limit, shows those that are set. While clients are about, a pass goes at the minimum, or, with a latency \
                        target, as fast as the target allows; else at the maximum."
)]
pub(crate) struct Speed {
    /// The volume's name
    pub(crate) name: String,
    /// At least so much a second, whatever clients do [default: 10M; with a target, 1M]
    #[arg(long, value_name = "SIZE")]
    pub(crate) min: Option<braid_stack::ByteSize>,
    /// At most so much a second; 0 for as fast as it goes [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max: Option<braid_stack::ByteSize>,
    /// What 99 of 100 requests of clients are to stay below, such as 20ms; 0 for no target
    /// [default: 0]
    #[arg(long, value_name = "TIME")]
    pub(crate) latency: Option<String>,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "For bash: braid completions bash > /usr/share/bash-completion/completions/braid"
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, required_unless_present = "names")]
    pub(crate) shell: Option<clap_complete::Shell>,
    /// Print what names of volumes are completed from
    #[arg(long, hide = true)]
    pub(crate) names: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "To read one without installing it: braid man member fail | man -l -")]
pub(crate) struct Man {
    /// The page of this command [default: braid(1)]
    #[arg(value_name = "COMMAND", conflicts_with = "into")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder, which is there
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
    /// And a page of section 7 for each document FOLDER/*.md
    #[arg(long, value_name = "FOLDER", requires = "into")]
    pub(crate) docs: Option<PathBuf>,
}
