#![no_main]

#[path = "../../crates/mutate/tests/fuzz/tool_output.rs"]
mod entry;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| entry::fuzz_output(data));
