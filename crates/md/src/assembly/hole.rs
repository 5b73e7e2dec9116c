//! The write hole: parity that may not fit after a crash, and what says that it does.
//!
//! ```text
//!   degraded, and superblocks say that writes may be under way
//!     ├─ every member in sync has a log that can be used   ── closed by it
//!     ├─ one of them has not heard that writes may begin   ── none began
//!     └─ else                                              ── what is computed may be wrong
//! ```
//!
//! Deliberately absent: what the log says, which is read when the array starts.

use super::Set;
use super::members::{Member, Selection, Slot};
use super::state::ClosedBy;

/// The log that an array with parity has. It counts if all members in sync have one that can be
/// used: what one of them lacks may have been what was being written.
pub(super) fn closed_by(set: &Set, selection: &Selection) -> Option<ClosedBy> {
    let array = &set.candidates()[selection.freshest].superblock;
    let is_current = |member: &Member| {
        let head = set.candidates()[member.candidate].log_head.as_ref();
        head.is_some_and(|head| head.check_current(array.events, array.updated).is_ok())
    };
    let is_usable = |member: &Member| set.candidates()[member.candidate].log_trouble.is_none();
    let mut in_sync = selection.slots.iter().filter_map(|slot| match slot {
        Slot::InSync(member) => Some(member),
        Slot::Recovering { .. } | Slot::Missing => None,
    });
    if array.ppl.is_some() {
        return in_sync.all(is_usable).then_some(ClosedBy::Ppl);
    }
    let area = |member: &Member| {
        let head = set.candidates()[member.candidate].log_head.as_ref();
        head.map(|head| head.area)
    };
    let members: Vec<&Member> = in_sync.collect();
    let is_one_log = members.windows(2).all(|pair| area(pair[0]) == area(pair[1]));
    let is_whole = is_one_log && members.into_iter().all(is_current);
    is_whole.then_some(ClosedBy::StripeLog)
}

/// Returns true if a member in sync still calls the array clean, although the freshest says that writes may be
/// in flight: no write has begun, because all superblocks say so before. The member is an event behind, or has
/// as many events because it was brought up without the freshest.
pub(super) fn was_never_written(set: &Set, selection: &Selection) -> bool {
    selection.slots.iter().any(|slot| match slot {
        Slot::InSync(member) => set.candidates()[member.candidate].superblock.is_clean(),
        Slot::Recovering { .. } | Slot::Missing => false,
    })
}
