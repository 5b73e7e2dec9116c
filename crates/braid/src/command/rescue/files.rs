//! `braid rescue files`: the files of a volume, with what of them is lost or in doubt, or the owners of bytes.

use std::process::ExitCode;

use braid_rescue::assemble::{Doubt, Ranges};
use braid_service::failure::Failure;

use super::answer::opened;
use super::exit;
use super::open::print_doubts;
use crate::cli::{Files, RescueFiles};
use crate::command::listing::{self, Known, Style};
use crate::command::{cat, files, stacks};

pub(super) fn files(arguments: &RescueFiles) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, &arguments.meant)?;
    let volume = opened.volume(&arguments.case)?;
    let (stack, doubts) = (volume.stack.clone(), volume.doubts.clone());
    // The members are opened again.
    drop(opened);
    let RescueFiles { io, json, ref ranges, lost, .. } = *arguments;
    if !ranges.is_empty() {
        return files::files(&Files { stack, ranges: ranges.clone(), io, json });
    }
    if !json {
        print_doubts(&doubts);
    }
    if lost && doubts.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style { is_lost_only: lost, json };
    let read = cat::open_stack(&stacks::parse_for(&stack, true)?, io)?;
    let counts = listing::list(&read, &known(&doubts), style)?;
    listing::print_summary(&counts, style);
    Ok(exit(!counts.is_good() || !doubts.is_empty()))
}

/// The bytes that doubts name.
pub(super) fn known(doubts: &[Doubt]) -> Known {
    let (mut lost, mut doubtful) = (Ranges::new(), Ranges::new());
    for doubt in doubts {
        let all = if let Doubt::Lost { .. } = doubt { &mut lost } else { &mut doubtful };
        all.extend(doubt.ranges().into_iter().flatten().cloned());
    }
    Known::new(&lost, &doubtful)
}
