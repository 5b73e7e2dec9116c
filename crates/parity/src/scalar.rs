//! The specification: every operation byte by byte, as the text-book has it.
//!
//! It is also what runs where no other kernel does. The functions are those of the crate's root;
//! [`Kernel`](crate::Kernel) has checked their arguments.

use crate::field::{divide, factors_of_two, multiply, power};

/// See [`crate::xor`].
pub(crate) fn xor(target: &mut [u8], sources: &[&[u8]]) {
    for (at, byte) in target.iter_mut().enumerate() {
        *byte = sources.iter().fold(0, |sum, source| sum ^ source[at]);
    }
}

/// See [`crate::xor_into`].
pub(crate) fn xor_into(target: &mut [u8], source: &[u8]) {
    for (byte, more) in target.iter_mut().zip(source) {
        *byte ^= more;
    }
}

/// See [`crate::pq`].
pub(crate) fn pq(p: &mut [u8], q: &mut [u8], data: &[Option<&[u8]>]) {
    for (at, (p, q)) in p.iter_mut().zip(q).enumerate() {
        *p = p_at(at, data);
        *q = q_at(at, data);
    }
}

/// See [`crate::q`].
pub(crate) fn q(q: &mut [u8], data: &[Option<&[u8]>]) {
    for (at, q) in q.iter_mut().enumerate() {
        *q = q_at(at, data);
    }
}

/// See [`crate::update_q`].
pub(crate) fn update_q(q: &mut [u8], block: u8, difference: &[u8]) {
    for (q, difference) in q.iter_mut().zip(difference) {
        *q ^= multiply(power(block), *difference);
    }
}

/// See [`crate::recover_by_q`].
pub(crate) fn recover_by_q(target: &mut [u8], block: u8, q: &[u8], data: &[Option<&[u8]>]) {
    for (at, byte) in target.iter_mut().enumerate() {
        *byte = divide(q[at] ^ q_at(at, data), power(block));
    }
}

/// See [`crate::recover_two`].
pub(crate) fn recover_two(
    (a, a_power): (&mut [u8], u8),
    (b, b_power): (&mut [u8], u8),
    (p, q): (&[u8], &[u8]),
    data: &[Option<&[u8]>],
) {
    let (by_p, by_q) = factors_of_two(a_power, b_power);
    for (at, (a, b)) in a.iter_mut().zip(b).enumerate() {
        let p = p[at] ^ p_at(at, data);
        let q = q[at] ^ q_at(at, data);
        *a = multiply(by_p, p) ^ multiply(by_q, q);
        *b = p ^ *a;
    }
}

/// The byte of P at this place of the blocks.
fn p_at(at: usize, data: &[Option<&[u8]>]) -> u8 {
    data.iter().flatten().fold(0, |sum, block| sum ^ block[at])
}

/// The byte of Q at this place of the blocks.
fn q_at(at: usize, data: &[Option<&[u8]>]) -> u8 {
    (0..).zip(data).fold(0, |sum, (exponent, block)| match block {
        Some(block) => sum ^ multiply(power(exponent), block[at]),
        None => sum,
    })
}
