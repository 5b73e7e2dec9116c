//! Rows of a stripe in memory, and writes cut into them. Pure, but for reading rows of members.

pub(super) mod columns;
pub(super) mod plan;
pub(super) mod units;
