//! `braid rescue verify`: data and parity, or copies, compared, and drawn as a strip.

use std::process::ExitCode;

use braid_rescue::Patient;
use braid_rescue::assemble::Cell;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use serde_json::json;

use super::answer::{By, ReadArray, opened};
use super::{exit, words};
use crate::cli::RescueVerify;

pub(super) fn verify(arguments: &RescueVerify) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, &arguments.meant)?;
    let is_of = |one: &&ReadArray| matches!(one.by, By::Superblocks { .. });
    let mut arrays = opened.arrays.iter().filter(is_of);
    let (Some(ReadArray { by: By::Superblocks { array, opening }, .. }), None) =
        (arrays.next(), arrays.next())
    else {
        let text = "an array with superblocks is compared, and one at a time";
        return Err(Failure::usage(text).next("--array NAME|UUID"));
    };
    let members: Vec<&Patient> = opened.members.iter().map(|member| &member.patient).collect();
    let cells = opening.agreement(&array.claimants, &members, arguments.all);
    let sum = |of: fn(&Cell) -> u64| cells.iter().map(of).sum::<u64>();
    let (agreeing, differing) = (sum(|cell| cell.agreeing), sum(|cell| cell.differing));
    let unknown = sum(|cell| cell.unknown);
    match arguments.json {
        true => {
            let cell = |cell: &Cell| json!([cell.agreeing, cell.differing, cell.unknown]);
            let cells: Vec<_> = cells.iter().map(cell).collect();
            println!(
                "{}",
                json!({ "output_version": OUTPUT_VERSION, "agreeing": agreeing, "differing": differing,
                                  "unknown": unknown, "cells": cells })
            );
        }
        false => {
            let superblock = &array.claimants[opening.freshest].superblock;
            println!("Array {}, {}", words::array(array, superblock), words::size(opening.size));
            println!("  0% |{}| 100%", cells.iter().map(letter).collect::<String>());
            println!(
                "  = agrees   + differs in places   ! differs   . cannot be compared: a member is missing"
            );
            println!("{agreeing} samples agree, {differing} differ, {unknown} cannot be compared.");
            println!("Next: the file system: copy the array, then `fsck -n` on the copy");
        }
    }
    Ok(exit(differing > 0 || agreeing == 0))
}

/// A region as a letter.
fn letter(cell: &Cell) -> char {
    match (cell.agreeing, cell.differing) {
        (0, 0) => '.',
        (_, 0) => '=',
        (agreeing, differing) if agreeing > differing => '+',
        _ => '!',
    }
}
