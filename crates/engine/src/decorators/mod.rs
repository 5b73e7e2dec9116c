//! Decorators: devices in front of one other device, the *origin*.
//!
//! | file | device |
//! |---|---|
//! | `slice` | a part of the origin |
//! | `holes` | the origin with unreadable ranges |
//!
//! A decorator is an origin, a device on it, and a function of the origin's limits that is asked before there is a
//! device.

mod holes;
mod slice;

pub use holes::Holes;
pub use slice::Slice;
