//! Jobs that are numbered, on several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Carries out the jobs 0 to `count` on `threads`, and has `take` add each result to the sum, in the order in which
/// they end. No job begins once `take` has answered false.
pub(crate) fn share<S: Default + Send, R>(
    threads: usize,
    count: u64,
    job: impl Fn(u64) -> R + Sync,
    take: impl Fn(&mut S, R) -> bool + Sync,
) -> S {
    let next = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let sum = Mutex::new(S::default());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count || over.load(Ordering::Relaxed) {
                return;
            }
            let result = job(index);
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            if !take(&mut sum, result) {
                over.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}
