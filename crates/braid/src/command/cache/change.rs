//! `braid cache attach`, `detach`, `resize`, `mode`, `drain`: done to a volume that is up, which records them.

use std::path::Path;

use braid_stack::{ByteSize, Rate};

use super::super::order::{self, carried_out};
use super::super::stacks::{absolute_path, parse};
use crate::cli;
use braid_service::control::{CacheOrder, Order};
use braid_service::failure::Failure;

pub(super) fn attach(attach: &cli::CacheAttach) -> Result<(), Failure> {
    let parameters = joined(&attach.parameters)?;
    give(&attach.volume, CacheOrder::Attach { parameters })
}

pub(super) fn detach(volume: &cli::OneVolume) -> Result<(), Failure> {
    give(volume, CacheOrder::Detach)
}

pub(super) fn resize(resize: &cli::CacheResize) -> Result<(), Failure> {
    give(&resize.volume, CacheOrder::Resize { bytes: resize.size.bytes() })
}

/// Resizes, and says nothing.
pub(super) fn resize_to(name: &str, size: ByteSize) -> Result<(), Failure> {
    let order = CacheOrder::Resize { bytes: size.bytes() };
    carried_out(name, &Order::Cache(order)).map(drop)
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
    Ok(parameters.iter().map(absolute).collect::<Result<Vec<_>, Failure>>()?.join(", "))
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

fn give(volume: &cli::OneVolume, order: CacheOrder) -> Result<(), Failure> {
    order::give(&volume.name, &Order::Cache(order), volume.how)
}
