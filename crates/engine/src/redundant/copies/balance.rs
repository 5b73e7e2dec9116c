//! Which copy to read.
//!
//! In this order: a member that is not write-mostly; one that is not slower than the others; one whose last read ended where this one
//! starts, so that a sequential stream stays where it is; the one with the fewest reads under
//! way; the one whose last read ended nearest.
//!
//! While the copies may differ, the first of them that is not write-mostly is read, always, also if it
//! is slow: what was read once is then read again, until the resync has made it the truth.

use braid_array::{ArraySpan, ByRole, MemberSpan, Mirrored};

use crate::redundant::roster::Slot;

/// The copy of the first byte of `span` that is best read, of those that can be read for all of it
/// (or up to the end of the piece): `None` if there is none. `first` asks for the first of them.
#[inline]
pub(crate) fn choose(
    geometry: &dyn Mirrored,
    slots: &ByRole<Slot>,
    span: ArraySpan,
    first: bool,
) -> Option<usize> {
    let mut best = None;
    for copy in 0..geometry.copies() {
        let run = geometry.locate(span.offset, copy);
        let Some(member) = slots[run.role].readable() else { continue };
        if member.is_bad(MemberSpan::new(run.offset, span.len.min(run.len))) {
            continue;
        }
        let distance = member.head.get().abs_diff(run.offset);
        let rank = match first {
            true => (member.write_mostly, false, false, 0, 0),
            false => {
                let (slow, away) = (member.is_slow.get(), distance != 0);
                (member.write_mostly, slow, away, member.reads.get(), distance)
            }
        };
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, copy));
        }
    }
    best.map(|(_, copy)| copy)
}
