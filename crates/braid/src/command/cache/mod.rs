//! `braid cache`: what there is to do with caches, one file each.

mod advice;
mod advise;
mod change;
mod show;

use crate::cli;
use crate::failure::Failure;

pub(super) fn cache(cache: &cli::Cache) -> Result<(), Failure> {
    match cache {
        cli::Cache::Attach(options) => change::attach(options),
        cli::Cache::Detach(volume) => change::detach(volume),
        cli::Cache::Resize(options) => change::resize(options),
        cli::Cache::Mode(options) => change::mode(options),
        cli::Cache::Advise(options) => advise::advise(options),
    }
}
