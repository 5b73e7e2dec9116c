//! Removing the objects of a killed earlier run in this results folder, before the next one begins.
//!
//! Invariants:
//!
//! * the lock of the results folder is held, so all recorded or marked objects there belong to a run that has
//!   ended;
//! * objects are removed in reverse order of creation, as in a run that ends in order, and superblocks last,
//!   when no volume is left that could have their members open. A volume that was coming up cannot be asked to
//!   end, and is ended with the other processes;
//! * superblocks are removed only from members that this run may overwrite, too: they may have another use by
//!   now. A relative path may mean another member by now, so it is reported and not touched;
//! * an object that is not removed is reported, stays recorded, and does not stop this run, which uses other
//!   names.

use std::path::Path;

use super::Subjects;
use super::hand::Hand;
use super::held::Held;
use super::things::Thing;
use crate::error::LabError;
use crate::world::World;

/// The subject's name in messages.
const EARLIER: &str = "an earlier run";

impl Subjects<'_> {
    /// Removes the remaining objects, and marks later processes as this folder's. Returns messages for the
    /// user.
    ///
    /// # Errors
    ///
    /// The system cannot be asked for its objects.
    pub(crate) fn clear_what_was_left(
        &mut self,
        world: &mut dyn World,
    ) -> Result<Vec<String>, LabError> {
        world.mark_processes(&self.options.results_dir)?;
        let mut told = Vec::new();
        let mut tell = |result: Result<(), LabError>| {
            told.extend(result.err().map(|error| format!("warning: {error}")));
        };
        let [mut processes, mut served] = [0, 0];
        // The tools first, which keep the other objects busy.
        tell(world.end_strays(true).map(|count| processes = count));
        let mut left = self.find_what_was_left(world)?;
        let things = left.held.len() + left.superblocks.len();
        let mut hand = Hand { subject: EARLIER, braid: &self.braid, world };
        tell(left.held.release(&mut hand, true));
        tell(hand.world.end_strays(false).map(|count| served = count));
        // Objects that the processes had attached may exist without them.
        for volume in left.volumes.iter().filter(|_| served > 0) {
            tell(volume.release(&mut hand, true));
        }
        tell(left.superblocks.release(&mut hand, true));
        processes += served;
        if processes + things > 0 {
            told.insert(
                0,
                format!(
                    "an earlier run was killed here: its remaining processes ({processes}) and objects \
                     ({things}: mounts, devices, volumes, folders) were removed"
                ),
            );
        }
        told.extend(left.kept.iter().map(|member| {
            format!(
                "an earlier run was killed here: {member} may still have its superblock; \
                 `braid wipe {member}` removes it"
            )
        }));
        Ok(told)
    }

    /// Returns the remaining objects, in groups that are removed one after the other.
    fn find_what_was_left(&self, world: &mut dyn World) -> Result<Left, LabError> {
        let held = || Held::noted_in(&self.journal);
        let mut left =
            Left { held: held(), volumes: Vec::new(), superblocks: held(), kept: Vec::new() };
        for (key, thing) in self.journal.earlier() {
            match &thing {
                Thing::Superblocks { members } => {
                    let may = |member: &&String| {
                        Path::new(member).is_absolute() && self.permit.covers(member)
                    };
                    let (members, kept): (Vec<_>, Vec<_>) = members.iter().partition(may);
                    left.kept.extend(kept.into_iter().cloned());
                    if !members.is_empty() {
                        let members = members.into_iter().cloned().collect();
                        left.superblocks.push(Thing::Superblocks { members });
                    }
                    self.journal.strike(key);
                }
                thing if !thing.is_there(world)? => self.journal.strike(key),
                _ => left.held.adopt(key),
            }
            left.volumes.extend(Some(thing).filter(|one| matches!(one, Thing::Volume { .. })));
        }
        Ok(left)
    }
}

/// Objects of an earlier run.
struct Left {
    /// Objects that are removed in reverse order of creation.
    held: Held,
    /// The volumes among them, once more.
    volumes: Vec<Thing>,
    superblocks: Held,
    /// Members that are not touched.
    kept: Vec<String>,
}
