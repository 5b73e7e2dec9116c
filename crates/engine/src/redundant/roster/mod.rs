//! The members of an array and their roles: the slots that the members fill.
//!
//! ```text
//!   slot 0   primary ● disk0   replacement ○ disk4 (filled beside disk0, then takes its place)
//!   slot 1   primary ● disk1
//!   slot 2   primary   none     the array is degraded
//!   beside   ○ disk5 spare      ✗ disk2 faulty, until it is removed
//! ```
//!
//! Invariants, asserted after every transition:
//! * A member that is written has a role, and is in one place of the slot of that role.
//! * A member that is faulty or a spare is in no slot.
//! * A replacement is never in sync: the transition that makes it so moves it to the first place.
//!
//! Only the transitions here change which members are believed. Each increments the [`Roster::generation`], by
//! which a log's record and a publication identify their membership. Deliberately absent: the check whether a
//! change is allowed ([`super::core`]), and its recording ([`super::publish`]).

mod member;

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

use braid_array::{ByRole, MemberByte, Role};

use super::array_id::ArrayId;
use super::publish::Announced;
pub(crate) use member::{Member, Slot};
pub use member::{MemberState, NewMember};

/// Start of the remark of a member that was replaced.
pub const REPLACED_BY: &str = "replaced by ";

/// The members and their places.
pub(crate) struct Roster {
    id: ArrayId,
    slots: RefCell<ByRole<Slot>>,
    /// All members that are there, spares and faulty ones included.
    members: RefCell<Vec<Rc<Member>>>,
    generation: Cell<u64>,
    /// The serial number that was given last: members of the start have 1, 2 and so on, in their order.
    newest: Cell<u32>,
}

impl Roster {
    /// Puts `members` into the array `id`, which has `count` roles.
    ///
    /// # Panics
    /// If a role is out of range or taken twice.
    pub(crate) fn new(id: ArrayId, count: usize, members: Vec<NewMember>) -> Roster {
        let mut slots = ByRole::new(count, |_| Slot::default());
        let members: Vec<Rc<Member>> =
            members.into_iter().map(|new| Rc::new(Member::new(new))).collect();
        let mut newest = 0;
        for member in &members {
            newest += 1;
            member.serial.set(newest);
        }
        for member in members.iter().filter(|member| member.is_written()) {
            let role = member.role().expect("a member that is written has a role");
            let slot = &mut slots[role];
            let place =
                if member.is_replacement() { &mut slot.replacement } else { &mut slot.primary };
            assert!(place.replace(Rc::clone(member)).is_none(), "role {role} is taken twice");
        }
        let (slots, members) = (RefCell::new(slots), RefCell::new(members));
        let (generation, newest) = (Cell::new(1), Cell::new(newest));
        let roster = Roster { id, slots, members, generation, newest };
        roster.check();
        roster
    }

    /// Returns the slots, by role. Not to be held over an await.
    #[inline]
    pub(crate) fn slots(&self) -> Ref<'_, ByRole<Slot>> {
        self.slots.borrow()
    }

    /// Returns all members that are there. Not to be held over an await.
    #[inline]
    pub(crate) fn members(&self) -> Ref<'_, Vec<Rc<Member>>> {
        self.members.borrow()
    }

    /// Returns the number of changes so far: equal numbers are the same membership.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Returns true if `member` was not removed.
    pub(crate) fn has(&self, member: &Rc<Member>) -> bool {
        self.members.borrow().iter().any(|one| Rc::ptr_eq(one, member))
    }

    /// Returns the serial number that was given last.
    pub(crate) fn newest(&self) -> u32 {
        self.newest.get()
    }

    /// Returns the members that writes go to, each once.
    pub(crate) fn written(&self) -> Vec<Rc<Member>> {
        self.slots.borrow().values().flat_map(|slot| slot.written().cloned()).collect()
    }

    /// Returns the members that are being filled, in the order of their roles.
    pub(crate) fn recovering(&self) -> Vec<Rc<Member>> {
        let slots = self.slots.borrow();
        let written = slots.values().flat_map(Slot::written);
        written.filter(|member| member.recovering().is_some()).cloned().collect()
    }

    /// Returns the lowest role without a member, and a spare that could have it.
    pub(crate) fn vacancy(&self) -> Option<(Rc<Member>, Role)> {
        let role = self.slots.borrow().roles_where(|slot| slot.primary.is_none()).next()?;
        let members = self.members.borrow();
        let spare = members.iter().find(|member| member.state() == MemberState::Spare)?;
        Some((Rc::clone(spare), role))
    }

    /// Makes `member` faulty because of `why`. A replacement of it takes its place, and is filled further.
    pub(super) fn take_out(&self, member: &Rc<Member>, why: &str) {
        member.remark.replace(why.to_owned());
        member.state.set(MemberState::Faulty);
        if let Some(role) = self.slot_of(member) {
            let slot = &mut self.slots.borrow_mut()[role];
            let is = |place: &Option<Rc<Member>>| {
                place.as_ref().is_some_and(|one| Rc::ptr_eq(one, member))
            };
            if is(&slot.replacement) {
                slot.replacement = None;
            } else {
                slot.primary = slot.replacement.take();
                if let Some(successor) = &slot.primary {
                    successor.replacement.set(false);
                }
            }
        }
        self.changed();
    }

    /// Adds `member`, with the role and state that it has.
    pub(super) fn admit(&self, member: Rc<Member>) {
        self.take_in(&member);
        if let (Some(role), Some(_)) = (member.role(), member.recovering()) {
            self.place(&member, role);
        }
        self.changed();
    }

    /// Begins to fill `spare`, for `role`.
    pub(super) fn take_over(&self, spare: &Rc<Member>, role: Role) {
        assert_eq!(spare.state(), MemberState::Spare, "{} is to take over", spare.label);
        spare.by_bitmap.set(false);
        spare.role.set(Some(role));
        spare.state.set(MemberState::Recovering(MemberByte::START));
        self.place(spare, role);
        self.changed();
    }

    /// Begins to fill `new` beside the member of `role`.
    pub(super) fn stand_in(&self, new: &Rc<Member>, role: Role) {
        new.by_bitmap.set(false);
        new.role.set(Some(role));
        new.replacement.set(true);
        new.state.set(MemberState::Recovering(MemberByte::START));
        self.take_in(new);
        self.place(new, role);
        self.changed();
    }

    /// Removes `member`, a spare or faulty.
    pub(super) fn let_go(&self, member: &Rc<Member>) {
        assert!(!member.is_written(), "{} takes part", member.label);
        member.state.set(MemberState::Faulty);
        self.members.borrow_mut().retain(|one| !Rc::ptr_eq(one, member));
        self.changed();
    }

    /// Makes the filled `member` a member in sync. Returns the member that it replaces, which is out.
    pub(super) fn promote(&self, member: &Rc<Member>, announced: &Announced) -> Option<Rc<Member>> {
        announced.check(self.id, member.number, self.generation());
        assert!(member.recovering().is_some(), "{} is not being filled", member.label);
        member.state.set(MemberState::InSync);
        member.by_bitmap.set(false);
        let mut replaced = None;
        if member.replacement.replace(false)
            && let Some(role) = member.role()
        {
            let slot = &mut self.slots.borrow_mut()[role];
            slot.replacement = None;
            replaced = slot.primary.replace(Rc::clone(member));
        }
        if let Some(old) = &replaced {
            old.state.set(MemberState::Faulty);
            old.remark.replace(format!("{REPLACED_BY}{}", member.label));
        }
        self.changed();
        replaced
    }

    /// Notes that `member` is filled below `frontier`.
    pub(super) fn is_filled_below(&self, member: &Member, frontier: MemberByte) {
        if let Some(before) = member.recovering() {
            assert!(before <= frontier, "{}: filled to {before}, now {frontier}", member.label);
            member.state.set(MemberState::Recovering(frontier));
        }
    }

    /// Requires members that are being filled to be filled again from `first` on.
    pub(super) fn fill_again_from(&self, first: MemberByte) {
        for member in self.recovering() {
            let filled = member.recovering().unwrap_or_default();
            member.state.set(MemberState::Recovering(filled.min(first)));
        }
    }

    /// Changes the number of roles.
    pub(super) fn resize(&self, count: usize) {
        let mut slots = self.slots.borrow_mut();
        assert!(slots.values().skip(count).all(|slot| slot.primary.is_none()), "a role is in use");
        slots.resize(count, Slot::default());
        drop(slots);
        self.changed();
    }

    fn take_in(&self, member: &Rc<Member>) {
        self.newest.set(self.newest.get() + 1);
        member.serial.set(self.newest.get());
        self.members.borrow_mut().push(Rc::clone(member));
    }

    fn place(&self, member: &Rc<Member>, role: Role) {
        let slot = &mut self.slots.borrow_mut()[role];
        let place = if member.is_replacement() { &mut slot.replacement } else { &mut slot.primary };
        assert!(place.is_none(), "role {role} is taken");
        *place = Some(Rc::clone(member));
    }

    fn slot_of(&self, member: &Rc<Member>) -> Option<Role> {
        let is = |slot: &Slot| {
            slot.primary.iter().chain(&slot.replacement).any(|one| Rc::ptr_eq(one, member))
        };
        self.slots.borrow().roles_where(is).next()
    }

    fn changed(&self) {
        self.generation.set(self.generation.get() + 1);
        self.check();
    }

    fn check(&self) {
        for member in self.members.borrow().iter() {
            let slot = self.slot_of(member);
            if member.is_written() {
                assert_eq!(slot, member.role(), "{}: its slot", member.label);
            } else {
                assert_eq!(slot, None, "{} takes no part", member.label);
            }
            assert!(!(member.is_replacement() && member.is_in_sync()), "{}", member.label);
        }
    }
}
