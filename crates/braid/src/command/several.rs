//! `failed` and `detached` in the place of a member, as mdadm has them.

use std::path::{Path, PathBuf};

use super::member::{array_of, carried_out, change_members};
use super::stacks::absolute_path;
use crate::cli::MemberTarget;
use crate::control::{ArrayStatus, OUTPUT_VERSION, Order, Status};
use crate::failure::Failure;

/// Whether several members are meant. A file of this name is meant by `./failed`.
pub(super) fn is_word(member: &Path) -> bool {
    ["failed", "detached"].iter().any(|word| member.as_os_str() == *word)
}

/// Has the volume let go of the members that are meant, one by one.
pub(super) fn remove(target: &MemberTarget, status: &Status) -> Result<(), Failure> {
    let detached = target.member.as_os_str() == "detached";
    let meant = meant(status, target.which.array.as_deref(), detached, &|path| path.exists());
    let mut done = Vec::new();
    for (array, member) in meant {
        let order =
            Order::Remove { member: member.clone(), array: array_of(&target.which).or(array) };
        done.push(carried_out(&target.volume, &order, 0)?);
        change_members(&target.volume, &[], &[absolute_path(Path::new(&member))?])?;
    }
    if target.json {
        println!("{}", serde_json::json!({ "output_version": OUTPUT_VERSION, "done": done }));
    } else if done.is_empty() {
        println!("no member of {} is {}", target.volume, target.member.display());
    } else {
        done.iter().for_each(|text| println!("{text}"));
    }
    Ok(())
}

/// The members that are faulty; or those that take no part (faulty, or spares) and whose device has
/// gone. Each with its array, where the stack has several.
fn meant(
    status: &Status,
    array: Option<&str>,
    detached: bool,
    exists: &dyn Fn(&PathBuf) -> bool,
) -> Vec<(Option<String>, String)> {
    let several = status.arrays.len() > 1;
    let is_meant_array = |one: &&ArrayStatus| {
        array.is_none_or(|array| one.called == array || one.uuid.as_deref() == Some(array))
    };
    let has_gone = |member: &str| {
        let leaf = status.members.iter().find(|leaf| leaf.member == member);
        leaf.is_some_and(|leaf| leaf.gone.is_some()) || !exists(&PathBuf::from(member))
    };
    let mut all = Vec::new();
    for one in status.arrays.iter().filter(is_meant_array) {
        let array = several.then(|| one.called.clone());
        let is_meant = |state: &str, member: &str| match detached {
            false => state == "faulty",
            true => matches!(state, "faulty" | "spare") && has_gone(member),
        };
        let members = one.members.iter().filter(|one| is_meant(&one.state, &one.member));
        all.extend(members.map(|member| (array.clone(), member.member.clone())));
    }
    all
}
