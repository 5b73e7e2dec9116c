#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| braid_lab::tool::fuzz::fuzz_output(data));
