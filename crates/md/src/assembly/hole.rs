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

/// Whether the freshest member alone says that writes may be under way: a member that it counts on,
/// one event behind, still calls the array clean. No write begins before all have heard that it may.
pub(super) fn was_never_written(set: &Set, selection: &Selection) -> bool {
    let array = &set.candidates()[selection.freshest].superblock;
    selection.slots.iter().any(|slot| {
        let Slot::InSync(member) = slot else { return false };
        let one = &set.candidates()[member.candidate].superblock;
        one.is_clean() && one.events.checked_add(1) == Some(array.events)
    })
}
