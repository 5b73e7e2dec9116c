//! Arguments of the commands on a running volume as a whole.

use std::path::PathBuf;

use clap::Args;

use super::Giving;

#[derive(Debug, Args)]
pub(crate) struct OneVolume {
    /// Name of the volume
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) how: Giving,
}

#[derive(Debug, Args)]
#[command(after_help = "Writes in flight are completed first. The lock lasts until the \
                        process of the volume ends; `up --read-only` starts a volume that \
                        stays read-only. Resync, recovery and scrub stop, and continue after \
                        `unlock`. Superblocks are still written when members fail.")]
pub(crate) struct Lock {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Lock even if the block device is mounted or open; writes then fail
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "A block device changes its size at once; NBD clients see the new \
                        size when they reconnect. A disk can shrink only by space that was \
                        never written, and only while it is not in use.")]
pub(crate) struct Resize {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// New size, such as 2G
    pub(crate) size: braid_stack::ByteSize,
}

#[derive(Debug, Args)]
pub(crate) struct Erase {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Erase even if clients are connected, or the block device is mounted or open
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "The file is an LZ4 frame with a checksum, which `lz4 -d` can read. \
                        The volume refuses writes while the file is written.")]
pub(crate) struct Save {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// A new file
    pub(crate) file: PathBuf,
    /// Replace FILE if it already is such an image
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "The whole file is verified before the volume is changed. The file \
                        may be any LZ4 frame with a checksum whose content is as long as the \
                        volume.")]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// The file
    pub(crate) file: PathBuf,
    /// Overwrite data, even if clients are connected, or the block device is mounted or open
    #[arg(long)]
    pub(crate) force: bool,
}
