//! Members that come to a running array, and go: by order, or found by the watcher.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use braid_engine::assembled::Admitted;
use braid_engine::redundant::{MemberState, MemberStatus, NewMember, Redundant};
use braid_md::{Level, Superblock};
use braid_shell::shown;
use braid_uring::Handle;
use braid_wiring::Array;

use super::asking::{PATIENCE, Which, no_array, of_array, on_each, on_one, send};
use super::elsewhere::opener;
use super::md::MdArray;
use super::newcomer::Newcomer;
use super::shard::Local;
use super::to_shard::Orders as Remote;
use crate::control::{Answer, ErrorCode};
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::why::Why;

/// Ways in which an array takes in a device; `write_mostly` marks the new member, the mark of a former one stays.
#[derive(Clone)]
pub(super) enum Taking {
    /// As the member that it was, or as a spare; `again` only as the former, by the bitmap.
    Add { again: bool, write_mostly: bool },
    /// Beside the member that it then replaces.
    Replace { member: String, write_mostly: bool },
}

impl Taking {
    fn check(
        &self,
        newcomer: &Newcomer,
        engine: &Redundant,
        admitted: &Admitted,
    ) -> Result<(), Failure> {
        let (new, why_anew) = admitted.new_member();
        let level = engine.superblock().map(|superblock| superblock.level);
        if let Some(level) = level.filter(|one| self.is_write_mostly() && *one != Level::Raid1) {
            let level = level.to_string();
            return Err(Why::WriteMostly { device: newcomer.label(), level }.into());
        }
        match (self, why_anew) {
            (Taking::Add { again: true, .. }, Some(reason)) => {
                Err(Why::NotByBitmap { device: newcomer.label(), reason: reason.to_owned() }.into())
            }
            (Taking::Add { .. }, _) => engine.check_add(new).map_err(of_array),
            (Taking::Replace { member, .. }, _) => {
                engine.check_replace(member, new).map_err(of_array)
            }
        }
    }

    fn is_write_mostly(&self) -> bool {
        match self {
            Taking::Add { write_mostly, .. } | Taking::Replace { write_mostly, .. } => {
                *write_mostly
            }
        }
    }

    async fn carry_out(self, label: String, engine: Redundant, mut new: NewMember) -> Answer {
        if self.is_write_mostly() {
            new.write_mostly = true;
            new.superblock = new.superblock.map(Superblock::marked_write_mostly);
        }
        let (done, text) = match self {
            Taking::Add { .. } => {
                let text = match new.role {
                    Some(role) => format!(
                        "{label} is back in role {role}: the data written meanwhile are copied to it"
                    ),
                    None => format!("{label} was added"),
                };
                (engine.add(new).await, text)
            }
            Taking::Replace { member, .. } => (
                engine.replace(&member, new).await,
                format!("{label} is filled and then replaces {}", shown(&member)),
            ),
        };
        done.map(|()| text).map_err(of_array)
    }
}

/// Adds the former member `label`, which is at `at` now, again: `again` only by the bitmap.
pub(super) fn bring_back(
    array: &MdArray,
    remote: &Remote,
    label: &str,
    at: &Path,
    again: bool,
) -> Answer {
    let_go_of_faulty(array, remote, label, at)?;
    let newcomer = Arc::new(Newcomer::open(array, at, false)?);
    take_in(array, remote, &newcomer, Taking::Add { again, write_mostly: false })
}

/// Fails the member `label`, whose device is gone.
pub(super) fn device_went(array: &MdArray, remote: &Remote, label: &str, why: &str) -> Answer {
    let uuid = array.superblock.array_uuid.to_string();
    fail(remote, label, Some(uuid), Some(why.to_owned()))
}

/// Fails the member `label`; `why` becomes its remark if it was not the wish of an operator.
pub(super) fn fail(
    remote: &Remote,
    label: &str,
    array: Option<String>,
    why: Option<String>,
) -> Answer {
    let (member, checked) = (label.to_owned(), label.to_owned());
    let check = move |engine: &Redundant| {
        let is_faulty = engine.check_fail(&checked)?;
        Ok(is_faulty.then(|| format!("{} is faulty already", shown(&checked))))
    };
    on_one(remote, Which::member(label, array), check, move |engine| async move {
        let label = shown(&member);
        match why {
            None => engine.fail(&member).await.map(|()| format!("{label} is faulty now")),
            Some(why) => {
                let failed = engine.fail_because(&member, &why).await;
                failed.map(|()| format!("{label} is faulty: {why}"))
            }
        }
    })
}

/// Adds a line to the log of an array.
pub(super) fn note(array: &MdArray, remote: &Remote, text: String) -> Answer {
    let uuid = array.superblock.array_uuid.to_string();
    on_each(
        remote,
        Some(uuid),
        |_| Ok(()),
        move |_, engine, ()| {
            engine.note(text.clone());
            Ok(text.clone())
        },
    )
}

/// Removes the faulty member `label` if the device at `at` is of the array; a member that is not faulty stays.
///
/// # Errors
/// The order is not begun, or only a plan.
pub(super) fn let_go_of_faulty(
    array: &MdArray,
    remote: &Remote,
    label: &str,
    at: &Path,
) -> Result<(), Failure> {
    let uuid = array.superblock.array_uuid;
    let is_there = array.leaves().iter().any(|leaf| leaf.label == label);
    if !is_there || Metadata::array_at(at) != Some(uuid) {
        return Ok(());
    }
    let (member, checked) = (label.to_owned(), label.to_owned());
    let check = move |engine: &Redundant| {
        let is_faulty =
            |one: &MemberStatus| one.label == checked && one.state == MemberState::Faulty;
        match engine.status().members.iter().any(is_faulty) {
            true => engine.check_remove(&checked).map(|()| None),
            false => Ok(Some(String::new())),
        }
    };
    let which = Which::member(label, Some(uuid.to_string()));
    let answer = on_one(remote, which, check, move |engine| async move {
        engine.remove(&member).await.map(|()| "removed".to_owned())
    });
    match answer {
        Ok(text) if !text.is_empty() => array.forget(label),
        Err(failure) if failure.code == ErrorCode::GivenUp => return Err(failure),
        // The device is refused then, with the reason.
        _ => {}
    }
    Ok(())
}

/// Returns the admission of `newcomer`, to be called on the shard of the array.
fn admission(
    array: &MdArray,
    newcomer: &Arc<Newcomer>,
    taking: &Taking,
) -> impl FnOnce(&Handle, &Local) -> Result<(Redundant, Admitted), Failure> + Send + 'static {
    let (uuid, log) = (array.superblock.array_uuid.to_string(), array.log);
    let (newcomer, taking) = (Arc::clone(newcomer), taking.clone());
    move |handle, local| {
        let of_array = |one: &&Rc<Array>| one.uuid.as_deref() == Some(&uuid);
        let Some(engine) = local.arrays.iter().find(of_array).map(|one| one.array.clone()) else {
            return Err(no_array("this array survives no failure"));
        };
        let anew = matches!(taking, Taking::Replace { .. });
        let admitted = newcomer
            .admit(log, anew, &engine, handle, local)
            .map_err(|why| why.of(format_args!("{} is not taken", newcomer.label())))?;
        taking.check(&newcomer, &engine, &admitted)?;
        Ok((engine, admitted))
    }
}

/// Checks on the shard whether the array takes `newcomer` in.
///
/// # Errors
/// Those of [`take_in`].
pub(super) fn check(
    array: &MdArray,
    remote: &Remote,
    newcomer: &Arc<Newcomer>,
    taking: &Taking,
) -> Result<(), Failure> {
    let admit = admission(array, newcomer, taking);
    remote.check(PATIENCE, move |handle, local| admit(handle, local).map(drop))
}

/// Takes in `newcomer`, which stays open then.
pub(super) fn take_in(
    array: &MdArray,
    remote: &Remote,
    newcomer: &Arc<Newcomer>,
    taking: Taking,
) -> Answer {
    let label = newcomer.label();
    let admit = admission(array, newcomer, &taking);
    remote.begin()?;
    newcomer.allocate()?;
    let check = move |handle: &Handle, local: &Local| admit(handle, local).map_err(Err);
    let leaf = newcomer.leaf();
    let answer =
        remote.carry_out(PATIENCE, check, move |handle, local, (engine, admitted), answer| {
            let (pool, open_on_others) = (local.pool.clone(), opener(local, &engine, leaf));
            handle.spawn(async move {
                let answered = match admitted.prepare(&pool).await {
                    Ok((new, _)) => taking.carry_out(label, engine, new).await,
                    Err(why) => Err(Failure::refused(why).of(format_args!("{label} is not taken"))),
                };
                if answered.is_ok() {
                    open_on_others();
                }
                send(&answer, answered);
            });
        });
    if answer.is_ok() {
        array.adopt(newcomer.leaf());
    }
    answer
}
