//! `braid cache …`: what can be typed of caches.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    /// Say what another size or another policy would hit, by what was read so far
    Advise(CacheAdvise),
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
