//! Bytes that were overwritten: by the resync of an array that was created anew over another one, and by a partition table
//! over a member that was a whole disk.
//!
//! ```text
//!   the data       D0 D1 D2 P  Q  │ D3 D4 P  Q  D5 │ ..     order, chunk or offset as before
//!   created anew   D  P  Q  D  D  │ P  Q  D  D  D  │ ..     what it calls P and Q was computed from the rest
//! ```
//!
//! In a raid4 or raid5 of the same members the sum of a row is the same in any order, so a resync changes nothing. In a
//! raid6 it overwrites two places of each row, which are as good as missing: the old P and Q have them, if no member is lost.
//!
//! Deliberately absent: raid10, whose resync overwrites whole copies; a resync that did not come to its end.

use braid_level::Level;

use crate::assemble::{self, Ranges};
use crate::evidence::{Known, anchors};
use crate::remade::given;
use crate::solve::{Question, fit};
use crate::{Examined, Patient, arrays};

/// Stripes of an array up to which its places are listed: a map has a line for each.
const MOST_STRIPES: u64 = 1 << 17;

/// Bytes at each end of a member in which the header of a GPT lies.
const NEAR: u64 = 64 << 10;
/// Bytes of the entries of a GPT, as all tools make it.
const ENTRIES: u64 = 16 << 10;

/// Returns the bytes on which a GPT of the member itself lies: no data of an array are there.
#[must_use]
pub fn own_tables(patient: &Patient) -> Ranges {
    let size = patient.size();
    let near = |at: u64| {
        let mut window = vec![0; usize::try_from(NEAR.min(size - at)).expect("64 KiB are few")];
        patient.read_around(at, &mut window, &mut Vec::new());
        anchors(&window, at)
    };
    let ends = [0, size.saturating_sub(NEAR).next_multiple_of(4096).min(size)];
    let of_member = |(_, known): &(u64, Known)| {
        matches!(known, Known::Gpt(_)) && known.anchor().size == Some(size)
    };
    let headers = ends.into_iter().flat_map(near).filter(of_member).map(|(at, _)| at);
    let table = |at: u64| match (at, size - at) {
        (512 | 4096, _) => Some(0..(2 * at + ENTRIES).min(size)),
        (_, 512 | 4096) => Some(at.saturating_sub(ENTRIES)..size),
        _ => None,
    };
    assemble::joined(headers.filter_map(table).collect())
}

/// Returns for each member the bytes that a resync overwrote, in order: of raid6 arrays whose superblocks are contradicted
/// by the blocks of `question`, and whose parity agrees everywhere that it was compared. Without a question superblocks are
/// taken to be contradicted.
#[must_use]
pub fn overwritten(members: &[Examined], question: Option<&Question>) -> Vec<Ranges> {
    let mut found = vec![Ranges::new(); members.len()];
    let patients: Vec<&Patient> = members.iter().map(|one| &one.patient).collect();
    for array in arrays(members) {
        let Ok(opening) = assemble::open(&array.claimants, None) else { continue };
        let superblock = &array.claimants[opening.freshest].superblock;
        let is_contradicted = |question: &Question| {
            let fit = given(&array, &opening).and_then(|given| fit(question, &given));
            fit.is_some_and(|fit| fit.contradicts())
        };
        if superblock.level != Level::Raid6 || !question.is_none_or(is_contradicted) {
            continue;
        }
        let cells = opening.agreement(&array.claimants, &patients, false);
        let agreeing: u64 = cells.iter().map(|cell| cell.agreeing).sum();
        if agreeing > 0 && cells.iter().all(|cell| cell.differing == 0) {
            for (member, ranges) in opening.parity(&array.claimants, MOST_STRIPES) {
                found[member].extend(ranges);
            }
        }
    }
    found.into_iter().map(assemble::joined).collect()
}
