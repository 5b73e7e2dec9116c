//! The one text form for a stack of devices, and for sizes, rates and latencies.

mod quantity;
mod size;

pub use size::{ByteSize, Latency, QuantityError, Rate};
