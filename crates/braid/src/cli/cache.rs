//! `braid cache …`: what can be typed of caches.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OneVolume;

#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    /// Put a cache in front of a volume that is up
    Attach(CacheAttach),
    /// Take the cache in front of a volume off; what it has not written yet is written first
    Detach(OneVolume),
    /// Give a volume's cache more memory, or less
    Resize(CacheResize),
    /// Have a volume's cache treat writes otherwise
    Mode(CacheMode),
    /// Hold what a write-back cache drains to a rate
    Drain(CacheDrain),
    /// Divide one budget of memory among the caches of several volumes
    Share(CacheShare),
    /// Say what another size or another policy would hit, by what was read so far
    Advise(CacheAdvise),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Nobody who uses the volume waits for it. The volume is brought up with the cache from now \
                  on, until it is detached."
)]
pub(crate) struct CacheAttach {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Parameters as a stack has them: size=1G, mode=write-around, policy=lru, block=16K, cutoff=8M, log=PATH
    #[arg(required = true, value_name = "PARAMETER")]
    pub(crate) parameters: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "What would leave first leaves first; all else stays.")]
pub(crate) struct CacheResize {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Its memory, such as 2G
    pub(crate) size: braid_stack::ByteSize,
}

#[derive(Debug, Args)]
#[command(
    after_help = "By what was read so far (`braid cache advise`), each gets the size that saves the most \
                  waiting. Run it again, by a timer for instance, and memory follows the load."
)]
pub(crate) struct CacheShare {
    /// Memory for all of them, such as 8G
    pub(crate) budget: braid_stack::ByteSize,
    /// The volumes, each of which has one cache
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "From write-back mode: what is dirty is drained first, and the log is closed. To it: the log \
                  must hold nothing that has to be written to an origin."
)]
pub(crate) struct CacheMode {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// write-through, write-around or write-back
    pub(crate) mode: String,
    /// Of write-back, as a stack has them: log=PATH or volatile=yes, dirty=1G, age=30s, drain=20M/s
    #[arg(value_name = "PARAMETER")]
    pub(crate) parameters: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Where somebody waits for room or for a flush, and where something has been dirty for longer \
                  than age=, it is drained as fast as the origin takes it, all the same."
)]
pub(crate) struct CacheDrain {
    #[command(flatten)]
    pub(crate) volume: OneVolume,
    /// Bytes a second, such as 20M/s; or unlimited
    pub(crate) rate: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The cache runs miniatures of itself on a sample of the blocks that are read: of every \
                  policy, at sizes from an eighth of its own to eight times that. `docs/cache.md` says how \
                  to read them."
)]
pub(crate) struct CacheAdvise {
    /// The volume's name
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with tables and curves into this file, which is not there yet
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
}
