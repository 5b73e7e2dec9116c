//! The valid content of a block, by the number of copies that have it.
//!
//! ```text
//!   A A B      the third copy is wrong: more than half have A
//!   A B        nothing is proved: one of two
//!   A A B B    nothing is proved
//!   A B C      nothing is proved
//!   A A ?      an unreadable copy has no vote: two of two
//! ```
//!
//! A majority is a proof if copies went wrong independently of each other: a member that was filled from a
//! wrong copy repeats the error.

use crate::canary::Canary;
use crate::redundant::kind::JobKind;

/// The copies of a block: for each copy the number of its content, counted from the first copy on; `None` for a
/// copy that cannot be read.
pub(super) struct Ballot {
    contents: Vec<Option<usize>>,
}

impl Ballot {
    /// Compares `copies`, in the order of the geometry.
    pub(super) fn of(copies: &[Option<&[u8]>]) -> Ballot {
        let mut different: Vec<&[u8]> = Vec::new();
        let mut contents = Vec::with_capacity(copies.len());
        for copy in copies {
            contents.push(copy.map(|copy| {
                let known = different.iter().position(|other| *other == copy);
                known.unwrap_or_else(|| {
                    different.push(copy);
                    different.len() - 1
                })
            }));
        }
        Ballot { contents }
    }

    /// Returns the number of the content of copy `index`.
    pub(super) fn content(&self, index: usize) -> Option<usize> {
        self.contents[index]
    }

    /// Returns true if all readable copies are equal.
    pub(super) fn is_unanimous(&self) -> bool {
        self.contents.iter().flatten().all(|content| *content == 0)
    }

    /// Returns the content that more than half of the readable copies have.
    pub(super) fn majority(&self) -> Option<usize> {
        let votes = self.contents.iter().flatten().count();
        let is_half = |content: &&usize| {
            2 * self.contents.iter().flatten().filter(|other| other == content).count() > votes
        };
        self.contents.iter().flatten().find(is_half).copied()
    }

    /// Returns the content that all copies get in a pass of this kind; `None` if no content is proved and the
    /// pass writes only proved contents. After a crash the first copy counts, because reads used it.
    pub(super) fn result(&self, kind: JobKind) -> Option<usize> {
        let first = self.contents.iter().flatten().next().copied();
        match kind {
            JobKind::Resync => first,
            _ if Canary::FirstCopyBelieved.is_planted() => first,
            _ if kind.settles() => self.majority().or(first),
            _ => self.majority(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all ways in which `copies` copies can have one of as many contents, or be unreadable.
    fn patterns(copies: usize) -> Vec<Vec<Option<u8>>> {
        let mut all = vec![Vec::new()];
        for _ in 0..copies {
            let choices = || std::iter::once(None).chain((0..copies as u8).map(Some));
            let extended = all.iter().flat_map(|before: &Vec<Option<u8>>| {
                choices().map(move |one| [&before[..], &[one]].concat())
            });
            all = extended.collect();
        }
        all
    }

    #[test]
    fn every_pattern_of_up_to_five_copies_is_judged_by_more_than_half() {
        let mut proved = 0;
        for pattern in (1..=5).flat_map(patterns) {
            let bytes = [[0], [1], [2], [3], [4]];
            let copies: Vec<Option<&[u8]>> = pattern
                .iter()
                .map(|copy| copy.map(|content| &bytes[usize::from(content)][..]))
                .collect();
            let ballot = Ballot::of(&copies);
            let votes: Vec<u8> = pattern.iter().flatten().copied().collect();
            let count = |content: u8| votes.iter().filter(|other| **other == content).count();
            let winner = (0..5).find(|content| count(*content) > votes.len() - count(*content));
            // Contents are numbered anew: the number of a content leads to a copy that has it.
            let of = |number: Option<usize>| {
                let index = (0..copies.len()).find(|index| ballot.content(*index) == number);
                number.and(index).map(|index| pattern[index])
            };
            assert_eq!(of(ballot.majority()), winner.map(Some), "{pattern:?}");
            assert_eq!(of(ballot.result(JobKind::Check)), winner.map(Some), "{pattern:?}");
            assert_eq!(of(ballot.result(JobKind::Repair)), winner.map(Some), "{pattern:?}");
            let first = votes.first().copied();
            assert_eq!(of(ballot.result(JobKind::Resync)), first.map(Some), "{pattern:?}");
            let forced = winner.or(first).map(Some);
            assert_eq!(of(ballot.result(JobKind::ForcedRepair)), forced, "{pattern:?}");
            assert_eq!(ballot.is_unanimous(), votes.iter().all(|vote| Some(*vote) == first));
            proved += usize::from(winner.is_some() && !ballot.is_unanimous());
        }
        assert!(proved > 500, "{proved} patterns have a majority and a minority");
    }
}
