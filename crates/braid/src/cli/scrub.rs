//! Arguments of `braid scrub`.

use clap::Args;

use super::{Giving, WhichArray};

#[derive(Clone, Debug, Args)]
#[command(after_help = "With --for or --until the scrub pauses at the end of that time, and \
                        the next such scrub continues there. Without them a scrub starts at \
                        the beginning and runs to the end.")]
pub(crate) struct Scrub {
    /// Name of the volume
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// Scrub the arrays of all running volumes one after the other, paused ones first, and wait for
    /// them
    #[arg(long, conflicts_with_all = ["name", "array", "cancel"])]
    pub(crate) all: bool,
    /// Rewrite blocks that are proved wrong: by a majority of copies, or by both parities of a
    /// raid6. Unproved differences stay as they are
    #[arg(long)]
    pub(crate) repair: bool,
    /// Also rewrite unproved differences: from the first copy, or parity from the data. Afterwards
    /// it is impossible to find out which block was right
    #[arg(long, requires = "repair")]
    pub(crate) force: bool,
    /// Cancel the running, waiting or paused scrub
    #[arg(long, conflicts_with_all = ["repair", "time"])]
    pub(crate) cancel: bool,
    /// Wait until the scrub ends or pauses, and print the result; exit status 1 if there are
    /// differences
    #[arg(long, conflicts_with_all = ["cancel", "plan"])]
    pub(crate) wait: bool,
    /// Show which files own the bytes that differ or could not be read. The volume must be attached
    /// and be a single array; its file system must be ext2, ext3, ext4 or xfs
    #[arg(long, requires = "wait", conflicts_with_all = ["time", "all", "json"])]
    pub(crate) files: bool,
    #[command(flatten)]
    pub(crate) time: Time,
    /// Latency target for this scrub: 99 of 100 client requests stay below this time, such as 20ms
    /// [default: the target set by `speed`]
    #[arg(long, value_name = "TIME", requires = "time")]
    pub(crate) latency: Option<String>,
    /// Only continue a paused scrub
    #[arg(long = "continue", requires = "time")]
    pub(crate) only_continue: bool,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    #[command(flatten)]
    pub(crate) how: Giving,
}

/// Time limit of a scrub.
#[derive(Clone, Debug, Args)]
#[group(id = "time", multiple = false)]
pub(crate) struct Time {
    /// Pause after this time, such as 4h or 90m
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) for_time: Option<String>,
    /// Pause at this time of day, such as 06:00, or at @N milliseconds since 1970
    #[arg(long, value_name = "HH:MM|@N")]
    pub(crate) until: Option<String>,
}

impl Scrub {
    /// Returns the volume's name; empty for all volumes.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns whether the scrub has a time limit or is for all volumes.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.all || self.time.for_time.is_some() || self.time.until.is_some()
    }

    /// Returns the same request for one array of one volume.
    pub(crate) fn of(&self, volume: &str, array: &str) -> Scrub {
        let which = WhichArray { array: Some(array.to_owned()) };
        Scrub { name: Some(volume.to_owned()), which, ..self.clone() }
    }
}
