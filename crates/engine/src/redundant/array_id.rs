//! The identity of an array in this process, which every proof carries.

use std::sync::atomic::{AtomicU64, Ordering};

/// An array of this process. Identities are unique over all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayId(u64);

impl ArrayId {
    /// Returns an identity that no array had before.
    pub(crate) fn next() -> ArrayId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ArrayId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Checks that a proof of the array `of` is used for this array.
    ///
    /// # Panics
    /// If it is a proof of another array.
    #[inline]
    pub(crate) fn check(self, of: ArrayId) {
        assert!(self == of, "a proof of another array");
    }
}
