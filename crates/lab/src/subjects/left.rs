//! What an earlier run in this results folder left because it was killed: taken away before the
//! next one begins.
//!
//! Invariants:
//!
//! * the lock of the results folder is held, so whatever is noted or marked there belongs to a run
//!   that has ended;
//! * in the reverse order of its coming, as in a run that ends in order, and superblocks last, when no
//!   volume is there any more that could have their members open: one that was just coming up cannot
//!   be asked to go, and is ended with the rest of the processes;
//! * superblocks are removed only from members that may be overwritten this time too: somebody may
//!   have given them another use meanwhile. A relative path may mean another member by now, so it
//!   is told and not touched;
//! * what does not go is told, stays noted, and does not stop this run, whose names are others.

use std::path::Path;

use super::Subjects;
use super::hand::Hand;
use super::held::Held;
use super::things::Thing;
use crate::error::LabError;
use crate::world::World;

/// What the messages call it.
const EARLIER: &str = "an earlier run";

impl Subjects<'_> {
    /// Takes away what was left, and marks as this folder's what is started from now on. Answers
    /// what the user must know.
    ///
    /// # Errors
    ///
    /// When the system cannot be asked what there is.
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
        // The tools first, which keep the rest busy.
        tell(world.end_strays(true).map(|count| processes = count));
        let mut left = self.find_what_was_left(world)?;
        let things = left.held.len() + left.superblocks.len();
        let mut hand = Hand { subject: EARLIER, braid: &self.braid, world };
        tell(left.held.release(&mut hand, true));
        tell(hand.world.end_strays(false).map(|count| served = count));
        // What they had attached may be there without them.
        for volume in left.volumes.iter().filter(|_| served > 0) {
            tell(volume.release(&mut hand, true));
        }
        tell(left.superblocks.release(&mut hand, true));
        processes += served;
        if processes + things > 0 {
            told.insert(
                0,
                format!(
                    "an earlier run was killed here: processes ({processes}) and things ({things}: \
                     mounts, devices, volumes, folders) that it left were taken away"
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

    /// What is still there, in groups that go one after the other.
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

/// What an earlier run left.
struct Left {
    /// What goes in the reverse order of its coming.
    held: Held,
    /// The volumes among it, once more.
    volumes: Vec<Thing>,
    superblocks: Held,
    /// Members that are not touched.
    kept: Vec<String>,
}
