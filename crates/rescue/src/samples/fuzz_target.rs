//! Entry point for fuzzers: bytes in, panic on a broken invariant, nothing out.

use super::{Finding, Format};

/// Any bytes as a file of each format: each fault lies in them.
pub fn fuzz_samples(data: &[u8]) {
    const FORMATS: [Format; 8] = [
        Format::Png,
        Format::Jpeg,
        Format::Zip,
        Format::Gzip,
        Format::Xz,
        Format::Tar,
        Format::Pdf,
        Format::Sqlite,
    ];
    for format in FORMATS {
        if let Finding::Bad(faults) = format.check(data) {
            assert!(!faults.is_empty(), "a bad file has a fault");
            for fault in faults {
                let range = fault.range;
                assert!(range.start <= range.end && range.end <= data.len(), "{format:?}");
            }
        }
    }
}
