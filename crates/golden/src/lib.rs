//! Test-only: arrays made by the kernel's md and mdadm, byte for byte.
//!
//! ```text
//!   testdata/md/golden/NAME/manifest.json ──▶ Golden ──▶ content_block: what the array reads as
//!                           mN.runs ────────────┴──────▶ expand_member, expand_into: what its
//!                                                        members hold, metadata included
//! ```
//!
//! A member's image is some MiB of metadata that md wrote and of data that follow a formula,
//! so it is kept as a list of runs ([`runs`]) over the array's known content ([`pattern`]).
//!
//! Invariants: an expanded member has the SHA-256 that the image had when md let go of it; the
//! content has the SHA-256 that was read from the running array. The tests of this crate hold
//! that for all members of all arrays. Deliberately absent: errors. The test data are part of the
//! repository, so whatever is wrong with them is a panic that says where.

pub mod manifest;
pub mod pattern;
pub mod runs;

pub use manifest::{Expect, Golden, MadeWith, Member, Piece, Role, all, broken, named};
