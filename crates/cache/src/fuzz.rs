//! Entry point for fuzzers and property tests: arbitrary bytes as a log. Accepted blocks must be in
//! range, and encode to the same values.
//!
//! Deliberately absent: a fuzzer. `crates/mutate` changes a committed corpus, and `fuzz/` has the
//! target for libFuzzer.

use crate::log::format::{BLOCK, Header, RING_START, Superblock, seal};
use crate::log::ring::Cursor;

/// Parses arbitrary bytes as a log: as they are, and with corrected checksums of all blocks that
/// have a magic number.
pub fn fuzz_log(data: &[u8]) {
    let mut sealed = data.to_vec();
    for block in sealed.chunks_exact_mut(BLOCK as usize) {
        if block.starts_with(b"braidwb") {
            seal(block);
        }
    }
    for bytes in [data, &sealed] {
        let Ok(superblock) = Superblock::parse(bytes, bytes.len() as u64) else { continue };
        let mut block = vec![0; BLOCK as usize];
        superblock.encode_into(&mut block);
        assert_eq!(Superblock::parse(&block, bytes.len() as u64).as_ref(), Ok(&superblock));
        assert!(superblock.area <= bytes.len() as u64, "a log outside");
        let ring = &bytes[RING_START as usize..superblock.area as usize];
        let mut cursor = Cursor::new(ring.len() as u64, superblock.tail, superblock.tail_sequence);
        while step(ring, &superblock, &mut cursor) {}
        assert!(cursor.passed() <= ring.len() as u64, "more than there is");
    }
}

/// Advances by one record. Returns whether there was one.
fn step(ring: &[u8], superblock: &Superblock, cursor: &mut Cursor) -> bool {
    for offset in cursor.candidates() {
        let bytes = &ring[offset as usize..];
        let Ok(header) = Header::parse(bytes, &superblock.life, cursor.sequence()) else {
            continue;
        };
        if !cursor.take(offset, header.record_len()) {
            continue;
        }
        let data = &bytes[BLOCK as usize..header.record_len() as usize];
        let mut again = vec![0; BLOCK as usize];
        header.encode_into(&mut again);
        let life = superblock.life;
        assert_eq!(Header::parse(&again, &life, header.sequence).as_ref(), Ok(&header));
        if let Ok(parts) = header.prove(data) {
            let mut len = 0;
            for (extent, bytes) in parts {
                assert!(extent.span.is_within(life.origin.size), "outside of the origin");
                assert_eq!(bytes.len() as u64, extent.data_len());
                len += extent.data_len();
            }
            assert_eq!(len, header.data_len());
        }
        return true;
    }
    false
}
