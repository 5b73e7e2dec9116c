//! `braid rescue files`: owners of bytes that are lost or in doubt.

use std::process::ExitCode;

use braid_rescue::assemble::{Doubt, Ranges};
use braid_service::failure::Failure;

use super::answer::opened;
use super::open::print_doubts;
use crate::cli::{Files, RescueFiles};
use crate::command::files;

pub(super) fn files(arguments: &RescueFiles) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, &arguments.meant)?;
    let volume = opened.volume(&arguments.case)?;
    let mut ranges: Ranges = arguments.ranges.clone();
    if arguments.lost {
        let doubts = volume.doubts.iter();
        ranges.extend(doubts.filter_map(Doubt::ranges).flatten().cloned());
        if !arguments.json {
            print_doubts(&volume.doubts);
        }
    }
    if !ranges.is_empty() {
        let RescueFiles { io, json, .. } = *arguments;
        files::files(&Files { stack: volume.stack.clone(), ranges, io, json })?;
    }
    Ok(ExitCode::SUCCESS)
}
