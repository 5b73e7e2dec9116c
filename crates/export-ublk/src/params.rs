//! Parameters of a device: `struct ublk_params` of `linux/ublk_cmd.h`.
//!
//! ```text
//!  0     4       8                                                     40                        60
//!  | len | types | basic: attributes, shifts, most sectors, size, … | discard: granularity, most … |
//! ```
//!
//! Deliberately absent: zones, and the numbers of the devices, which the driver only returns.

use braid_block::Limits;

use crate::request::MAX_DATA;

/// Bytes that are written: up to the end of the part about discards.
pub const LEN: usize = 60;
/// Bytes that are read: more than any kernel has, so far.
pub const MOST: usize = 256;

const SECTOR: u64 = 512;
const BASIC: u32 = 1 << 0;
const DISCARD: u32 = 1 << 1;

const READ_ONLY: u32 = 1 << 0;
const ROTATIONAL: u32 = 1 << 1;
const VOLATILE_CACHE: u32 = 1 << 2;
const FUA: u32 = 1 << 3;

/// Longest discard, and longest write of zeroes, in sectors: 1 GiB, and 64 MiB, which a member may have to write.
const MOST_DISCARD: u32 = 1 << 21;
const MOST_ZEROES: u32 = 1 << 17;
/// [`MAX_DATA`] in sectors, and the lengths of parameters, as the driver is told.
const MOST_SECTORS: u32 = 2048;
const LEN_WORD: u32 = 60;
const MOST_WORD: u32 = 256;
const _: () = assert!(MOST_SECTORS as u64 * SECTOR == MAX_DATA as u64);
const _: () = assert!(LEN_WORD as usize == LEN && MOST_WORD as usize == MOST);

/// Returns the binary logarithm of a power of two.
fn log2(power: u64) -> u8 {
    u8::try_from(power.trailing_zeros()).expect("at most 64")
}

/// Returns the parameters of a device with `limits`. The driver knows only sizes that are powers of two: an optimal size
/// that is not is left out.
pub fn encode(limits: &Limits) -> [u8; LEN] {
    let mut attributes = VOLATILE_CACHE | FUA;
    attributes |= if limits.read_only { READ_ONLY } else { 0 };
    attributes |= if limits.rotational { ROTATIONAL } else { 0 };
    let logical = log2(u64::from(limits.logical_block));
    let physical = limits.physical_block.max(limits.logical_block);
    let physical = log2(u64::from(physical.next_power_of_two()));
    let optimal = match limits.optimal_io.is_power_of_two() {
        true => log2(u64::from(limits.optimal_io)),
        false => physical,
    };
    let mut bytes = [0; LEN];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &LEN_WORD.to_ne_bytes());
    put(4, &(BASIC | DISCARD).to_ne_bytes());
    put(8, &attributes.to_ne_bytes());
    put(12, &[logical, physical, optimal, physical]);
    put(16, &MOST_SECTORS.to_ne_bytes());
    put(24, &(limits.size / SECTOR).to_ne_bytes());
    // A discard has one range, of whole blocks.
    put(44, &limits.logical_block.to_ne_bytes());
    put(48, &(if limits.discard { MOST_DISCARD } else { 0 }).to_ne_bytes());
    put(52, &MOST_ZEROES.to_ne_bytes());
    put(56, &1u16.to_ne_bytes());
    bytes
}

/// Parameters of a device that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its size in bytes.
    pub size: u64,
    /// Its logical block in bytes.
    pub logical_block: u64,
    /// It refuses writes.
    pub read_only: bool,
}

/// Returns a buffer for the command that reads parameters.
pub fn to_read() -> [u8; MOST] {
    let mut bytes = [0; MOST];
    bytes[0..4].copy_from_slice(&MOST_WORD.to_ne_bytes());
    bytes
}

/// Returns the parameters in `bytes`; `None` if the basic ones are missing or make no sense.
pub fn decode(bytes: &[u8]) -> Option<Known> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if word(4)? & BASIC == 0 {
        return None;
    }
    let sectors = u64::from_ne_bytes(bytes.get(24..32)?.try_into().ok()?);
    let shift = *bytes.get(12)?;
    Some(Known {
        size: sectors.checked_mul(SECTOR)?,
        logical_block: 1u64.checked_shl(shift.into())?,
        read_only: word(8)? & READ_ONLY != 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_driver_gets_the_limits() {
        let limits = Limits {
            physical_block: 4096,
            optimal_io: 192 << 10,
            discard: false,
            ..Limits::new(1 << 30, 512)
        };
        let bytes = encode(&limits);
        assert_eq!(
            bytes[12..16],
            [9, 12, 12, 12],
            "an optimal size of three chunks cannot be said"
        );
        assert_eq!(bytes[48..52], [0; 4], "no discards");
        let known = Known { size: 1 << 30, logical_block: 512, read_only: false };
        assert_eq!(decode(&bytes), Some(known));
        let limits = Limits { read_only: true, optimal_io: 128 << 10, ..Limits::new(4096, 4096) };
        assert_eq!(encode(&limits)[12..16], [12, 12, 17, 12]);
        assert!(decode(&encode(&limits)).is_some_and(|known| known.read_only));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(known) = decode(&bytes) {
                prop_assert!(known.size.is_multiple_of(SECTOR) && known.logical_block > 0);
            }
        }
    }
}
