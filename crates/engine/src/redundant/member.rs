//! A member of a mirrored array, and who takes which role.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_md::bad_blocks::BadBlocks;
use braid_md::{Role, Superblock, Version};

use crate::Dev;

/// What a member is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// Has every acknowledged write of its role.
    InSync,
    /// Being filled: what lies below this many bytes of its data is in sync.
    Recovering(u64),
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
    pub role: Option<u16>,
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
    /// What it cannot hold, in bytes of its data.
    pub bad_blocks: BadBlocks,
}

/// A member at work.
pub(crate) struct Member {
    pub(crate) label: String,
    pub(crate) dev: Dev,
    pub(crate) data_offset: u64,
    pub(crate) number: u32,
    pub(crate) role: Cell<Option<u16>>,
    pub(crate) replacement: Cell<bool>,
    pub(crate) state: Cell<MemberState>,
    pub(crate) by_bitmap: Cell<bool>,
    pub(crate) write_mostly: bool,
    pub(crate) superblock: RefCell<Option<Superblock>>,
    pub(crate) bad_blocks: RefCell<BadBlocks>,
    /// Whether there are any, so that reads need not look.
    pub(crate) has_bad_blocks: Cell<bool>,
    /// Reads under way.
    pub(crate) reads: Cell<u32>,
    /// Where the last read ended, in bytes of its data.
    pub(crate) head: Cell<u64>,
    /// Read errors that were put right.
    pub(crate) corrected: Cell<u32>,
    /// Read errors of late, and when the last one was.
    pub(crate) errors: Cell<(u32, Duration)>,
    /// Its log was made ready for the array as it is.
    pub(crate) has_log: Cell<bool>,
    /// Why it is faulty, or what was noticed last.
    pub(crate) remark: RefCell<String>,
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
            corrected: Cell::new(new.superblock.as_ref().map_or(0, |one| one.corrected_reads)),
            superblock: RefCell::new(new.superblock),
            has_bad_blocks: Cell::new(!new.bad_blocks.is_empty()),
            bad_blocks: RefCell::new(new.bad_blocks),
            reads: Cell::new(0),
            head: Cell::new(0),
            errors: Cell::new((0, Duration::ZERO)),
            has_log: Cell::new(false),
            remark: RefCell::default(),
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

    /// What superblocks of `version` say of it. Version 0.90 has no word for a member that is
    /// being filled: until it is in sync it is a spare.
    pub(crate) fn md_role(&self, version: Version) -> Role {
        match (self.state.get(), self.role.get()) {
            (MemberState::Faulty, _) => Role::Faulty,
            (MemberState::Recovering(_), _) if version == Version::V0_90 => Role::Spare,
            (MemberState::InSync | MemberState::Recovering(_), Some(role)) => Role::Active(role),
            _ => Role::Spare,
        }
    }

    /// Whether `next` says something else of this member than what is on it.
    pub(crate) fn is_changed_by(&self, next: &Superblock) -> bool {
        let says = |one: &Superblock| {
            (one.role(), one.recovery_offset.is_some(), one.is_replacement(), one.device_number)
        };
        self.superblock.borrow().as_ref().is_some_and(|now| says(now) != says(next))
    }

    /// Counts a read error; what was counted is halved for each hour that passed.
    pub(crate) fn count_error(&self, now: Duration) -> u32 {
        let (count, last) = self.errors.get();
        let hours = now.saturating_sub(last).as_secs() / 3600;
        let count = count.checked_shr(hours as u32).unwrap_or(0) + 1;
        self.errors.set((count, now));
        count
    }

    /// Whether what lies at `offset` of its data, `len` bytes, is known not to be readable.
    #[inline]
    pub(crate) fn is_bad(&self, offset: u64, len: u64) -> bool {
        // The log counts from the start of the device (`is_badblock` in md.h).
        self.has_bad_blocks.get()
            && self.bad_blocks.borrow().overlaps(self.data_offset + offset, len).is_some()
    }
}

/// Who has a role.
#[derive(Clone, Default)]
pub(crate) struct Slot {
    /// The member, faulty ones excepted.
    pub(crate) primary: Option<Rc<Member>>,
    /// Filled beside it, to take over.
    pub(crate) replacement: Option<Rc<Member>>,
}

impl Slot {
    /// Those that writes go to.
    #[inline]
    pub(crate) fn written(&self) -> impl Iterator<Item = &Rc<Member>> {
        let both = self.primary.iter().chain(&self.replacement);
        both.filter(|member| member.is_written())
    }

    /// The one that reads may come from.
    #[inline]
    pub(crate) fn readable(&self) -> Option<&Rc<Member>> {
        self.primary.as_ref().filter(|member| member.is_in_sync())
    }
}
