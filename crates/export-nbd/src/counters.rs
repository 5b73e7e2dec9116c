//! What an export counts. Each shard has its own set; a status adds them up.

/// A reading of [`Counters`].
pub type Counts = braid_status::ExportCounts;

/// Counts of one shard.
pub type Counters = braid_status::Shared<Counts>;
