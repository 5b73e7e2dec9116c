//! `failed` and `detached` instead of a member, as in mdadm: the selected members. Pure, except for
//! the check whether a path exists.

use std::path::Path;

use braid_service::control::{ArrayStatus, Status};

/// Returns whether the text selects several members. Use `./failed` for a file of this name.
pub(super) fn is_word(member: &Path) -> bool {
    ["failed", "detached"].iter().any(|word| member.as_os_str() == *word)
}

/// Returns whether the text selects members whose device is gone.
pub(super) fn is_detached(member: &Path) -> bool {
    member.as_os_str() == "detached"
}

/// The members that are faulty; or those that take no part (faulty, or spares) and whose device has
/// gone. Each with its array, where the stack has several.
pub(super) fn meant(
    status: &Status,
    array: Option<&str>,
    word: &Path,
    exists: &dyn Fn(&Path) -> bool,
) -> Vec<(Option<String>, String)> {
    let detached = is_detached(word);
    those(status, array, &|state, member| match detached {
        false => state == "faulty",
        true => matches!(state, "faulty" | "spare") && has_gone(status, member, exists),
    })
}

/// The members that take part, or wait for a role, and whose device has gone. Each with its array, where
/// the stack has several.
pub(super) fn detached(
    status: &Status,
    array: Option<&str>,
    exists: &dyn Fn(&Path) -> bool,
) -> Vec<(Option<String>, String)> {
    those(status, array, &|state, member| state != "faulty" && has_gone(status, member, exists))
}

fn has_gone(status: &Status, member: &str, exists: &dyn Fn(&Path) -> bool) -> bool {
    let leaf = status.members.iter().find(|leaf| leaf.member == member);
    leaf.is_some_and(|leaf| leaf.gone.is_some()) || !exists(Path::new(member))
}

/// The members that `is_meant` says, by what they are and what they are called.
fn those(
    status: &Status,
    array: Option<&str>,
    is_meant: &dyn Fn(&str, &str) -> bool,
) -> Vec<(Option<String>, String)> {
    let several = status.arrays.len() > 1;
    let is_meant_array = |one: &&ArrayStatus| {
        array.is_none_or(|array| one.called == array || one.uuid.as_deref() == Some(array))
    };
    let mut all = Vec::new();
    for one in status.arrays.iter().filter(is_meant_array) {
        let array = several.then(|| one.called.clone());
        let members = one.members.iter().filter(|one| is_meant(&one.state, &one.member));
        all.extend(members.map(|member| (array.clone(), member.member.clone())));
    }
    all
}
