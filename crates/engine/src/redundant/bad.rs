//! Places that members are known not to hold: md's bad-block logs, kept up to date.
//!
//! ```text
//!   recovery: no member has a place   ──▶ entered, on the member that is filled and on those that
//!                                         could not be read ──▶ log, durable ──▶ superblocks
//!   a write over it   ──▶ durable     ──▶ taken out ──▶ log, durable ──▶ answer
//! ```
//!
//! Invariants
//! * Before a member is in sync, each place that it lacks is durable in its log. The superblock that makes the member
//!   in sync also makes the log valid ([`super::superblocks`]).
//! * A place is removed only after its data are durable on the member, and before the write completes: a stale entry
//!   would make a later reader of the log lose acknowledged data.
//!
//! Source: Linux `drivers/md/md.c` (`rdev_set_badblocks`, `super_1_sync`), `drivers/md/raid5.c`
//! (`handle_failed_sync`).

use std::rc::Rc;

use braid_array::MemberSpan;

use super::core::{Core, Failures};
use super::roster::Member;

impl Core {
    /// Enters `place` in the bad-block log of `member`. Returns false if the member has no log, or no room in
    /// it, or the log could not be stored.
    pub(super) async fn is_bad_from_now_on(
        self: &Rc<Self>,
        member: &Rc<Member>,
        place: MemberSpan,
    ) -> bool {
        if !member.enter_bad(place) {
            return false;
        }
        self.store_bad_blocks(member).await
    }

    /// Removes `place` from the bad-block log of `member`, which has the data durably now.
    pub(super) async fn is_good_again(self: &Rc<Self>, member: &Rc<Member>, place: MemberSpan) {
        if member.is_bad(place) && member.clear_bad(place) {
            let is_stored = self.store_bad_blocks(member).await;
            debug_assert!(is_stored || !member.is_in_sync() || self.gate.is_stopped());
        }
    }

    /// Removes the places just `written` from the bad-block logs that list them. The data are flushed first:
    /// after a crash, a place that is not listed must be durable.
    pub(super) async fn are_good_again(self: &Rc<Self>, written: &[(Rc<Member>, MemberSpan)]) {
        let is_listed = |(member, place): &&(Rc<Member>, MemberSpan)| member.is_bad(*place);
        let listed: Vec<_> = written.iter().filter(is_listed).collect();
        if listed.is_empty() || self.flush().await.is_err() {
            return;
        }
        for (member, place) in listed.into_iter().filter(|(member, _)| member.is_written()) {
            self.is_good_again(member, *place).await;
        }
    }

    /// Stores the log of `member`. A failure takes the member out, or stops the array.
    async fn store_bad_blocks(self: &Rc<Self>, member: &Rc<Member>) -> bool {
        let Some((offset, bytes)) = member.bad_block_log() else { return false };
        let area = vec![(Rc::clone(member), offset, bytes)];
        let failed: Failures = self.store_metadata("bad-block log", area).await;
        let is_stored = failed.is_empty();
        self.fail_or_stop(failed);
        self.reconsider();
        is_stored
    }
}

impl Member {
    /// Returns the place of the member's bad-block log, and the log's bytes.
    fn bad_block_log(&self) -> Option<(u64, Vec<u8>)> {
        let superblock = self.superblock.borrow();
        let superblock = superblock.as_ref()?;
        let log = superblock.bad_block_log.as_ref()?;
        let offset = superblock.super_offset.checked_add_signed(log.offset)?;
        Some((offset, self.bad_blocks.borrow().encode()))
    }

    /// Returns false if there is no log, or no room in it.
    fn enter_bad(&self, place: MemberSpan) -> bool {
        let superblock = self.superblock.borrow();
        if superblock.as_ref().is_none_or(|one| one.bad_block_log.is_none()) {
            return false;
        }
        let entered = self.bad_blocks.borrow_mut().insert(self.on_device(place.offset), place.len);
        self.has_bad_blocks.set(!self.bad_blocks.borrow().is_empty());
        entered.is_ok()
    }

    /// Returns false if the log has no room for the split entry.
    fn clear_bad(&self, place: MemberSpan) -> bool {
        let mut bad = self.bad_blocks.borrow_mut();
        let removed = bad.remove(self.on_device(place.offset), place.len);
        self.has_bad_blocks.set(!bad.is_empty());
        removed.is_ok()
    }
}
