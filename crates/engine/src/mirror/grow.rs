//! Using more of each member, after the members grew.

use std::rc::Rc;

use braid_array::geometry::Raid1;
use braid_block::Span;
use braid_md::Resync;

use super::control::ControlError;
use super::{Inner, Mirror};

impl Mirror {
    /// Uses `bytes` of each member's data, or all that all of them have; answers how many. What
    /// is new is synchronised; clients see it when the volume is brought up again, because the
    /// size of a device does not change while it is there.
    ///
    /// # Errors
    /// The volume is read-only; fewer bytes than now, or more than a member has; a level where
    /// the place of data depends on the members' size; a bitmap, whose bits would change their
    /// meaning.
    pub async fn set_member_size(&self, bytes: Option<u64>) -> Result<u64, ControlError> {
        let inner = self.writable()?;
        let unsuitable = |why: String| Err(ControlError::Unsuitable(why));
        let geometry = inner.geometry();
        if geometry.copies() != geometry.members() {
            return unsuitable("only raid1 can use more of its members while it works".to_owned());
        }
        if inner.intent.borrow().is_some() {
            return unsuitable(
                "the array has a bitmap, which covers the size that it has now".to_owned(),
            );
        }
        let now = geometry.member_size();
        let most = inner.room();
        let wanted = bytes.unwrap_or(most) / 4096 * 4096;
        if wanted > most {
            return unsuitable(format!("{wanted} bytes are more than the {most} of a member"));
        }
        if wanted < now {
            return unsuitable(format!("{wanted} bytes are fewer than the {now} in use"));
        }
        if wanted == now {
            return Ok(now);
        }
        let grown = Raid1::new(wanted, geometry.members())
            .map_err(|error| ControlError::Unsuitable(error.to_string()))?;
        let locked = inner.ranges.lock(Span::new(0, now)).await;
        inner.geometry.replace(Rc::new(grown));
        if inner.resync.get() == Resync::Clean {
            inner.resync.set(Resync::From(now));
        }
        if let Some(array) = &mut *inner.publisher.array.borrow_mut() {
            array.component_size = wanted;
        }
        drop(locked);
        inner.note(format!("{wanted} bytes of each member are used"));
        inner.reconsider();
        inner.publish().await;
        Ok(wanted)
    }
}

impl Inner {
    /// The bytes of data that every member that takes part has.
    fn room(&self) -> u64 {
        let members = self.written_members();
        let room = members.iter().map(|member| {
            let size = member.dev.limits().size.saturating_sub(member.data_offset);
            let end = member.superblock.borrow().as_ref().map_or(u64::MAX, |one| one.data_size);
            size.min(end)
        });
        room.min().unwrap_or(0)
    }
}
