//! Emptying bad-block logs: listed places are rewritten from the other members. If no member can provide a
//! place, it is read, and taken off the list if the read succeeds.
//!
//! ```text
//!   listed on a member ──others have it──▶ rewritten, read back      ──▶ off the list
//!                      └─none has it─────▶ read: an error            ──▶ stays
//!                                          readable                  ──▶ off the list: the disk's content counts
//! ```
//!
//! Invariant: the places that no member can provide are determined before any of them is taken off a list: the
//! disk's content there is neither copied to another member, nor used for reconstruction.

use std::rc::Rc;

use braid_array::{MemberSpan, Role};
use braid_block::Io;

use super::Redundant;
use super::control::ControlError;
use super::core::Core;
use super::keeping::{Finder, Inner};
use super::layout::SyncSpan;
use super::roster::Member;

/// Largest piece that is rewritten at once, in bytes.
const PIECE: u64 = 64 << 10;

/// Result of a retest of the listed places, in bytes of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retested {
    /// Rewritten from other members.
    pub rewritten: u64,
    /// Provided by no member, but readable: the disks' content counts.
    pub accepted: u64,
    /// Still listed.
    pub left: u64,
}

/// A place that a bad-block log lists.
struct Listed {
    member: Rc<Member>,
    place: MemberSpan,
    lock: SyncSpan,
}

impl Redundant {
    /// Retests the bad-block logs of members in sync, and takes off the places that can be rewritten or read.
    ///
    /// # Errors
    /// The array is read-only, or stopped.
    pub async fn retest(&self) -> Result<Retested, ControlError> {
        let core = self.writable()?;
        let before = listed_bytes(core);
        let block = u64::from(core.limits.logical_block);
        let all_lost = |one: &Listed| one.parts(block).all(|part| part.is_lost(&self.inner));
        let (mut lost, known): (Vec<_>, Vec<_>) =
            pieces(&self.inner, PIECE).into_iter().partition(all_lost);
        for piece in known {
            let member = Rc::clone(&piece.member);
            self.inner.keeping.heal(&self.inner, member, piece.lock, Finder::Pass).await;
            let parts = piece.parts(block).filter(|part| part.member.is_bad(part.place));
            lost.extend(parts.filter(|part| part.is_lost(&self.inner)));
        }
        let rewritten = before.saturating_sub(listed_bytes(core));
        let mut accepted = 0;
        while let Some(piece) = lost.pop() {
            match self.accept(core, &piece).await {
                true => accepted += piece.place.len,
                false if piece.place.len > block => lost.extend(piece.parts(block)),
                false => {}
            }
        }
        core.recorded(false).await?;
        let done = Retested { rewritten, accepted, left: listed_bytes(core) };
        if rewritten + accepted > 0 {
            core.note(format!(
                "bad-block logs: {rewritten} bytes were written again, {accepted} bytes are taken as they are"
            ));
        }
        Ok(done)
    }

    /// Takes a place off its member's list, if all of it can be read.
    async fn accept(&self, core: &Rc<Core>, one: &Listed) -> bool {
        let Listed { member, place, lock } = one;
        let buf = core.work.pool().get_wait(place.len as usize).await;
        let _locked = core.lane.ranges().lock(*lock).await;
        if !member.is_bad(*place) || !member.is_in_sync() || core.gate.is_stopped() {
            return false;
        }
        let read = member.dev.start(Io::read(member.on_device(place.offset), buf)).await;
        if read.result.is_ok() {
            core.is_good_again(member, *place).await;
        }
        read.result.is_ok()
    }
}

impl Listed {
    /// Cuts the place in parts of `len` bytes.
    fn parts(&self, len: u64) -> impl Iterator<Item = Listed> + '_ {
        self.place.step_by(len).map(move |offset| {
            let start = offset - self.place.offset;
            let len = len.min(self.place.len - start);
            let (place, lock) =
                (MemberSpan::new(offset, len), SyncSpan::new(self.lock.offset + start, len));
            Listed { member: Rc::clone(&self.member), place, lock }
        })
    }

    /// Returns true if no member can provide the place.
    fn is_lost(&self, inner: &Inner) -> bool {
        let is_lost = |role| inner.keeping.is_lost(&inner.core, role, self.place);
        self.member.role().is_some_and(is_lost)
    }
}

/// Returns the members in sync, each with its role.
fn members(core: &Core) -> Vec<(Role, Rc<Member>)> {
    let slots = core.roster.slots();
    slots.iter().filter_map(|(role, slot)| Some((role, Rc::clone(slot.readable()?)))).collect()
}

/// Returns the listed places of `member` in the used part of its data.
fn listed(core: &Core, member: &Member) -> Vec<MemberSpan> {
    let used = MemberSpan::first(core.layout.borrow().member_size());
    member.bad_within(used, u64::from(core.limits.logical_block))
}

fn listed_bytes(core: &Core) -> u64 {
    let members = members(core);
    members.iter().flat_map(|(_, member)| listed(core, member)).map(|place| place.len).sum()
}

/// Returns the listed places in pieces of at most `most` bytes, each in one piece of the array.
fn pieces(inner: &Inner, most: u64) -> Vec<Listed> {
    let core = &inner.core;
    let block = u64::from(core.limits.logical_block);
    let mut all = Vec::new();
    for (role, member) in members(core) {
        for mut rest in listed(core, &member) {
            while rest.len > 0 {
                let piece = inner.keeping.piece_of_member(role, rest.offset);
                // The last chunks of a layout may hold nothing.
                let len = rest.len.min(piece.map_or(block, |piece| piece.len.min(most)));
                let place;
                (place, rest) = rest.split_at(len);
                let lock = piece.map(|piece| SyncSpan::new(piece.offset, len));
                let member = Rc::clone(&member);
                all.extend(lock.map(|lock| Listed { member, place, lock }));
            }
        }
    }
    all
}
