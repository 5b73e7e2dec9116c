//! Members that fail.
