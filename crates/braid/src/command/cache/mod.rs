//! `braid cache`: what there is to do with caches, one file each.

mod advice;
mod advise;
mod show;

use crate::cli;
use crate::failure::Failure;

pub(super) fn cache(cache: &cli::Cache) -> Result<(), Failure> {
    match cache {
        cli::Cache::Advise(options) => advise::advise(options),
    }
}
