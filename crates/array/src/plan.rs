//! Cutting a request along a geometry.
//!
//! ```text
//! request        |  a  |  b  |  c  |  d  |  e  |        raid0 over three members
//! pieces            0     1     2     0     1           which member each falls on
//! member I/O     0: a d      1: b e      2: c           neighbours on a member: one I/O,
//!                                                       its memory gathered from two places
//! ```
//!
//! The request that lies in one piece on one member, nearly every small one, takes no memory.

use crate::{ArrayByte, ArraySpan, ByRole, Geometry, MemberByte, MemberSpan, Role, Run};

/// The plan of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// All of it lies in one piece on one member: pass it on, at `offset`.
    Forward {
        /// The member's role.
        role: Role,
        /// Offset on the member.
        offset: MemberByte,
    },
    /// Several member I/Os, which may run at the same time.
    Fan(Fan),
}

/// A request spread over members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fan {
    /// One I/O for each stretch on a member, in the order of their first pieces.
    pub spans: Vec<RoleSpan>,
    /// The request from front to back: each piece is the next bytes of one of the `spans`.
    pub pieces: Vec<Piece>,
}

/// A stretch of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleSpan {
    /// The member's role.
    pub role: Role,
    /// Span on the member.
    pub span: MemberSpan,
}

/// A part of a request that lies in one piece on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which of [`Fan::spans`] it belongs to.
    pub span: usize,
    /// Length in bytes.
    pub len: u64,
}

/// Plans a request over the bytes of `span`, each of which lies in one place.
///
/// # Panics
/// If `span` is not within the array.
#[inline]
pub fn plan_span<G: Geometry + ?Sized>(geometry: &G, span: ArraySpan) -> Plan {
    debug_assert!(span.is_within(geometry.size()));
    plan_span_with(geometry.members(), span, |offset| geometry.locate(offset))
}

/// Plans a request over the bytes of `span` of an array of `members`, where `locate` says in which
/// place each piece is to be read or written: with one [`crate::Mirrored::locate`] for each copy a
/// write makes as many plans as there are copies, and a read chooses a copy for each piece.
///
/// `locate` is called once for each piece, from front to back, with the piece's first byte.
///
/// # Panics
/// If `locate` answers a role that is not below `members`, or an empty run.
#[inline]
pub fn plan_span_with(
    members: usize,
    span: ArraySpan,
    mut locate: impl FnMut(ArrayByte) -> Run,
) -> Plan {
    let first = locate(span.offset);
    if first.len >= span.len {
        return Plan::Forward { role: first.role, offset: first.offset };
    }
    let fan = plan_fan(members, span, first, locate);
    match fan.spans[..] {
        // Chunks of one member that lie one behind the other.
        [RoleSpan { role, span }] => Plan::Forward { role, offset: span.offset },
        _ => Plan::Fan(fan),
    }
}

/// Deals `span` out to the members, from front to back; `first` is where its first byte lies.
#[cold]
fn plan_fan(
    members: usize,
    span: ArraySpan,
    first: Run,
    mut locate: impl FnMut(ArrayByte) -> Run,
) -> Fan {
    let mut fan = Fan { spans: Vec::new(), pieces: Vec::new() };
    // The span that each member's last piece went to.
    let mut open: ByRole<Option<usize>> = ByRole::new(members, |_| None);
    let mut offset = span.offset;
    let mut run = first;
    loop {
        assert!(run.len > 0, "a run has bytes");
        let len = run.len.min(span.end() - offset);
        let index = match open[run.role] {
            Some(index) if fan.spans[index].span.end() == run.offset => {
                fan.spans[index].span.len += len;
                index
            }
            _ => {
                let span = MemberSpan::new(run.offset, len);
                fan.spans.push(RoleSpan { role: run.role, span });
                fan.spans.len() - 1
            }
        };
        open[run.role] = Some(index);
        match fan.pieces.last_mut() {
            Some(last) if last.span == index => last.len += len,
            _ => fan.pieces.push(Piece { span: index, len }),
        }
        offset += len;
        if offset == span.end() {
            return fan;
        }
        run = locate(offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Linear, Raid0};
    use braid_level::Raid0Layout;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const BLOCK: u64 = 4096;

    /// Every geometry over up to 6 members of up to 4 blocks each, chunks of 1 to 3 blocks.
    fn small_worlds(mut check: impl FnMut(&dyn Geometry, &[u64])) {
        for members in 1..=6usize {
            for code in 0..4usize.pow(members as u32) {
                let blocks = |member| (code / 4usize.pow(member as u32) % 4 + 1) as u64;
                let sizes: Vec<u64> = (0..members).map(|member| blocks(member) * BLOCK).collect();
                check(&Linear::new(&sizes, BLOCK as u32).unwrap(), &sizes);
                for chunk in 1..=3 {
                    for layout in [Raid0Layout::Original, Raid0Layout::Alternate] {
                        match Raid0::new(&sizes, chunk * BLOCK, layout, BLOCK as u32) {
                            Ok(raid0) => check(&raid0, &sizes),
                            Err(_) => assert!(sizes.iter().any(|size| *size < chunk * BLOCK)),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_small_world_is_a_bijection_inside_its_members() {
        small_worlds(|geometry, sizes| {
            let mut seen = HashSet::new();
            for block in 0..geometry.size() / BLOCK {
                let run = geometry.locate(ArrayByte::new(block * BLOCK));
                let there = MemberSpan::new(run.offset, run.len);
                assert!(run.len >= BLOCK && there.is_within(sizes[run.role.index()]));
                assert!(seen.insert((run.role, run.offset)), "two blocks in one place");
                let middle = geometry.locate(ArrayByte::new(block * BLOCK + 1000));
                assert_eq!(
                    (middle.role, middle.offset, middle.len),
                    (run.role, run.offset + 1000, run.len - 1000)
                );
            }
        });
    }

    #[test]
    fn every_request_in_every_small_world_is_covered_once_and_in_order() {
        small_worlds(|geometry, _| {
            let blocks = geometry.size() / BLOCK;
            for start in 0..blocks {
                for end in start + 1..=blocks {
                    let first = ArrayByte::new(start * BLOCK);
                    check_plan(geometry, ArraySpan::new(first, (end - start) * BLOCK));
                }
            }
        });
    }

    fn check_plan(geometry: &dyn Geometry, span: ArraySpan) {
        match plan_span(geometry, span) {
            Plan::Forward { role, offset } => {
                for done in (0..span.len).step_by(BLOCK as usize) {
                    let run = geometry.locate(span.offset + done);
                    assert_eq!((run.role, run.offset), (role, offset + done));
                }
            }
            Plan::Fan(fan) => check_fan(geometry, span, &fan),
        }
    }

    /// Walks the pieces and asks the geometry for every block of them.
    fn check_fan(geometry: &dyn Geometry, span: ArraySpan, fan: &Fan) {
        let mut next: Vec<MemberByte> = fan.spans.iter().map(|one| one.span.offset).collect();
        let mut offset = span.offset;
        for piece in &fan.pieces {
            for _ in 0..piece.len / BLOCK {
                let run = geometry.locate(offset);
                assert_eq!(fan.spans[piece.span].role, run.role);
                assert_eq!(next[piece.span], run.offset);
                next[piece.span] += BLOCK;
                offset += BLOCK;
            }
        }
        assert_eq!(offset, span.end());
        assert!(fan.spans.iter().zip(&next).all(|(one, next)| one.span.end() == *next));
    }

    #[test]
    fn a_whole_stripe_is_one_io_a_member() {
        let raid0 = Raid0::new(&[1 << 20; 4], 64 << 10, Raid0Layout::default(), 512).unwrap();
        let Plan::Fan(fan) = plan_span(&raid0, ArraySpan::first(1 << 20)) else { panic!() };
        assert_eq!(fan.spans.len(), 4);
        assert_eq!(fan.pieces.len(), 16);
        assert!(fan.spans.iter().all(|one| one.span == MemberSpan::first(256 << 10)));
    }

    proptest! {
        /// Large unequal members and odd chunks: the same checks on random spans.
        #[test]
        fn random_requests_are_covered(
            sizes in prop::collection::vec(16u64..2000, 1..12),
            chunk in 1u64..16,
            original in any::<bool>(),
            start in any::<prop::sample::Index>(),
            len in 1u64..500,
        ) {
            let sizes: Vec<u64> = sizes.iter().map(|blocks| blocks * BLOCK).collect();
            let layout = if original { Raid0Layout::Original } else { Raid0Layout::Alternate };
            let raid0 = Raid0::new(&sizes, chunk * BLOCK, layout, BLOCK as u32).unwrap();
            let blocks = raid0.size() / BLOCK;
            let start = start.index(blocks as usize) as u64;
            let len = len.min(blocks - start);
            check_plan(&raid0, ArraySpan::new(ArrayByte::new(start * BLOCK), len * BLOCK));
        }
    }
}
