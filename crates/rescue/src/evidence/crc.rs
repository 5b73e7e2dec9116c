//! CRC-32C forwards and backwards.
//!
//! ```text
//!   seed ──number (4 bytes)──▶ ──rest──▶ checksum      the state before `rest` follows from the one behind it,
//!        ◀────── solved ──────────────────             and the number from the states before and behind it
//! ```

/// The state with which LVM2's checksums, which are CRC-32 without a final inversion, begin.
pub(crate) const START_LVM2: u32 = 0xf597_a6cf;

/// Returns the state of the register after `bytes`, from `state` on, without the inversions at either end.
pub(super) fn advance(state: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!state, bytes)
}

/// Returns whether `bytes` have their CRC-32C, little-endian, at `at`, where zeros were while it was computed.
pub(super) fn is_right(bytes: &[u8], at: usize) -> bool {
    let (Some(before), Some(behind)) = (bytes.get(..at), bytes.get(at + 4..)) else { return false };
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]), behind);
    super::bytes::le32(bytes, at) == Some(crc)
}

/// Returns the CRC-32 of GUID partition tables.
pub(super) fn ieee(bytes: &[u8]) -> u32 {
    !advance_ieee(u32::MAX, bytes)
}

/// Returns the state of a register of CRC-32 after `bytes`, from `state` on.
pub(crate) fn advance_ieee(state: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let (mut index, mut first) = (0, 0);
        while index < table.len() {
            let (mut state, mut bit) = (first, 0);
            while bit < 8 {
                state = state >> 1 ^ if state & 1 == 1 { 0xedb8_8320 } else { 0 };
                bit += 1;
            }
            table[index] = state;
            (index, first) = (index + 1, first + 1);
        }
        table
    };
    let step =
        |state: u32, byte: &u8| state >> 8 ^ TABLE[usize::from(state.to_le_bytes()[0] ^ byte)];
    bytes.iter().fold(state, step)
}

/// The inverse of advancing a state by a number of zero bytes, which is linear: a table for each byte of the state.
pub(super) struct Undo([[u32; 256]; 4]);

impl Undo {
    pub(super) fn new(zeros: usize) -> Undo {
        // The top byte of a table's entry tells the entry.
        let mut by_top = [(0, 0); 256];
        for index in 0..=u8::MAX {
            let entry = advance(index.into(), &[0]);
            by_top[(entry >> 24) as usize] = (u32::from(index), entry);
        }
        let back = |state: u32| {
            let (index, entry) = by_top[(state >> 24) as usize];
            (state ^ entry) << 8 | index
        };
        let column = |bit: u32| (0..zeros).fold(1 << bit, |state, _| back(state));
        let mut columns = [0; 32];
        (0..).zip(&mut columns).for_each(|(bit, of)| *of = column(bit));
        let mut tables = [[0; 256]; 4];
        for (byte, table) in tables.iter_mut().enumerate() {
            for (value, entry) in table.iter_mut().enumerate() {
                let bits = (0..8).filter(|bit| value >> bit & 1 == 1);
                *entry = bits.fold(0, |sum, bit| sum ^ columns[8 * byte + bit]);
            }
        }
        Undo(tables)
    }

    /// Returns the state that so many zero bytes lead to `state`.
    pub(super) fn before(&self, state: u32) -> u32 {
        let bytes = state.to_le_bytes().into_iter().zip(&self.0);
        bytes.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_their_catalogue() {
        assert_eq!(ieee(b"123456789"), 0xcbf4_3926);
        assert_eq!(!advance(u32::MAX, b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_number_is_solved_from_a_checksum() {
        let (seed, number, rest) = (0x1234_5678_u32, 77_777_u32, b"generation and inode");
        let end = advance(advance(seed, &number.to_le_bytes()), rest);
        let undo = Undo::new(4 + rest.len());
        assert_eq!(undo.before(end ^ advance(0, rest)) ^ seed, number);
    }
}
