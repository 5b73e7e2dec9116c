//! The operations on vectors of bytes: one text for all processors.
//!
//! ```text
//!   work.rs     an operation, a stretch at a time ──┐
//!   vector.rs   the operations of a vector           ├──▶ one kernel for each instruction set
//!   x86.rs      SSSE3, AVX2, AVX-512, GFNI          │
//!   neon.rs     aarch64                           ──┘
//! ```
//!
//! The compiler makes an equally good XOR of plain loops over bytes, but not an equally good Q (P and Q of 8
//! blocks: two thirds of the speed, measured beside GFNI), and no look-up of nibbles; so all are in one style.
//!
//! Safety: code for an instruction set may only run if the processor has it. [`kernels`] of each architecture
//! asks the processor, and is the only way from here to a [`Kernel`](crate::Kernel); hence the owner of a
//! kernel may call it. All other `unsafe` is in the loads and stores of vectors, which take addresses:
//! `work.rs` cuts a slice for each of them.

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod work;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use neon::kernels;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::kernels;

/// There are none for other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn kernels() -> impl Iterator<Item = &'static crate::Kernel> {
    std::iter::empty()
}
