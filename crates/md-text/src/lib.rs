//! What braid prints of md arrays.
//!
//! * [`examine`]: one member, as mdadm prints it, as data, and byte by byte.
//! * [`mdadm_conf`]: what mdadm's configuration says of arrays.
//! * [`mdstat`]: arrays that run, in the format of `/proc/mdstat`.
//! * [`next`]: the command that leads on from a verdict.
//!
//! Deliberately absent: what the bytes mean, and what is believed ([`braid_md`]); I/O, clocks.

pub mod examine;
pub mod mdadm_conf;
pub mod mdstat;
pub mod next;
