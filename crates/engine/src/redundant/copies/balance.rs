//! The choice of the copy to read.
//!
//! In this order: a member that is not write-mostly; one that is not slower than the others; one whose last
//! read ended where this read starts, so that a sequential stream stays on one member; the one with the fewest
//! reads in flight; the one whose last read ended nearest.
//!
//! While the copies may differ, reads always use the first copy that is not write-mostly, even if it is slow:
//! repeated reads then return the same data, until the resync has made that copy the valid one.

use braid_array::{ArraySpan, ByRole, MemberSpan, Mirrored};

use crate::redundant::roster::Slot;

/// Returns the best copy of the first byte of `span`, among those that can be read for all of it (or up to the
/// end of the piece); `None` if there is none. `first` asks for the first of them.
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
