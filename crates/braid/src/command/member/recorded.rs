//! The members of a volume's record follow those of its arrays.

use std::path::PathBuf;

use braid_stack::{File, Node, Stack};

use super::status;
use crate::control::ArrayStatus;
use crate::failure::Failure;
use crate::membership;
use crate::places::Places;
use crate::record::Record;

/// Notes which members the volume has now, so that it is brought up with them.
pub(super) fn change_members(
    volume: &str,
    come: &[PathBuf],
    go: &[PathBuf],
) -> Result<(), Failure> {
    let file = Places::from_environment().config_file(volume);
    if !file.exists() {
        return Ok(());
    }
    let mut record = Record::read(&file)?;
    let levels = md_levels(&record.stack);
    // Of several levels, the one whose array has them by now.
    let is_beside = |array: &ArrayStatus, path: &PathBuf| {
        let label = path.display().to_string();
        array.members.iter().any(|one| one.member == label)
    };
    let arrays = if levels.len() > 1 { status(volume)?.arrays } else { Vec::new() };
    let level_of = |path: &PathBuf| {
        let array = arrays.iter().find(|array| is_beside(array, path));
        let has = |level: &Vec<PathBuf>| {
            array.is_some_and(|array| level.iter().any(|other| is_beside(array, other)))
        };
        if levels.len() == 1 { Some(0) } else { levels.iter().position(has) }
    };
    let come: Vec<(usize, &PathBuf)> =
        come.iter().filter_map(|path| Some((level_of(path)?, path))).collect();
    edit_md(&mut record.stack, &mut 0, &come, go);
    for (_, path) in come {
        membership::accept(&mut record, path);
    }
    membership::forget_removed(&mut record);
    record.write(&file)
}

/// The members of each `md(…)` level, from left to right.
fn md_levels(stack: &Stack) -> Vec<Vec<PathBuf>> {
    if let Node::Md(_) = &stack.node {
        return vec![stack.member_names().into_iter().map(|(name, _)| name).collect()];
    }
    stack.members().iter().flat_map(md_levels).collect()
}

/// Changes the members of `md(…)` levels: added members have the number of their level, removed
/// ones are in any of them. `level` is the number of the next level.
fn edit_md(stack: &mut Stack, level: &mut usize, come: &[(usize, &PathBuf)], go: &[PathBuf]) {
    let Node::Md(md) = &mut stack.node else {
        for member in stack.members_mut() {
            edit_md(member, level, come, go);
        }
        return;
    };
    let is = |member: &Stack, path: &PathBuf| matches!(&member.node, Node::File(file) if file.name() == *path);
    md.members.retain(|member| !go.iter().any(|path| is(member, path)));
    for (_, path) in come.iter().filter(|(number, _)| number == level) {
        if md.members.iter().any(|member| is(member, path)) {
            continue;
        }
        md.members.push(Stack::from(Node::File(File::called(&path.to_string_lossy()))));
    }
    *level += 1;
}
