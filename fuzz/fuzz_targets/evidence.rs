#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| braid_rescue::evidence::fuzz::fuzz_evidence(data));
