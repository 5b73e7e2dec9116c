//! `braid rescue files`: owners of bytes that are lost or in doubt.

use std::process::ExitCode;

use braid_rescue::assemble::{Doubt, Ranges};
use braid_service::failure::Failure;

use super::open::{opened, print_doubts};
use crate::cli::{Files, RescueFiles};
use crate::command::files;

pub(super) fn files(arguments: &RescueFiles) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, arguments.array.as_deref())?;
    let mut ranges: Ranges = arguments.ranges.clone();
    if arguments.lost {
        let doubts = opened.opening.doubts.iter();
        ranges.extend(doubts.filter_map(Doubt::ranges).flatten().cloned());
        if !arguments.json {
            print_doubts(&opened.doubts());
        }
    }
    if !ranges.is_empty() {
        let RescueFiles { io, json, .. } = *arguments;
        files::files(&Files { stack: opened.stack, ranges, io, json })?;
    }
    Ok(ExitCode::SUCCESS)
}
