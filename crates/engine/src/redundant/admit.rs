//! Members that come to a running array: as spares, in a former role, beside a member that they replace.

use std::rc::Rc;

use braid_array::Role;
use braid_md::Superblock;
use braid_md::create::bitmap_room_at;

use super::Redundant;
use super::control::ControlError;
use super::core::Core;
use super::roster::{Member, MemberState, NewMember};

impl Redundant {
    /// Returns the core, once the superblocks of all members name the members that are out and are two events
    /// ahead of those. Then a newcomer is the only member that announces itself, and no member that is out is
    /// as fresh as the next superblocks.
    pub(super) async fn left_behind(&self) -> Result<&Rc<Core>, ControlError> {
        let core = self.writable()?;
        let others = Rc::clone(core);
        let behind = core.background.see_through(async move { others.leave_behind().await });
        behind.await.map_err(|_| ControlError::Stopped)?;
        Ok(core)
    }

    /// Adds a member: as a spare, which takes over a vacant role; or, with a role and `by_bitmap`, in its old
    /// role, to be brought up to date by the bitmap.
    ///
    /// # Errors
    /// The device is a member already, is too small, or its role is taken.
    pub async fn add(&self, new: NewMember) -> Result<(), ControlError> {
        let core = self.left_behind().await?;
        let member = core.newcomer(new)?;
        core.roster.admit(Rc::clone(&member));
        if member.is_written() {
            core.welcome();
        }
        core.note(format!("{} was added", member.label));
        core.reconsider();
        core.recorded(true).await
    }

    /// Checks [`Redundant::add`].
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_add(&self, new: &NewMember) -> Result<(), ControlError> {
        self.writable()?.check_newcomer(new)
    }

    /// Checks [`Redundant::replace`].
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_replace(&self, label: &str, new: &NewMember) -> Result<(), ControlError> {
        let core = self.writable()?;
        core.role_to_replace(label)?;
        core.check_newcomer(new)
    }

    /// Fills `new` beside the member `label`, and then replaces that member.
    ///
    /// # Errors
    /// As [`Redundant::add`]. Also `label` must be in sync and have no replacement yet.
    pub async fn replace(&self, label: &str, new: NewMember) -> Result<(), ControlError> {
        let core = self.left_behind().await?;
        let role = core.role_to_replace(label)?;
        let member = core.newcomer(new)?;
        core.roster.stand_in(&member, role);
        core.welcome();
        core.note(format!("{} is to replace {label}", member.label));
        core.reconsider();
        core.recorded(true).await
    }
}

impl Core {
    /// Returns the role of the member `label`, which is in sync and has no replacement.
    fn role_to_replace(&self, label: &str) -> Result<Role, ControlError> {
        let old = self.named(label)?;
        let refuse = |why| Err(ControlError::NoReplacement { label: label.to_owned(), why });
        let Some(role) = old.role().filter(|_| old.is_in_sync()) else {
            return refuse("it is not in sync");
        };
        match self.roster.slots()[role].replacement().is_some() {
            true => refuse("it is being replaced already"),
            false => Ok(role),
        }
    }

    /// Returns a new member that passed the check.
    fn newcomer(&self, new: NewMember) -> Result<Rc<Member>, ControlError> {
        self.check_newcomer(&new)?;
        let by_bitmap = new.by_bitmap && self.has_seen_what_is_cleared(&new);
        Ok(Rc::new(Member::new(NewMember { by_bitmap, ..new })))
    }

    /// Checks a new member.
    fn check_newcomer(&self, new: &NewMember) -> Result<(), ControlError> {
        let label = new.label.clone();
        let members = self.roster.members();
        if members.iter().any(|member| member.label == label || member.number == new.number) {
            return Err(ControlError::Twice { label });
        }
        let refuse = |why: String| Err(ControlError::Unsuitable(format!("{label}: {why}")));
        let (theirs, ours) = (new.dev.limits(), &self.limits);
        if theirs.logical_block > ours.logical_block {
            return refuse(format!(
                "its blocks of {} bytes are larger than the array's of {}",
                theirs.logical_block, ours.logical_block
            ));
        }
        if theirs.read_only {
            return refuse("it cannot be written".to_owned());
        }
        if !matches!(
            (new.role, new.state),
            (None, MemberState::Spare) | (Some(_), MemberState::Recovering(_))
        ) {
            return refuse("it must come as a spare, or with a role and to be filled".to_owned());
        }
        let needed = self.layout.borrow().member_size();
        let size = new.superblock.as_ref().map_or(new.dev.limits().size, |one| {
            one.data_size.min(new.dev.limits().size.saturating_sub(new.data_offset))
        });
        if size < needed {
            return Err(ControlError::TooSmall { label, has: size, needed });
        }
        let own = new.superblock.as_ref();
        if own.is_some_and(|own| !self.has_room_for_bitmap(own)) {
            return refuse("it has no room where the array's bitmap lies".to_owned());
        }
        if let Some(role) = new.role {
            let slots = self.roster.slots();
            if slots.get(role).is_none_or(|slot| slot.primary.is_some()) {
                return refuse(format!("role {role} is taken"));
            }
        }
        Ok(())
    }

    /// Returns true if a member with the superblock `own` has room for the array's bitmap at the common offset.
    fn has_room_for_bitmap(&self, own: &Superblock) -> bool {
        let offset = self.publisher.array.borrow().as_ref().and_then(|array| array.bitmap_offset);
        let (Some(offset), Some(bitmap)) = (offset, self.lane.bitmap()) else { return true };
        bitmap_room_at(own, offset) >= bitmap.byte_len()
    }

    /// Returns true if all chunks that `new` may lack are still set in the bitmap.
    fn has_seen_what_is_cleared(&self, new: &NewMember) -> bool {
        let bitmap = self.lane.bitmap();
        let (Some(bitmap), Some(superblock)) = (bitmap, &new.superblock) else { return false };
        superblock.events >= bitmap.header.events_cleared
    }
}
