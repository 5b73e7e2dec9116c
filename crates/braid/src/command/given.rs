//! Members as they are given on the command line: absolute, judged, free.

use std::path::PathBuf;

use braid_probe::{Holder, MemberFacts, Policy, Reason, Refusal};

use super::stacks::absolute_path;
use crate::control::{self, ErrorCode};
use crate::failure::Failure;
use crate::places::Places;
use crate::volume::check_patiently;

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
    let policy = Policy { force: accepted, read_only: false, min_bytes: 0 };
    check_patiently(members, &policy).map_err(|refusal| refused(&refusal))
}

/// A refusal; if it is a volume that has the member, then by the volume's name.
pub(super) fn refused(refusal: &Refusal) -> Failure {
    let Reason::InUse { holders } = &refusal.reason else {
        let holds = matches!(refusal.reason, Reason::Contents { .. });
        return Failure::refused(refusal).code(holds.then_some(ErrorCode::HasContents));
    };
    let places = Places::from_environment();
    let names = places.running_names().unwrap_or_default();
    let sockets: Vec<PathBuf> = names.iter().map(|name| places.control(name)).collect();
    let is_it =
        |holder: &Holder, of: u32| matches!(holder, Holder::Process { pid, .. } if *pid == of);
    let volume =
        names.into_iter().zip(control::get_statuses(&sockets)).find_map(|(name, status)| {
            let pid = status.ok()?.pid;
            holders.iter().any(|holder| is_it(holder, pid)).then_some(name)
        });
    match volume {
        Some(name) => Failure::refused(format!(
            "{} is refused: it is a member of {name}, which is up",
            refusal.path.display()
        ))
        .next(format!("braid down {name}")),
        None => Failure::refused(refusal),
    }
    .code(ErrorCode::InUse)
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
