//! Decorators of a stack: from their text to what the wiring is given.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use braid_block::{Limits, Span};
use braid_holes::{MAX_TEXT, Map};
use braid_shell::shell_path;
use braid_stack::{Cow, Holes, Slice, Stack};
use braid_wiring::Decoration;

use crate::failure::Failure;

/// Why a decorator cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct DecoratorError {
    why: String,
    next: String,
}

impl DecoratorError {
    /// The failure that says so.
    pub(super) fn failure(&self) -> Failure {
        Failure::refused(self).next(&self.next)
    }
}

/// Checks that `stack` can be written.
///
/// # Errors
/// A part of it cannot be.
pub(super) fn check_writable(stack: &Stack) -> Result<(), DecoratorError> {
    match stack.unwritable_part() {
        None => Ok(()),
        Some(part) => Err(DecoratorError {
            why: format!("{part} cannot be written: its holes would be written over"),
            next: format!("--read-only; or cow({part}, store=FILE), which keeps changes in a file"),
        }),
    }
}

/// Returns the part of a device with the limits `origin` that `slice` is.
///
/// # Errors
/// It goes beyond the end, or is not whole blocks.
pub(super) fn slice<C>(slice: &Slice, origin: Limits) -> Result<Decoration<C>, DecoratorError> {
    let offset = slice.offset.bytes();
    let length = slice.length.map_or(origin.size.saturating_sub(offset), |length| length.bytes());
    let span = Span::new(offset, length);
    let refused = |why: String, next: &str| {
        Err(DecoratorError { why: format!("{slice}: {why}"), next: next.to_owned() })
    };
    if span.is_empty() || !span.is_within(origin.size) {
        let why = format!("it ends beyond the {} bytes of {}", origin.size, slice.origin);
        return refused(why, "a smaller offset or length");
    }
    if !span.is_aligned(origin.logical_block) {
        let block = origin.logical_block;
        let why = format!("offset and length are not multiples of the {block} bytes of a block");
        return refused(
            why,
            "whole blocks; images on a disk with smaller blocks have smaller ones",
        );
    }
    Ok(Decoration::Slice(span))
}

/// Returns the holes of a device with the limits `origin`, as the map of `holes` has them.
///
/// # Errors
/// The map cannot be read, is none, or is of another device.
pub(super) fn holes<C>(holes: &Holes, origin: Limits) -> Result<Decoration<C>, DecoratorError> {
    let path = Path::new(&holes.map);
    let (map, shown) = (path.display(), shell_path(path));
    let text = read(path).map_err(|error| DecoratorError {
        why: format!("the map {map} cannot be read: {error}"),
        next: "the map that ddrescue wrote beside the image".to_owned(),
    })?;
    let parsed = Map::parse(&text).map_err(|error| DecoratorError {
        why: format!("{map} is no map of GNU ddrescue: {error}"),
        next: format!("`ddrescuelog --show-status {shown}` shows how ddrescue reads it"),
    })?;
    let block = u64::from(origin.logical_block);
    let fitted = parsed.fitted(origin.size, block).map_err(|error| DecoratorError {
        why: format!("{map} is not the map of {}: {error}", holes.origin),
        next: match error.map > error.device {
            true => {
                "the map of this device: by this one, bytes behind its end were read".to_owned()
            }
            false => "the map of this device".to_owned(),
        },
    })?;
    let span = |hole: std::ops::Range<u64>| Span::new(hole.start, hole.end - hole.start);
    Ok(Decoration::Holes(fitted.holes().into_iter().map(span).collect()))
}

/// Checks that changes of the device with the limits `origin` can go to a store with the limits `store`.
///
/// # Errors
/// The last block of the device is a part of one of the store.
pub(super) fn check_store(cow: &Cow, origin: Limits, store: Limits) -> Result<(), DecoratorError> {
    let block = store.logical_block;
    if origin.size.is_multiple_of(block.into()) {
        return Ok(());
    }
    let why = format!(
        "{cow}: the store lies on a file system with blocks of {block} bytes, of which the {} bytes of {} are \
         no multiple",
        origin.size, cow.origin
    );
    Err(DecoratorError { why, next: "a store on a file system with smaller blocks".to_owned() })
}

/// Reads a map, and a little more than one can have, so that a longer text is told as one.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = Vec::new();
    file.take(MAX_TEXT as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}
