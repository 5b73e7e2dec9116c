//! P and Q, the parity of RAID 5 and 6 as Linux md has it.
//!
//! ```text
//!   one stripe        D0     D1     D2    ...    Dn-1      P        Q
//!   its blocks      ┌────┐ ┌────┐ ┌────┐       ┌────┐   ┌────┐   ┌────┐
//!   all as long:    │ d0 │ │ d1 │ │ d2 │  ...  │    │   │ p  │   │ q  │
//!   byte by byte    └────┘ └────┘ └────┘       └────┘   └────┘   └────┘
//!
//!   p =     d0 ^     d1 ^     d2 ^ ...                  XOR
//!   q = g^0·d0 ^ g^1·d1 ^ g^2·d2 ^ ...                  in GF(2^8)/0x11d, g = 2
//! ```
//!
//! The number of a data block is its *power*: that of g in Q. There are at most 255, since the
//! powers of g repeat after that. The mathematics is that of H. Peter Anvin, "The mathematics of
//! RAID-6" (2011), and so is the field (`field`).
//!
//! Blocks are of any length, at any address; all blocks of a call are equally long. A data block
//! that is `None` is a block of zeroes: a hole, or one that is lost.
//!
//! The work is done by the fastest [`Kernel`] that this processor can run, chosen once. The plain
//! one (`scalar`) is the specification; the others are tested against it, byte by byte.
//!
//! Invariants: nothing here allocates, keeps state between calls, or reads what the target held
//! (but [`xor_into`] and [`update_q`], which add to it). Deliberately absent: which disk of a
//! stripe has which power, chunks, stripes and layouts, which are geometry; and I/O.

mod choice;
mod field;
mod kernel;
mod locate;
mod scalar;
mod simd;

pub use choice::kernels;
pub use kernel::Kernel;
pub use locate::{Suspect, locate};

/// The most data blocks that Q can tell apart: so many powers of g there are.
pub const MAX_DATA: usize = 255;

/// The name of the kernel that the functions of this crate use, such as `avx2`.
#[must_use]
pub fn name() -> &'static str {
    choice::chosen().name()
}

/// Sets `target` to the XOR of `sources`: P, or the one block that P can recover from all the
/// others and P. Of no sources it is zero. What `target` held does not matter.
///
/// # Panics
///
/// If a source is not as long as `target`.
pub fn xor(target: &mut [u8], sources: &[&[u8]]) {
    choice::chosen().xor(target, sources);
}

/// Adds `source` to `target` by XOR. With the difference of a data block it is how P changes.
///
/// # Panics
///
/// If they are not equally long.
pub fn xor_into(target: &mut [u8], source: &[u8]) {
    choice::chosen().xor_into(target, source);
}

/// Sets `p` and `q` to the parity of `data`; the index in `data` is the power.
///
/// # Panics
///
/// If `q` or a block is not as long as `p`, or there are more than [`MAX_DATA`].
pub fn pq(p: &mut [u8], q: &mut [u8], data: &[Option<&[u8]>]) {
    choice::chosen().pq(p, q, data);
}

/// Sets `q` to the Q of `data`; the index in `data` is the power.
///
/// # Panics
///
/// If a block is not as long as `q`, or there are more than [`MAX_DATA`].
pub fn q(q: &mut [u8], data: &[Option<&[u8]>]) {
    choice::chosen().q(q, data);
}

/// Changes `q` as it changes when the data block of this power does; `difference` is the XOR of
/// what the block held and what it holds now. (P changes by [`xor_into`].)
///
/// # Panics
///
/// If they are not equally long, or `power` is 255, which no data block has.
pub fn update_q(q: &mut [u8], power: u8, difference: &[u8]) {
    choice::chosen().update_q(q, power, difference);
}

/// Sets `target` to the data block of this power, from all others and Q: what is left when P is
/// lost too. `data` has `None` for it.
///
/// # Panics
///
/// If a block is not as long as `target`, there are more than [`MAX_DATA`], or `data` has no
/// `None` at `power`.
pub fn recover_by_q(target: &mut [u8], power: u8, q: &[u8], data: &[Option<&[u8]>]) {
    choice::chosen().recover_by_q(target, power, q, data);
}

/// Sets `a` and `b` to the data blocks of these powers, from all others, P and Q. `data` has
/// `None` for both.
///
/// # Panics
///
/// If a block is not as long as `a`, there are more than [`MAX_DATA`], the powers are the same, or
/// `data` has no `None` at one of them.
pub fn recover_two(
    a: &mut [u8],
    a_power: u8,
    b: &mut [u8],
    b_power: u8,
    p: &[u8],
    q: &[u8],
    data: &[Option<&[u8]>],
) {
    choice::chosen().recover_two((a, a_power), (b, b_power), (p, q), data);
}
