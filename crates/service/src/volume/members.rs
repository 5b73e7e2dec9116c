//! Members that come to an array that is up, and go: asked by an operator, or found by the watcher.

use std::path::Path;
use std::rc::Rc;

use braid_engine::redundant::{MemberState, MemberStatus, NewMember, Redundant};
use braid_shell::shown;
use braid_wiring::Array;

use super::asking::{Which, ask, no_array, of_array, on_each, on_one, send};
use super::md::MdArray;
use super::newcomer::Newcomer;
use super::shard::Orders as Remote;
use crate::control::Answer;
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::why::Why;

/// Takes in again, at `at`, what was the member `label`: `again` only by the bitmap.
pub(super) fn bring_back(
    array: &MdArray,
    remote: &Remote,
    label: &str,
    at: &Path,
    again: bool,
) -> Answer {
    let_go_of_faulty(array, remote, label, at)?;
    add(array, remote, Newcomer::open(array, at, false)?, again)
}

/// Takes out the member `label`, whose device is gone.
pub(super) fn device_went(array: &MdArray, remote: &Remote, label: &str, why: &str) -> Answer {
    let (uuid, member, why) =
        (array.superblock.array_uuid.to_string(), label.to_owned(), why.to_owned());
    on_one(remote, Which::member(label, Some(uuid)), move |engine| {
        let text = format!("{} is faulty: {why}", shown(&member));
        async move { engine.fail_because(&member, &why).await.map(|()| text) }
    })
}

/// Adds a line to the log of an array.
pub(super) fn note(array: &MdArray, remote: &Remote, text: String) -> Answer {
    let uuid = array.superblock.array_uuid.to_string();
    on_each(remote, Some(uuid), move |_, engine| {
        engine.note(text.clone());
        Ok(text.clone())
    })
}

/// Lets go of what is left of a faulty member, if what is at `at` is of the array; one that is not
/// faulty stays.
pub(super) fn let_go_of_faulty(
    array: &MdArray,
    remote: &Remote,
    label: &str,
    at: &Path,
) -> Result<(), Failure> {
    let uuid = array.superblock.array_uuid;
    let is_there = array.leaves().iter().any(|leaf| leaf.label == label);
    let is_ours = || Metadata::read(at).is_ok_and(|own| own.superblock.array_uuid == uuid);
    if !is_there || !is_ours() {
        return Ok(());
    }
    let remote = remote.another().map_err(Failure::failed)?;
    let (member, of_array) = (label.to_owned(), Some(uuid.to_string()));
    let answer = on_one(&remote, Which::Member(label.to_owned(), of_array), move |engine| {
        let is_faulty =
            |one: &MemberStatus| one.label == member && one.state == MemberState::Faulty;
        let faulty = engine.status().members.iter().any(is_faulty);
        async move {
            if faulty {
                engine.remove(&member).await?;
            }
            Ok(if faulty { "removed" } else { "" }.to_owned())
        }
    });
    if answer.is_ok_and(|text| !text.is_empty()) {
        array.forget(label);
    }
    Ok(())
}

/// Takes in a device; `again` only by the bitmap.
pub(super) fn add(array: &MdArray, remote: &Remote, newcomer: Newcomer, again: bool) -> Answer {
    let label = shown(&newcomer.path.display().to_string()).into_owned();
    take_in(array, remote, newcomer, false, move |engine, new, why_anew| async move {
        let text = match (new.role, why_anew) {
            (Some(role), _) => format!(
                "{label} is back in role {role}: what was written meanwhile is copied to it"
            ),
            (None, Some(reason)) if again => {
                return Err(Why::NotByBitmap { device: label, reason }.into());
            }
            (None, _) => format!("{label} was added"),
        };
        engine.add(new).await.map(|()| text).map_err(of_array)
    })
}

/// Fills a device beside the member that it then replaces.
pub(super) fn replace(
    array: &MdArray,
    remote: &Remote,
    member: &str,
    newcomer: Newcomer,
) -> Answer {
    let with = shown(&newcomer.path.display().to_string()).into_owned();
    let member = member.to_owned();
    // Whatever it was before, it starts anew.
    take_in(array, remote, newcomer, true, move |engine, new, _| async move {
        let text = format!("{with} is filled and then replaces {}", shown(&member));
        engine.replace(&member, new).await.map(|()| text).map_err(of_array)
    })
}

/// Has `f` take `newcomer` in on the shard; a member that was taken in stays open.
fn take_in<F, W>(array: &MdArray, remote: &Remote, newcomer: Newcomer, anew: bool, f: F) -> Answer
where
    F: FnOnce(Redundant, NewMember, Option<String>) -> W + Send + 'static,
    W: Future<Output = Answer> + 'static,
{
    let (uuid, log) = (array.superblock.array_uuid.to_string(), array.log);
    let label = shown(&newcomer.path.display().to_string()).into_owned();
    let leaf = newcomer.leaf();
    let answer = ask(remote, move |handle, local, answer| {
        let of_array = |one: &&Rc<Array>| one.uuid.as_deref() == Some(&uuid);
        let Some(engine) = local.arrays.iter().find(of_array).map(|one| one.array.clone()) else {
            return send(&answer, Err(no_array("this array survives no failure")));
        };
        let not_taken = move |why: Failure| Err(why.of(format_args!("{label} is not taken")));
        match newcomer.admit(log, anew, &engine, handle, local) {
            Ok(admitted) => {
                let pool = local.pool.clone();
                handle.spawn(async move {
                    let answered = match admitted.prepare(&pool).await {
                        Ok((new, why_anew)) => f(engine, new, why_anew).await,
                        Err(why) => not_taken(Failure::refused(why)),
                    };
                    send(&answer, answered);
                });
            }
            Err(why) => send(&answer, not_taken(why)),
        }
    });
    if answer.is_ok() {
        array.adopt(leaf);
    }
    answer
}
