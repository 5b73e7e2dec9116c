//! Numbers in unchecked bytes: a place outside of them is an error.

use crate::error::{Tried, Trouble};

fn array<const N: usize>(bytes: &[u8], at: usize) -> Tried<[u8; N]> {
    let end = at.checked_add(N);
    let found = end.and_then(|end| bytes.get(at..end)).and_then(|found| found.try_into().ok());
    found.ok_or(Trouble::Damaged("a number lies outside of its block"))
}

pub(crate) fn byte(bytes: &[u8], at: usize) -> Tried<u8> {
    Ok(array::<1>(bytes, at)?[0])
}

pub(crate) fn le16(bytes: &[u8], at: usize) -> Tried<u16> {
    Ok(u16::from_le_bytes(array(bytes, at)?))
}

pub(crate) fn le32(bytes: &[u8], at: usize) -> Tried<u32> {
    Ok(u32::from_le_bytes(array(bytes, at)?))
}

pub(crate) fn le64(bytes: &[u8], at: usize) -> Tried<u64> {
    Ok(u64::from_le_bytes(array(bytes, at)?))
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Tried<u16> {
    Ok(u16::from_be_bytes(array(bytes, at)?))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> Tried<u32> {
    Ok(u32::from_be_bytes(array(bytes, at)?))
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> Tried<u64> {
    Ok(u64::from_be_bytes(array(bytes, at)?))
}

/// A number whose halves lie apart.
pub(crate) fn halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The bytes from `at` on.
pub(crate) fn slice(bytes: &[u8], at: usize, len: usize) -> Tried<&[u8]> {
    let end = at.checked_add(len);
    let found = end.and_then(|end| bytes.get(at..end));
    found.ok_or(Trouble::Damaged("a field lies outside of its block"))
}
