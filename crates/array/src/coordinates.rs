//! Coordinates: the type of a place says whose bytes it counts.
//!
//! ```text
//!   array    | 0 ........................................ size |   what clients address
//!                │ a geometry: `locate`          ▲ `owner`
//!                ▼                               │
//!   member   | 0 ............ member_size |                        of each member's data
//!                │ + where its data starts (md's data_offset), in one place of the engine
//!                ▼
//!   device   | superblock ... | 0 ............ |                   plain `u64` and `braid_block::Span`
//! ```
//!
//! A *row* is the byte at one offset of every member's data, so it has the same number as these bytes, and rows
//! are counted in bytes of a member. md's `recovery_offset` counts those as well.
//!
//! Places of the same kind can be compared, and the distance of two is a plain number of bytes; places of
//! different kinds cannot be mixed. [`Offset::new`] and [`Offset::get`] are for the boundaries: geometries,
//! fields of superblocks, devices, output. Deliberately absent: conversions between kinds, which need the
//! layout, and any `From` or `Deref` that would convert implicitly.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Div, Rem, Sub};

/// A kind of places: a type without content, which names them.
pub trait Coordinate: Copy + Default + Eq + Ord + Hash + fmt::Debug + 'static {}

/// Bytes of the array, as clients address them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfArray;

/// Bytes of a member's data, from the start of its data; of all members: rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfMember;

impl Coordinate for OfArray {}
impl Coordinate for OfMember {}

/// A byte of the array.
pub type ArrayByte = Offset<OfArray>;
/// A byte of a member's data, or a row.
pub type MemberByte = Offset<OfMember>;
/// Bytes of the array that follow each other.
pub type ArraySpan = Stretch<OfArray>;
/// Bytes of a member's data that follow each other, or rows.
pub type MemberSpan = Stretch<OfMember>;

/// A place, in bytes from the start of what `C` says.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset<C>(u64, PhantomData<C>);

impl<C: Coordinate> Offset<C> {
    /// The first byte.
    pub const START: Offset<C> = Offset::new(0);

    /// The byte before which `bytes` others lie.
    #[inline]
    pub const fn new(bytes: u64) -> Offset<C> {
        Offset(bytes, PhantomData)
    }

    /// Returns the number of bytes before the offset.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the distance of the two, in either order.
    #[inline]
    pub const fn abs_diff(self, other: Offset<C>) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// Returns true if the offset is the first byte of a unit of `unit` bytes.
    #[inline]
    pub const fn is_multiple_of(self, unit: u64) -> bool {
        self.0.is_multiple_of(unit)
    }
}

impl<C: Coordinate> Add<u64> for Offset<C> {
    type Output = Offset<C>;

    #[inline]
    fn add(self, bytes: u64) -> Offset<C> {
        Offset::new(self.0 + bytes)
    }
}

impl<C: Coordinate> AddAssign<u64> for Offset<C> {
    #[inline]
    fn add_assign(&mut self, bytes: u64) {
        self.0 += bytes;
    }
}

/// The number of bytes between two places, of which the first is not the earlier one.
impl<C: Coordinate> Sub for Offset<C> {
    type Output = u64;

    #[inline]
    fn sub(self, earlier: Offset<C>) -> u64 {
        self.0 - earlier.0
    }
}

/// In which unit of so many bytes it lies: the number of a chunk, of a stripe.
impl<C: Coordinate> Div<u64> for Offset<C> {
    type Output = u64;

    #[inline]
    fn div(self, unit: u64) -> u64 {
        self.0 / unit
    }
}

/// The offset within a unit of so many bytes.
impl<C: Coordinate> Rem<u64> for Offset<C> {
    type Output = u64;

    #[inline]
    fn rem(self, unit: u64) -> u64 {
        self.0 % unit
    }
}

impl<C: Coordinate> fmt::Debug for Offset<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", C::default(), self.0)
    }
}

impl<C: Coordinate> fmt::Display for Offset<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// `len` bytes from `offset` on, of what `C` says. May be empty. What devices are given is a
/// [`braid_block::Span`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Stretch<C> {
    /// The first byte.
    pub offset: Offset<C>,
    /// Number of bytes.
    pub len: u64,
}

impl<C: Coordinate> Stretch<C> {
    /// `len` bytes from `offset` on.
    #[inline]
    pub const fn new(offset: Offset<C>, len: u64) -> Stretch<C> {
        Stretch { offset, len }
    }

    /// The first `len` bytes.
    #[inline]
    pub const fn first(len: u64) -> Stretch<C> {
        Stretch { offset: Offset::START, len }
    }

    /// From `start` up to `end`, which is not before it.
    #[inline]
    pub fn between(start: Offset<C>, end: Offset<C>) -> Stretch<C> {
        Stretch { offset: start, len: end - start }
    }

    /// The byte after the last one.
    #[inline]
    pub const fn end(self) -> Offset<C> {
        Offset::new(self.offset.0 + self.len)
    }

    /// Returns true if the stretch has no bytes.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns true if the stretch lies in the first `size` bytes (false also if its end would overflow).
    #[inline]
    pub const fn is_within(self, size: u64) -> bool {
        self.offset.0 <= size && self.len <= size - self.offset.0
    }

    /// Returns true if both ends are multiples of `block`, a power of two.
    #[inline]
    pub const fn is_aligned(self, block: u32) -> bool {
        (self.offset.0 | self.len) & (block as u64 - 1) == 0
    }

    /// Returns true if the stretch contains all of `other`.
    #[inline]
    pub fn covers(self, other: Stretch<C>) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }

    /// Returns true if they have bytes in common; for an empty one, if it lies inside the other.
    #[inline]
    pub fn overlaps(self, other: Stretch<C>) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// Returns the common part; `None` if there is none.
    #[inline]
    pub fn common(self, other: Stretch<C>) -> Option<Stretch<C>> {
        let start = self.offset.max(other.offset);
        let end = self.end().min(other.end());
        (start < end).then(|| Stretch::between(start, end))
    }

    /// Its first `len` bytes, and the rest.
    ///
    /// # Panics
    /// If it has fewer.
    #[inline]
    pub fn split_at(self, len: u64) -> (Stretch<C>, Stretch<C>) {
        let middle = self.offset + len;
        (Stretch::new(self.offset, len), Stretch::between(middle, self.end()))
    }

    /// Its parts between `edges`, each so many bytes behind its first one, in any order.
    pub fn cut_at(self, edges: impl IntoIterator<Item = u64>) -> Vec<Stretch<C>> {
        let within = edges.into_iter().filter(|edge| *edge < self.len);
        let mut edges: Vec<u64> = within.chain([0, self.len]).collect();
        edges.sort_unstable();
        edges.dedup();
        let part = |pair: &[u64]| Stretch::new(self.offset + pair[0], pair[1] - pair[0]);
        edges.windows(2).map(part).collect()
    }

    /// Its bytes at each `step` from its first on.
    pub fn step_by(self, step: u64) -> impl Iterator<Item = Offset<C>> {
        (self.offset.0..self.end().0).step_by(step as usize).map(Offset::new)
    }
}

impl<C: Coordinate> fmt::Debug for Stretch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}+{}", self.offset, self.len)
    }
}

impl<C: Coordinate> fmt::Display for Stretch<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.offset, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u64) -> MemberSpan {
        MemberSpan::new(MemberByte::new(offset), len)
    }

    #[test]
    fn a_stretch_whose_end_overflows_is_not_within_anything() {
        assert!(!span(u64::MAX, 2).is_within(u64::MAX));
        assert!(span(u64::MAX, 0).is_within(u64::MAX));
        assert!(span(10, 5).is_within(15));
        assert!(!span(10, 6).is_within(15));
    }

    #[test]
    fn neighbours_have_nothing_in_common() {
        assert!(!span(0, 4).overlaps(span(4, 4)));
        assert_eq!(span(0, 4).common(span(4, 4)), None);
        assert_eq!(span(0, 6).common(span(4, 4)), Some(span(4, 2)));
        assert!(span(0, 6).overlaps(span(4, 4)) && span(4, 4).overlaps(span(0, 6)));
    }

    #[test]
    fn a_stretch_covers_itself_and_its_parts() {
        let (first, rest) = span(8, 8).split_at(3);
        assert_eq!((first, rest), (span(8, 3), span(11, 5)));
        assert!([span(8, 8), first, rest].into_iter().all(|one| span(8, 8).covers(one)));
        assert!(!first.covers(rest) && !first.covers(span(8, 8)));
        let starts: Vec<u64> = span(8, 8).step_by(4).map(MemberByte::get).collect();
        assert_eq!(starts, [8, 12]);
    }

    #[test]
    fn what_is_cut_has_all_of_it_once() {
        assert_eq!(span(8, 8).cut_at([3, 0, 8, 5, 3, 99]), [span(8, 3), span(11, 2), span(13, 3)]);
        assert_eq!(span(8, 8).cut_at([]), [span(8, 8)]);
        assert_eq!(span(8, 0).cut_at([0]), []);
    }

    #[test]
    fn they_print_as_numbers_do() {
        assert_eq!(span(4096, 512).to_string(), "4096+512");
        assert_eq!(
            format!("{:>6}|{:?}", ArrayByte::new(7), ArrayByte::new(7)),
            "     7|OfArray(7)"
        );
    }
}
