//! The resources that an array still holds, for tests of leaks; and dropping an array in the middle of its
//! work, as the end of a process does.

use braid_mem::Pool;

use super::Redundant;
use super::layout::SyncSpan;

impl Redundant {
    /// Lists the work in flight and the held resources, one per line. Empty for an array at rest without
    /// requests.
    pub fn leftovers(&self) -> Vec<String> {
        let core = &self.inner.core;
        let all = SyncSpan::first(core.layout.borrow().sync_size());
        let cache = self.status().stripe_cache.map_or(0, |cache| cache.used);
        let lent = |pool: &Pool| pool.total_bytes() - pool.free_bytes();
        let (of_metadata, of_passes) = (lent(&core.metadata_pool), lent(core.work.pool()));
        let facts = [
            (core.lane.has_writers(), "writes that were let in".to_owned()),
            (!core.lane.ranges().others_left(), "writes of other shards".to_owned()),
            (!core.background.is_idle(), "work without a waiting caller".to_owned()),
            (!core.lane.ranges().is_free(all), "ranges that are locked or written".to_owned()),
            (of_metadata > 0, format!("{of_metadata} bytes of memory for metadata")),
            (of_passes > 0, format!("{of_passes} bytes of memory for passes")),
            (cache > 0, format!("{cache} bytes of the stripe cache")),
        ];
        facts.into_iter().filter(|(is_left, _)| *is_left).map(|(_, what)| what).collect()
    }

    /// Drops all work in flight, as the end of a process does. Requests without a waiting caller refer to the
    /// array, and would keep it for ever. The array must not be used any more.
    pub fn abandon(&self) {
        self.inner.core.background.abandon();
    }
}
