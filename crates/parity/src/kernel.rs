//! A kernel: the operations of this crate, in one way of doing them.
//!
//! A [`Kernel`] checks the arguments, once for all; what it points to may rely on that. Which
//! kernels there are, and which of them is used, is `choice`.

use crate::MAX_DATA;

/// The data blocks of a stripe, by power.
type Data<'a> = &'a [Option<&'a [u8]>];
/// A lost block's place, and its power.
type Lost<'a> = (&'a mut [u8], u8);
/// P and Q.
type Parity<'a> = (&'a [u8], &'a [u8]);

/// The operations of this crate, in one way of doing them. Its methods are the functions of the
/// crate's root, and panic as they do.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) name: &'static str,
    pub(crate) xor: fn(&mut [u8], &[&[u8]]),
    pub(crate) xor_into: fn(&mut [u8], &[u8]),
    pub(crate) pq: fn(&mut [u8], &mut [u8], Data<'_>),
    pub(crate) q: fn(&mut [u8], Data<'_>),
    pub(crate) update_q: fn(&mut [u8], u8, &[u8]),
    pub(crate) recover_by_q: fn(&mut [u8], u8, &[u8], Data<'_>),
    pub(crate) recover_two: fn(Lost<'_>, Lost<'_>, Parity<'_>, Data<'_>),
}

impl Kernel {
    /// Its name, such as `avx2`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// See [`crate::xor`].
    pub fn xor(&self, target: &mut [u8], sources: &[&[u8]]) {
        for source in sources {
            assert_eq!(source.len(), target.len(), "a source as long as the target");
        }
        (self.xor)(target, sources);
    }

    /// See [`crate::xor_into`].
    pub fn xor_into(&self, target: &mut [u8], source: &[u8]) {
        assert_eq!(source.len(), target.len(), "a source as long as the target");
        (self.xor_into)(target, source);
    }

    /// See [`crate::pq`].
    pub fn pq(&self, p: &mut [u8], q: &mut [u8], data: &[Option<&[u8]>]) {
        assert_eq!(p.len(), q.len(), "Q as long as P");
        check_data(p.len(), data);
        (self.pq)(p, q, data);
    }

    /// See [`crate::q`].
    pub fn q(&self, q: &mut [u8], data: &[Option<&[u8]>]) {
        check_data(q.len(), data);
        (self.q)(q, data);
    }

    /// See [`crate::update_q`].
    pub fn update_q(&self, q: &mut [u8], power: u8, difference: &[u8]) {
        assert_eq!(difference.len(), q.len(), "a difference as long as Q");
        assert!(usize::from(power) < MAX_DATA, "no data block has the power {power}");
        (self.update_q)(q, power, difference);
    }

    /// See [`crate::recover_by_q`].
    pub fn recover_by_q(&self, target: &mut [u8], power: u8, q: &[u8], data: &[Option<&[u8]>]) {
        assert_eq!(q.len(), target.len(), "Q as long as the target");
        check_data(target.len(), data);
        check_lost(power, data);
        (self.recover_by_q)(target, power, q, data);
    }

    /// See [`crate::recover_two`]; the targets with their powers, and P and Q, as pairs.
    pub fn recover_two(
        &self,
        (a, a_power): (&mut [u8], u8),
        (b, b_power): (&mut [u8], u8),
        (p, q): (&[u8], &[u8]),
        data: &[Option<&[u8]>],
    ) {
        assert_eq!(b.len(), a.len(), "two targets equally long");
        assert_eq!(p.len(), a.len(), "P as long as the targets");
        assert_eq!(q.len(), a.len(), "Q as long as the targets");
        assert_ne!(a_power, b_power, "two different lost blocks");
        check_data(a.len(), data);
        check_lost(a_power, data);
        check_lost(b_power, data);
        (self.recover_two)((a, a_power), (b, b_power), (p, q), data);
    }
}

fn check_data(length: usize, data: &[Option<&[u8]>]) {
    assert!(data.len() <= MAX_DATA, "{} data blocks, of at most {MAX_DATA}", data.len());
    for block in data.iter().flatten() {
        assert_eq!(block.len(), length, "a data block as long as the parity");
    }
}

fn check_lost(power: u8, data: &[Option<&[u8]>]) {
    let lost = data.get(usize::from(power)).is_some_and(Option::is_none);
    assert!(lost, "the data block of power {power} is not given as lost");
}
