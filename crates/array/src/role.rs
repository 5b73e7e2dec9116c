//! The roles of an array's members, and what there is one of for each of them.
//!
//! A role is md's `raid_disk`: which part of the array a member has. It is not the number by which
//! md knows a device (`desc_nr`, which a spare has as well and which stays when roles change), not
//! the index of a device in a list, and not a column: which chunk of a stripe a role has changes
//! from stripe to stripe.
//!
//! Invariant: a [`ByRole`] is indexed by nothing but roles.

use std::fmt;
use std::ops::{Index, IndexMut};

/// Which part of an array a member has: counted from 0, below the number of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role(u16);

impl Role {
    /// The role of md's number `number`.
    #[inline]
    pub const fn new(number: u16) -> Role {
        Role(number)
    }

    /// The role that comes after `index` others; of an array there are at most
    /// [`crate::MAX_MEMBERS`].
    #[inline]
    pub const fn nth(index: usize) -> Role {
        debug_assert!(index <= u16::MAX as usize);
        Role(index as u16)
    }

    /// md's number of it.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the number of roles before it.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The first `count` roles: all of an array of `count` members.
    pub fn all(count: usize) -> impl DoubleEndedIterator<Item = Role> + ExactSizeIterator + Clone {
        (0..count).map(Role::nth)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One `T` for each role of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByRole<T>(Vec<T>);

impl<T> ByRole<T> {
    /// Returns the results of `of` for `count` roles.
    pub fn new(count: usize, of: impl FnMut(Role) -> T) -> ByRole<T> {
        ByRole(Role::all(count).map(of).collect())
    }

    /// Returns the number of roles.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // An array without members is none.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the value of `role`; `None` if there is no such role.
    #[inline]
    pub fn get(&self, role: Role) -> Option<&T> {
        self.0.get(role.index())
    }

    /// The roles.
    pub fn roles(&self) -> impl DoubleEndedIterator<Item = Role> + ExactSizeIterator + use<T> {
        Role::all(self.0.len())
    }

    /// Each role with what it has.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Role, &T)> + ExactSizeIterator {
        self.0.iter().enumerate().map(|(index, one)| (Role::nth(index), one))
    }

    /// Returns the values, in the order of the roles.
    #[inline]
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Each role with what it has, which may be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (Role, &mut T)> {
        self.0.iter_mut().enumerate().map(|(index, one)| (Role::nth(index), one))
    }

    /// The roles of which `which` holds.
    pub fn roles_where(&self, which: impl Fn(&T) -> bool) -> impl Iterator<Item = Role> {
        self.iter().filter(move |(_, one)| which(one)).map(|(role, _)| role)
    }

    /// There are `count` roles from now on; those that are new have `value`.
    pub fn resize(&mut self, count: usize, value: T)
    where
        T: Clone,
    {
        self.0.resize(count, value);
    }
}

/// In the order of the roles.
impl<T> From<Vec<T>> for ByRole<T> {
    fn from(values: Vec<T>) -> ByRole<T> {
        ByRole(values)
    }
}

/// In the order of the roles.
impl<T> FromIterator<T> for ByRole<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> ByRole<T> {
        ByRole(values.into_iter().collect())
    }
}

impl<T> Index<Role> for ByRole<T> {
    type Output = T;

    #[inline]
    fn index(&self, role: Role) -> &T {
        &self.0[role.index()]
    }
}

impl<T> IndexMut<Role> for ByRole<T> {
    #[inline]
    fn index_mut(&mut self, role: Role) -> &mut T {
        &mut self.0[role.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_role_has_is_found_by_it() {
        let mut squares = ByRole::new(4, |role| role.index() * role.index());
        squares[Role::new(1)] = 7;
        assert_eq!(squares.values().copied().collect::<Vec<_>>(), [0, 7, 4, 9]);
        let large: Vec<Role> = squares.roles_where(|one| *one > 4).collect();
        assert_eq!(large, [Role::new(1), Role::new(3)]);
        squares.resize(2, 0);
        assert!(squares.roles().eq([Role::new(0), Role::new(1)]));
    }
}
