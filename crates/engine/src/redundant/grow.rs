//! Growing the used part of each member, after the members grew.

use std::rc::Rc;

use braid_array::geometry::Raid1;
use braid_md::bitmap::Bitmap;
use braid_md::create::bitmap_room_at;
use braid_md::{SECTOR, Version};

use super::Redundant;
use super::control::ControlError;
use super::core::Core;
use super::intent::StartingBitmap;
use super::lane::Told;
use super::layout::{SyncByte, SyncSpan};
use super::roster::Member;

impl Redundant {
    /// Uses `bytes` of each member's data, or all that every member has; returns the number. The new part is
    /// synchronised. Clients see it when the volume is brought up again, because the size of a device does not
    /// change while it is up.
    ///
    /// # Errors
    /// The volume is read-only; fewer bytes than now, or more than a member has; a level where the place of
    /// data depends on the members' size; superblocks at the end of the members, which would have to move; a
    /// bitmap without room for the new chunks.
    pub async fn set_member_size(&self, bytes: Option<u64>) -> Result<u64, ControlError> {
        let unsuitable = |why: String| Err(ControlError::Unsuitable(why));
        let (now, wanted) = self.check_member_size(bytes)?;
        let core = self.writable()?;
        let members = core.layout.borrow().members();
        if wanted == now {
            return Ok(now);
        }
        let grown = Raid1::new(wanted, members)
            .map_err(|error| ControlError::Unsuitable(error.to_string()))?;
        // All superblocks record the room before any records its use: a crash may leave a member behind whose
        // superblock lacks the latter.
        for member in core.roster.written() {
            member.data_size.set(core.room_of(&member));
        }
        core.recorded(true).await?;
        let locked = core.lane.ranges().lock(SyncSpan::first(now)).await;
        let turn = core.settled_turn().await?;
        if wanted > core.room() || core.layout.borrow().member_size() != now {
            return unsuitable("its members changed meanwhile".to_owned());
        }
        // Only now: earlier writes in flight may have set bits.
        let bitmap = core.grown_bitmap(now, wanted)?;
        self.inner.reshape(grown);
        core.agreement.grow_from(SyncByte::new(now));
        if let Some(bitmap) = bitmap {
            let start = StartingBitmap { bitmap, is_on_members: false };
            core.lane.tell(Told::Bitmap(Some(Box::new(start))));
        }
        if let Some(array) = &mut *core.publisher.array.borrow_mut() {
            array.grow(wanted);
        }
        core.publisher.require();
        drop((turn, locked));
        core.note(format!("{wanted} bytes of each member are used"));
        core.reconsider();
        core.recorded(true).await?;
        Ok(wanted)
    }

    /// Checks [`Redundant::set_member_size`]. Returns the bytes that are used of each member, now and then.
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_member_size(&self, bytes: Option<u64>) -> Result<(u64, u64), ControlError> {
        let core = self.writable()?;
        let unsuitable = |why: String| Err(ControlError::Unsuitable(why));
        if !core.is_raid1() {
            return unsuitable("only raid1 can use more of its members while it works".to_owned());
        }
        let now = core.layout.borrow().member_size();
        if let Some(version) = core.version().filter(|version| version.is_at_end()) {
            return unsuitable(format!(
                "superblocks of version {version} lie at the end of the members and would have to \
                 move"
            ));
        }
        let most = core.room();
        let wanted = bytes.unwrap_or(most) / 4096 * 4096;
        if wanted > most {
            return unsuitable(format!("{wanted} bytes are more than the {most} of a member"));
        }
        if wanted < now {
            return unsuitable(format!("{wanted} bytes are fewer than the {now} in use"));
        }
        if wanted > now {
            core.grown_bitmap(now, wanted)?;
        }
        Ok((now, wanted))
    }
}

impl Core {
    fn version(&self) -> Option<Version> {
        self.publisher.array.borrow().as_ref().map(|array| array.version)
    }

    /// Returns the bytes of data for which every written member has room.
    fn room(&self) -> u64 {
        let members = self.roster.written();
        members.iter().map(|member| self.room_of(member)).min().unwrap_or(0)
    }

    fn room_of(&self, member: &Member) -> u64 {
        member.dev.limits().size.saturating_sub(member.data_offset) / SECTOR * SECTOR
    }

    /// Returns the bitmap of the larger array, in which all new chunks are set.
    fn grown_bitmap(&self, now: u64, wanted: u64) -> Result<Option<Bitmap>, ControlError> {
        let Some(old) = self.lane.bitmap() else { return Ok(None) };
        let mut header = old.header.clone();
        header.sync_size = wanted;
        let cannot = |why: String| ControlError::Unsuitable(format!("the bitmap: {why}"));
        let mut grown =
            Bitmap::new(header, self.bitmap_room()).map_err(|error| cannot(error.to_string()))?;
        let first_new = now / old.header.chunk_size;
        let is_set = |chunk: &u64| *chunk >= first_new || old.is_set(*chunk);
        for chunk in (0..grown.chunk_count()).filter(is_set) {
            grown.set(chunk);
        }
        Ok(Some(grown))
    }

    /// Returns the bytes that every member has for its bitmap.
    fn bitmap_room(&self) -> u64 {
        let offset = self.publisher.array.borrow().as_ref().and_then(|array| array.bitmap_offset);
        let room = |member: Rc<Member>| {
            Some(bitmap_room_at(member.superblock.borrow().as_ref()?, offset?))
        };
        self.roster.written().into_iter().filter_map(room).min().unwrap_or(0)
    }
}
