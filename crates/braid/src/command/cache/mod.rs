//! `braid cache`: what there is to do with caches, one file each.

mod advice;
mod advise;
mod budget;
mod change;
mod share;
mod show;

use crate::cli;
use braid_service::failure::Failure;

pub(super) fn cache(cache: &cli::Cache) -> Result<(), Failure> {
    match cache {
        cli::Cache::Attach(options) => change::attach(options),
        cli::Cache::Detach(volume) => change::detach(volume),
        cli::Cache::Resize(options) => change::resize(options),
        cli::Cache::Mode(options) => change::mode(options),
        cli::Cache::Drain(options) => change::drain(options),
        cli::Cache::Share(options) => share::share(options),
        cli::Cache::Advise(options) => advise::advise(options),
    }
}
