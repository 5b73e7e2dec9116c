//! Maps of what of a device could be read: GNU ddrescue's format, read and written.
//!
//! Deliberately absent: I/O.
