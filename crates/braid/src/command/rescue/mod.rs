//! `braid rescue`: arrays that do not start, read without writing to their members.
//!
//! ```text
//!   scan ──▶ NAME.rescue: fingerprints, maps, places ──▶ open ──▶ a stack expression ──▶ serve, up
//!                                                                                  └───▶ copy, files
//! ```

mod answer;
mod commit;
mod copy;
mod copy_files;
mod examined;
mod files;
mod fill;
mod hypotheses;
mod open;
mod pace;
mod report;
mod scan;
mod solve;
mod verify;
mod words;

use std::process::ExitCode;

use crate::cli::Rescue;
use braid_service::failure::Failure;

/// The exit status of an answer that is in doubt.
const IN_DOUBT: u8 = 4;

pub(super) fn rescue(rescue: &Rescue) -> Result<ExitCode, Failure> {
    match rescue {
        Rescue::Scan(arguments) => scan::scan(arguments),
        Rescue::Open(arguments) => open::open(arguments),
        Rescue::Solve(arguments) => solve::solve(arguments),
        Rescue::Copy(arguments) => copy::copy(arguments),
        Rescue::Files(arguments) => files::files(arguments),
        Rescue::Verify(arguments) => verify::verify(arguments),
        Rescue::RunChecker(arguments) => verify::run_checker(arguments).map(|()| ExitCode::SUCCESS),
        Rescue::Commit(arguments) => commit::commit(arguments),
    }
}

/// The exit status of an answer.
fn exit(is_in_doubt: bool) -> ExitCode {
    if is_in_doubt { ExitCode::from(IN_DOUBT) } else { ExitCode::SUCCESS }
}
