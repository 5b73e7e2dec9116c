//! The geometry of the array that an expression reads.

use braid_level::Shape;
use braid_level::size::suffice;
use braid_stack::{Node, Stack};

use super::Unfit;

/// An array: the way in which its members are joined, and the part of a file or device for each role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Level, layout and chunk.
    pub shape: Shape,
    /// The data of each role; `None` is a missing member.
    pub seats: Vec<Option<Part>>,
}

/// The data of a member, as a part of a file or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The path of the file or device.
    pub path: String,
    /// The start of the data in it, in bytes.
    pub start: u64,
    /// The bytes of data that the array uses.
    pub length: u64,
    /// True if a map calls some bytes of the file or device unreadable or out of date.
    pub has_holes: bool,
}

impl Part {
    /// The first byte behind the data.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// The part that a member of an expression reads: `file(…)` or `slice(holes(…), …)`.
    fn of(member: &Stack) -> Option<Part> {
        match &member.node {
            Node::File(file) if file.partition.is_none() => Some(Part {
                path: file.path.clone(),
                start: file.offset.bytes(),
                length: file.length?.bytes(),
                has_holes: false,
            }),
            Node::Slice(slice) => {
                let Node::Holes(holes) = &slice.origin.node else { return None };
                let Node::File(file) = &holes.origin.node else { return None };
                let (start, length) = (slice.offset.bytes(), slice.length?.bytes());
                file.is_whole().then(|| Part {
                    path: file.path.clone(),
                    start,
                    length,
                    has_holes: true,
                })
            }
            _ => None,
        }
    }
}

impl Geometry {
    /// Reads the geometry off an expression, as `braid rescue` prints it.
    ///
    /// # Errors
    /// [`Unfit::NoArray`]: it is another device, such as the two geometries of a reshape.
    pub fn of(stack: &Stack) -> Result<Geometry, Unfit> {
        let no_array = || Unfit::NoArray(stack.to_string());
        let shape = stack.shape().ok_or_else(no_array)?;
        let seat = |member: &Stack| match member.is_missing() {
            true => Ok(None),
            false => Part::of(member).map(Some).ok_or_else(no_array),
        };
        let seats = stack.members().iter().map(seat).collect::<Result<Vec<_>, _>>()?;
        Ok(Geometry { shape, seats })
    }

    /// Makes the member of a role a missing one: md fills the role again.
    pub fn vacate(&mut self, role: usize) {
        self.seats[role] = None;
    }

    /// Checks that all members are read without holes, and that they are enough.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        let Shape { level, layout, .. } = self.shape;
        let holes = self.seats.iter().flatten().find(|part| part.has_holes);
        if let Some(part) = holes {
            return Err(Unfit::Holes(part.path.clone()));
        }
        let present: Vec<bool> = self.seats.iter().map(Option::is_some).collect();
        if suffice(level, layout, &present) {
            return Ok(());
        }
        Err(Unfit::TooFew { level, disks: self.seats.len(), roles: self.missing() })
    }

    /// The roles without a member.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let vacant = |(role, seat): (usize, &Option<Part>)| seat.is_none().then_some(role);
        self.seats.iter().enumerate().filter_map(vacant).collect()
    }
}
