#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| braid_export_vhost::fuzz::fuzz(data));
