//! Finds out what the members of an array that does not start hold, and how they belong together.
//!
//! ```text
//!   paths ──▶ Patient ──windows──▶ evidence ──▶ Clue ──▶ solve ──▶ ranked hypotheses ─┐
//!          (read only)    └──▶ md: superblocks ──▶ assembly by time ──────────────────┴─▶ a stack expression
//! ```
//!
//! Invariants
//! * Members are never written. The only type that reads them has no method that writes.
//! * All bytes are untrusted: a parser of evidence answers with what it can prove (a checksum, an address of its
//!   own), or with nothing. It never panics, and its time is bounded by the length of its input.
//! * An answer is either supported by evidence that is much better than the second answer's, or it is called
//!   undecided. The evidence that would decide it is named.
//!
//! Deliberately absent: serving and copying. The answer is a stack expression, which the rest of braid serves.

pub mod assemble;
mod case;
mod claimants;
mod clue;
pub mod commit;
pub mod evidence;
mod gather;
mod guess;
pub mod look;
mod overwritten;
mod patient;
mod remade;
pub mod samples;
pub mod scan;
mod solve;
mod verified;

pub use case::{Case, CaseError, CaseMember, MOST_MEMBERS};
pub use claimants::{Array, Examined, candidate, claims, content_of, label, stale};
pub use clue::{Anchor, Clue, Structure};
pub use gather::{ALL, Budget, Gathered, QUICK, Source, gather};
pub use guess::arrays;
pub use overwritten::{overwritten, own_tables};
pub use patient::{Fingerprint, Patient, PatientError};
pub use remade::{Content, remade};
pub use solve::{
    Agreement, Answer, Check, Claim, Fit, Fixed, Given, Hypothesis, LeftOver, Named, Pattern,
    Question, Reason, Redundancy, Related, Reshape, Rows, Seat, fit, related, solve,
    solve_by_files,
};
pub use verified::{BadFile, Checked, Compared, MemberRow, Outcome, Sampled, Verdict, Verified};
