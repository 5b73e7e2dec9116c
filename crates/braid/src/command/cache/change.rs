//! `braid cache attach`, `detach`, `resize`, `mode`, `drain`: done to a volume that is up, and remembered.

use std::path::Path;

use braid_stack::{ByteSize, Rate};

use super::super::member::{carried_out, give_long};
use super::super::stacks::{parse, promised_but};
use crate::cli;
use crate::control::{CacheOrder, Order};
use crate::failure::Failure;
use crate::membership;
use crate::places::Places;
use crate::record::Record;

pub(super) fn attach(attach: &cli::CacheAttach) -> Result<(), Failure> {
    let promised = promised_but(&Places::from_environment(), Some(&attach.volume.name));
    let parameters = joined(&attach.parameters)?;
    give(&attach.volume, CacheOrder::Attach { parameters, promised })
}

pub(super) fn detach(volume: &cli::OneVolume) -> Result<(), Failure> {
    give(volume, CacheOrder::Detach)
}

pub(super) fn resize(resize: &cli::CacheResize) -> Result<(), Failure> {
    let order = resize_order(&resize.volume.name, resize.size);
    give(&resize.volume, order)
}

/// Resizes, and says nothing.
pub(super) fn resize_to(name: &str, size: ByteSize) -> Result<(), Failure> {
    let order = resize_order(name, size);
    carried_out(name, &Order::Cache(order.clone()), 0)?;
    remember(name, &order)
}

fn resize_order(name: &str, size: ByteSize) -> CacheOrder {
    let promised = promised_but(&Places::from_environment(), Some(name));
    CacheOrder::Resize { bytes: size.bytes(), promised }
}

pub(super) fn mode(mode: &cli::CacheMode) -> Result<(), Failure> {
    let parameters = joined(&mode.parameters)?;
    give(&mode.volume, CacheOrder::Mode { mode: mode.mode.clone(), parameters })
}

/// Parameters as a stack has them, the log's path absolute: the volume's process is elsewhere.
fn joined(parameters: &[String]) -> Result<String, Failure> {
    let absolute = |one: &String| match one.strip_prefix("log=") {
        Some(log) => Ok(format!("log={}", parse(log)?)),
        None => Ok(one.clone()),
    };
    Ok(parameters.iter().map(absolute).collect::<Result<Vec<_>, _>>()?.join(", "))
}

pub(super) fn drain(drain: &cli::CacheDrain) -> Result<(), Failure> {
    let bytes_per_second = match drain.rate.as_str() {
        "unlimited" => None,
        text => match text.parse::<Rate>() {
            Ok(rate) if rate.bytes_per_second() > 0 => Some(rate.bytes_per_second()),
            Ok(_) => return Err(Failure::usage("0 is no rate to drain at").next("`unlimited`")),
            Err(error) => return Err(Failure::usage(format!("{text:?} is no rate: {error}"))),
        },
    };
    give(&drain.volume, CacheOrder::Drain { bytes_per_second })
}

/// Has it carried out, and notes it, so that the volume is brought up as it is now.
fn give(volume: &cli::OneVolume, order: CacheOrder) -> Result<(), Failure> {
    give_long(&volume.name, &Order::Cache(order.clone()), 0, volume.json)?;
    remember(&volume.name, &order)
}

fn remember(name: &str, order: &CacheOrder) -> Result<(), Failure> {
    let file = Places::from_environment().config_file(name);
    if !file.exists() {
        return Ok(());
    }
    let mut record = Record::read(&file)?;
    record.stack = crate::control::apply(order, &record.stack).map_err(|unsuited| {
        Failure::failed(format!(
            "it was done, but {} does not say so: {}",
            file.display(),
            unsuited.text(name)
        ))
    })?;
    // A log is a member from then on.
    let known = |path: &&Path| record.members.iter().any(|one| one.path == **path);
    let come = record.stack.member_paths().into_iter().filter(|path| !known(path));
    for path in come.map(Path::to_owned).collect::<Vec<_>>() {
        membership::accept(&mut record, &path);
    }
    record.write(&file)
}
