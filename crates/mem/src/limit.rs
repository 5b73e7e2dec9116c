//! A limit on what pools lend, for tests: as if other requests had taken the rest.
//!
//! ```text
//!   lent  | 12 K |          limit 16 K: 4 K more are lent, 8 K are not until some come back
//!   lent  |                 nothing: any buffer is lent, also one beyond the limit
//! ```
//!
//! Invariant: a request is kept waiting only while another buffer of its pool is lent. A task that holds no
//! buffer of a pool while it waits for one gets it in the end, under any limit. A task that holds one and waits for
//! the next may wait for ever, as it may where requests like it hold the rest of the pool.
//!
//! Without the feature `limit` there is none, and no code for one.

#[cfg(feature = "limit")]
thread_local! {
    static LIMIT: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

/// Limits what each pool of this thread lends at a time to `bytes`, from now on; to all it has with `None`. What is
/// lent already stays lent.
#[cfg(feature = "limit")]
pub fn set_limit(bytes: Option<usize>) {
    LIMIT.set(bytes);
}

/// True if a pool that has lent so many bytes may not lend `more`.
#[cfg(feature = "limit")]
pub(crate) fn is_beyond(lent: impl FnOnce() -> usize, more: usize) -> bool {
    let Some(limit) = LIMIT.get() else { return false };
    let lent = lent();
    lent > 0 && lent + more > limit
}

/// True if a pool that has lent so many bytes may not lend `more`: never, without the feature.
#[cfg(not(feature = "limit"))]
#[inline(always)]
pub(crate) fn is_beyond(_: impl FnOnce() -> usize, _: usize) -> bool {
    false
}
