//! Arguments of `braid cache`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OneVolume;

#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    /// Attach a cache to a running volume
    Attach(CacheAttach),
    /// Detach the cache of a volume, after writing its dirty data to the origin
    Detach(OneVolume),
    /// Change the memory size of a cache
    Resize(CacheResize),
    /// Change the write mode of a cache
    Mode(CacheMode),
    /// Limit the rate at which a write-back cache drains
    Drain(CacheDrain),
    /// Divide a memory budget among the caches of several volumes
    Share(CacheShare),
    /// Estimate the hit ratios of other sizes and policies, from the reads so far
    Advise(CacheAdvise),
}

#[derive(Debug, Args)]
#[command(after_help = "Clients are not delayed. Later starts of the volume include the \
                        cache, until it is detached.")]
pub(crate) struct CacheAttach {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Parameters as in a stack expression: size=1G, mode=write-around, policy=lru, block=16K,
    /// cutoff=8M, log=PATH
    #[arg(required = true, value_name = "PARAMETER")]
    pub(crate) parameters: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Shrinking evicts the blocks that the policy would evict first, and \
                        keeps the others.")]
pub(crate) struct CacheResize {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// New size, such as 2G
    pub(crate) size: braid_stack::ByteSize,
}

#[derive(Debug, Args)]
#[command(after_help = "Each cache gets the size that saves the most waiting time, estimated \
                        from the reads so far (`braid cache advise`). Run the command \
                        periodically, for example from a timer, to follow the load.")]
pub(crate) struct CacheShare {
    /// Total memory, such as 8G
    pub(crate) budget: braid_stack::ByteSize,
    /// Names of the volumes; each has one cache
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Print the new sizes without applying them
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "When a cache leaves write-back mode, dirty data are drained and the \
                        log is closed. When it enters write-back mode, the log must hold no \
                        data that an origin still lacks.")]
pub(crate) struct CacheMode {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// write-through, write-around or write-back
    pub(crate) mode: String,
    /// Parameters of write-back mode, as in a stack expression: log=PATH or volatile=yes, dirty=1G,
    /// age=30s, drain=20M/s
    #[arg(value_name = "PARAMETER")]
    pub(crate) parameters: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "When a client waits for space or for a flush, or data have been \
                        dirty for longer than age=, draining ignores the rate limit.")]
pub(crate) struct CacheDrain {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Bytes per second, such as 20M/s, or unlimited
    pub(crate) rate: String,
}

#[derive(Debug, Args)]
#[command(after_help = "The cache simulates every policy at sizes from an eighth to eight \
                        times its own, on a sample of the blocks that are read. See \
                        docs/cache.md on how to read the results.")]
pub(crate) struct CacheAdvise {
    /// Name of the volume
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with tables and curves to this new file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
}
