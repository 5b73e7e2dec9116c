//! Arrays with parity: raid4, raid5 and raid6.
//!
//! * `images`: what images of disks hold, by plain arithmetic.
//! * `conformance`: a random load agrees with the oracle, whatever the shape.

mod conformance;
mod images;
