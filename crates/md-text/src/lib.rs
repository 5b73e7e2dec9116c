//! braid's texts about md arrays.
//!
//! * [`examine`]: one member, as mdadm prints it, as data, and byte by byte.
//! * [`mdadm_conf`]: the arrays in mdadm's configuration.
//! * [`mdstat`]: running arrays, in the format of `/proc/mdstat`.
//! * [`next`]: the command that follows a verdict.
//!
//! Deliberately absent: the meaning of the bytes, and the decision to trust them ([`braid_md`]); I/O, clocks.

pub mod examine;
pub mod mdadm_conf;
pub mod mdstat;
pub mod next;
