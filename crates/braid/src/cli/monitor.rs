//! What can be typed after `braid monitor`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "It runs in the foreground until interrupted, and logs to standard error. Without a configuration it \
                  only logs. `docs/monitor.md` has the events and what each of them means."
)]
pub(crate) struct Monitor {
    /// Who is told, and of what [default: monitor.toml in the folder of configurations]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Look once, tell what there is to tell, and end; exit status 1 if anything is wrong
    #[arg(long)]
    pub(crate) oneshot: bool,
    /// Send a TestMessage for every array to every receiver, and say which arrived
    #[arg(long, conflicts_with = "oneshot")]
    pub(crate) test: bool,
    /// Say what the configuration comes to, and tell nobody
    #[arg(long, conflicts_with_all = ["oneshot", "test"])]
    pub(crate) check: bool,
    /// Move no spares between volumes of one `spare-group`
    #[arg(long)]
    pub(crate) no_sharing: bool,
    /// Print events as JSON, one a line
    #[arg(long, conflicts_with_all = ["test", "check"])]
    pub(crate) json: bool,
}
