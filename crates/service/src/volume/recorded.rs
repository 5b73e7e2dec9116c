//! The record of a volume that is up: it follows the members of the volume's arrays.
//!
//! ```text
//!   add, replace   NAME.toml lists the newcomer ──▶ superblocks name it ──▶ NAME.toml has its identity ──▶ answer
//!   remove         superblocks let go of it     ──▶ NAME.toml forgets it ──▶ answer
//! ```
//!
//! Invariant: whenever the process is killed, the record lists every member that superblocks count on. It may list one
//! more, which the next start passes over.
//!
//! Deliberately absent: where a member that came back lies now. A start finds it by its identity.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use braid_stack::{ByteSize, Node, Stack};

use super::md::MdArray;
use super::spec::Spec;
use crate::control::{CacheOrder, apply};
use crate::failure::Failure;
use crate::membership;
use crate::record::Record;

/// The record of the volume, if it has one.
pub(super) struct Recorded {
    file: Option<PathBuf>,
    name: String,
    /// Held by the order that changes the record, from its first look to its last.
    turn: Mutex<()>,
}

/// A change of the record that can be taken back.
#[must_use]
pub(super) struct Listed<'a> {
    recorded: &'a Recorded,
    before: Option<Record>,
    path: &'a Path,
}

impl Recorded {
    pub(super) fn new(spec: &Spec) -> Recorded {
        Recorded { file: spec.record.clone(), name: spec.name.clone(), turn: Mutex::default() }
    }

    /// Waits until no other order changes the record, and keeps others from it.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same without waiting; `None` while another order changes the record.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Lists `path` as a member of `array`, before anything on it is changed.
    ///
    /// # Errors
    /// The record cannot be read or written: nothing is to be changed then.
    pub(super) fn list<'a>(
        &'a self,
        array: &MdArray,
        path: &'a Path,
    ) -> Result<Listed<'a>, Failure> {
        let labels: Vec<String> = array.leaves().iter().map(|leaf| leaf.label.clone()).collect();
        let before = self.change(|record| {
            let levels = md_levels(&record.stack);
            let has = |level: &Vec<PathBuf>| {
                level.iter().any(|member| labels.contains(&member.display().to_string()))
            };
            let of_array = levels.iter().position(has);
            let Some(level) = of_array.or((levels.len() == 1).then_some(0)) else { return };
            edit_md(&mut record.stack, &mut 0, Some((level, path)), None);
            membership::accept(record, path);
        });
        Ok(Listed { recorded: self, before: before?, path })
    }

    /// Forgets a member that the array let go of.
    ///
    /// # Errors
    /// The record cannot be read or written.
    pub(super) fn forget(&self, path: &Path) -> Result<(), Failure> {
        let forget = |record: &mut Record| {
            edit_md(&mut record.stack, &mut 0, None, Some(path));
            membership::forget_removed(record);
        };
        self.change(forget).map(drop)
    }

    /// Records the size of the RAM disk that the volume is.
    ///
    /// # Errors
    /// The record cannot be read or written.
    pub(super) fn resize(&self, bytes: u64) -> Result<(), Failure> {
        let resize = |record: &mut Record| {
            if let Node::Ram(ram) = &mut record.stack.node {
                ram.size = ByteSize(bytes);
            }
        };
        self.change(resize).map(drop)
    }

    /// Records the stack that an order about caches leads to; answers what the record was, if there is one.
    ///
    /// # Errors
    /// The record cannot be read or written, or the order does not suit it.
    pub(super) fn cache(&self, order: &CacheOrder) -> Result<Option<Record>, Failure> {
        let mut suited = Ok(());
        let before = self.change(|record| {
            match apply(order, &record.stack, &self.name) {
                Ok(stack) => record.stack = stack,
                Err(failure) => return suited = Err(failure),
            }
            // A log is a member from then on.
            let known = |path: &&Path| record.members.iter().any(|one| one.path == **path);
            let come = record.stack.member_paths().into_iter().filter(|path| !known(path));
            for path in come.map(Path::to_owned).collect::<Vec<_>>() {
                membership::accept(record, &path);
            }
        })?;
        suited.map(|()| before)
    }

    /// Makes the record what it was.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn restore(&self, before: Option<Record>) -> Result<(), Failure> {
        self.change(|record| *record = before.unwrap_or(record.clone())).map(drop)
    }

    /// Changes the record; answers what it was, if there is one.
    fn change(&self, f: impl FnOnce(&mut Record)) -> Result<Option<Record>, Failure> {
        // One that its user has removed while the volume is up stays away.
        let Some(file) = self.file.as_ref().filter(|file| file.exists()) else { return Ok(None) };
        let before = Record::read(file)?;
        let mut record = before.clone();
        f(&mut record);
        if record != before {
            record.write(file)?;
        }
        Ok(Some(before))
    }
}

impl Listed<'_> {
    /// The member was taken in: what its superblock says of it is recorded, too.
    ///
    /// # Errors
    /// The record cannot be read or written.
    pub(super) fn keep(self) -> Result<(), Failure> {
        self.recorded.change(|record| membership::accept(record, self.path)).map(drop)
    }

    /// The member was not taken in.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(super) fn take_back(self) -> Result<(), Failure> {
        self.recorded.restore(self.before)
    }
}

/// The members of each `md(…)` level, from left to right.
fn md_levels(stack: &Stack) -> Vec<Vec<PathBuf>> {
    if let Node::Md(_) = &stack.node {
        return vec![stack.members().iter().filter_map(Stack::member_name).collect()];
    }
    stack.members().iter().flat_map(md_levels).collect()
}

/// Changes the members of `md(…)` levels: `come` has the number of its level, `go` is in one of them. `level` is the
/// number of the next one.
fn edit_md(stack: &mut Stack, level: &mut usize, come: Option<(usize, &Path)>, go: Option<&Path>) {
    let Node::Md(md) = &mut stack.node else {
        for member in stack.members_mut() {
            edit_md(member, level, come, go);
        }
        return;
    };
    let is = |member: &Stack, path: &Path| member.member_name().as_deref() == Some(path);
    md.members.retain(|member| go.is_none_or(|path| !is(member, path)));
    if let Some((_, path)) = come.filter(|(number, _)| number == level)
        && !md.members.iter().any(|member| is(member, path))
    {
        md.members.push(Stack::called(&path.to_string_lossy()));
    }
    *level += 1;
}
