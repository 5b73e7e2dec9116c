//! Members as they are given on the command line: absolute, judged, free.

use std::path::PathBuf;

use braid_probe::{MemberFacts, Policy};

use super::stacks::absolute_path;
use braid_service::failure::Failure;
use braid_service::refusal::refused;
use braid_service::volume::check_patiently;

/// Paths that do not depend on where the command was typed.
///
/// # Errors
/// An empty path.
pub(super) fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    paths.iter().map(|path| absolute_path(path)).collect()
}

/// Examines members before they are written. They must be unused and distinct, and carry no data
/// except `accepted` ones.
///
/// # Errors
/// The refusal of the first member that may not be written.
pub(super) fn judge(
    members: &[PathBuf],
    accepted: &[PathBuf],
) -> Result<Vec<MemberFacts>, Failure> {
    let policy = Policy { force: accepted, ..Policy::default() };
    check_patiently(members, &policy).map_err(|refusal| refused(&refusal))
}

/// Those of `members` that an option names again, however their paths are spelt.
///
/// # Errors
/// It names something else.
pub(super) fn named_again(
    option: &str,
    paths: &[PathBuf],
    members: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let known = |path: &PathBuf| match absolute_path(path)? {
        member if members.contains(&member) => Ok(member),
        other => Err(Failure::usage(format!(
            "{option} {}: that is none of the members",
            other.display()
        ))),
    };
    paths.iter().map(known).collect()
}
