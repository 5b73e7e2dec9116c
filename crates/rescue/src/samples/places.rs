//! The members that have the bytes of a volume, by the stack expression that reads it.

use std::collections::BTreeSet;
use std::ops::Range;

use braid_array::{ArrayByte, Geometry, Run};
use braid_stack::{Node, Stack};

use crate::assemble::{Cell, Layout, compare};

/// The places of a volume's bytes.
pub struct Places(Place);

enum Place {
    /// A part of a file or device, of a known length.
    Leaf {
        path: String,
        start: u64,
        length: u64,
    },
    Missing,
    Slice {
        origin: Box<Place>,
        start: u64,
        length: u64,
    },
    Array {
        layout: Layout,
        members: Vec<Place>,
    },
}

impl Places {
    /// Returns the places of a stack of arrays over files; `None` if it has other devices, or lengths that are not in it.
    #[must_use]
    pub fn of(stack: &Stack) -> Option<Places> {
        Place::of(stack).map(Places)
    }

    /// The paths of the members from which these bytes of the volume are read. Of copies, all count; bytes of a missing
    /// member are computed from all others.
    #[must_use]
    pub fn members(&self, range: &Range<u64>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.0.visit(range.clone(), &mut found);
        found
    }
}

/// Reads bytes of a file or device into a buffer; false if it cannot.
type ReadMember<'a> = dyn Fn(&str, u64, &mut [u8]) -> bool + 'a;

impl Places {
    /// Compares copies, or data and parity, of the array, in windows of all its regions; with `all`, everywhere. There are
    /// no cells if the stack is not one array, or has no redundancy.
    #[must_use]
    pub fn agreement(&self, read: &ReadMember<'_>, all: bool) -> Vec<Cell> {
        let mut place = &self.0;
        while let Place::Slice { origin, .. } = place {
            place = origin;
        }
        let Place::Array { layout, members } = place else { return Vec::new() };
        let of_role = |role: usize, range: Range<u64>| {
            let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
            members.get(role)?.read(range.start, &mut bytes, read).then_some(bytes)
        };
        compare(layout, &of_role, all)
    }
}

impl Place {
    /// Reads bytes of a member.
    fn read(&self, at: u64, bytes: &mut [u8], read: &ReadMember<'_>) -> bool {
        match self {
            Place::Leaf { path, start, .. } => read(path, start.saturating_add(at), bytes),
            Place::Slice { origin, start, .. } => {
                origin.read(start.saturating_add(at), bytes, read)
            }
            Place::Missing | Place::Array { .. } => false,
        }
    }

    fn of(stack: &Stack) -> Option<Place> {
        match &stack.node {
            Node::File(file) => Some(Place::Leaf {
                path: file.path.clone(),
                start: file.offset.bytes(),
                length: file.length?.bytes(),
            }),
            Node::Missing(_) => Some(Place::Missing),
            Node::Holes(holes) => Place::of(&holes.origin).or_else(|| {
                let leaves = holes.origin.leaves();
                let path = leaves.first()?.own_path()?.clone();
                Some(Place::Leaf { path, start: 0, length: u64::MAX })
            }),
            Node::Slice(slice) => {
                let origin = Box::new(Place::of(&slice.origin)?);
                let start = slice.offset.bytes();
                let length = match slice.length {
                    Some(length) => length.bytes(),
                    None => origin.length().checked_sub(start)?,
                };
                Some(Place::Slice { origin, start, length })
            }
            _ => {
                let shape = stack.shape()?;
                let members: Option<Vec<Place>> = stack.members().iter().map(Place::of).collect();
                let members = members?;
                let present = members.iter().filter(|one| !matches!(one, Place::Missing));
                let least = present.map(Place::length).min()?;
                let used = members.iter().map(|one| match one {
                    Place::Missing => least,
                    one => one.length(),
                });
                let used: Vec<u64> = used.collect();
                let layout = Layout::new(shape.level, shape.layout, shape.chunk, &used).ok()?;
                Some(Place::Array { layout, members })
            }
        }
    }

    fn length(&self) -> u64 {
        match self {
            Place::Leaf { length, .. } | Place::Slice { length, .. } => *length,
            Place::Missing => 0,
            Place::Array { layout, .. } => layout.size(),
        }
    }

    fn visit(&self, range: Range<u64>, found: &mut BTreeSet<String>) {
        match self {
            Place::Leaf { path, .. } => drop(found.insert(path.clone())),
            Place::Missing => {}
            Place::Slice { origin, start, .. } => {
                let moved = range.start.saturating_add(*start)..range.end.saturating_add(*start);
                origin.visit(moved, found);
            }
            Place::Array { layout, members } => {
                let mut at = range.start;
                while at < range.end.min(layout.size()) {
                    let runs = runs(layout, at);
                    let least = runs.iter().map(|run| run.len).min().unwrap_or(u64::MAX);
                    let length = least.min(range.end - at);
                    for run in runs {
                        let start = run.offset.get();
                        match members.get(run.role.index()) {
                            Some(Place::Missing) => {
                                let all = |one: &Place| one.visit(start..start + length, found);
                                members.iter().for_each(all);
                            }
                            Some(one) => one.visit(start..start + length, found),
                            None => {}
                        }
                    }
                    at += length;
                }
            }
        }
    }
}

/// The places of a byte of the array, at least one.
fn runs(layout: &Layout, at: u64) -> Vec<Run> {
    let at = ArrayByte::new(at);
    match layout {
        Layout::Plain(geometry) => vec![geometry.locate(at)],
        Layout::Mirrored(geometry) => {
            (0..geometry.copies()).map(|copy| geometry.locate(at, copy)).collect()
        }
        Layout::Parity(geometry) => vec![Geometry::locate(geometry, at)],
    }
}
