//! The operations of a vector of bytes, and the vector of one byte.
//!
//! A product by a constant is linear over the bits of a byte. There are two ways to have the
//! processor do sixteen or more of them at once, each with a table for every constant:
//!
//! ```text
//!   NIBBLES[c]    c·0, c·1, ... c·15 | c·0, c·16, ... c·240     c·b = low[b & 15] ^ high[b >> 4]
//!   MATRICES[c]   the 8 x 8 bits of "times c"                   one instruction, GFNI
//! ```

#![allow(unsafe_code)]

use crate::field::{double, multiply};

/// The products of a constant with the 16 low nibbles, and with the 16 high ones.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Nibbles {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

/// The nibbles' products, by constant.
pub(super) static NIBBLES: [Nibbles; 256] = {
    let mut tables = [Nibbles { low: [0; 16], high: [0; 16] }; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            tables[constant].low[nibble] = multiply(constant as u8, nibble as u8);
            tables[constant].high[nibble] = multiply(constant as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        constant += 1;
    }
    tables
};

/// Bytes that are worked on together, lane by lane.
///
/// # Safety
///
/// Of all functions: the processor has the instructions that the vector is made of. Nothing else,
/// where nothing else is said.
pub(super) trait Vector: Copy {
    /// Number of bytes.
    const BYTES: usize;
    /// A constant, in the form in which it multiplies.
    type Factor: Copy;

    /// Zero in every lane.
    unsafe fn zero() -> Self;

    /// The bytes from an address on, on any boundary.
    ///
    /// # Safety
    ///
    /// [`Vector::BYTES`] bytes may be read there.
    unsafe fn load(from: *const u8) -> Self;

    /// Puts the bytes at an address, on any boundary.
    ///
    /// # Safety
    ///
    /// [`Vector::BYTES`] bytes may be written there.
    unsafe fn store(self, to: *mut u8);

    /// The sum.
    unsafe fn xor(self, other: Self) -> Self;

    /// Times g, and then the sum with `next`: a step of Horner's rule.
    unsafe fn double_and_add(self, next: Self) -> Self;

    /// The constant `byte` for [`Vector::times`].
    unsafe fn factor(byte: u8) -> Self::Factor;

    /// The product with a constant.
    unsafe fn times(self, factor: Self::Factor) -> Self;
}

/// The rest at the end of a block is processed byte by byte, by the same text.
impl Vector for u8 {
    const BYTES: usize = 1;
    type Factor = u8;

    #[inline(always)]
    unsafe fn zero() -> u8 {
        0
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> u8 {
        // SAFETY: the caller's: one byte may be read there.
        unsafe { from.read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's: one byte may be written there.
        unsafe { to.write(self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: u8) -> u8 {
        self ^ other
    }

    #[inline(always)]
    unsafe fn double_and_add(self, next: u8) -> u8 {
        double(self) ^ next
    }

    #[inline(always)]
    unsafe fn factor(byte: u8) -> u8 {
        byte
    }

    #[inline(always)]
    unsafe fn times(self, factor: u8) -> u8 {
        multiply(self, factor)
    }
}
