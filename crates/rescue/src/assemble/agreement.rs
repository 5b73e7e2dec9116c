//! Agreement of parity and copies: a sample of each region of an array.
//!
//! ```text
//!   members   ├──▪──▪──▪──│──▪──▪──▪──│──▪──▪──▪──┤     a cell is a region; in each some windows are read
//! ```
//!
//! A region that disagrees as a whole has a wrong member, order or layout in it, or a stale member. Single windows that
//! disagree are writes that a crash interrupted, or silent errors.

use std::ops::Range;

use braid_array::geometry::{Column, Raid456};
use braid_array::{ArrayByte, Geometry, MemberByte, Mirrored, Role};

use super::Claimant;
use super::layout::{Layout, inside};
use super::seats::Seat;
use crate::patient::Patient;

/// The most cells of an array.
const CELLS: u64 = 64;
/// The most windows of a cell that are read, unless all are.
const WINDOWS: u64 = 16;
/// The most bytes of a window.
const WINDOW: u64 = 64 << 10;

/// A region of an array, and its windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Windows in which all copies, or data and parity, agree.
    pub agreeing: u64,
    /// Windows in which they do not.
    pub differing: u64,
    /// Windows that could not be compared: a member is missing, or cannot be read there.
    pub unknown: u64,
}

/// Reads a window of the data of a role; `None` without the member, or where it has a hole.
pub(crate) type Read<'a> = dyn Fn(usize, Range<u64>) -> Option<Vec<u8>> + 'a;

/// Compares windows of all regions of an array; with `all`, every window.
pub(super) fn agreement(
    layout: &Layout,
    claimants: &[Claimant],
    seats: &[Option<Seat>],
    members: &[&Patient],
    all: bool,
) -> Vec<Cell> {
    let read = |role: usize, range: Range<u64>| -> Option<Vec<u8>> {
        let seat = seats[role].as_ref()?;
        if !inside(&seat.holes, &range).is_empty() {
            return None;
        }
        let one = &claimants[seat.claimant];
        let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
        let start = one.start + one.superblock.data_offset + range.start;
        members[one.member].read(start, &mut bytes).ok()?;
        Some(bytes)
    };
    compare(layout, &read, all)
}

/// Compares windows that `read` gives by role and bytes of the data.
pub(crate) fn compare(layout: &Layout, read: &Read<'_>, all: bool) -> Vec<Cell> {
    let (size, window) = match layout {
        Layout::Plain(_) => return Vec::new(),
        Layout::Mirrored(geometry) => (geometry.size(), WINDOW),
        Layout::Parity(geometry) => (geometry.member_size(), WINDOW.min(geometry.chunk())),
    };
    let windows = size / window;
    let cells = CELLS.min(windows);
    let cell = |index: u64| {
        let (from, to) = (windows * index / cells, windows * (index + 1) / cells);
        let count = if all { to - from } else { WINDOWS.min(to - from) };
        let mut cell = Cell::default();
        for sample in 0..count {
            let at = (from + (to - from) * sample / count) * window;
            let agrees = match layout {
                Layout::Plain(_) => None,
                Layout::Mirrored(geometry) => copies(&**geometry, at..at + window, read),
                Layout::Parity(geometry) => parity(geometry, at..at + window, read),
            };
            *match agrees {
                Some(true) => &mut cell.agreeing,
                Some(false) => &mut cell.differing,
                None => &mut cell.unknown,
            } += 1;
        }
        cell
    };
    (0..cells).map(cell).collect()
}

/// Returns whether P, and Q of a raid6, fit the data of rows of one stripe.
fn parity(geometry: &Raid456, rows: Range<u64>, read: &Read<'_>) -> Option<bool> {
    let stripe = geometry.stripe_of_row(MemberByte::new(rows.start));
    let mut columns = Vec::new();
    for role in Role::all(geometry.members()) {
        columns.push((geometry.column_of(stripe, role), read(role.index(), rows.clone())?));
    }
    let is_data = |column: &Column| matches!(column, Column::Data(_));
    let of = |wanted: Column| columns.iter().find(|(column, _)| *column == wanted);
    let data = columns.iter().filter(|(column, _)| is_data(column));
    let data: Vec<&[u8]> = data.map(|(_, bytes)| bytes.as_slice()).collect();
    let (_, p) = of(Column::P)?;
    let mut sum = vec![0; p.len()];
    braid_parity::xor(&mut sum, &data);
    if sum != *p {
        return Some(false);
    }
    let Some((_, q)) = of(Column::Q) else { return Some(true) };
    let mut powers: Vec<Option<&[u8]>> = vec![None; geometry.powers()];
    for (column, bytes) in &columns {
        if let Column::Data(index) = column {
            powers[usize::from(geometry.power(stripe, *index))] = Some(bytes);
        }
    }
    braid_parity::q(&mut sum, &powers);
    Some(sum == *q)
}

/// Returns whether the copies of a range of the array that can be read agree; `None` with fewer than two.
fn copies(geometry: &dyn Mirrored, range: Range<u64>, read: &Read<'_>) -> Option<bool> {
    let mut at = range.start;
    let mut compared = None;
    while at < range.end {
        let mut known: Vec<Vec<u8>> = Vec::new();
        let runs = (0..geometry.copies()).map(|copy| geometry.locate(ArrayByte::new(at), copy));
        let runs: Vec<_> = runs.collect();
        let length = runs.iter().map(|run| run.len).fold(range.end - at, u64::min);
        for run in runs {
            let start = run.offset.get();
            known.extend(read(run.role.index(), start..start + length));
        }
        if known.windows(2).any(|pair| pair[0] != pair[1]) {
            return Some(false);
        }
        if known.len() > 1 {
            compared = Some(true);
        }
        at += length;
    }
    compared
}
