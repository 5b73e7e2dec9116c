//! Which block of a stripe is wrong, when P and Q are not what the data say.
//!
//! ```text
//!   what is wrong by e          P is off by    Q is off by
//!   nothing                     0              0
//!   P                           e              0
//!   Q                           0              e
//!   the data block of power z   e              g^z·e          in every byte, with the same z
//! ```
//!
//! One block that is wrong in any number of bytes is always found. Two wrong blocks may look like
//! a third one that is right, byte by byte, with a chance of 1 in 255 for each byte that both have
//! wrong: the more bytes, the surer. (Anvin, "The mathematics of RAID-6", section 4.)

use crate::field::{ORDER, exponent};

/// The one block that, if it is wrong, explains what P and Q say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspect {
    /// Nothing is wrong.
    None,
    /// The block of P.
    P,
    /// The block of Q.
    Q,
    /// The data block of this power, 0 to 254. An array that has fewer data blocks has none of
    /// this power: then it is as [`Suspect::Several`], and the caller is to see to that.
    Data(u8),
    /// No single block explains it.
    Several,
}

/// Finds which single block explains that P and Q are off by these differences, each the XOR of
/// what is stored and what the data on the disks give.
///
/// # Panics
///
/// If they are not equally long.
#[must_use]
pub fn locate(p_difference: &[u8], q_difference: &[u8]) -> Suspect {
    assert_eq!(p_difference.len(), q_difference.len(), "differences of P and Q, in bytes");
    match (is_zero(p_difference), is_zero(q_difference)) {
        (true, true) => return Suspect::None,
        (false, true) => return Suspect::P,
        (true, false) => return Suspect::Q,
        (false, false) => {}
    }
    let mut found = None;
    for (p, q) in p_difference.iter().zip(q_difference) {
        let power = match (exponent(*p), exponent(*q)) {
            (None, None) => continue,
            (Some(p), Some(q)) => (usize::from(q) + ORDER - usize::from(p)) % ORDER,
            // P alone or Q alone is off here, but not everywhere.
            _ => return Suspect::Several,
        };
        if *found.get_or_insert(power) != power {
            return Suspect::Several;
        }
    }
    found.map_or(Suspect::None, |power| Suspect::Data(power as u8))
}

/// Returns true if all bytes are zero. A scrub calls this for every stripe, hence many bytes at a time.
fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    let any = |chunk: &[u8; 64]| chunk.iter().fold(0, |any, byte| any | byte) != 0;
    !chunks.iter().any(any) && rest.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{multiply, power};

    #[test]
    fn every_error_in_every_data_block_is_found() {
        for block in 0..255 {
            for error in 1..=255 {
                let differences = ([0, error], [0, multiply(power(block), error)]);
                assert_eq!(locate(&differences.0, &differences.1), Suspect::Data(block));
            }
        }
    }

    #[test]
    fn parity_that_is_wrong_itself_is_found_at_every_place() {
        for length in [0, 1, 63, 64, 65, 4096] {
            let zero = vec![0; length];
            assert_eq!(locate(&zero, &zero), Suspect::None);
            for at in 0..length {
                let mut wrong = zero.clone();
                wrong[at] = 1 << (at % 8);
                assert_eq!(locate(&wrong, &zero), Suspect::P);
                assert_eq!(locate(&zero, &wrong), Suspect::Q);
                // The data block of power 0 changes both alike.
                assert_eq!(locate(&wrong, &wrong), Suspect::Data(0));
            }
        }
    }

    #[test]
    fn what_no_single_block_explains_is_several() {
        // Different powers, P alone beside a data block, Q alone beside one, P here and Q there.
        for (p, q) in [([3, 3], [6, 3]), ([3, 3], [6, 0]), ([3, 0], [6, 7]), ([1, 0], [0, 1])] {
            assert_eq!(locate(&p, &q), Suspect::Several, "{p:?} {q:?}");
        }
    }

    #[test]
    #[should_panic(expected = "differences of P and Q")]
    fn differences_are_equally_long() {
        let _ = locate(&[1], &[]);
    }
}
