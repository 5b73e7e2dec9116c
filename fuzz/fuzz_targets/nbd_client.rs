#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| braid_export_nbd::fuzz::fuzz_client(data));
