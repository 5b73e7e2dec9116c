//! x86_64: SSSE3, AVX2, AVX-512, and GFNI with AVX-512.
//!
//! ```text
//!   kernel        lanes   times g                        times a constant
//!   ssse3         16      add, compare, and, xor         two look-ups of nibbles (pshufb)
//!   avx2          32      the same                       the same
//!   avx512        64      add, mask of signs, ternary    the same
//!   avx512-gfni   64      one affine map                 one affine map (gf2p8affineqb)
//! ```
//!
//! Safety: the functions of a vector need nothing but its instruction set, except that loads and
//! stores need an address that is good for a vector; alignment is not asked for.

#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::is_x86_feature_detected as has;

use super::vector::{NIBBLES, Vector};
use super::work::{self, Isa, Task};
use crate::Kernel;
use crate::field::{MODULUS, multiply};

/// The kernels that this processor can run, the preferred one first.
pub(crate) fn kernels() -> impl Iterator<Item = &'static Kernel> {
    // SAFETY: each is given out below, where the processor has what it needs.
    static KERNELS: [Kernel; 4] = unsafe {
        [
            Kernel::of::<Avx512Gfni>("avx512-gfni"),
            Kernel::of::<Avx512>("avx512"),
            Kernel::of::<Avx2>("avx2"),
            Kernel::of::<Ssse3>("ssse3"),
        ]
    };
    let avx512 = has!("avx512f") && has!("avx512bw");
    let runs = [avx512 && has!("gfni"), avx512, has!("avx2"), has!("ssse3")];
    KERNELS.iter().zip(runs).filter_map(|(kernel, runs)| runs.then_some(kernel))
}

/// An instruction set, the vector that it works on, and how many of these are a stretch, and a
/// long one: what the registers have room for, with P and Q and what is loaded, or with one sum.
macro_rules! isa {
    ($isa:ident, $features:literal, $vector:ty, $stretch:literal, $long:literal) => {
        struct $isa;

        impl Isa for $isa {
            unsafe fn run<T: Task>(task: T) {
                #[target_feature(enable = $features)]
                unsafe fn run<T: Task>(task: T) {
                    // SAFETY: this function has the features that the vector is made of.
                    unsafe { work::run::<$vector, $stretch, $long, T>(task) }
                }
                // SAFETY: the caller's: the processor has these features.
                unsafe { run(task) }
            }
        }
    };
}

isa!(Ssse3, "ssse3", Lanes16, 4, 8);
isa!(Avx2, "avx2", Lanes32, 4, 8);
isa!(Avx512, "avx512f,avx512bw", Lanes64, 4, 8);
isa!(Avx512Gfni, "avx512f,avx512bw,gfni", Lanes64Gfni, 4, 8);

/// SSSE3.
#[derive(Clone, Copy)]
struct Lanes16(__m128i);

impl Vector for Lanes16 {
    const BYTES: usize = 16;
    /// The products of low and of high nibbles.
    type Factor = (__m128i, __m128i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes16(_mm_setzero_si128()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes16(_mm_xor_si128(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn double_and_add(self, next: Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let carries = _mm_cmpgt_epi8(_mm_setzero_si128(), self.0);
            let reduced = _mm_and_si128(carries, _mm_set1_epi8(MODULUS as i8));
            let doubled = _mm_xor_si128(_mm_add_epi8(self.0, self.0), reduced);
            Lanes16(_mm_xor_si128(doubled, next.0))
        }
    }

    #[inline(always)]
    unsafe fn factor(byte: u8) -> Self::Factor {
        let nibbles = &NIBBLES[usize::from(byte)];
        // SAFETY: the caller's, and a table has 16 bytes.
        unsafe {
            let low = _mm_loadu_si128(nibbles.low.as_ptr().cast());
            (low, _mm_loadu_si128(nibbles.high.as_ptr().cast()))
        }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mask = _mm_set1_epi8(0x0f);
            let low = _mm_shuffle_epi8(low, _mm_and_si128(self.0, mask));
            let shifted = _mm_and_si128(_mm_srli_epi64::<4>(self.0), mask);
            Lanes16(_mm_xor_si128(low, _mm_shuffle_epi8(high, shifted)))
        }
    }
}

/// AVX2.
#[derive(Clone, Copy)]
struct Lanes32(__m256i);

impl Vector for Lanes32 {
    const BYTES: usize = 32;
    /// The products of low and of high nibbles, twice each.
    type Factor = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes32(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes32(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes32(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn double_and_add(self, next: Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
            let reduced = _mm256_and_si256(carries, _mm256_set1_epi8(MODULUS as i8));
            let doubled = _mm256_xor_si256(_mm256_add_epi8(self.0, self.0), reduced);
            Lanes32(_mm256_xor_si256(doubled, next.0))
        }
    }

    #[inline(always)]
    unsafe fn factor(byte: u8) -> Self::Factor {
        // SAFETY: the caller's.
        unsafe {
            let (low, high) = Lanes16::factor(byte);
            (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high))
        }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mask = _mm256_set1_epi8(0x0f);
            let low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, mask));
            let shifted = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask);
            Lanes32(_mm256_xor_si256(low, _mm256_shuffle_epi8(high, shifted)))
        }
    }
}

/// The ternary function of three bits that is their sum.
const SUM_OF_THREE: i32 = 0x96;

/// AVX-512, foundation and bytes.
#[derive(Clone, Copy)]
struct Lanes64(__m512i);

impl Vector for Lanes64 {
    const BYTES: usize = 64;
    /// The products of low and of high nibbles, four times each.
    type Factor = (__m512i, __m512i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn double_and_add(self, next: Self) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let carries = _mm512_movepi8_mask(self.0);
            let reduced = _mm512_maskz_mov_epi8(carries, _mm512_set1_epi8(MODULUS as i8));
            let doubled = _mm512_add_epi8(self.0, self.0);
            Lanes64(_mm512_ternarylogic_epi64::<SUM_OF_THREE>(doubled, reduced, next.0))
        }
    }

    #[inline(always)]
    unsafe fn factor(byte: u8) -> Self::Factor {
        // SAFETY: the caller's: AVX-512 includes SSSE3.
        unsafe {
            let (low, high) = Lanes16::factor(byte);
            (_mm512_broadcast_i32x4(low), _mm512_broadcast_i32x4(high))
        }
    }

    #[inline(always)]
    unsafe fn times(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller's.
        unsafe {
            let mask = _mm512_set1_epi8(0x0f);
            let low = _mm512_shuffle_epi8(low, _mm512_and_si512(self.0, mask));
            let shifted = _mm512_and_si512(_mm512_srli_epi64::<4>(self.0), mask);
            Lanes64(_mm512_xor_si512(low, _mm512_shuffle_epi8(high, shifted)))
        }
    }
}

/// "Times a constant" as the matrix of `gf2p8affineqb`: bit j of byte 7 - i is what bit j of the
/// multiplicand adds to bit i of the product.
const fn matrix(constant: u8) -> i64 {
    let mut matrix = 0;
    let mut bit = 0;
    while bit < 64 {
        let (row, column) = (7 - bit / 8, bit % 8);
        let adds = multiply(constant, 1 << column) >> row & 1;
        matrix |= (adds as i64) << bit;
        bit += 1;
    }
    matrix
}

/// The matrices, by constant.
static MATRICES: [i64; 256] = {
    let mut matrices = [0; 256];
    let mut constant = 0;
    while constant < 256 {
        matrices[constant] = matrix(constant as u8);
        constant += 1;
    }
    matrices
};

/// AVX-512 with GFNI.
#[derive(Clone, Copy)]
struct Lanes64Gfni(__m512i);

impl Vector for Lanes64Gfni {
    const BYTES: usize = 64;
    /// The matrix, eight times.
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64Gfni(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64Gfni(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64Gfni(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn double_and_add(self, next: Self) -> Self {
        const DOUBLE: i64 = matrix(2);
        // SAFETY: the caller's.
        unsafe { self.times(_mm512_set1_epi64(DOUBLE)).xor(next) }
    }

    #[inline(always)]
    unsafe fn factor(byte: u8) -> __m512i {
        // SAFETY: the caller's.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(byte)]) }
    }

    #[inline(always)]
    unsafe fn times(self, factor: __m512i) -> Self {
        // SAFETY: the caller's.
        unsafe { Lanes64Gfni(_mm512_gf2p8affine_epi64_epi8::<0>(self.0, factor)) }
    }
}
