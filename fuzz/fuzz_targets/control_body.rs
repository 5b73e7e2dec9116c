//! The bodies of a program's control socket, from its own files: a program cannot be linked.

#![no_main]
#![allow(dead_code)]

#[path = "../../crates/braid/src/control/cache_status.rs"]
mod cache_status;
#[path = "../../crates/braid/src/control/fuzz.rs"]
mod fuzz;
#[path = "../../crates/braid/src/control/order.rs"]
mod order;
#[path = "../../crates/braid/src/control/status.rs"]
mod status;

use cache_status::CacheCurve;
use libfuzzer_sys::fuzz_target;
use order::{Order, OrderAnswer};
use status::Status;

fuzz_target!(|data: &[u8]| {
    fuzz::fuzz_bodies(data);
});
