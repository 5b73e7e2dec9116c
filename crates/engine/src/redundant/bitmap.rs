//! Adding, removing and rechunking the write-intent bitmap of a running array.
//!
//! ```text
//!   adding    no write under way ──▶ flush ──▶ its pages ──▶ superblocks name it ──▶ writes go on, with bits
//!   removing  no write under way ──▶ superblocks name none ──▶ writes go on, without bits
//!   other chunks: remove, then add, without a write between; the new bits cover the old ones
//! ```
//!
//! Invariants
//! * Superblocks name a bitmap only when all written members have it, complete. Writes without a bit are
//!   durable on these members, and a member that cannot flush is two events behind ([`Durable`]), before the
//!   pages are stored; the pages are stored before the superblocks ([`Core::publish`]).
//! * Writes set bits until no superblock that may be believed names the bitmap ([`Published`]).
//! * Chunks do not change in place: a crash would leave a header that does not fit the bits. Between the old
//!   and the new bitmap there is none, and a crash requires a full resync.
//! * As in md, the array is at rest: no member is filled or compared, and none needs it.
//!
//! Deliberately absent: the place of the bitmap ([`braid_md::create::bitmap_place`]).
//!
//! Source: Linux `drivers/md/md-bitmap.c` (`location_store`, `md_bitmap_load`), mdadm's `Grow_addbitmap`.

use std::rc::Rc;

use braid_md::bitmap::{Bitmap, BitmapHeader, MOST_WRITE_BEHIND};
use braid_md::create::{BitmapPlace, NoPlace, bitmap_place};
use braid_md::{Superblock, Uuid};

use super::Redundant;
use super::control::ControlError;
use super::core::Core;
use super::flush::Durable;
use super::intent::StartingBitmap;
use super::keeping::Inner;
use super::lane::Told;
use super::layout::{Layout, SyncSpan};
use super::publish::Published;
use super::ranges::Locked;
use crate::canary::Canary;

/// Seconds after which bits are cleared: md's default.
const DAEMON_SLEEP: u32 = 5;

/// The parameters of a write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapKind {
    /// Bytes for which a bit stands.
    pub chunk_size: u64,
    /// Writes that write-mostly members may have later than others.
    pub write_behind: u32,
}

impl Redundant {
    /// Gives the array a write-intent bitmap with chunks of so many bytes (a power of two from 4096 on), or of
    /// 64 MiB, or larger if there is not enough room; with `behind`, write-mostly members may have so many writes later
    /// than others ([`super::behind`]). An existing bitmap keeps what is not given. Returns what the array has.
    ///
    /// # Errors
    /// The volume is read-only; an array without superblocks, or with a log; no room on a member;
    /// members are being filled or compared; write-behind of a level that is not raid1, or of more writes than md has.
    pub async fn add_bitmap(
        &self,
        chunk: Option<u64>,
        behind: Option<u32>,
    ) -> Result<BitmapKind, ControlError> {
        if let Some(has) = self.check_add_bitmap(chunk, behind)? {
            return Ok(has);
        }
        let core = self.left_behind().await?;
        let has = || core.lane.bitmap().is_some();
        let locked = self.inner.lock_at_rest().await?;
        if has() && !core.gate.is_degraded() {
            // Twice, as at the end: bits that are not needed would be resynchronised.
            for _ in 0..2 {
                core.sweep_bits().await.map_err(|_| ControlError::Stopped)?;
            }
        }
        let old = core.lane.bitmap().map(|bitmap| bitmap.clone());
        let place =
            core.place_for_bitmap(chunk.or(old.as_ref().map(|old| old.header.chunk_size)))?;
        if old.is_some() {
            core.leave_bitmap().await?;
        }
        let behind = behind.or(old.as_ref().map(|old| old.header.write_behind)).unwrap_or(0);
        let kind = BitmapKind { chunk_size: place.chunk, write_behind: behind };
        core.take_up_bitmap(place, behind, old.as_ref()).await?;
        drop(locked);
        core.note(format!("a write-intent bitmap, a bit for {} bytes", place.chunk));
        core.work.tell();
        Ok(kind)
    }

    /// Checks [`Redundant::add_bitmap`]. Returns what the array has if that is asked for.
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_add_bitmap(
        &self,
        chunk: Option<u64>,
        behind: Option<u32>,
    ) -> Result<Option<BitmapKind>, ControlError> {
        let core = self.writable()?;
        core.check_behind(behind.unwrap_or(0))?;
        let has = core.lane.bitmap().map(|bitmap| BitmapKind {
            chunk_size: bitmap.header.chunk_size,
            write_behind: bitmap.header.write_behind,
        });
        let is_asked_for = |has: &BitmapKind| {
            chunk.is_none_or(|chunk| chunk == has.chunk_size)
                && behind.is_none_or(|behind| behind == has.write_behind)
        };
        if let Some(has) = has.filter(is_asked_for) {
            return Ok(Some(has));
        }
        self.inner.check_suits_bitmap()?;
        core.place_for_bitmap(chunk.or(has.map(|has| has.chunk_size))).map(|_| None)
    }

    /// Removes the array's write-intent bitmap. Returns true if there was one.
    ///
    /// # Errors
    /// The volume is read-only; members are being filled or compared.
    pub async fn remove_bitmap(&self) -> Result<bool, ControlError> {
        if !self.check_remove_bitmap()? {
            return Ok(false);
        }
        let core = self.left_behind().await?;
        let locked = self.inner.lock_at_rest().await?;
        core.leave_bitmap().await?;
        drop(locked);
        core.note("the write-intent bitmap was removed".to_owned());
        Ok(true)
    }

    /// Checks [`Redundant::remove_bitmap`]. Returns true if there is a bitmap.
    ///
    /// # Errors
    /// Those of the order.
    pub fn check_remove_bitmap(&self) -> Result<bool, ControlError> {
        let has_one = self.writable()?.lane.has_bitmap();
        if has_one {
            self.inner.check_suits_bitmap()?;
        }
        Ok(has_one)
    }
}

impl Inner {
    fn check_suits_bitmap(&self) -> Result<(), ControlError> {
        let unsuitable = |why: &str| Err(ControlError::Unsuitable(why.to_owned()));
        if self.core.publisher.array.borrow().is_none() {
            return unsuitable("the array has no superblocks: nothing would remember a bitmap");
        }
        if self.keeping.log().is_some() {
            return unsuitable(
                "the array has a log, which makes good what a crash leaves: it has no bitmap beside it",
            );
        }
        self.check_at_rest()
    }

    /// Checks that no member is being filled or compared, and none needs it.
    fn check_at_rest(&self) -> Result<(), ControlError> {
        let core = &self.core;
        let running =
            core.work.status(core.clock.now()).map(|job| format!("the {} runs", job.kind));
        let due = || {
            let is_due = self.needs_resync() || !self.members_are_settled();
            is_due.then(|| "members have to be made equal first".to_owned())
        };
        match running.or_else(due) {
            None => Ok(()),
            Some(why) => Err(ControlError::Unsuitable(format!(
                "{why}: the bitmap is changed when that is over, as md has it"
            ))),
        }
    }

    /// Locks writes out of the array, which is at rest.
    async fn lock_at_rest(&self) -> Result<Locked, ControlError> {
        let core = &self.core;
        let sync_size = core.layout.borrow().sync_size();
        let locked = core.lane.ranges().lock(SyncSpan::first(sync_size)).await;
        if core.layout.borrow().sync_size() != sync_size {
            let why = "the array became larger meanwhile".to_owned();
            return Err(ControlError::Unsuitable(why));
        }
        self.check_at_rest()?;
        Ok(locked)
    }
}

impl Core {
    fn check_behind(&self, most: u32) -> Result<(), ControlError> {
        let why = match &*self.layout.borrow() {
            _ if most == 0 => return Ok(()),
            Layout::Copies(geometry) if geometry.copies() == geometry.members() => {
                if most <= MOST_WRITE_BEHIND {
                    return Ok(());
                }
                format!("write-behind of {most} writes: md has {MOST_WRITE_BEHIND} at most")
            }
            _ => "write-behind means something to raid1 only".to_owned(),
        };
        Err(ControlError::Unsuitable(why))
    }

    /// Returns the place of the bitmap on all members whose superblocks are kept up to date.
    fn place_for_bitmap(&self, chunk: Option<u64>) -> Result<BitmapPlace, ControlError> {
        let members = self.roster.members();
        let known = members.iter().filter(|member| member.is_known());
        let superblocks: Vec<Superblock> =
            known.filter_map(|member| member.superblock.borrow().clone()).collect();
        let sync_size = self.layout.borrow().sync_size();
        bitmap_place(&superblocks, sync_size, chunk)
            .map_err(|why: NoPlace| ControlError::Unsuitable(why.to_string()))
    }

    /// Removes the bitmap from the superblocks, and then from memory. No write is in flight.
    async fn leave_bitmap(self: &Rc<Self>) -> Result<(), ControlError> {
        let published = self.publish_bitmap(None).await?;
        self.forget_bitmap(published);
        Ok(())
    }

    /// Forgets the bitmap, which no superblock names any more.
    pub(super) fn forget_bitmap(&self, published: Published) {
        published.check(self.id, self.publisher.bitmap_named());
        self.lane.tell(Told::Bitmap(None));
        // Other shards are told that there are no bits, and may write again.
        self.reopen();
    }

    /// Stores a new bitmap at `place` of the members, then superblocks that name it. No write is in flight.
    async fn take_up_bitmap(
        self: &Rc<Self>,
        place: BitmapPlace,
        behind: u32,
        old: Option<&Bitmap>,
    ) -> Result<(), ControlError> {
        if Canary::BitmapNamedBeforeWritten.is_planted() {
            self.publish_bitmap(Some(place.offset)).await?;
        }
        // A member that cannot flush the writes without bits is left behind before the bitmap is named:
        // superblocks that name the bitmap would make kernels before 6.8 believe that member.
        let begun = self.flushes.begun();
        let durable = self.settle().await.map_err(|_| ControlError::Stopped)?;
        durable.check(self.id, begun);
        let bitmap = self.new_bitmap(place, behind, old, &durable)?;
        let start = StartingBitmap { bitmap, is_on_members: false };
        self.lane.tell(Told::Bitmap(Some(Box::new(start))));
        self.reopen();
        self.publish_bitmap(Some(place.offset)).await?;
        Ok(())
    }

    async fn publish_bitmap(
        self: &Rc<Self>,
        offset: Option<i64>,
    ) -> Result<Published, ControlError> {
        {
            let _turn = self.settled_turn().await?;
            if let Some(array) = &mut *self.publisher.array.borrow_mut() {
                array.set_bitmap(offset);
            }
            if offset.is_some() || !Canary::BitmapLeftBeforeRecorded.is_planted() {
                self.publisher.require();
            }
            self.publisher.name_bitmap();
        }
        let core = Rc::clone(self);
        let published = self.background.see_through(async move { core.fence().await }).await;
        published.map_err(|_| ControlError::Stopped)
    }

    /// Returns a bitmap whose bits are clear for durable data, unless the members may not agree there. Bits of
    /// an `old` bitmap stay set, so a member that comes back lacks no more than the old one said.
    fn new_bitmap(
        &self,
        place: BitmapPlace,
        write_behind: u32,
        old: Option<&Bitmap>,
        _: &Durable,
    ) -> Result<Bitmap, ControlError> {
        let events = self.publisher.events() + 1;
        let array = self.publisher.array.borrow();
        let uuid = array.as_ref().map(|array| Uuid(array.uuid_on_disk())).unwrap_or_default();
        let header = BitmapHeader {
            version: 4,
            uuid,
            events,
            // On a member with so many events all earlier writes are durable.
            events_cleared: old.map_or(events, |old| old.header.events_cleared),
            sync_size: self.layout.borrow().sync_size(),
            stale: false,
            write_error: false,
            host_endian: false,
            chunk_size: place.chunk,
            daemon_sleep: old.map_or(DAEMON_SLEEP, |old| old.header.daemon_sleep),
            write_behind,
            reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
            unknown: Default::default(),
        };
        let mut bitmap = Bitmap::new(header, place.room)
            .map_err(|why| ControlError::Unsuitable(format!("the bitmap: {why}")))?;
        if !self.agreement.is_clean() {
            bitmap.set_all();
        } else if let Some(old) = old.filter(|_| !Canary::NewChunksForgetBits.is_planted()) {
            set_what_covers(&mut bitmap, old);
        }
        Ok(bitmap)
    }
}

/// Sets each chunk that overlaps a set chunk of `old`.
fn set_what_covers(bitmap: &mut Bitmap, old: &Bitmap) {
    let (size, old_size) = (bitmap.header.chunk_size, old.header.chunk_size);
    let mut from = 0;
    while let Some(chunk) = old.next_set(from) {
        let (first, end) = (chunk * old_size / size, ((chunk + 1) * old_size).div_ceil(size));
        for chunk in first..end.min(bitmap.chunk_count()) {
            bitmap.set(chunk);
        }
        from = chunk + 1;
    }
}
