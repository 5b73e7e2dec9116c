//! Array levels, as arithmetic: a request and a geometry go in, a [`Plan`] comes out.
//!
//! * [`coordinates`]: bytes of the array and bytes of a member, which cannot be mixed up.
//! * [`geometry`]: one file a level; each answers where a byte of the array lies.
//! * [`role`]: which member has which part, and what there is one of for each.
//! * [`plan`]: cuts a request along the geometry and gathers what falls on one member.
//! * [`parity_plan`]: how a write to an array with parity becomes reads, arithmetic and writes.
//!
//! Invariants: a geometry's map is a bijection between the array's bytes (of a mirrored level: the
//! copies of them; of a level with parity: them and the parity) and the bytes of the members that
//! it uses; a plan covers its request exactly once, in order. Deliberately absent: I/O, memory, and
//! any state that a request could change.

pub mod coordinates;
pub mod geometry;
pub mod parity_plan;
pub mod plan;
pub mod role;

pub use coordinates::{ArrayByte, ArraySpan, MemberByte, MemberSpan};
pub use geometry::{Geometry, GeometryError, Mirrored, Owner, Run};
pub use plan::{Fan, Piece, Plan, RoleSpan};
pub use role::{ByRole, Role};

/// Most members an array can have: md's limit for version 1 superblocks (384 roles fit the
/// superblock's 1024 bytes less its header).
pub const MAX_MEMBERS: usize = 384;
