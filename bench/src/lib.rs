//! Side-by-side measurements with peers.
