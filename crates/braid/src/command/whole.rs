//! `braid lock`, `unlock`, `erase`, `resize`, `save`, `restore`: what is done with a volume as a whole
//! while it is up.

use super::order;
use super::stacks::absolute_path;
use crate::cli;
use braid_service::control::{Order, WholeOrder};
use braid_service::failure::Failure;

pub(super) fn lock(lock: &cli::Lock) -> Result<(), Failure> {
    give(&lock.volume, WholeOrder::Lock { force: lock.force })
}

pub(super) fn unlock(volume: &cli::OneVolume) -> Result<(), Failure> {
    give(volume, WholeOrder::Unlock)
}

pub(super) fn erase(erase: &cli::Erase) -> Result<(), Failure> {
    give(&erase.volume, WholeOrder::Erase { force: erase.force })
}

pub(super) fn resize(resize: &cli::Resize) -> Result<(), Failure> {
    let name = &resize.volume.name;
    let size = resize.size;
    if size.bytes() == 0 {
        return Err(Failure::usage("a size of 0 bytes")
            .next(format!("`braid erase {name}` empties it, `braid down {name}` ends it")));
    }
    give(&resize.volume, WholeOrder::Resize { bytes: size.bytes() })
}

pub(super) fn save(save: &cli::Save) -> Result<(), Failure> {
    let order = WholeOrder::Save { file: absolute_path(&save.file)?, force: save.force };
    give(&save.volume, order)
}

pub(super) fn restore(restore: &cli::Restore) -> Result<(), Failure> {
    let order = WholeOrder::Restore { file: absolute_path(&restore.file)?, force: restore.force };
    give(&restore.volume, order)
}

fn give(volume: &cli::OneVolume, order: WholeOrder) -> Result<(), Failure> {
    order::give(&volume.name, &Order::Whole(order), volume.how)
}
