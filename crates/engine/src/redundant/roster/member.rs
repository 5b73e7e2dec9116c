//! A member at work: what it is good for, and what it is known not to hold.
//!
//! ```text
//!   Spare ──put in──▶ Recovering(frontier) ──filled, flushed, announced──▶ InSync
//!     │                     │                                               │
//!     └─────────────────────┴──────────── taken out ────────▶ Faulty ◀──────┘
//! ```
//!
//! Invariant: the state and the role change by the transitions of [`super::Roster`] alone; what
//! else changes here (counters, the superblock as it was last stored) decides nothing about who
//! is believed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_array::{MemberByte, MemberSpan, Role};
use braid_block::Span;
use braid_md::Superblock;
use braid_md::bad_blocks::{BadBlocks, BadRange};

use crate::Dev;

/// What a member is good for now.
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

/// A member as it is given to an array.
pub struct NewMember {
    /// What people call it: its path.
    pub label: String,
    /// The whole device, with its superblock, if there is one.
    pub dev: Dev,
    /// Where its data starts, in bytes.
    pub data_offset: u64,
    /// md's device number: unique in the array.
    pub number: u32,
    /// Which role it has, if any.
    pub role: Option<Role>,
    /// Stands in for another of the same role, that still works.
    pub replacement: bool,
    /// What it is good for.
    pub state: MemberState,
    /// Recover only what the array's bitmap says.
    pub by_bitmap: bool,
    /// Read it only if no other can be read.
    pub write_mostly: bool,
    /// As it is on the device; none for an array without superblocks.
    pub superblock: Option<Superblock>,
    /// What it cannot hold, in bytes from the start of the device, as md's log counts.
    pub bad_blocks: BadBlocks,
}

/// What md counts read errors in, in bytes.
const PAGE: u64 = 4096;

/// Read errors of late.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    count: u32,
    /// When the last one was.
    last: Duration,
    /// The page of the member's data where it was.
    page: u64,
}

/// A member at work.
pub(crate) struct Member {
    pub(crate) label: String,
    pub(crate) dev: Dev,
    pub(crate) data_offset: u64,
    pub(crate) number: u32,
    pub(super) role: Cell<Option<Role>>,
    pub(super) replacement: Cell<bool>,
    pub(super) state: Cell<MemberState>,
    pub(super) by_bitmap: Cell<bool>,
    pub(crate) write_mostly: bool,
    /// Whether whoever watches the members found it slower than the others.
    pub(crate) is_slow: Cell<bool>,
    /// As it was written last: what the next one is to say is kept beside it, since one may be on its
    /// way.
    pub(crate) superblock: RefCell<Option<Superblock>>,
    /// The most events of a superblock that it was told to write, whether or not it did.
    pub(crate) told: Cell<u64>,
    /// How many bytes of data its next superblock says that it has room for.
    pub(crate) data_size: Cell<u64>,
    pub(crate) bad_blocks: RefCell<BadBlocks>,
    /// Whether there are any, so that reads need not look.
    pub(crate) has_bad_blocks: Cell<bool>,
    /// Reads under way.
    pub(crate) reads: Cell<u32>,
    /// Where the last read ended.
    pub(crate) head: Cell<MemberByte>,
    /// Read errors that were put right.
    pub(crate) corrected: Cell<u32>,
    errors: Cell<Errors>,
    /// Its log was made ready for the array as it is.
    pub(crate) has_log: Cell<bool>,
    /// Why it is faulty, or what was noticed last.
    pub(super) remark: RefCell<String>,
}

impl Member {
    pub(crate) fn new(new: NewMember) -> Member {
        Member {
            label: new.label,
            dev: new.dev,
            data_offset: new.data_offset,
            number: new.number,
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

    /// What it is good for.
    #[inline]
    pub(crate) fn state(&self) -> MemberState {
        self.state.get()
    }

    /// Its role, if it has one.
    #[inline]
    pub(crate) fn role(&self) -> Option<Role> {
        self.role.get()
    }

    /// Whether it is filled beside the member that it is to replace.
    pub(crate) fn is_replacement(&self) -> bool {
        self.replacement.get()
    }

    /// Whether only what the bitmap says is to be copied to it.
    pub(crate) fn is_by_bitmap(&self) -> bool {
        self.by_bitmap.get()
    }

    /// Why it is faulty, or what was noticed last.
    pub(crate) fn remark(&self) -> String {
        self.remark.borrow().clone()
    }

    /// How far it is filled; none unless it is being filled.
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

    /// Whether writes go to it.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.state.get(), MemberState::InSync | MemberState::Recovering(_))
    }

    /// Whether its superblock is kept up to date.
    pub(crate) fn is_known(&self) -> bool {
        self.state.get() != MemberState::Faulty
    }

    /// Whether `next` says something else of this member than what is on it, by which others would
    /// believe it differently: its role, that it is being filled, or that less of it is. (Of a full
    /// member nobody believes anything else because it was to replace another.)
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

    /// Counts a read error at `place`, unless the same page was the last: what was
    /// counted is halved for each hour that passed (md's `check_decay_read_errors`).
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

    /// Where `at` lies on the device: the one place where a byte of its data becomes one of its
    /// device.
    #[inline]
    pub(crate) fn on_device(&self, at: MemberByte) -> u64 {
        self.data_offset + at.get()
    }

    /// Where `span` lies on the device.
    #[inline]
    pub(crate) fn span_on_device(&self, span: MemberSpan) -> Span {
        Span::new(self.on_device(span.offset), span.len)
    }

    /// The parts of `place` of its data that its bad-block log lists, lowest first: in blocks of
    /// `block` bytes, of which nothing can be read if some is listed.
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

    /// Whether some of `place` is known not to be readable.
    #[inline]
    pub(crate) fn is_bad(&self, place: MemberSpan) -> bool {
        // The log counts from the start of the device (`is_badblock` in md.h).
        self.has_bad_blocks.get()
            && self.bad_blocks.borrow().overlaps(self.on_device(place.offset), place.len).is_some()
    }
}

/// Who has a role.
#[derive(Clone, Default)]
pub(crate) struct Slot {
    /// The member, faulty ones excepted.
    pub(crate) primary: Option<Rc<Member>>,
    /// Filled beside it, to take over.
    pub(super) replacement: Option<Rc<Member>>,
}

impl Slot {
    /// Those that writes go to.
    #[inline]
    pub(crate) fn written(&self) -> impl Iterator<Item = &Rc<Member>> {
        let both = self.primary.iter().chain(&self.replacement);
        both.filter(|member| member.is_written())
    }

    /// Who is filled beside the member, to take its place.
    pub(crate) fn replacement(&self) -> Option<&Rc<Member>> {
        self.replacement.as_ref()
    }

    /// The one that reads may come from.
    #[inline]
    pub(crate) fn readable(&self) -> Option<&Rc<Member>> {
        self.primary.as_ref().filter(|member| member.is_in_sync())
    }
}
