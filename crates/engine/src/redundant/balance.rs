//! The choice of the copy to read.
//!
//! In this order: a member that is not write-mostly; one that is not slower than the others; one whose last
//! read ended where this read starts, so that a sequential stream stays on one member; the one with the fewest
//! reads in flight; the one whose last read ended nearest.
//!
//! While the copies may differ, reads always use the first copy that is not write-mostly, even if it is slow:
//! repeated reads then return the same data, until the resync has made that copy the valid one.

use braid_array::{ArraySpan, MemberByte, MemberSpan, Mirrored, Role};

/// The facts about a member by which copies are chosen.
#[derive(Clone, Copy, Debug)]
pub(in crate::redundant) struct Standing {
    /// True if the member is read only if no other can be read.
    pub(in crate::redundant) write_mostly: bool,
    /// True if the operator's monitor found the member slower than the others.
    pub(in crate::redundant) is_slow: bool,
    /// Reads in flight.
    pub(in crate::redundant) reads: u32,
    /// End of the last read.
    pub(in crate::redundant) head: MemberByte,
}

/// Returns the best copy of the first byte of `span`, among those that can be read for all of it (or up to the
/// end of the piece); `None` if there is none. `standing` returns the member of a role, if it can be read there.
/// `first` asks for the first of them.
#[inline]
pub(in crate::redundant) fn choose(
    geometry: &dyn Mirrored,
    span: ArraySpan,
    first: bool,
    standing: impl Fn(Role, MemberSpan) -> Option<Standing>,
) -> Option<usize> {
    let mut best = None;
    for copy in 0..geometry.copies() {
        let run = geometry.locate(span.offset, copy);
        let place = MemberSpan::new(run.offset, span.len.min(run.len));
        let Some(member) = standing(run.role, place) else { continue };
        let distance = member.head.abs_diff(run.offset);
        let rank = match first {
            true => (member.write_mostly, false, false, 0, 0),
            false => (member.write_mostly, member.is_slow, distance != 0, member.reads, distance),
        };
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, copy));
        }
    }
    best.map(|(_, copy)| copy)
}
