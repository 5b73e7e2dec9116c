//! The content of members' images as an array, and whether copies and parity agree.
//!
//! ```text
//!   copies   | A | A |       any copy that is there; they agree if all are the same
//!   parity   | D0 | D1 | P | Q |   lost data is computed; they agree if P and Q are the sums
//! ```
//!
//! The computations use plain arithmetic; apart from the geometry, no code under test is used here: a product
//! in GF(2^8)/0x11d is a sum of shifts.

use std::sync::LazyLock;

use braid_array::geometry::{Column, Raid456};
use braid_array::{ArrayByte, Geometry};
use braid_engine::redundant::Layout;

use crate::Image;

/// The unit of comparison, in bytes.
pub const BLOCK: u64 = 512;

/// A member that holds a role's data.
#[derive(Clone, Copy)]
pub struct Holder<'a> {
    /// Its disk.
    pub image: &'a Image,
    /// The start of its data in the image.
    pub data_offset: usize,
    /// The member has the role's data below this byte.
    pub up_to: u64,
}

impl<'a> Holder<'a> {
    fn block(&self, row: u64) -> &'a [u8] {
        self.image.piece(self.data_offset + row as usize, BLOCK as usize)
    }
}

/// A set of members, looked at as an array.
#[derive(Clone)]
pub struct View<'a> {
    layout: Layout,
    /// By role.
    holders: Vec<Vec<Holder<'a>>>,
}

impl<'a> View<'a> {
    /// `holders` are by role.
    pub fn new(layout: Layout, holders: Vec<Vec<Holder<'a>>>) -> View<'a> {
        View { layout, holders }
    }

    /// The same view without the members with the roles `lost`.
    #[must_use]
    pub fn without(&self, lost: &[usize]) -> View<'a> {
        let mut view = self.clone();
        lost.iter().for_each(|role| view.holders[*role].clear());
        view
    }

    /// For each role, true if a member has all of it.
    pub fn in_sync(&self) -> Vec<bool> {
        let whole = |role: &Vec<Holder<'_>>| role.iter().any(|one| one.up_to == u64::MAX);
        self.holders.iter().map(whole).collect()
    }

    /// Gives `each` the offset and the content of every block of the array, in any order; of copies number `choice`
    /// of those that are there. A block that too few members have has none. Returns the most copies that a block
    /// has: with a `choice` from there on, the result is that of 0.
    pub fn each_block(&self, choice: usize, mut each: impl FnMut(u64, Option<&[u8]>)) -> usize {
        match &self.layout {
            Layout::Copies(_) => {
                let mut most = 0;
                for offset in (0..self.layout.size()).step_by(BLOCK as usize) {
                    let (count, chosen) = self.copy(offset, choice);
                    debug_assert_eq!(count == 0, chosen.is_none());
                    most = most.max(count);
                    each(offset, chosen);
                }
                most
            }
            Layout::Parity(geometry) => {
                self.each_of_parity(geometry, each);
                1
            }
        }
    }

    /// The places where copies differ, or where parity does not fit data that is all present: blocks in sync
    /// bytes (of the array for copies, of each member's data with parity).
    pub fn misfits(&self) -> Vec<u64> {
        let blocks = (0..self.layout.sync_size()).step_by(BLOCK as usize);
        match &self.layout {
            Layout::Copies(_) => blocks.filter(|offset| !self.copies_agree(*offset)).collect(),
            Layout::Parity(geometry) => blocks.filter(|row| !self.fits(geometry, *row)).collect(),
        }
    }

    /// The number of copies of the block at `offset`, and copy number `choice`.
    fn copy(&self, offset: u64, choice: usize) -> (usize, Option<&'a [u8]>) {
        let mut first = None;
        let (mut count, mut chosen) = (0, None);
        self.each_copy(offset, |copy| {
            first = first.or(Some(copy));
            if count == choice {
                chosen = Some(copy);
            }
            count += 1;
        });
        (count, chosen.or(first))
    }

    fn copies_agree(&self, offset: u64) -> bool {
        let (mut first, mut agree) = (None, true);
        self.each_copy(offset, |copy| agree &= *first.get_or_insert(copy) == copy);
        agree
    }

    fn each_copy(&self, offset: u64, mut each: impl FnMut(&'a [u8])) {
        let Layout::Copies(geometry) = &self.layout else { return };
        for copy in 0..geometry.copies() {
            let run = geometry.locate(ArrayByte::new(offset), copy);
            let row = run.offset.get();
            for holder in &self.holders[run.role.index()] {
                if row < holder.up_to {
                    each(holder.block(row));
                }
            }
        }
    }

    /// A column's data of the block at `row`; `None` if no member has it.
    fn column(&self, geometry: &Raid456, row: u64, column: Column) -> Option<&'a [u8]> {
        let role = geometry.role_of(row / geometry.chunk(), column);
        let holder = self.holders[role.index()].iter().find(|holder| row < holder.up_to)?;
        Some(holder.block(row))
    }

    fn each_of_parity(&self, geometry: &Raid456, mut each: impl FnMut(u64, Option<&[u8]>)) {
        let (chunk, width) = (geometry.chunk(), geometry.stripe());
        let mut columns: Vec<Option<&[u8]>> = Vec::new();
        for row in (0..geometry.member_size()).step_by(BLOCK as usize) {
            columns.clear();
            let all = 0..geometry.data();
            columns.extend(all.map(|index| self.column(geometry, row, Column::Data(index))));
            let made = match columns.contains(&None) {
                true => self.work_out(geometry, row, &columns),
                false => Vec::new(),
            };
            for (index, column) in columns.iter().enumerate() {
                let at = row / chunk * width + index as u64 * chunk + row % chunk;
                let made = made.iter().find(|(one, _)| *one == index).map(|(_, block)| &block[..]);
                each(at, column.or(made));
            }
        }
    }

    /// The data columns of a block of rows that are not there, as far as parity gives them.
    fn work_out(
        &self,
        geometry: &Raid456,
        row: u64,
        columns: &[Option<&[u8]>],
    ) -> Vec<(usize, Vec<u8>)> {
        let factor = |index| power_of_two(geometry.power(row / geometry.chunk(), index));
        let lost: Vec<usize> = (0..columns.len()).filter(|one| columns[*one].is_none()).collect();
        let p = self.column(geometry, row, Column::P);
        let q = (geometry.parities() == 2).then(|| self.column(geometry, row, Column::Q)).flatten();
        // What P and Q say of what is lost alone.
        let p = p.map(|p| less(p, columns, |_| 1));
        let q = q.map(|q| less(q, columns, factor));
        match (&lost[..], p, q) {
            (&[index], Some(p), _) => vec![(index, p)],
            (&[index], None, Some(q)) => vec![(index, product(inverse(factor(index)), &q))],
            (&[a, b], Some(mut p), Some(mut q)) => {
                // p = a + b and q = fa·a + fb·b, so q + fb·p = (fa + fb)·a.
                add(&mut q, factor(b), &p);
                let first = product(inverse(factor(a) ^ factor(b)), &q);
                add(&mut p, 1, &first);
                vec![(a, first), (b, p)]
            }
            _ => Vec::new(),
        }
    }

    /// True if parity fits the block at `row`, as far as it is present; also true if data is missing.
    fn fits(&self, geometry: &Raid456, row: u64) -> bool {
        let has_q = geometry.parities() == 2;
        let (mut p, mut q) = ([0; BLOCK as usize], [0; BLOCK as usize]);
        for index in 0..geometry.data() {
            let Some(block) = self.column(geometry, row, Column::Data(index)) else { return true };
            add(&mut p, 1, block);
            if has_q {
                add(&mut q, power_of_two(geometry.power(row / geometry.chunk(), index)), block);
            }
        }
        let is_sum = |column, sum: &[u8]| {
            self.column(geometry, row, column).is_none_or(|parity| parity == sum)
        };
        is_sum(Column::P, &p) && (!has_q || is_sum(Column::Q, &q))
    }
}

/// The parities of `data`, a block of each column, in a stripe: P, and Q of levels that have one.
pub fn parities(geometry: &Raid456, stripe: u64, data: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
    let mut p = vec![0; data[0].len()];
    let mut q = p.clone();
    for (index, block) in data.iter().enumerate() {
        add(&mut p, 1, block);
        if geometry.parities() == 2 {
            add(&mut q, power_of_two(geometry.power(stripe, index)), block);
        }
    }
    (p, q)
}

/// All sets of up to `most`, 0 to 2, of `count` roles; the empty one first.
pub fn losses(count: usize, most: usize) -> Vec<Vec<usize>> {
    let mut losses = vec![Vec::new()];
    if most > 0 {
        losses.extend((0..count).map(|role| vec![role]));
    }
    if most > 1 {
        losses.extend((0..count).flat_map(|a| (0..a).map(move |b| vec![a, b])));
    }
    losses
}

fn less(sum: &[u8], data: &[Option<&[u8]>], factor: impl Fn(usize) -> u8) -> Vec<u8> {
    let mut sum = sum.to_vec();
    for (index, block) in data.iter().enumerate() {
        if let Some(block) = block {
            add(&mut sum, factor(index), block);
        }
    }
    sum
}

/// Adds `factor · source` to `sum`.
fn add(sum: &mut [u8], factor: u8, source: &[u8]) {
    if factor == 1 {
        sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= byte);
        return;
    }
    let products = &PRODUCTS[usize::from(factor)];
    sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= products[usize::from(*byte)]);
}

fn product(factor: u8, block: &[u8]) -> Vec<u8> {
    let mut product = vec![0; block.len()];
    add(&mut product, factor, block);
    product
}

/// The product of two numbers of the field.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

/// All products, by both factors.
static PRODUCTS: LazyLock<Vec<[u8; 256]>> = LazyLock::new(|| {
    let with = |factor: u8| std::array::from_fn(|other| times(factor, other as u8));
    (0..=255).map(with).collect()
});

fn power_of_two(power: u8) -> u8 {
    (0..power).fold(1, |product, _| times(product, 2))
}

fn inverse(of: u8) -> u8 {
    let mut products = PRODUCTS[usize::from(of)].iter();
    products.position(|product| *product == 1).expect("0 has no inverse") as u8
}
