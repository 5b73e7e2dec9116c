//! Calls of dd that copy its buffer to memory: a call, and bytes that come from the processor's caches as far as the
//! buffer is in them.
//!
//! Of the program's models only these rates are needed here alone: a `Host` has one rate for every copy, by which the
//! rate of dd would grow with its block without end.

/// The constants: name, value, source. Rates are nanoseconds a byte.
pub const COPIES: [(&str, f64, &str); 8] = [
    (
        "far_bytes",
        2_097_152.0,
        "a quarter of its third cache of 8 MiB: what is written, and the RAM disk's pages, want the rest",
    ),
    (
        "far_ns",
        0.1,
        "two channels of DDR3-1333: some 10 GB/s of a copy; what a byte costs beyond the third cache",
    ),
    ("file_byte_ns", 0.5964, "row rapiddisk.dd.file.1M, likewise"),
    ("file_call_ns", 519.0, "row rapiddisk.dd.file.512: 753.5 ns a call, likewise"),
    ("near_bytes", 262_144.0, "second cache of the Xeon E3 of 3.1 GHz"),
    (
        "near_ns",
        0.14,
        "Intel optimization manual, Sandy Bridge: a line of 64 bytes from the third cache takes some 26 to 31 cycles; \
         what a byte saves in the second",
    ),
    ("node_byte_ns", 0.6686, "row rapiddisk.dd.node.1M: a buffer that the third cache holds"),
    (
        "node_call_ns",
        635.0,
        "row rapiddisk.dd.node.512: 907.6 ns a call, less 512 bytes at the rate of a buffer within the second cache",
    ),
];

/// Returns bytes per second of calls of `bytes` each, to a file or to a block device.
pub(super) fn rate(to_a_file: bool, bytes: f64) -> f64 {
    let [far_bytes, far_ns, file_byte, file_call, near_bytes, near_ns, node_byte, node_call] =
        COPIES.map(|(_, value, _)| value);
    let (call_ns, byte_ns) =
        if to_a_file { (file_call, file_byte) } else { (node_call, node_byte) };
    let near = if bytes <= near_bytes { near_ns } else { 0.0 };
    let far = if bytes > far_bytes { far_ns } else { 0.0 };
    bytes / (call_ns + bytes * (byte_ns - near + far)) * 1e9
}
