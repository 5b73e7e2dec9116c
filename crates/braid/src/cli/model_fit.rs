//! Arguments of `braid model fit`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  braid model fit /dev/sdb --output stick.toml\n  \
                  braid model fit /dev/sdb --output stick.toml --destroy /dev/sdb\n\n\
                  Only reads, unless --destroy names the device again. Without --destroy the write constants are \
                  assumptions, and marked as such. To use a profile, name its file: braid advise ./stick.toml …")]
pub(crate) struct ModelFit {
    /// A block device, or a file for direct I/O
    #[arg(value_name = "DEVICE")]
    pub(crate) device: PathBuf,
    /// Write the profile to this new file [default: the name of the device with .toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also write to the device: ALL DATA ON IT IS LOST
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy: Option<PathBuf>,
    /// Time limit, such as 90s, 5m
    #[arg(long, value_name = "LIMIT", default_value = "10m", value_parser = super::lab::parse_time)]
    pub(crate) time: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
