//! Write modes, one file each.

mod at_origin;
pub(crate) mod write_around;
pub(crate) mod write_back;
pub(crate) mod write_through;
