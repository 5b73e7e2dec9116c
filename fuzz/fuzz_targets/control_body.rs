//! The bodies of a volume's control socket.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    braid_control::fuzz_bodies(data);
});
