//! Arguments of `braid monitor`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Runs in the foreground until interrupted, and logs to standard \
                        error. Without a configuration it only logs. All events: \
                        docs/monitor.md.")]
pub(crate) struct Monitor {
    /// Configuration: receivers and their events [default: monitor.toml in the configuration
    /// folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check once, report pending events, and exit; exit status 1 if there are problems
    #[arg(long)]
    pub(crate) oneshot: bool,
    /// Send a TestMessage for every array to every receiver, and print which ones arrived
    #[arg(long, conflicts_with = "oneshot")]
    pub(crate) test: bool,
    /// Check and print the configuration; send nothing
    #[arg(long, conflicts_with_all = ["oneshot", "test"])]
    pub(crate) check: bool,
    /// Do not move spares between volumes of one `spare-group`
    #[arg(long)]
    pub(crate) no_sharing: bool,
    /// Print events as JSON, one per line
    #[arg(long, conflicts_with_all = ["test", "check"])]
    pub(crate) json: bool,
}
