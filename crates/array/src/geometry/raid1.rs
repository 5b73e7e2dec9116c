//! RAID 1: the same bytes on every member.
//!
//! ```text
//! array    | 0 ......... 99 |
//! member 0 | 0 ......... 99 |      copy 0
//! member 1 | 0 ......... 99 |      copy 1
//! ```
//!
//! Source: Linux `drivers/md/raid1.c` (`raid1_size`).

use super::{GeometryError, Mirrored, Owner, Run};
use crate::{ArrayByte, MemberByte, Role};

/// The same bytes on every member.
#[derive(Clone, Debug)]
pub struct Raid1 {
    size: u64,
    members: usize,
}

impl Raid1 {
    /// `member_size` is what is used of each member, in bytes: the size that the superblock
    /// records, or that of the smallest member.
    ///
    /// # Errors
    /// No member, too many, or nothing of each.
    pub fn new(member_size: u64, members: usize) -> Result<Raid1, GeometryError> {
        if !(1..=crate::MAX_MEMBERS).contains(&members) {
            return Err(GeometryError::MemberCount { count: members });
        }
        if member_size == 0 {
            return Err(GeometryError::MemberSize { size: 0, least: 1 });
        }
        if member_size > i64::MAX as u64 {
            return Err(GeometryError::TooLarge);
        }
        Ok(Raid1 { size: member_size, members })
    }
}

impl Mirrored for Raid1 {
    fn size(&self) -> u64 {
        self.size
    }

    fn members(&self) -> usize {
        self.members
    }

    fn copies(&self) -> usize {
        self.members
    }

    #[inline]
    fn locate(&self, offset: ArrayByte, copy: usize) -> Run {
        let offset = offset.get();
        Run { role: Role::nth(copy), offset: MemberByte::new(offset), len: self.size - offset }
    }

    fn owner(&self, role: Role, offset: MemberByte) -> Option<Owner> {
        let offset = offset.get();
        let holds = role.index() < self.members && offset < self.size;
        holds.then(|| Owner {
            offset: ArrayByte::new(offset),
            copy: role.index(),
            len: self.size - offset,
        })
    }

    fn stripe(&self) -> u64 {
        0
    }

    fn member_size(&self) -> u64 {
        self.size
    }

    fn is_readable(&self, alive: &dyn Fn(Role) -> bool) -> bool {
        Role::all(self.members).any(alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_holds_all_of_it_in_one_piece() {
        let raid1 = Raid1::new(1000, 3).unwrap();
        assert_eq!((raid1.size(), raid1.copies(), raid1.member_size()), (1000, 3, 1000));
        for copy in 0..3 {
            let (in_array, on_member) = (ArrayByte::new(100), MemberByte::new(100));
            let role = Role::nth(copy);
            let run = Run { role, offset: on_member, len: 900 };
            assert_eq!(raid1.locate(in_array, copy), run);
            let owner = Owner { offset: in_array, copy, len: 900 };
            assert_eq!(raid1.owner(role, on_member), Some(owner));
        }
        assert_eq!(raid1.owner(Role::new(0), MemberByte::new(1000)), None);
        assert_eq!(raid1.owner(Role::new(3), MemberByte::START), None);
    }

    #[test]
    fn members_that_make_no_array_are_refused() {
        assert_eq!(Raid1::new(1000, 0).unwrap_err(), GeometryError::MemberCount { count: 0 });
        assert_eq!(Raid1::new(1000, 385).unwrap_err(), GeometryError::MemberCount { count: 385 });
        let error = Raid1::new(0, 2).unwrap_err();
        assert_eq!(error, GeometryError::MemberSize { size: 0, least: 1 });
        assert_eq!(Raid1::new(u64::MAX, 2).unwrap_err(), GeometryError::TooLarge);
    }
}
