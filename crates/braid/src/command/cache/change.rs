//! `braid cache attach`, `detach`, `resize`, `mode`, `drain`: done to a volume that is up, and remembered.

use std::path::Path;

use braid_stack::{ByteSize, Rate};

use super::super::member::{carried_out, give_long, status};
use super::super::stacks::{absolute_path, parse, promised_but};
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
    carried_out(name, &Order::Cache(order.clone()), size.bytes())?;
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

/// Parameters as a stack has them, paths absolute: the volume's process is elsewhere.
fn joined(parameters: &[String]) -> Result<String, Failure> {
    let absolute = |one: &String| match one.split_once('=') {
        Some(("log", log)) => Ok(format!("log={}", parse(log)?)),
        Some(("warm", path)) => Ok(format!("warm={}", absolute_path(Path::new(path))?.display())),
        _ => Ok(one.clone()),
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

/// Carries out the order, and updates the record. A log is recorded before: once a FLUSH relies on
/// it, the next start must know it, even if this process has died.
fn give(volume: &cli::OneVolume, order: CacheOrder) -> Result<(), Failure> {
    let name = &volume.name;
    let file = Places::from_environment().config_file(name);
    let mut before = None;
    if names_log(&order) && file.exists() {
        status(name)?;
        // What does not go with the volume it says itself.
        before = Some(Record::read(&file)?)
            .filter(|record| crate::control::apply(&order, &record.stack).is_ok());
    }
    if before.is_some() {
        remember(name, &order)?;
    }
    // Memory that is attached or added is had first, which takes a while.
    let bytes = match order {
        CacheOrder::Resize { bytes, .. } => bytes,
        CacheOrder::Attach { .. } => crate::volume::total_memory(),
        _ => 0,
    };
    let given = give_long(name, &Order::Cache(order.clone()), bytes, volume.json);
    match before {
        None if given.is_ok() => remember(name, &order)?,
        // What may still be carried out stays noted.
        Some(before) if given.is_err() && is_as(name, &before) => before.write(&file)?,
        _ => {}
    }
    given
}

/// Returns whether the order names a log for flushed data that the origin lacks.
fn names_log(order: &CacheOrder) -> bool {
    let (CacheOrder::Attach { parameters, .. } | CacheOrder::Mode { parameters, .. }) = order
    else {
        return false;
    };
    parameters.contains("log=")
}

/// Returns whether the volume still matches `record`.
fn is_as(name: &str, record: &Record) -> bool {
    status(name).is_ok_and(|status| status.stack == record.stack.to_string())
}

fn remember(name: &str, order: &CacheOrder) -> Result<(), Failure> {
    let file = Places::from_environment().config_file(name);
    if !file.exists() {
        return Ok(());
    }
    let mut record = Record::read(&file)?;
    let stack = crate::control::apply(order, &record.stack);
    record.stack = stack.map_err(|unsuited| {
        Failure::failed(format!("{} cannot say so: {}", file.display(), unsuited.text(name)))
    })?;
    // A log is a member from then on.
    let known = |path: &&Path| record.members.iter().any(|one| one.path == **path);
    let come = record.stack.member_paths().into_iter().filter(|path| !known(path));
    for path in come.map(Path::to_owned).collect::<Vec<_>>() {
        membership::accept(&mut record, &path);
    }
    record.write(&file)
}
