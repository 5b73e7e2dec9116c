//! Copies of the superblocks, kept while the volume is up: a thread of its own.
//!
//! ```text
//!   every second ──▶ members and their roles  ──▶ the same as at the last copy: nothing
//!                                              └▶ else: superblocks read from the members ──▶ a new version
//! ```
//!
//! Invariants: nothing waits for a copy, and what cannot be written is a warning; a version is kept once the
//! superblocks say what the array says of its members; nothing is written to the volume itself.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use braid_md::Role;
use braid_uring::Remote;

use super::arrays;
use super::media::Media;
use super::own::Own;
use super::spec::Spec;
use super::watcher::PERIOD;
use crate::control::{ArrayMember, ArrayStatus};
use crate::metadata::{Copies, Kept};

/// After so many looks one also sees whether a copy is there: its folder may have come later, or was full.
const AGAIN: u64 = 60;
/// So often superblocks that do not say what the array says are read again.
const TRIES: u32 = 30;
/// So long the end of the volume waits for the last copy.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps copies of the superblocks of one volume.
pub(super) struct Keeper {
    /// None where none are kept.
    copies: Option<Copies>,
    own: Own,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The state of each array, by its identifier.
    seen: BTreeMap<String, Seen>,
    looks: u64,
    /// Why the last version is not kept.
    trouble: Option<String>,
}

#[derive(Default)]
struct Seen {
    members: String,
    tries: u32,
    paths: Vec<PathBuf>,
}

impl Keeper {
    /// Starts to keep copies, if the volume has superblocks and may write them.
    ///
    /// # Errors
    /// No thread is to be had.
    pub(super) fn start(
        spec: &Spec,
        media: &Arc<Media>,
        remote: &Remote,
    ) -> io::Result<Arc<Keeper>> {
        let is_needed = !spec.read_only && !media.md_arrays().is_empty();
        let copies = spec.superblocks.clone().filter(|_| is_needed).map(Copies::new);
        if let Some(copies) = &copies {
            // If it cannot be made, that is told with the first copy.
            let _ = copies.make_folder();
        }
        let keeper = Arc::new(Keeper { copies, own: Own::new(spec), state: Mutex::default() });
        if is_needed {
            let (keeper, media) = (Arc::downgrade(&keeper), Arc::downgrade(media));
            let remote = remote.clone();
            let work = move || {
                while let (Some(keeper), Some(media)) = (keeper.upgrade(), media.upgrade()) {
                    keeper.look(&media, &remote);
                    drop((keeper, media));
                    std::thread::sleep(PERIOD);
                }
            };
            std::thread::Builder::new().name("keeper".to_owned()).spawn(work)?;
        }
        Ok(keeper)
    }

    /// The warning about copies that are not kept, if there is one.
    pub(super) fn says(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks once, and keeps a version of each array whose members are not those of the last look.
    fn look(&self, media: &Media, remote: &Remote) {
        let Some(copies) = &self.copies else { return };
        let (is_again, is_trouble) = {
            let mut state = self.state();
            state.looks += 1;
            (state.looks.is_multiple_of(AGAIN), state.trouble.is_some())
        };
        for array in arrays::all(media, Some(remote), false) {
            let Some(uuid) = array.uuid.clone() else { continue };
            let members = members_of(&array);
            let (mut seen, why) = match self.state().seen.remove(&uuid) {
                Some(seen) => (seen, "change"),
                None => (Seen::default(), "up"),
            };
            let is_missing = || is_again && (is_trouble || !copies.has(&uuid));
            if seen.members != members || is_missing() {
                seen.paths = paths_of(&array);
                seen.tries += 1;
                match self.keep(copies, why, &array, &seen) {
                    Ok(false) if seen.tries < TRIES => {}
                    kept => {
                        (seen.members, seen.tries) = (members, 0);
                        self.say(kept.err());
                    }
                }
            }
            self.state().seen.insert(uuid, seen);
        }
    }

    /// Keeps a version of an array; false if its superblocks do not say yet what it says itself.
    fn keep(
        &self,
        copies: &Copies,
        why: &str,
        array: &ArrayStatus,
        seen: &Seen,
    ) -> Result<bool, String> {
        self.check_place(copies)?;
        let all = Kept::read(why, &seen.paths).map_err(|failure| failure.text())?;
        let Some(kept) = all.iter().find(|one| Some(&one.array) == array.uuid.as_ref()) else {
            return Ok(false);
        };
        if seen.tries < TRIES && !agrees(kept, array) {
            return Ok(false);
        }
        copies.keep(kept).map(|_| true).map_err(|error| copies.not_kept(&error).text())
    }

    /// A copy on the volume itself is of no use when the volume cannot be started. And if the
    /// folder of the state was removed, with its parent, no volume puts it back.
    fn check_place(&self, copies: &Copies) -> Result<(), String> {
        if let Some(gone) = copies.folder().ancestors().nth(2).filter(|parent| !parent.exists()) {
            return Err(format!(
                "no copies of the superblocks are kept: {} is gone",
                gone.display()
            ));
        }
        let there = copies.folder().ancestors().find(|folder| folder.exists());
        match there.map(|folder| self.own.check(folder)) {
            Some(Err(error)) => Err(format!("no copies of the superblocks are kept: {error}")),
            _ => Ok(()),
        }
    }

    fn say(&self, trouble: Option<String>) {
        let before = std::mem::replace(&mut self.state().trouble, trouble.clone());
        if let Some(trouble) = trouble.filter(|one| before.as_ref() != Some(one)) {
            eprintln!("{trouble}");
        }
    }

    /// Keeps a last version, when nothing is written any more.
    pub(super) fn end(self: &Arc<Keeper>) {
        if self.copies.is_none() {
            return;
        }
        let (done, wait) = channel();
        let keeper = Arc::clone(self);
        let work = move || {
            let all: Vec<Vec<PathBuf>> =
                keeper.state().seen.values().map(|seen| seen.paths.clone()).collect();
            if let Some(copies) =
                keeper.copies.as_ref().filter(|one| keeper.check_place(one).is_ok())
            {
                all.iter().for_each(|paths| copies.keep_or_warn("down", paths));
            }
            // The receiver may have given up.
            let _ = done.send(());
        };
        if std::thread::Builder::new().name("last copy".to_owned()).spawn(work).is_ok() {
            let _ = wait.recv_timeout(PATIENCE);
        }
    }
}

/// The members and their roles, as a text that changes with the membership alone.
fn members_of(array: &ArrayStatus) -> String {
    let member = |one: &ArrayMember| {
        let ArrayMember { member, number, role, state, replacement, .. } = one;
        format!("{member} {number} {role:?} {state} {replacement} {}", one.bad_ranges > 0)
    };
    let members: Vec<String> = array.members.iter().map(member).collect();
    let ArrayStatus { raid_disks, size_bytes, bitmap_chunk_bytes, .. } = array;
    format!("{raid_disks} {size_bytes} {bitmap_chunk_bytes:?} {}", members.join(", "))
}

fn paths_of(array: &ArrayStatus) -> Vec<PathBuf> {
    let works = array.members.iter().filter(|one| one.state != "faulty");
    works.map(|one| PathBuf::from(&one.member)).collect()
}

/// Returns true if all superblocks agree on the members in sync, with the same count of events.
fn agrees(kept: &Kept, array: &ArrayStatus) -> bool {
    let carried: Result<Vec<_>, _> = kept.members.iter().map(|one| one.carried()).collect();
    let Ok(carried) = carried else { return false };
    let says = |one: &ArrayMember, role: Option<&Role>| match one.state.as_str() {
        "faulty" => !matches!(role, Some(Role::Active(_))),
        "in_sync" => one.role.is_none_or(|own| role == Some(&Role::Active(own))),
        _ => true,
    };
    carried.len() == paths_of(array).len()
        && carried.iter().all(|one| {
            let superblock = &one.superblock;
            superblock.events == carried[0].superblock.events
                && array.members.iter().all(|of| says(of, superblock.roles.get(of.number as usize)))
        })
}
