//! Counters of a shard: written by its thread, read by any.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// A struct of counters alone; [`counters!`](crate::counters) makes them.
pub trait Counters: Copy + Default + PartialEq {
    /// Their number.
    const COUNT: usize;

    /// Gives each of them to `visit`, with its number from 0 on.
    fn visit(&mut self, visit: impl FnMut(usize, &mut u64));

    /// These and `other` together.
    #[must_use]
    fn plus(mut self, mut other: Self) -> Self {
        let mut all = [0; 64];
        other.visit(|index, value| all[index] = *value);
        self.visit(|index, value| *value = value.saturating_add(all[index]));
        self
    }
}

/// Counters of one shard, written by it alone and read by anybody: shards share no cache line.
#[derive(Debug)]
pub struct Shared<T> {
    all: Box<[AtomicU64]>,
    of: PhantomData<fn() -> T>,
}

impl<T: Counters> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared { all: (0..T::COUNT).map(|_| AtomicU64::new(0)).collect(), of: PhantomData }
    }
}

impl<T: Counters> Shared<T> {
    /// Returns the present counts.
    pub fn read(&self) -> T {
        let mut counts = T::default();
        counts.visit(|index, value| *value = self.all[index].load(Ordering::Relaxed));
        counts
    }

    /// Adds `counts`, which are 0 from then on.
    #[inline]
    pub fn add(&self, counts: &mut T) {
        std::mem::take(counts).visit(|index, value| {
            if *value != 0 {
                self.all[index].fetch_add(*value, Ordering::Relaxed);
            }
        });
    }
}

/// Declares a struct of counters of a status: [`figures!`](crate::figures) for fields that are all `u64` and counted.
/// In JSON one that is missing is 0.
#[macro_export]
macro_rules! counters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $field:ident = $metric:literal,)*
        }
    ) => {
        $crate::figures! {
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[derive($crate::serde::Serialize, $crate::serde::Deserialize)]
            #[serde(default, crate = "braid_status::serde")]
            pub struct $name {
                $($(#[doc = $doc])+ pub $field: u64 = Counter $metric,)*
            }
        }

        impl $crate::Counters for $name {
            const COUNT: usize = [$(stringify!($field)),*].len();

            #[inline]
            fn visit(&mut self, mut visit: impl FnMut(usize, &mut u64)) {
                let fields = [$(&mut self.$field),*];
                fields.into_iter().enumerate().for_each(|(index, field)| visit(index, field));
            }
        }

        const _: () = assert!(<$name as $crate::Counters>::COUNT <= 64);
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExportCounts;

    #[test]
    fn what_shards_count_is_read_and_added_up() {
        let (one, other) = (Shared::<ExportCounts>::default(), Shared::default());
        let mut counts = ExportCounts { requests: 2, written_bytes: 5, ..ExportCounts::default() };
        one.add(&mut counts);
        assert_eq!(counts, ExportCounts::default());
        counts.requests = 1;
        one.add(&mut counts);
        other.add(&mut ExportCounts { requests: 10, errors: 1, ..ExportCounts::default() });
        let sum = one.read().plus(other.read());
        assert_eq!((sum.requests, sum.errors, sum.written_bytes), (13, 1, 5));
    }
}
