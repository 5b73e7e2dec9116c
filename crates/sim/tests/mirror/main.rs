//! Mirrored arrays on simulated disks that hold md superblocks.
//!
//! * `world`: shapes of arrays, their disks, how images become an array again, what must hold of
//!   a set of images.
//! * `conformance`: a random load agrees with the oracle, whatever the shape.
//! * `failure`: members that fail; what is on the disks when a degraded write is answered.

mod conformance;
mod failure;
mod world;
