//! A write, cut into units: rows of one stripe that are changed together.
//!
//! ```text
//!   the array's bytes   | … 0 | 1 … |            stripe     D0    D1    D2
//!                                                         |     |     | *** |
//!                                                         | *** | *** | *** |   a unit: some rows
//!                                                         | *** | *** |     |
//! ```
//!
//! Pure. A stripe with large chunks has several units, one below the other: the memory of a unit is bounded.

use braid_array::geometry::Raid456;
use braid_array::parity_plan::{Band, Bands, bands, split_stripes};
use braid_array::{ArraySpan, Geometry, MemberSpan};
use braid_block::Payload;

/// The part of a write in one data column.
#[derive(Debug)]
pub(in crate::redundant) struct Piece {
    /// Number of the data column in the order of the array.
    pub(in crate::redundant) column: usize,
    pub(in crate::redundant) rows: MemberSpan,
    /// The new data; empty for zeroes.
    pub(in crate::redundant) payload: Payload,
}

/// Rows of one stripe, and the data to be written there.
#[derive(Debug)]
pub(in crate::redundant) struct Unit {
    pub(in crate::redundant) stripe: u64,
    /// From the first written row to the last.
    pub(in crate::redundant) rows: MemberSpan,
    pub(in crate::redundant) bands: Bands,
    /// The parts of the write, in the order of the columns.
    pub(in crate::redundant) pieces: Vec<Piece>,
    /// All of its data are zeroes, which members make.
    pub(in crate::redundant) is_zeroes: bool,
}

impl Piece {
    /// Returns the data for `rows`, which lie in one of the payload's buffers.
    ///
    /// # Panics
    /// If the rows do not lie in one buffer.
    pub(in crate::redundant) fn slice(&self, rows: MemberSpan) -> &[u8] {
        let mut start = (rows.offset - self.rows.offset) as usize;
        for buf in self.payload.bufs() {
            if start < buf.len() {
                return &buf[start..start + rows.len as usize];
            }
            start -= buf.len();
        }
        panic!("rows {rows} of a piece at {}", self.rows)
    }
}

impl Unit {
    /// Returns true if every data column is written, in every row.
    pub(in crate::redundant) fn is_whole(&self, geometry: &Raid456) -> bool {
        matches!(&self.bands[..], [band] if band.count == geometry.data())
    }

    /// Returns true if it is made of zeroes, in every data column: so is its parity. Its pieces may be empty.
    pub(in crate::redundant) fn is_all_zero(&self, geometry: &Raid456) -> bool {
        self.is_zeroes && self.is_whole(geometry)
    }

    /// Returns the data for `rows` of data column `index`, if they are written.
    pub(in crate::redundant) fn new_data(&self, index: usize, rows: MemberSpan) -> Option<&[u8]> {
        let is_here = |piece: &&Piece| piece.column == index && piece.rows.covers(rows);
        self.pieces.iter().find(is_here).map(|piece| piece.slice(rows))
    }

    /// Cuts `band` into parts whose new data lie in one buffer per column.
    pub(in crate::redundant) fn parts(&self, band: &Band) -> Vec<MemberSpan> {
        let mut cuts = vec![band.rows.offset, band.rows.end()];
        for piece in &self.pieces {
            let mut at = piece.rows.offset;
            for buf in piece.payload.bufs() {
                at += buf.len() as u64;
                if band.rows.offset < at && at < band.rows.end() {
                    cuts.push(at);
                }
            }
        }
        if cuts.len() > 2 {
            cuts.sort_unstable();
            cuts.dedup();
        }
        cuts.windows(2).map(|pair| MemberSpan::between(pair[0], pair[1])).collect()
    }
}

/// Cuts a write of `payload` to `span` into units of at most `most` rows, in the order of the
/// stripes and their rows; whole stripes may have `most_of_whole` rows.
pub(in crate::redundant) fn cut(
    geometry: &Raid456,
    span: ArraySpan,
    mut payload: Payload,
    most: u64,
    most_of_whole: u64,
) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (stripe, part) in split_stripes(geometry, span) {
        let is_whole = part.len == geometry.stripe();
        let most = if is_whole { most.max(most_of_whole) } else { most };
        let most = most.min(geometry.chunk());
        let first_unit = units.len();
        let all = bands(geometry, stripe, part);
        let start = geometry.rows_of_stripe(stripe).offset;
        for slice in 0..geometry.chunk() / most {
            let bands = all.within(MemberSpan::new(start + slice * most, most));
            if let (Some(first), Some(last)) = (bands.first(), bands.last()) {
                let rows = MemberSpan::between(first.rows.offset, last.rows.end());
                units.push(Unit { stripe, rows, bands, pieces: Vec::new(), is_zeroes: false });
            }
        }
        for (column, rows) in columns_of(geometry, stripe, part) {
            for unit in &mut units[first_unit..] {
                if let Some(rows) = rows.common(unit.rows) {
                    let payload = match payload.is_empty() {
                        false => payload.take_front(rows.len),
                        true => Payload::None,
                    };
                    unit.pieces.push(Piece { column, rows, payload });
                }
            }
        }
    }
    units
}

/// Returns the data columns of `stripe` that `part` of the array touches, and their rows.
fn columns_of(
    geometry: &Raid456,
    stripe: u64,
    part: ArraySpan,
) -> impl Iterator<Item = (usize, MemberSpan)> + use<> {
    let (chunk, start) = (geometry.chunk(), geometry.span_of_stripe(stripe).offset);
    let first_row = geometry.rows_of_stripe(stripe).offset;
    let first = (part.offset - start) / chunk;
    let last = (part.end() - start - 1) / chunk;
    (first..=last).map(move |column| {
        let from = part.offset.max(start + column * chunk);
        let to = part.end().min(start + (column + 1) * chunk);
        let row = first_row + (from - start) % chunk;
        (column as usize, MemberSpan::new(row, to - from))
    })
}

/// Reassembles the payload, in the order of the array.
pub(in crate::redundant) fn join(mut units: Vec<Unit>) -> Payload {
    let mut payload = Payload::None;
    let mut rest = &mut units[..];
    while let Some(stripe) = rest.first().map(|unit| unit.stripe) {
        let count = rest.iter().take_while(|unit| unit.stripe == stripe).count();
        let (same, others) = rest.split_at_mut(count);
        let columns = same.iter().flat_map(|unit| unit.pieces.iter().map(|piece| piece.column));
        let last = columns.max().unwrap_or(0);
        for column in 0..=last {
            for unit in same.iter_mut() {
                let pieces = unit.pieces.iter_mut().filter(|piece| piece.column == column);
                pieces.for_each(|piece| payload.append(std::mem::take(&mut piece.payload)));
            }
        }
        rest = others;
    }
    payload
}
