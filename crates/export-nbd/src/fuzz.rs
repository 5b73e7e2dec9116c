//! The entry point for fuzzers of whole connections: bytes in, panic on a broken
//! promise, nothing out.
//!
//! Absent on purpose: single messages, whose entry points are in
//! [`braid_nbd::fuzz`]; and a fuzzer. `crates/mutate` changes a committed
//! corpus, `fuzz/` has a target for libFuzzer.

mod disk;
mod expect;
mod session;

pub use session::fuzz_session;
