//! `braid model fit`: what can be typed of measuring a device.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  braid model fit /dev/sdb --output stick.toml\n  \
                  braid model fit /dev/sdb --output stick.toml --destroy /dev/sdb\n\n\
                  It only reads unless --destroy names the device again; constants of writing are then \
                  assumed, and say so. A profile is used by its file: braid advise ./stick.toml …")]
pub(crate) struct ModelFit {
    /// A block device, or a file for direct I/O
    #[arg(value_name = "DEVICE")]
    pub(crate) device: PathBuf,
    /// Write the profile to this file, over nothing; the device's name and .toml if none is given
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write to the device as well: ALL THAT IS ON IT IS LOST
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy: Option<PathBuf>,
    /// How long it may take, such as 90s, 5m
    #[arg(long, value_name = "LIMIT", default_value = "10m", value_parser = super::lab::parse_time)]
    pub(crate) time: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
