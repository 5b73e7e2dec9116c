//! Counters of an export. Each shard has its own set, so that shards share no cache line; a status query adds
//! them up.

/// A reading of [`Counters`].
pub type Counts = braid_status::ExportCounts;

/// Counts of one shard.
pub type Counters = braid_status::Shared<Counts>;
