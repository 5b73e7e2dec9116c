//! Little-endian numbers in a block, and its checksum. Pure.

pub(super) fn put_u64(block: &mut [u8], at: usize, value: u64) {
    block[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_u32(block: &mut [u8], at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn get_u64(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| block[at + index]))
}

pub(super) fn get_u32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| block[at + index]))
}

/// Returns the CRC-32C of a block as if its checksum, which lies at `at`, were zero.
pub(super) fn checksum(block: &[u8], at: usize) -> u32 {
    let (before, behind) = block.split_at(at);
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(sum, &behind[4..])
}
