//! Plans of writes to an array with parity: reads, arithmetic and writes.
//!
//! ```text
//! a write of the bytes * of one stripe         rows        columns     band
//!
//!          D0   D1   D2   D3    P   Q
//!        |    |    | ** | ** |    |    |       0 … a       2, 3        0
//!        |    | ** | ** | ** |    |    |       a … b       1, 2, 3     1
//!        |    | ** | ** |    |    |    |       b … chunk   1, 2        2
//! ```
//!
//! A write is cut into stripes ([`split_stripes`]), and the part in a stripe into *bands* ([`bands`]): rows of
//! the chunk in which the same columns are written, each of them whole. Each row has its own parity, so each
//! band is computed by a [`Method`] of its own:
//!
//! ```text
//! Full         all data are written       no reads                P, Q from the new data
//! Reconstruct  unwritten data present     these are read          P, Q from new and read data
//! Modify       written data present       these, P, Q are read    P, Q changed by old + new
//! Restore      one missing of each kind   all present are read    the missing first, then as above
//! Plain        P and Q are missing        no reads                only data are written
//! ```
//!
//! [`choose`] takes the methods with the fewest reads, where neighbouring bands of one member are one read. The
//! writes are the same for all methods: the written data and the parity of their rows, each if its member is
//! there ([`writes`]).
//!
//! Invariants: the bands of a stripe's part cover it exactly, their rows ascend and do not overlap; lost
//! columns are neither read nor written. Deliberately absent: the arithmetic itself, and the order of reads and
//! writes, which decides about crashes.
//!
//! Source: Linux `drivers/md/raid5.c` (`handle_stripe_dirtying`, whose rcw is Reconstruct and whose
//! rmw is Modify, chosen for each page of a stripe; it does no rmw where a resync is due).

use std::ops::Deref;

use crate::geometry::{Column, Raid456};
use crate::{ArrayByte, ArraySpan, Geometry, MemberSpan, Role};

/// Most bands that a part of a stripe falls into.
pub const MAX_BANDS: usize = 3;

/// A rectangle of a stripe, all of it written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Band {
    /// Which bytes of each member: stripe × chunk + place in the chunk.
    pub rows: MemberSpan,
    /// The first data column that is written.
    pub first: usize,
    /// Number of data columns that are written, at least 1.
    pub count: usize,
}

impl Band {
    /// Returns true if the request writes this column; parity is no part of a request.
    #[must_use]
    pub fn covers(&self, column: Column) -> bool {
        match column {
            Column::Data(index) => (self.first..self.first + self.count).contains(&index),
            Column::P | Column::Q => false,
        }
    }

    /// Returns true if `method` reads the band's rows of this column.
    #[must_use]
    pub fn reads(&self, method: Method, column: Column, lost: &Lost) -> bool {
        let is_data = matches!(column, Column::Data(_));
        match method {
            Method::Full | Method::Plain => false,
            Method::Modify => !lost.has(column) && (!is_data || self.covers(column)),
            Method::Reconstruct => is_data && !self.covers(column),
            Method::Restore => !lost.has(column),
        }
    }
}

/// The bands of a part of a stripe: 1 to [`MAX_BANDS`], from the first rows to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bands {
    bands: [Band; MAX_BANDS],
    len: usize,
}

impl Bands {
    /// Returns the parts of the bands within `rows`.
    #[must_use]
    pub fn within(&self, rows: MemberSpan) -> Bands {
        let mut within = Bands::default();
        for band in self.iter() {
            if let Some(rows) = band.rows.common(rows) {
                within.push(rows, band.first..band.first + band.count);
            }
        }
        within
    }

    /// The rows of all bands, those that touch as one.
    pub fn merged(&self) -> impl Iterator<Item = MemberSpan> {
        let mut rows = Vec::with_capacity(MAX_BANDS);
        merge(self, |_, _| true, |one| rows.push(one));
        rows.into_iter()
    }

    /// Adds a band below the others, unless it is empty.
    fn push(&mut self, rows: MemberSpan, columns: std::ops::Range<usize>) {
        if !rows.is_empty() && !columns.is_empty() {
            self.bands[self.len] = Band { rows, first: columns.start, count: columns.len() };
            self.len += 1;
        }
    }
}

impl Deref for Bands {
    type Target = [Band];

    fn deref(&self) -> &[Band] {
        &self.bands[..self.len]
    }
}

/// The method that computes the parity of a band's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// From the request alone, which writes every data column. Nothing is read.
    #[default]
    Full,
    /// From the old parity, the old data and the new data. Every written column is there; what is
    /// there of P and Q is read.
    Modify,
    /// From the new data and those that are not written, which are all there.
    Reconstruct,
    /// From everything: what is there is read, what is lost is worked out, the new data are laid
    /// over it.
    Restore,
    /// Not at all: neither P nor Q is there. Nothing is read.
    Plain,
}

/// The agreement of a stripe's parity with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParityState {
    /// It fits.
    InSync,
    /// It may not: a resync is due, as after a crash or before the first one.
    Unknown,
}

/// The lost columns of a stripe: at most as many as it has parities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lost {
    columns: [Option<Column>; 2],
    /// Parity that is lost, but has a member that is to have it.
    written: [Option<Column>; 2],
}

impl Lost {
    /// Nothing is lost.
    pub const NOTHING: Lost = Lost { columns: [None; 2], written: [None; 2] };

    /// Returns the lost columns of `stripe` if only the members for which `available` holds are there; `None`
    /// if parity does not make up for all of them.
    pub fn of(geometry: &Raid456, stripe: u64, available: &dyn Fn(Role) -> bool) -> Option<Lost> {
        let mut lost = Lost::NOTHING;
        let mut places = lost.columns.iter_mut().take(geometry.parities());
        for role in Role::all(geometry.members()).filter(|&role| !available(role)) {
            *places.next()? = Some(geometry.column_of(stripe, role));
        }
        Some(lost)
    }

    /// `column` cannot be read, but has a member that is written: one that is being filled, or
    /// that could not read these rows. Parity then has to be worked out without its old content;
    /// of data the mark says nothing.
    pub fn is_written(&mut self, column: Column) {
        assert!(self.has(column), "what can be read needs no mark");
        let free = self.written.iter_mut().find(|place| place.is_none());
        *free.expect("no more is lost than there is parity") = Some(column);
    }

    /// Returns true if this column is lost, and no member is to have it.
    fn is_gone(&self, column: Column) -> bool {
        self.has(column) && !self.written.contains(&Some(column))
    }

    /// The lost columns.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.columns.into_iter().flatten()
    }

    /// Returns true if this column is lost.
    #[must_use]
    pub fn has(&self, column: Column) -> bool {
        self.columns.contains(&Some(column))
    }

    /// Returns true if a lost data column satisfies `which`.
    fn has_data(&self, which: impl Fn(Column) -> bool) -> bool {
        self.columns().any(|column| matches!(column, Column::Data(_)) && which(column))
    }
}

/// Cuts `span` of the array at the stripes' ends: each stripe's number and its part of `span`, in
/// bytes of the array.
pub fn split_stripes(
    geometry: &Raid456,
    span: ArraySpan,
) -> impl Iterator<Item = (u64, ArraySpan)> + use<> {
    debug_assert!(span.is_within(geometry.size()));
    let width = geometry.stripe();
    let stripes = span.offset / width..span.end().get().div_ceil(width);
    stripes.filter(move |_| !span.is_empty()).map(move |stripe| {
        let start = span.offset.max(ArrayByte::new(stripe * width));
        let end = span.end().min(ArrayByte::new((stripe + 1) * width));
        (stripe, ArraySpan::between(start, end))
    })
}

/// The bands of `span` of the array, which lies within `stripe`; none if it is empty.
///
/// # Panics
/// If it does not lie within the stripe.
#[must_use]
pub fn bands(geometry: &Raid456, stripe: u64, span: ArraySpan) -> Bands {
    let (chunk, width) = (geometry.chunk(), geometry.stripe());
    let whole = geometry.span_of_stripe(stripe);
    let start = whole.offset;
    assert!(whole.covers(span), "{span} is not within stripe {stripe} of {width} bytes");
    let mut bands = Bands::default();
    if span.is_empty() {
        return bands;
    }
    let first_row = geometry.rows_of_stripe(stripe).offset;
    let rows = |from: u64, to: u64| MemberSpan::new(first_row + from, to - from);
    // The first byte's column and row, and the last byte's column and the row behind it.
    let (first, top) = column_and_row(span.offset - start, chunk);
    let (last, row) = column_and_row(span.end() - start - 1, chunk);
    let bottom = row + 1;
    if first == last {
        bands.push(rows(top, bottom), first..first + 1);
        return bands;
    }
    // The first column is written from `top` on, the last one down to `bottom`, those between
    // whole.
    bands.push(rows(0, top.min(bottom)), first + 1..last + 1);
    if top < bottom {
        bands.push(rows(top, bottom), first..last + 1);
    } else {
        bands.push(rows(bottom, top), first + 1..last);
    }
    bands.push(rows(top.max(bottom), chunk), first..last);
    bands
}

/// The data column of a byte of a stripe, and its place in the chunk.
fn column_and_row(offset: u64, chunk: u64) -> (usize, u64) {
    ((offset / chunk) as usize, offset % chunk)
}

/// The method for each band, by index; what stands behind the last band has no meaning.
///
/// Of all that can be done, that with the fewest reads, then with the fewest bytes read, then the
/// most Modify, which keeps to members that are written anyway. A band that needs no reads has none,
/// not even to join two others. Where the parity is not known to be in sync, Modify only if there is
/// no other way: it would keep a wrong parity wrong.
#[must_use]
pub fn choose(
    geometry: &Raid456,
    bands: &Bands,
    lost: &Lost,
    parity: ParityState,
) -> [Method; MAX_BANDS] {
    let mut choices = [(Method::Full, Method::Full); MAX_BANDS];
    for (index, band) in bands.iter().enumerate() {
        choices[index] = possible(geometry, band, lost, parity);
    }
    // Each bit of `seconds` stands for a band that takes its second choice.
    let pick = |seconds: usize, index: usize| match (seconds >> index & 1, choices[index]) {
        (0, (first, _)) => first,
        (_, (_, second)) => second,
    };
    (0..1 << bands.len())
        .map(|seconds| std::array::from_fn(|index| pick(seconds, index)))
        .min_by_key(|methods| cost(geometry, bands, methods, lost))
        .expect("there is a choice")
}

/// Returns the possible methods of a band: a first choice, and a second one, or the first again.
fn possible(geometry: &Raid456, band: &Band, lost: &Lost, parity: ParityState) -> (Method, Method) {
    if parities(geometry).all(|parity| lost.is_gone(parity)) {
        return (Method::Plain, Method::Plain);
    }
    if band.count == geometry.data() {
        return (Method::Full, Method::Full);
    }
    let is_blind = parities(geometry).any(|parity| lost.has(parity) && !lost.is_gone(parity));
    let modify = !is_blind && !lost.has_data(|column| band.covers(column));
    let reconstruct = !lost.has_data(|column| !band.covers(column));
    match (modify, reconstruct) {
        (true, true) if parity == ParityState::InSync => (Method::Modify, Method::Reconstruct),
        (_, true) => (Method::Reconstruct, Method::Reconstruct),
        (true, false) => (Method::Modify, Method::Modify),
        (false, false) => (Method::Restore, Method::Restore),
    }
}

/// Returns the number of reads, their bytes, and the number of bands by Reconstruct.
fn cost(
    geometry: &Raid456,
    bands: &Bands,
    methods: &[Method; MAX_BANDS],
    lost: &Lost,
) -> (usize, u64, usize) {
    let (mut count, mut bytes) = (0, 0);
    for column in columns(geometry) {
        let reads = |index: usize, band: &Band| band.reads(methods[index], column, lost);
        merge(bands, reads, |rows| {
            count += 1;
            bytes += rows.len;
        });
    }
    let chosen = methods.iter().take(bands.len());
    (count, bytes, chosen.filter(|method| **method == Method::Reconstruct).count())
}

/// Returns the reads of the chosen methods: members and their bytes, in the order of the columns. Bands that
/// touch are one read.
#[must_use]
pub fn reads(
    geometry: &Raid456,
    stripe: u64,
    bands: &Bands,
    methods: &[Method; MAX_BANDS],
    lost: &Lost,
) -> Vec<(Role, MemberSpan)> {
    let mut reads = Vec::new();
    for column in columns(geometry) {
        merge(
            bands,
            |index, band| band.reads(methods[index], column, lost),
            |rows| {
                reads.push((geometry.role_of(stripe, column), rows));
            },
        );
    }
    reads
}

/// Returns the writes of these bands, the same for all methods: members and their bytes, in the order of the
/// columns. Bands that touch are one write.
#[must_use]
pub fn writes(
    geometry: &Raid456,
    stripe: u64,
    bands: &Bands,
    lost: &Lost,
) -> Vec<(Role, MemberSpan)> {
    let mut writes = Vec::new();
    for column in columns(geometry).filter(|column| !lost.has(*column)) {
        let is_parity = !matches!(column, Column::Data(_));
        merge(
            bands,
            |_, band| is_parity || band.covers(column),
            |rows| {
                writes.push((geometry.role_of(stripe, column), rows));
            },
        );
    }
    writes
}

/// From which roles' rows that of `role` is reconstructed, if only those for which `readable` holds
/// can be read; `None` if they do not suffice. No more than are needed: all other data that can
/// be read, and as much parity as data cannot.
#[must_use]
pub fn sources(
    geometry: &Raid456,
    stripe: u64,
    role: Role,
    readable: &dyn Fn(Role) -> bool,
) -> Option<Vec<Role>> {
    let can_be_read = |other: &Role| *other != role && readable(*other);
    let data = (0..geometry.data()).map(|index| geometry.role_of(stripe, Column::Data(index)));
    let mut sources: Vec<Role> = data.filter(can_be_read).collect();
    let lost = geometry.data() - sources.len();
    let parity = parities(geometry).map(|column| geometry.role_of(stripe, column));
    sources.extend(parity.filter(can_be_read).take(lost));
    (sources.len() == geometry.data()).then_some(sources)
}

/// Gives `each` the rows of the bands for which `which` holds, those that touch as one.
fn merge(bands: &Bands, which: impl Fn(usize, &Band) -> bool, mut each: impl FnMut(MemberSpan)) {
    let mut open: Option<MemberSpan> = None;
    for (index, band) in bands.iter().enumerate() {
        if !which(index, band) {
            continue;
        }
        match &mut open {
            Some(rows) if rows.end() == band.rows.offset => rows.len += band.rows.len,
            _ => {
                if let Some(rows) = open.replace(band.rows) {
                    each(rows);
                }
            }
        }
    }
    if let Some(rows) = open {
        each(rows);
    }
}

/// The columns of a stripe: data, then parity.
fn columns(geometry: &Raid456) -> impl Iterator<Item = Column> + use<> {
    (0..geometry.data()).map(Column::Data).chain(parities(geometry))
}

/// P, and of a raid6 Q.
fn parities(geometry: &Raid456) -> impl Iterator<Item = Column> + use<> {
    [Column::P, Column::Q].into_iter().take(geometry.parities())
}
