//! aarch64: NEON, which every such processor has.
//!
//! Sixteen lanes. Times g is a shift, the sign spread over the byte (an arithmetic shift), and two
//! sums; times a constant is two look-ups of nibbles (`tbl`).
//!
//! Safety: NEON is part of the architecture as it is compiled for; loads and stores need an
//! address that is good for 16 bytes, on any boundary.

#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::vector::{NIBBLES, Vector};
use super::work::{self, Isa, Task};
use crate::Kernel;
use crate::field::MODULUS;

/// The kernel of this processor.
pub(crate) fn kernels() -> impl Iterator<Item = &'static Kernel> {
    // SAFETY: it is given out below, if the processor has NEON.
    static KERNEL: Kernel = unsafe { Kernel::of::<Neon>("neon") };
    std::arch::is_aarch64_feature_detected!("neon").then_some(&KERNEL).into_iter()
}

struct Neon;

impl Isa for Neon {
    unsafe fn run<T: Task>(task: T) {
        #[target_feature(enable = "neon")]
        unsafe fn run<T: Task>(task: T) {
            // SAFETY: this function has the feature that the vector is made of.
            unsafe { work::run::<Lanes16, 4, 8, T>(task) }
        }
        // SAFETY: the caller's: the processor has the feature.
        unsafe { run(task) }
    }
}

/// NEON.
#[derive(Clone, Copy)]
struct Lanes16(uint8x16_t);

impl Vector for Lanes16 {
    const BYTES: usize = 16;
    /// The products of low and of high nibbles.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes16(vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes16(vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes16(veorq_u8(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn double_and_add(self, next: Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let carries = vreinterpretq_u8_s8(vshrq_n_s8::<7>(vreinterpretq_s8_u8(self.0)));
            let reduced = vandq_u8(carries, vdupq_n_u8(MODULUS));
            let doubled = veorq_u8(vshlq_n_u8::<1>(self.0), reduced);
            Lanes16(veorq_u8(doubled, next.0))
        }
    }

    #[inline(always)]
    unsafe fn factor(byte: u8) -> Self::Factor {
        let nibbles = &NIBBLES[usize::from(byte)];
        // SAFETY: the caller's, and a table has 16 bytes.
        unsafe { (vld1q_u8(nibbles.low.as_ptr()), vld1q_u8(nibbles.high.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(0x0f)));
            Lanes16(veorq_u8(low, vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0))))
        }
    }
}
