//! The answer: hypotheses in the order of their evidence, and whether the first is decided.

use std::ops::Range;

use super::map::{Map, Pattern};

/// A member in a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index of the member.
    pub member: usize,
    /// Bytes from the member's start to its data.
    pub data_offset: u64,
    /// Bytes of the member's data, where the geometry depends on them: linear, and raid0 over different sizes.
    pub length: Option<u64>,
    /// Number of places that were seen where the seat has them.
    pub satisfied: u32,
    /// Number of places that were seen where the seat has parity of them, which may equal data.
    pub echoes: u32,
    /// Number of places that must lie on the seat, and were seen elsewhere only.
    pub contradicted: u32,
    /// Votes for the best other member, or data offset, in this role.
    pub runner_up: u32,
    /// True if redundancy predicts the member's content, and the prediction holds.
    pub is_verified: bool,
}

impl Seat {
    /// A seat without evidence.
    pub(super) fn new(member: usize, data_offset: u64) -> Seat {
        Seat {
            member,
            data_offset,
            length: None,
            satisfied: 0,
            echoes: 0,
            contradicted: 0,
            runner_up: 0,
            is_verified: false,
        }
    }
}

/// Rows in which redundancy was compared with content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Rows that agree, and are not all zero.
    pub agree: u32,
    /// Rows that do not.
    pub differ: u32,
}

/// A member that has no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOver {
    /// Index of the member.
    pub member: usize,
    /// Why it has none.
    pub reason: Reason,
}

/// The reason for which a member has no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It carries no evidence of this array.
    NoEvidence,
    /// Its content is that of the member with this index.
    CloneOf(usize),
    /// It carries evidence that contradicts all others: it is stale, was overwritten, or belongs to another array.
    Contradicts,
    /// Its superblock says that its array went on without it.
    Stale,
}

/// A geometry with its members, and the evidence for it.
#[derive(Clone, Debug)]
pub struct Hypothesis {
    /// The geometry.
    pub pattern: Pattern,
    /// The member of each role; `None` is a missing one.
    pub seats: Vec<Option<Seat>>,
    /// Bytes that the array uses of each member, where the geometry depends on them: far copies of raid10.
    pub component: Option<u64>,
    /// For each anchor the byte of the array at which it begins, if it is known.
    pub bases: Vec<Option<u64>>,
    /// Number of places that were seen where they must lie, each once.
    pub satisfied: u32,
    /// Number of places that must lie on a member that is there, and were seen elsewhere only.
    pub contradicted: u32,
    /// Number of satisfied places that were also seen on another copy, or in parity that equals them.
    pub echoes: u32,
    /// Number of places on missing members that were seen in parity: it equals them where all other data are zero.
    /// Those for which content shows that it is not so are taken off.
    pub in_parity: u32,
    /// Number of places that were taken off.
    pub(super) not_in_parity: u32,
    /// Number of rows whose parity cannot be parity.
    pub(super) impossible: u32,
    /// Agreement of content with redundancy, in rows that were sampled.
    pub agreement: Agreement,
    /// Files that are whole, and files that are not, where their own checksums were asked: (0, 0) if they were not.
    pub files: (u32, u32),
    /// Members without a role.
    pub left_over: Vec<LeftOver>,
    /// False if more members are missing than the redundancy allows.
    pub is_readable: bool,
    pub(super) map: Map,
}

impl Hypothesis {
    /// The weight of its evidence: places satisfied or seen in parity, each once, those of them with a second copy
    /// once more, less contradictions.
    #[must_use]
    pub fn score(&self) -> i64 {
        self.plain_score() + i64::from(self.echoes)
    }

    /// The weight without second copies, which a clone of a member has as well.
    pub(super) fn plain_score(&self) -> i64 {
        i64::from(self.satisfied) + i64::from(self.in_parity) - i64::from(self.contradicted)
    }

    /// Number of roles without a member.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.seats.iter().filter(|seat| seat.is_none()).count()
    }

    /// Returns the evidence that is missing if it lacks members and stands on blocks that are alone in their rows: with zeros
    /// beside them, parity is equal to them, and another geometry may take it for data.
    pub(super) fn emptiness(&self) -> Option<&'static str> {
        let is_alone = self.echoes * 10 >= self.satisfied * 9;
        (self.map.parity().is_some() && self.missing() > 0 && is_alone).then_some(
            "blocks that share a row with others: parity equals nearly all of them, so that data and parity look the same",
        )
    }

    /// Bytes between the sections of a member: 0 where there is one, and where the distance is not known.
    pub(super) fn distance(&self) -> u64 {
        self.component.map_or(0, |component| component / self.map.sections())
    }
}

/// An array in the middle of a reshape: two geometries, and the place where they meet.
#[derive(Clone, Debug)]
pub struct Reshape {
    /// The geometry of the array's bytes below the position.
    pub below: Hypothesis,
    /// The geometry of its bytes above.
    pub above: Hypothesis,
    /// Bytes of the array between which the position lies: the last evidence for the one, the first for the other.
    pub position: Range<u64>,
}

/// An answer to a question.
#[derive(Clone, Debug)]
pub enum Answer {
    /// One hypothesis has much better evidence than all that lead to other content.
    Decided {
        /// The hypothesis.
        first: Box<Hypothesis>,
        /// The others, best first. Those with the same content as the first are among them.
        rest: Vec<Hypothesis>,
        /// Score of the best one with other content, as a share of the first's: below 0.95.
        second: f64,
    },
    /// The array was being reshaped.
    Reshaping(Box<Reshape>),
    /// The evidence does not decide.
    Undecided {
        /// Hypotheses, best first; none without evidence.
        alternatives: Vec<Hypothesis>,
        /// Sentences that name the evidence that would decide.
        would_decide: Vec<String>,
    },
}
