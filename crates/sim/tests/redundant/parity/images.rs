//! The content of disks' images as an array, and whether its parity fits.
//!
//! It is computed byte by byte with plain arithmetic; apart from the geometry, no code under test is used: a
//! product in GF(2^8)/0x11d is a sum of shifts.

use std::sync::LazyLock;

use braid_array::Geometry;
use braid_array::geometry::{Column, Raid456};

use crate::world::{Assembly, DATA, Shape, data_of};

/// The unit of comparison: rows of this many bytes.
const BLOCK: u64 = 512;

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
    (1..=255).find(|other| times(of, *other) == 1).expect("0 has no inverse")
}

/// Adds `factor · source` to `sum`.
fn add(sum: &mut [u8], factor: u8, source: &[u8]) {
    let products = &PRODUCTS[usize::from(factor)];
    sum.iter_mut().zip(source).for_each(|(sum, byte)| *sum ^= products[usize::from(*byte)]);
}

/// A set of images, looked at as an array.
pub(crate) struct Stripes<'a> {
    geometry: Raid456,
    images: &'a [Option<Vec<u8>>],
    /// By role: the images that have it, and up to where.
    holders: Vec<Vec<(usize, u64)>>,
}

impl<'a> Stripes<'a> {
    /// By what the superblocks say.
    pub(crate) fn new(shape: &Shape, images: &'a [Option<Vec<u8>>]) -> Stripes<'a> {
        Stripes::without(shape, images, &[])
    }

    /// The same, as if the members of the roles `lost` were not there.
    pub(crate) fn without(
        shape: &Shape,
        images: &'a [Option<Vec<u8>>],
        lost: &[usize],
    ) -> Stripes<'a> {
        let mut holders = Assembly::new(images).holders();
        lost.iter().for_each(|role| holders[*role].clear());
        Stripes { geometry: shape.stripes(), images, holders }
    }

    /// The number of roles that are in sync.
    pub(crate) fn roles_in_sync(&self) -> usize {
        let in_sync = |role: &&Vec<(usize, u64)>| role.iter().any(|one| one.1 == u64::MAX);
        self.holders.iter().filter(in_sync).count()
    }

    /// The data of `role` in the block at `row`; `None` if no image has it.
    fn get(&self, role: usize, row: u64) -> Option<&'a [u8]> {
        let (index, _) = self.holders[role].iter().find(|(_, up_to)| row < *up_to)?;
        let image = self.images[*index].as_deref()?;
        Some(&data_of(image)[row as usize..][..BLOCK as usize])
    }

    fn rows(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.geometry.member_size()).step_by(BLOCK as usize)
    }

    fn column(&self, row: u64, column: Column) -> Option<&'a [u8]> {
        self.get(self.geometry.role_of(row / self.geometry.chunk(), column).index(), row)
    }

    /// The data of the block at `row`, column by column; `None` where that is lost.
    fn data(&self, row: u64) -> Vec<Option<Vec<u8>>> {
        let columns = (0..self.geometry.data()).map(Column::Data);
        let mut data: Vec<Option<Vec<u8>>> =
            columns.map(|column| self.column(row, column).map(<[u8]>::to_vec)).collect();
        let lost: Vec<usize> = (0..data.len()).filter(|index| data[*index].is_none()).collect();
        let p = self.column(row, Column::P);
        let q = (self.geometry.parities() == 2).then(|| self.column(row, Column::Q)).flatten();
        // What P and Q say of what is lost alone.
        let p = p.map(|p| self.less(p, &data, |_| 1));
        let q = q.map(|q| self.less(q, &data, |index| self.factor(row, index)));
        match (&lost[..], p, q) {
            (&[index], Some(p), _) => data[index] = Some(p),
            (&[index], None, Some(q)) => {
                data[index] = Some(product(inverse(self.factor(row, index)), &q));
            }
            (&[a, b], Some(mut p), Some(mut q)) => {
                // p = a + b and q = fa·a + fb·b, so q + fb·p = (fa + fb)·a.
                let factors = [self.factor(row, a), self.factor(row, b)];
                add(&mut q, factors[1], &p);
                let first = product(inverse(factors[0] ^ factors[1]), &q);
                add(&mut p, 1, &first);
                (data[a], data[b]) = (Some(first), Some(p));
            }
            _ => {}
        }
        data
    }

    /// By what Q takes a data column.
    fn factor(&self, row: u64, index: usize) -> u8 {
        power_of_two(self.geometry.power(row / self.geometry.chunk(), index))
    }

    fn less(&self, sum: &[u8], data: &[Option<Vec<u8>>], factor: impl Fn(usize) -> u8) -> Vec<u8> {
        let mut sum = sum.to_vec();
        for (index, block) in data.iter().enumerate() {
            if let Some(block) = block {
                add(&mut sum, factor(index), block);
            }
        }
        sum
    }

    /// The array's content, and the blocks of it that too few images have, which are zeroes.
    pub(crate) fn contents(&self) -> (Vec<u8>, Vec<u64>) {
        let (chunk, width) = (self.geometry.chunk(), self.geometry.stripe());
        let mut contents = vec![0; self.geometry.size() as usize];
        let mut lost = Vec::new();
        for row in self.rows() {
            for (index, block) in self.data(row).into_iter().enumerate() {
                let at = row / chunk * width + index as u64 * chunk + row % chunk;
                match block {
                    Some(block) => contents[at as usize..][..block.len()].copy_from_slice(&block),
                    None => lost.push(at),
                }
            }
        }
        lost.sort_unstable();
        (contents, lost)
    }

    /// The blocks, by their rows, whose data are all there and whose parity, as far as it is
    /// there, does not fit them.
    pub(crate) fn misfits(&self) -> Vec<u64> {
        self.rows().filter(|row| !self.fits(*row)).collect()
    }

    fn fits(&self, row: u64) -> bool {
        let columns = (0..self.geometry.data()).map(|index| self.column(row, Column::Data(index)));
        let Some(data) = columns.collect::<Option<Vec<&[u8]>>>() else { return true };
        let data: Vec<Option<Vec<u8>>> = data.into_iter().map(|one| Some(one.to_vec())).collect();
        let is_zero = |sum: Vec<u8>| sum.iter().all(|byte| *byte == 0);
        let p = self.column(row, Column::P).map(|p| self.less(p, &data, |_| 1));
        let q = (self.geometry.parities() == 2).then(|| self.column(row, Column::Q)).flatten();
        let q = q.map(|q| self.less(q, &data, |index| self.factor(row, index)));
        p.is_none_or(is_zero) && q.is_none_or(is_zero)
    }
}

fn product(factor: u8, block: &[u8]) -> Vec<u8> {
    let mut product = vec![0; block.len()];
    add(&mut product, factor, block);
    product
}

/// The array's content, which must all be there.
pub(crate) fn contents(shape: &Shape, images: &[Option<Vec<u8>>]) -> Vec<u8> {
    let (contents, lost) = Stripes::new(shape, images).contents();
    assert!(lost.is_empty(), "lost: {lost:?}");
    contents
}

/// Checks that no member is missing and all parity fits.
pub(crate) fn check_whole(shape: &Shape, images: &[Option<Vec<u8>>]) {
    let stripes = Stripes::new(shape, images);
    assert_eq!(stripes.roles_in_sync(), shape.members, "members in sync");
    let misfits = stripes.misfits();
    assert!(misfits.is_empty(), "parity does not fit at the rows {misfits:?}");
}

/// Checks that the array holds `expected`, also after the loss of any further members for which the parity
/// suffices.
pub(crate) fn check_recoverable(shape: &Shape, images: &[Option<Vec<u8>>], expected: &[u8]) {
    let missing = shape.members - Stripes::new(shape, images).roles_in_sync();
    for lost in losses(shape.members, shape.stripes().parities().saturating_sub(missing)) {
        let (contents, gone) = Stripes::without(shape, images, &lost).contents();
        assert!(gone.is_empty(), "without {lost:?} lost: {gone:?}");
        let wrong = contents.chunks(512).zip(expected.chunks(512)).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "without {lost:?}: the first block that is not as it should be");
    }
}

/// All sets of up to `most`, 0 to 2, roles.
pub(crate) fn losses(members: usize, most: usize) -> Vec<Vec<usize>> {
    let one = |role| vec![role];
    let two = |a: usize| (0..a).map(move |b| vec![a, b]);
    let mut losses = vec![Vec::new()];
    if most > 0 {
        losses.extend((0..members).map(one));
    }
    if most > 1 {
        losses.extend((0..members).flat_map(two));
    }
    losses
}

/// The disks of an array that holds `contents`.
pub(crate) fn images_with(shape: &Shape, contents: &[u8]) -> Vec<Option<Vec<u8>>> {
    let geometry = shape.stripes();
    let (chunk, mut images) = (geometry.chunk(), shape.images());
    for (stripe, data) in (0..).zip(contents.chunks_exact(geometry.stripe() as usize)) {
        let mut p = vec![0; chunk as usize];
        let mut q = p.clone();
        let mut put = |column, block: &[u8]| {
            let image =
                images[geometry.role_of(stripe, column).index()].as_mut().expect("all are there");
            image[(DATA + stripe * chunk) as usize..][..block.len()].copy_from_slice(block);
        };
        for (index, block) in data.chunks_exact(chunk as usize).enumerate() {
            put(Column::Data(index), block);
            add(&mut p, 1, block);
            if geometry.parities() == 2 {
                add(&mut q, power_of_two(geometry.power(stripe, index)), block);
            }
        }
        put(Column::P, &p);
        if geometry.parities() == 2 {
            put(Column::Q, &q);
        }
    }
    images
}
