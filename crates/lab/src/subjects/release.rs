//! How everything that is held goes away: in reverse order, each as its provider says.
//!
//! Invariants:
//!
//! * between trials nothing is taken by force: what does not go stays noted and is an error;
//! * at the very end everything is tried, and what is busy is taken by force and named.

use super::hand::Hand;
use super::held::{Held, Kept};
use super::journal::Thing;
use super::{filesystem, kernel, loops, readahead, stack, zram};
use crate::error::LabError;
use crate::world::World;

impl Held {
    /// Lets everything go; `is_the_end` means by force where it must be.
    ///
    /// # Errors
    ///
    /// The first thing that did not go. Unless it is the end, it and what came before it stay.
    pub(super) fn release(
        &mut self,
        subject: &str,
        is_the_end: bool,
        world: &mut dyn World,
    ) -> Result<(), LabError> {
        let mut first = Ok(());
        while let Some(mut kept) = self.things.pop() {
            let mut hand = Hand { subject, world: &mut *world };
            let gone = match &mut kept {
                Kept::Thing(thing, _) => release(thing, &mut hand, is_the_end),
                Kept::Server(server) => stack::release_server(server, &mut hand),
                Kept::Claim(_) => Ok(()),
            };
            match (gone, kept) {
                (Ok(()), Kept::Thing(_, key)) => self.strike(key),
                (Ok(()), _) => {}
                // It stays noted: the next run here tries again.
                (Err(error), _) if is_the_end => first = first.and(Err(error)),
                (Err(error), kept) => {
                    // A server that has ended is gone, however it ended.
                    if !matches!(kept, Kept::Server(_)) {
                        self.things.push(kept);
                    }
                    return Err(error);
                }
            }
        }
        first
    }
}

fn release(thing: &Thing, hand: &mut Hand<'_>, force: bool) -> Result<(), LabError> {
    match thing {
        Thing::Volume { braid, name } => stack::release_volume(hand, braid, name, force),
        Thing::Superblocks { braid: Some(braid), members } => {
            stack::release_superblocks(hand, braid, members)
        }
        Thing::Superblocks { braid: None, members } => kernel::release_superblocks(hand, members),
        Thing::Loop { device, .. } => loops::release(hand, device),
        Thing::Folder { path, with_content } => hand.world.remove_folder(path, *with_content),
        Thing::Mount { folder } => filesystem::release(hand, folder, force),
        Thing::Readahead { device, sectors } => readahead::release(hand, device, sectors),
        Thing::KernelArray { device } => kernel::release(hand, device),
        Thing::Zram { number } => zram::release(hand, *number),
    }
}
