//! `braid lock`, `unlock`, `erase`, `resize`, `save`, `restore`: what is done with a volume as a whole
//! while it is up.

use braid_stack::{ByteSize, Node};

use super::member::{give_long, status};
use super::stacks::{absolute_path, promised_but};
use crate::cli;
use braid_service::control::{Order, WholeOrder};
use braid_service::failure::Failure;
use braid_service::places::Places;
use braid_service::record::Record;

pub(super) fn lock(lock: &cli::Lock) -> Result<(), Failure> {
    give(&lock.volume, WholeOrder::Lock { force: lock.force }, 0)
}

pub(super) fn unlock(volume: &cli::OneVolume) -> Result<(), Failure> {
    give(volume, WholeOrder::Unlock, 0)
}

pub(super) fn erase(erase: &cli::Erase) -> Result<(), Failure> {
    give(&erase.volume, WholeOrder::Erase { force: erase.force }, 0)
}

pub(super) fn resize(resize: &cli::Resize) -> Result<(), Failure> {
    let name = &resize.volume.name;
    let size = resize.size;
    if size.bytes() == 0 {
        return Err(Failure::usage("a size of 0 bytes")
            .next(format!("`braid erase {name}` empties it, `braid down {name}` ends it")));
    }
    let places = Places::from_environment();
    let promised = promised_but(&places, Some(name));
    give(&resize.volume, WholeOrder::Resize { bytes: size.bytes(), promised }, 0)?;
    remember_size(&places, name, size)
}

/// Notes the size, so that the volume is brought up with it.
fn remember_size(places: &Places, name: &str, size: ByteSize) -> Result<(), Failure> {
    let file = places.config_file(name);
    if !file.exists() {
        return Ok(());
    }
    let mut record = Record::read(&file)?;
    if let Node::Ram(ram) = &mut record.stack.node {
        ram.size = size;
    }
    record.write(&file)
}

pub(super) fn save(save: &cli::Save) -> Result<(), Failure> {
    let order = WholeOrder::Save { file: absolute_path(&save.file)?, force: save.force };
    give(&save.volume, order, content_of(&save.volume)?)
}

pub(super) fn restore(restore: &cli::Restore) -> Result<(), Failure> {
    let order = WholeOrder::Restore { file: absolute_path(&restore.file)?, force: restore.force };
    // It is read twice.
    give(&restore.volume, order, 2 * content_of(&restore.volume)?)
}

fn content_of(volume: &cli::OneVolume) -> Result<u64, Failure> {
    Ok(status(&volume.name)?.device.size_bytes)
}

fn give(volume: &cli::OneVolume, order: WholeOrder, bytes: u64) -> Result<(), Failure> {
    give_long(&volume.name, &Order::Whole(order), bytes, volume.json)
}
