//! Members as they are typed: absolute, judged, free.

use std::path::{Path, PathBuf};

use braid_probe::{MemberFacts, Policy, check_members};

use super::stacks::absolute_path;
use crate::failure::Failure;

/// Paths that do not depend on where the command was typed.
///
/// # Errors
/// An empty path.
pub(super) fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    paths.iter().map(|path| absolute_path(path)).collect()
}

/// What is known of members to be written to. They are free, and each is there once; what they
/// carry is `accepted`, or nothing.
///
/// # Errors
/// The refusal of the first that may not be written to.
pub(super) fn judge(
    members: &[PathBuf],
    accepted: &[PathBuf],
) -> Result<Vec<MemberFacts>, Failure> {
    let policy = Policy { force: accepted, read_only: false, min_bytes: 0 };
    check_members(members, &policy).map_err(Failure::refused)
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

/// A path as a shell takes it: in single quotes where it has other than the usual characters.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:=@,%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
