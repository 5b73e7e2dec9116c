//! Stack expressions as they are typed: read, with errors drawn, and made absolute.

use std::path::{Path, PathBuf};

use braid_stack::{Node, Stack};

use crate::cli::Common;
use crate::failure::Failure;

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Stack, Failure> {
    let read = |text: &str| {
        Stack::parse(text).map_err(|error| {
            Failure::usage(format!("this stack cannot be read\n{}", error.render(text)))
        })
    };
    // Two spellings of a path may be one now: that is found by reading once more.
    read(&absolute(read(text)?)?.to_string())
}

/// Makes every path absolute: a volume's process, and its record, do not depend on where the
/// command was typed.
fn absolute(mut stack: Stack) -> Result<Stack, Failure> {
    match &mut stack.node {
        Node::File(file) => {
            let path = absolute_path(Path::new(&file.path))?;
            // The stack language is text; what came from it stays text.
            file.path = path.to_string_lossy().into_owned();
        }
        Node::Linear(linear) => absolute_all(&mut linear.members)?,
        Node::Raid0(raid0) => absolute_all(&mut raid0.members)?,
        _ => {}
    }
    Ok(stack)
}

fn absolute_all(members: &mut Vec<Stack>) -> Result<(), Failure> {
    *members = std::mem::take(members).into_iter().map(absolute).collect::<Result<_, _>>()?;
    Ok(())
}

/// The path of a member, as the stack has it once it is absolute.
pub(super) fn absolute_path(path: &Path) -> Result<PathBuf, Failure> {
    let path = expand_home(path);
    std::path::absolute(&path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

/// The members of `stack` that `--force` names again, however their paths are spelt.
pub(super) fn forced(common: &Common, stack: &Stack) -> Result<Vec<PathBuf>, Failure> {
    let members = stack.member_paths();
    let known = |path: &PathBuf| match absolute_path(path)? {
        member if members.contains(&member.as_path()) => Ok(member),
        other => Err(Failure::usage(format!(
            "--force {}: the stack has no such member: {stack}",
            other.display()
        ))),
    };
    common.force.iter().map(known).collect()
}

/// A path in quotes is not expanded by the shell.
fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}

/// Whether `text` is meant as an expression, rather than a name or a file.
pub(super) fn is_expression(text: &str) -> bool {
    text.contains(['(', '/', ',']) && !text.ends_with(".toml")
}
