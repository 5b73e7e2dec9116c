//! What can be typed of a volume as a whole, while it is up.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct OneVolume {
    /// The volume's name
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Writes under way are answered before. The lock goes with the volume's process: `up \
                        --read-only` brings one up that stays so. Resync, recovery and scrubs stop, and go \
                        on where they were when it is unlocked; superblocks still tell of members that fail."
)]
pub(crate) struct Lock {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Also if its block device is mounted or open: what is on it gets errors when it writes
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A block device has its new size at once, an NBD client when it connects again. A disk \
                        becomes smaller only where nothing was written, and while nobody uses it."
)]
pub(crate) struct Resize {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Its new size, such as 2G
    pub(crate) size: braid_stack::ByteSize,
}

#[derive(Debug, Args)]
pub(crate) struct Erase {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Also while clients are connected, or its block device is mounted or open
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The file is an LZ4 frame of the content with a checksum: `lz4 -d` reads it. While it is \
                        written, the volume refuses writes."
)]
pub(crate) struct Save {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// The file, which is new
    pub(crate) file: PathBuf,
    /// Replace the image that FILE is already
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "All of the file is checked before a byte of the volume is changed. Any LZ4 frame with a \
                        checksum will do, if its content is as long as the volume."
)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// The file
    pub(crate) file: PathBuf,
    /// Overwrite data, also while clients are connected, or its block device is mounted or open
    #[arg(long)]
    pub(crate) force: bool,
}
