//! What can be typed of scrubs.

use clap::Args;

use super::WhichArray;

#[derive(Clone, Debug, Args)]
#[command(
    after_help = "With --for or --until it pauses at the end of that time, and the next such scrub goes on there; \
                        without, it begins at the beginning and goes through."
)]
pub(crate) struct Scrub {
    /// The volume's name
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// The arrays of all volumes that are up, one after the other within the time, those that paused
    /// first; waits for them
    #[arg(long, conflicts_with_all = ["name", "array", "cancel"])]
    pub(crate) all: bool,
    /// Write again what is proved to be wrong: by more than half of the copies, or by both parities of
    /// a raid6. What is not proved stays as it is
    #[arg(long)]
    pub(crate) repair: bool,
    /// Where nothing is proved, make copies as the first one is, and parity as the data is: that ends
    /// every chance to find out which of them was right
    #[arg(long, requires = "repair")]
    pub(crate) force: bool,
    /// End the scrub that runs, waits or paused
    #[arg(long, conflicts_with_all = ["repair", "time"])]
    pub(crate) cancel: bool,
    /// Wait until it has ended or paused, and print what it found; exit status 1 if anything differs
    #[arg(long, conflicts_with = "cancel")]
    pub(crate) wait: bool,
    /// Say which files own the bytes that differ or could not be read: those of an ext2, ext3, ext4 or xfs on a volume
    /// that is attached and is one array
    #[arg(long, requires = "wait", conflicts_with_all = ["time", "all", "json"])]
    pub(crate) files: bool,
    #[command(flatten)]
    pub(crate) time: Time,
    /// What 99 of 100 requests of clients are to stay below meanwhile, such as 20ms; as `speed` has it
    /// else
    #[arg(long, value_name = "TIME", requires = "time")]
    pub(crate) latency: Option<String>,
    /// Only go on with what paused
    #[arg(long = "continue", requires = "time")]
    pub(crate) only_continue: bool,
    #[command(flatten)]
    pub(crate) which: WhichArray,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much time there is.
#[derive(Clone, Debug, Args)]
#[group(id = "time", multiple = false)]
pub(crate) struct Time {
    /// Pause after so much time, such as 4h or 90m
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) for_time: Option<String>,
    /// Pause at this time of the day, such as 06:00; or at @N milliseconds since 1970
    #[arg(long, value_name = "HH:MM|@N")]
    pub(crate) until: Option<String>,
}

impl Scrub {
    /// The volume's name; empty for all of them.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Whether it is for a time only, or for all.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.all || self.time.for_time.is_some() || self.time.until.is_some()
    }

    /// The same for one array of one volume.
    pub(crate) fn of(&self, volume: &str, array: &str) -> Scrub {
        let which = WhichArray { array: Some(array.to_owned()) };
        Scrub { name: Some(volume.to_owned()), which, ..self.clone() }
    }
}
