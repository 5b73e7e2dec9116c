//! The kernels for different processors, and the choice of one.
//!
//! Which kernels this processor can run is asked of the processor ([`kernels`]); the first of them
//! is the one that the crate's functions use.

use std::sync::OnceLock;

use crate::kernel::Kernel;
use crate::{scalar, simd};

/// The specification as a kernel: for processors that no other is for.
static SCALAR: Kernel = Kernel {
    name: "scalar",
    xor: scalar::xor,
    xor_into: scalar::xor_into,
    pq: scalar::pq,
    q: scalar::q,
    update_q: scalar::update_q,
    recover_by_q: scalar::recover_by_q,
    recover_two: scalar::recover_two,
};

/// The kernels that this processor can run, the preferred one first; the last is `scalar`.
pub fn kernels() -> impl Iterator<Item = &'static Kernel> {
    simd::kernels().chain(std::iter::once(&SCALAR))
}

/// The preferred kernel.
pub(crate) fn chosen() -> &'static Kernel {
    static CHOSEN: OnceLock<&Kernel> = OnceLock::new();
    CHOSEN.get_or_init(|| kernels().next().unwrap_or(&SCALAR))
}
