//! A member at work: its state, and the places that it is known not to hold.
//!
//! ```text
//!   Spare ──put in──▶ Recovering(frontier) ──filled, flushed, announced──▶ InSync
//!     │                     │                                               │
//!     └─────────────────────┴──────────── taken out ────────▶ Faulty ◀──────┘
//! ```
//!
//! Invariant: only the transitions of [`super::Roster`] change the state and the role. The other fields
//! (counters, the superblock as it was last stored) do not decide which member is believed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_array::{MemberByte, MemberSpan, Role};
use braid_block::Span;
use braid_md::Superblock;
use braid_md::bad_blocks::{BadBlocks, BadRange};

use crate::Dev;

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Has every acknowledged write of its role.
    InSync,
    /// Being filled: what lies below this byte of its data is in sync.
    Recovering(MemberByte),
    /// Waits for a role.
    Spare,
    /// Not used any more.
    Faulty,
}

/// A member as an array receives it.
pub struct NewMember {
    /// The name of the member in messages: its path.
    pub label: String,
    /// The whole device, with the superblock if there is one.
    pub dev: Dev,
    /// Start of the data in bytes.
    pub data_offset: u64,
    /// md's device number: unique in the array.
    pub number: u32,
    /// The role, if any.
    pub role: Option<Role>,
    /// The member replaces another of the same role, which still works.
    pub replacement: bool,
    /// The state.
    pub state: MemberState,
    /// Only the chunks in the array's bitmap are recovered.
    pub by_bitmap: bool,
    /// The member is read only if no other can be read.
    pub write_mostly: bool,
    /// The superblock on the device; none for an array without superblocks.
    pub superblock: Option<Superblock>,
    /// Unusable places, in bytes from the start of the device, as in md's log.
    pub bad_blocks: BadBlocks,
}

impl NewMember {
    /// Returns the member in sync of an array without superblocks, with the number of its `role`.
    pub fn unrecorded(label: String, dev: Dev, role: Role) -> NewMember {
        NewMember {
            label,
            dev,
            data_offset: 0,
            number: u32::from(role.get()),
            role: Some(role),
            replacement: false,
            state: MemberState::InSync,
            by_bitmap: false,
            write_mostly: false,
            superblock: None,
            bad_blocks: BadBlocks::none(),
        }
    }
}

/// Unit in which md counts read errors, in bytes.
const PAGE: u64 = 4096;

/// Recent read errors.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    count: u32,
    /// Time of the last error.
    last: Duration,
    /// Page of the last error in the member's data.
    page: u64,
}

/// A member at work.
pub(crate) struct Member {
    pub(crate) label: String,
    pub(crate) dev: Dev,
    pub(crate) data_offset: u64,
    pub(crate) number: u32,
    /// The number that the roster gave it, which no other member of the array ever has.
    pub(super) serial: Cell<u32>,
    pub(super) role: Cell<Option<Role>>,
    pub(super) replacement: Cell<bool>,
    pub(super) state: Cell<MemberState>,
    pub(super) by_bitmap: Cell<bool>,
    pub(crate) write_mostly: bool,
    /// True if the operator's monitor found the member slower than the others.
    pub(crate) is_slow: Cell<bool>,
    /// The superblock as it was last written. The next one is prepared separately, since one may be in flight.
    pub(crate) superblock: RefCell<Option<Superblock>>,
    /// The most events in a superblock that was sent to the member, even if the write failed.
    pub(crate) told: Cell<u64>,
    /// Bytes of data for which the next superblock says that there is room.
    pub(crate) data_size: Cell<u64>,
    pub(crate) bad_blocks: RefCell<BadBlocks>,
    /// True if there are bad blocks; false saves reads the search.
    pub(crate) has_bad_blocks: Cell<bool>,
    /// Reads in flight.
    pub(crate) reads: Cell<u32>,
    /// End of the last read.
    pub(crate) head: Cell<MemberByte>,
    /// Number of read errors that were corrected.
    pub(crate) corrected: Cell<u32>,
    errors: Cell<Errors>,
    /// True if the member's log is ready for the present array.
    pub(crate) has_log: Cell<bool>,
    /// The reason why the member is faulty, or the last observation.
    pub(super) remark: RefCell<String>,
}

impl Member {
    pub(crate) fn new(new: NewMember) -> Member {
        Member {
            label: new.label,
            dev: new.dev,
            data_offset: new.data_offset,
            number: new.number,
            serial: Cell::new(0),
            role: Cell::new(new.role),
            replacement: Cell::new(new.replacement),
            state: Cell::new(new.state),
            by_bitmap: Cell::new(new.by_bitmap),
            write_mostly: new.write_mostly,
            is_slow: Cell::new(false),
            corrected: Cell::new(new.superblock.as_ref().map_or(0, |one| one.corrected_reads)),
            data_size: Cell::new(new.superblock.as_ref().map_or(0, |one| one.data_size)),
            told: Cell::new(new.superblock.as_ref().map_or(0, |one| one.events)),
            superblock: RefCell::new(new.superblock),
            has_bad_blocks: Cell::new(!new.bad_blocks.is_empty()),
            bad_blocks: RefCell::new(new.bad_blocks),
            reads: Cell::new(0),
            head: Cell::default(),
            errors: Cell::default(),
            has_log: Cell::new(false),
            remark: RefCell::default(),
        }
    }

    /// Returns the state.
    #[inline]
    pub(crate) fn state(&self) -> MemberState {
        self.state.get()
    }

    /// Returns the number that no other member of the array ever has.
    pub(crate) fn serial(&self) -> u32 {
        self.serial.get()
    }

    /// Returns the role, if the member has one.
    #[inline]
    pub(crate) fn role(&self) -> Option<Role> {
        self.role.get()
    }

    /// Returns true if the member is filled beside the member that it is to replace.
    pub(crate) fn is_replacement(&self) -> bool {
        self.replacement.get()
    }

    /// Returns true if only the chunks in the bitmap are to be copied to the member.
    pub(crate) fn is_by_bitmap(&self) -> bool {
        self.by_bitmap.get()
    }

    /// Returns the reason why the member is faulty, or the last observation.
    pub(crate) fn remark(&self) -> String {
        self.remark.borrow().clone()
    }

    /// Returns how far the member is filled; none unless it is being filled.
    pub(crate) fn recovering(&self) -> Option<MemberByte> {
        match self.state.get() {
            MemberState::Recovering(frontier) => Some(frontier),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn is_in_sync(&self) -> bool {
        self.state.get() == MemberState::InSync
    }

    /// Returns true if writes go to the member.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.state.get(), MemberState::InSync | MemberState::Recovering(_))
    }

    /// Returns true if the member's superblock is kept up to date.
    pub(crate) fn is_known(&self) -> bool {
        self.state.get() != MemberState::Faulty
    }

    /// Returns true if `next` differs from the member's superblock in a way that changes how other members are
    /// believed: the role, being filled, or a smaller filled part. (A full member is believed equally,
    /// replacement or not.)
    pub(crate) fn is_changed_by(&self, next: &Superblock) -> bool {
        let says = |one: &Superblock| {
            let is_being_filled = one.recovery_offset.is_some();
            let is_beside = is_being_filled && one.is_replacement();
            (one.role(), is_being_filled, is_beside, one.device_number)
        };
        self.superblock.borrow().as_ref().is_some_and(|now| {
            let is_less = now.recovery_offset > next.recovery_offset;
            says(now) != says(next) || (is_less && next.recovery_offset.is_some())
        })
    }

    /// Counts a read error at `place`, unless the last error was in the same page. The earlier count is halved
    /// for each hour that passed (md's `check_decay_read_errors`). Returns the count.
    pub(crate) fn count_error(&self, now: Duration, place: MemberSpan) -> u32 {
        let Errors { count, last, page } = self.errors.get();
        if count > 0 && page == place.offset / PAGE {
            return count;
        }
        let hours = now.saturating_sub(last).as_secs() / 3600;
        let count = u32::try_from(hours).ok().and_then(|hours| count.checked_shr(hours));
        let count = count.unwrap_or(0) + 1;
        let page = place.end().get().saturating_sub(1) / PAGE;
        self.errors.set(Errors { count, last: now, page });
        count
    }

    /// Returns the device offset of `at`: the one conversion from data offsets to device offsets.
    #[inline]
    pub(crate) fn on_device(&self, at: MemberByte) -> u64 {
        self.data_offset + at.get()
    }

    /// Returns the span on the device.
    #[inline]
    pub(crate) fn span_on_device(&self, span: MemberSpan) -> Span {
        Span::new(self.on_device(span.offset), span.len)
    }

    /// Returns the parts of `place` in the data that the bad-block log lists, lowest first, in blocks of
    /// `block` bytes: a block with a listed part is unreadable.
    pub(crate) fn bad_within(&self, place: MemberSpan, block: u64) -> Vec<MemberSpan> {
        let in_data = |range: BadRange| {
            let end = (range.offset + range.len).checked_sub(self.data_offset)?;
            let start = range.offset.saturating_sub(self.data_offset);
            let (start, end) = (start / block * block, end.next_multiple_of(block));
            place.common(MemberSpan::between(MemberByte::new(start), MemberByte::new(end)))
        };
        let bad = self.bad_blocks.borrow();
        bad.within(self.on_device(place.offset), place.len).filter_map(in_data).collect()
    }

    /// Returns true if some of `place` is known to be unreadable.
    #[inline]
    pub(crate) fn is_bad(&self, place: MemberSpan) -> bool {
        // The log counts from the start of the device (`is_badblock` in md.h).
        self.has_bad_blocks.get()
            && self.bad_blocks.borrow().overlaps(self.on_device(place.offset), place.len).is_some()
    }
}

/// The members of a role.
#[derive(Clone, Default)]
pub(crate) struct Slot {
    /// The member of the role, unless it is faulty.
    pub(crate) primary: Option<Rc<Member>>,
    /// The member that is filled beside it, to take over.
    pub(super) replacement: Option<Rc<Member>>,
}

impl Slot {
    /// Returns the members that writes go to.
    #[inline]
    pub(crate) fn written(&self) -> impl Iterator<Item = &Rc<Member>> {
        let both = self.primary.iter().chain(&self.replacement);
        both.filter(|member| member.is_written())
    }

    /// Returns the member that is filled to take over the role.
    pub(crate) fn replacement(&self) -> Option<&Rc<Member>> {
        self.replacement.as_ref()
    }

    /// Returns the member that reads may use.
    #[inline]
    pub(crate) fn readable(&self) -> Option<&Rc<Member>> {
        self.primary.as_ref().filter(|member| member.is_in_sync())
    }
}
