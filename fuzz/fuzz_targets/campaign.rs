#![no_main]

#[path = "../../crates/mutate/tests/fuzz/campaign.rs"]
mod entry;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| entry::fuzz_campaign(data));
