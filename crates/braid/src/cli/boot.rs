//! Arguments of `braid incremental`, which udev and systemd call.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "braid handles the arrays whose UUID a NAME.toml contains; the kernel \
                        handles all others. See docs/boot.md.")]
pub(crate) struct Incremental {
    /// A file or block device that has appeared
    #[arg(value_name = "DEVICE", required_unless_present_any = ["fail", "run_last_resort"])]
    pub(crate) device: Option<PathBuf>,
    /// A device that is gone: its path, or its number such as 8:16
    #[arg(long, short, value_name = "DEVICE", conflicts_with_all = ["device", "run_last_resort"])]
    pub(crate) fail: Option<String>,
    /// Start a volume that stayed incomplete, if its arrays and its NAME.toml permit it
    #[arg(long, value_name = "NAME", conflicts_with = "device")]
    pub(crate) run_last_resort: Option<String>,
    /// Print the action without carrying it out
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Print KEY=VALUE lines for udev; with --no-start, only the owner of the device
    #[arg(long)]
    pub(crate) export: bool,
}
