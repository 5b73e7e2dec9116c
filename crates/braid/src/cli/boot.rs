//! What can be typed at boot and at a plug: mostly by udev and systemd.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "An array is braid's if a NAME.toml names its identifier; every other is left to the \
                        kernel. See docs/boot.md."
)]
pub(crate) struct Incremental {
    /// A file or block device that has just come
    #[arg(value_name = "DEVICE", required_unless_present_any = ["fail", "run_last_resort"])]
    pub(crate) device: Option<PathBuf>,
    /// This device has gone: its path, or its number as 8:16
    #[arg(long, short, value_name = "DEVICE", conflicts_with_all = ["device", "run_last_resort"])]
    pub(crate) fail: Option<String>,
    /// Start a volume that stayed incomplete, if its arrays and its NAME.toml allow it
    #[arg(long, value_name = "NAME", conflicts_with = "device")]
    pub(crate) run_last_resort: Option<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Print KEY=VALUE lines, for udev; with --no-start only whose the device is
    #[arg(long)]
    pub(crate) export: bool,
}
