//! Plans of writes to arrays with parity, carried out on members in memory and compared with what
//! the array must hold; and that no other plan reads less.
//!
//! A block of 4096 bytes is one byte here, on the members as in the array.

use std::sync::LazyLock;

use braid_array::coordinates::{Coordinate, Stretch};
use braid_array::geometry::{Column, Raid456};
use braid_array::parity_plan::{
    Band, Bands, Lost, MAX_BANDS, Method, ParityState, bands, choose, reads, split_stripes, writes,
};
use braid_array::{ArrayByte, ArraySpan, ByRole, Geometry, Role};
use braid_level::{ParityLayout, ParityLevel};

const BLOCK: u64 = 4096;

/// Times in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { 0x1d } else { 0 };
        b >>= 1;
    }
    product
}

/// The powers of g, which go round after 255.
static POWERS: LazyLock<[u8; 255]> = LazyLock::new(|| {
    let mut powers = [1; 255];
    for power in 1..255 {
        powers[power] = times(powers[power - 1], 2);
    }
    powers
});

/// g^power.
fn g(power: u8) -> u8 {
    POWERS[usize::from(power)]
}

/// The inverse of g^power is g^(255 - power).
fn inverse(a: u8) -> u8 {
    let power = POWERS.iter().position(|&one| one == a).expect("zero has no inverse");
    POWERS[(255 - power) % 255]
}

fn blocks<C: Coordinate>(span: Stretch<C>) -> std::ops::Range<usize> {
    (span.offset / BLOCK) as usize..(span.end() / BLOCK) as usize
}

fn columns(raid: &Raid456) -> impl Iterator<Item = Column> + use<> {
    let parities = [Column::P, Column::Q].into_iter().take(raid.parities());
    (0..raid.data()).map(Column::Data).chain(parities)
}

/// One row of a stripe: its data, and the parity that belongs to them.
struct Row {
    factors: Vec<u8>,
    data: Vec<u8>,
}

impl Row {
    fn new(raid: &Raid456, stripe: u64, data: Vec<u8>) -> Row {
        let factor = |index| match raid.level() {
            ParityLevel::Raid6 => g(raid.power(stripe, index)),
            _ => 1,
        };
        Row { factors: (0..raid.data()).map(factor).collect(), data }
    }

    /// From what is there of the row, by column; `None` for what is lost.
    fn recover(raid: &Raid456, stripe: u64, held: impl Fn(Column) -> Option<u8>) -> Row {
        let data: Vec<Option<u8>> =
            (0..raid.data()).map(|index| held(Column::Data(index))).collect();
        let missing: Vec<usize> = (0..raid.data()).filter(|&index| data[index].is_none()).collect();
        let known = data.into_iter().map(Option::unwrap_or_default).collect();
        let mut row = Row::new(raid, stripe, known);
        // What the missing ones add to P, and to Q.
        let p = held(Column::P).map(|p| p ^ row.parity(Column::P));
        let has_q = raid.parities() == 2;
        let q = has_q.then(|| held(Column::Q)).flatten().map(|q| q ^ row.parity(Column::Q));
        match (&missing[..], p, q) {
            ([], _, _) => {}
            (&[one], Some(p), _) => row.data[one] = p,
            (&[one], None, Some(q)) => row.data[one] = times(q, inverse(row.factors[one])),
            (&[one, other], Some(p), Some(q)) => {
                // one + other = p, f·one + h·other = q; hence (f + h)·one = q + h·p.
                let (f, h) = (row.factors[one], row.factors[other]);
                row.data[one] = times(q ^ times(h, p), inverse(f ^ h));
                row.data[other] = row.data[one] ^ p;
            }
            _ => panic!("{missing:?} cannot be recovered"),
        }
        row
    }

    fn parity(&self, column: Column) -> u8 {
        self.data.iter().zip(&self.factors).fold(0, |sum, (&data, &factor)| match column {
            Column::Q => sum ^ times(data, factor),
            _ => sum ^ data,
        })
    }

    fn column(&self, column: Column) -> u8 {
        match column {
            Column::Data(index) => self.data[index],
            parity => self.parity(parity),
        }
    }
}

/// An array in memory: `None` in bytes that must not be read.
#[derive(Clone)]
struct Model {
    members: ByRole<Vec<Option<u8>>>,
}

impl Model {
    /// The members of an array that holds `content`, and nothing on those that are lost.
    fn new(raid: &Raid456, content: &[u8], available: &dyn Fn(Role) -> bool) -> Model {
        let height = (raid.member_size() / BLOCK) as usize;
        let mut members = ByRole::new(raid.members(), |_| vec![None; height]);
        for (place, stripe, row) in rows(raid, content) {
            for column in columns(raid) {
                let role = raid.role_of(stripe, column);
                if available(role) {
                    members[role][place] = Some(row.column(column));
                }
            }
        }
        Model { members }
    }

    /// Carries a write out as the plan says, with nothing but what the plan reads and writes.
    fn write(&mut self, raid: &Raid456, part: &Part, new: &dyn Fn(Column, usize) -> u8) {
        let height = self.members[Role::new(0)].len();
        let nothing = ByRole::new(self.members.len(), |_| vec![None; height]);
        let (mut read, mut used) = (nothing.clone(), nothing.clone());
        for (role, span) in reads(raid, part.stripe, &part.bands, &part.methods, &part.lost) {
            for place in blocks(span) {
                assert!(self.members[role][place].is_some(), "reads what is lost");
                assert!(read[role][place].is_none(), "reads twice");
                read[role][place] = self.members[role][place];
            }
        }
        let mut result = nothing;
        for (band, method) in part.bands.iter().zip(part.methods) {
            for place in blocks(band.rows) {
                let mut take = |column| {
                    let role = raid.role_of(part.stripe, column);
                    used[role][place] = read[role][place];
                    read[role][place]
                };
                let row =
                    part.carry_out(raid, band, method, &mut take, &|column| new(column, place));
                for (column, value) in row {
                    result[raid.role_of(part.stripe, column)][place] = Some(value);
                }
            }
        }
        assert_eq!(used, read, "what is read is of use");
        for (role, span) in writes(raid, part.stripe, &part.bands, &part.lost) {
            for place in blocks(span) {
                assert!(self.members[role][place].is_some(), "writes to a lost member");
                self.members[role][place] =
                    Some(result[role][place].take().expect("a value to write"));
            }
        }
        assert!(result.values().flatten().all(Option::is_none), "something is not written");
    }
}

/// Each row of the array: its place on the members, its stripe, and what is in it.
fn rows<'a>(raid: &'a Raid456, content: &'a [u8]) -> impl Iterator<Item = (usize, u64, Row)> + 'a {
    let chunk = (raid.chunk() / BLOCK) as usize;
    (0..raid.stripes() as usize * chunk).map(move |place| {
        let (stripe, within) = (place / chunk, place % chunk);
        let first = stripe * chunk * raid.data() + within;
        let data = (0..raid.data()).map(|index| content[first + index * chunk]).collect();
        (place, stripe as u64, Row::new(raid, stripe as u64, data))
    })
}

/// The part of a write in one stripe.
struct Part {
    stripe: u64,
    bands: Bands,
    lost: Lost,
    methods: [Method; MAX_BANDS],
}

impl Part {
    fn new(
        raid: &Raid456,
        stripe: u64,
        span: ArraySpan,
        available: &dyn Fn(Role) -> bool,
        parity: ParityState,
    ) -> Part {
        let bands = bands(raid, stripe, span);
        let lost = Lost::of(raid, stripe, available).unwrap();
        Part { stripe, bands, lost, methods: choose(raid, &bands, &lost, parity) }
    }

    /// The columns of a row that are to be written, and their values.
    fn carry_out(
        &self,
        raid: &Raid456,
        band: &Band,
        method: Method,
        read: &mut dyn FnMut(Column) -> Option<u8>,
        new: &dyn Fn(Column) -> u8,
    ) -> Vec<(Column, u8)> {
        let covered: Vec<Column> = columns(raid).filter(|column| band.covers(*column)).collect();
        let parities = columns(raid).skip(raid.data());
        let parities: Vec<Column> = parities.filter(|parity| !self.lost.has(*parity)).collect();
        let there = covered.iter().filter(|column| !self.lost.has(**column));
        let mut written: Vec<(Column, u8)> = there.map(|&column| (column, new(column))).collect();
        let mut row = Row::new(raid, self.stripe, vec![0; raid.data()]);
        match method {
            Method::Plain => assert!(parities.is_empty()),
            Method::Full => assert_eq!(covered.len(), raid.data()),
            Method::Modify => {
                // The row of changes has the changes' parity.
                for &column in &covered {
                    let Column::Data(index) = column else { panic!("parity in a request") };
                    row.data[index] = read(column).expect("old data") ^ new(column);
                }
                for parity in parities {
                    let old = read(parity).expect("old parity");
                    written.push((parity, old ^ row.parity(parity)));
                }
                return written;
            }
            Method::Reconstruct => {
                for column in columns(raid).take(raid.data()).filter(|c| !band.covers(*c)) {
                    let Column::Data(index) = column else { panic!("data come first") };
                    row.data[index] = read(column).expect("data that is not written");
                }
            }
            Method::Restore => {
                let held: Vec<(Column, Option<u8>)> =
                    columns(raid).map(|column| (column, read(column))).collect();
                let value = |column| held.iter().find(|(one, _)| *one == column)?.1;
                row = Row::recover(raid, self.stripe, value);
            }
        }
        for &column in &covered {
            let Column::Data(index) = column else { panic!("parity in a request") };
            row.data[index] = new(column);
        }
        written.extend(parities.iter().map(|&parity| (parity, row.parity(parity))));
        written
    }
}

/// Every set of members that an array of this kind can lose.
fn losses(raid: &Raid456) -> impl Iterator<Item = u32> {
    let most = raid.parities();
    (0..1u32 << raid.members()).filter(move |lost| lost.count_ones() as usize <= most)
}

/// Every span of blocks that starts in the first of two stripes.
fn shapes(raid: &Raid456) -> impl Iterator<Item = ArraySpan> {
    let stripe = raid.stripe() / BLOCK;
    (0..stripe).flat_map(move |start| {
        let first = ArrayByte::new(start * BLOCK);
        (1..=2 * stripe - start).map(move |len| ArraySpan::new(first, len * BLOCK))
    })
}

fn raid(members: usize, chunk: u64, level: ParityLevel, layout: ParityLayout) -> Raid456 {
    Raid456::new(2 * chunk * BLOCK, members, chunk * BLOCK, level, layout).unwrap()
}

/// Writes every shape to the array without every loss, and looks at every byte afterwards.
fn check_writes(raid: &Raid456) {
    let old: Vec<u8> = (0..raid.size() / BLOCK).map(|block| (block * 37 + 11) as u8).collect();
    for lost in losses(raid) {
        let available = |role: Role| lost >> role.index() & 1 == 0;
        let before = Model::new(raid, &old, &available);
        for span in shapes(raid) {
            let mut content = old.clone();
            for block in blocks(span) {
                content[block] = (block * 101 + 7) as u8;
            }
            let mut model = before.clone();
            for (stripe, part) in split_stripes(raid, span) {
                let part = Part::new(raid, stripe, part, &available, ParityState::InSync);
                let new = |column: Column, place: usize| {
                    let Column::Data(index) = column else { panic!("parity in a request") };
                    let chunk = (raid.chunk() / BLOCK) as usize;
                    let start = stripe as usize * raid.data() + index;
                    let block = start * chunk + place % chunk;
                    assert!(blocks(span).contains(&block), "not part of the request");
                    content[block]
                };
                model.write(raid, &part, &new);
            }
            for (place, stripe, row) in rows(raid, &content) {
                let held = |column| model.members[raid.role_of(stripe, column)][place];
                let (level, layout) = (raid.level(), raid.layout());
                let label = || format!("{level} {layout}, {lost:#b} lost, {span}, row {place}");
                for column in columns(raid) {
                    let there = available(raid.role_of(stripe, column));
                    let expected = there.then(|| row.column(column));
                    assert_eq!(held(column), expected, "{}", label());
                }
                if lost != 0 {
                    let recovered = Row::recover(raid, stripe, held);
                    assert_eq!(recovered.data, row.data, "{}", label());
                }
            }
        }
    }
}

fn check_level(level: ParityLevel, most_members: usize, chunk: u64) {
    for layout in ParityLayout::all().filter(|layout| layout.suits(level)) {
        for members in level.least_members()..=most_members {
            check_writes(&raid(members, chunk, level, layout));
        }
    }
}

#[test]
fn every_write_to_every_raid4_and_raid5_leaves_what_it_must() {
    for chunk in [2, 4] {
        check_level(ParityLevel::Raid4, 6, chunk);
        check_level(ParityLevel::Raid5, 6, chunk);
    }
}

#[test]
fn every_write_to_every_raid6_with_chunks_of_2_blocks_leaves_what_it_must() {
    check_level(ParityLevel::Raid6, 6, 2);
}

/// All there can be of bands; over six members only one layout for each way to count powers.
#[test]
fn every_write_to_every_raid6_with_chunks_of_4_blocks_leaves_what_it_must() {
    check_level(ParityLevel::Raid6, 5, 4);
    for layout in ["left-symmetric", "left-symmetric-6", "ddf-N-continue"] {
        check_writes(&raid(6, 4, ParityLevel::Raid6, ParityLayout::from_name(layout).unwrap()));
    }
}
