//! Which raid4, raid5 or raid6: where the parity of each stripe lies, and in which order the data.
//!
//! ```text
//! number  0 … 3     4             5            8 … 10          16 … 20
//! raid4   any number: parity on the last member
//! raid5   rotating  parity-first  parity-last
//! raid6   rotating  parity-first  parity-last  DDF, rotating   as raid5's 0 … 4 over all members
//!                                                              but the last, which has all of Q
//! ```
//!
//! *Left* and *right* say which way the parity wanders from stripe to stripe: from the last member
//! to the first, or from the first to the last. *Asymmetric* data start again at the first member in
//! each stripe ("restart"); *symmetric* data go on behind the parity ("continue"). The pictures are
//! in `braid-array`'s `raid456.rs`.
//!
//! Invariant: [`ParityLayout::from_number`] and [`ParityLayout::number`] are inverse for raid5 and
//! raid6. Deliberately absent: mdadm's names of DDF layouts for raid5, where they are second names
//! of the first three.
//!
//! Source: Linux `drivers/md/raid5.h` (`ALGORITHM_*`), `raid5.c` (`setup_conf`); the names are those
//! of `mdadm --layout` and `mdadm --detail`.

use std::fmt;

use crate::LayoutError;
use crate::level::ParityLevel;

/// The place of each stripe's parity, and the order of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ParityLayout {
    /// Parity wanders from the last member to the first; data start at the first member.
    LeftAsymmetric,
    /// Parity wanders from the first member to the last; data start at the first member.
    RightAsymmetric,
    /// Parity wanders from the last member to the first; data start behind it: mdadm's default.
    #[default]
    LeftSymmetric,
    /// Parity wanders from the first member to the last; data start behind it.
    RightSymmetric,
    /// P, or P and Q, on the first members.
    ParityFirst,
    /// P, or P and Q, on the last members. A raid4's.
    ParityLast,
    /// raid6 of DDF, RLQ 1: right-asymmetric, but for the powers of Q.
    DdfZeroRestart,
    /// raid6 of DDF, RLQ 2: left-asymmetric, but for the powers of Q and one stripe ahead.
    DdfNRestart,
    /// raid6 of DDF, RLQ 3: left-symmetric, but for the powers of Q, which is before P.
    DdfNContinue,
    /// raid6: raid5's left-asymmetric, and Q on the last member.
    LeftAsymmetric6,
    /// raid6: raid5's right-asymmetric, and Q on the last member.
    RightAsymmetric6,
    /// raid6: raid5's left-symmetric, and Q on the last member.
    LeftSymmetric6,
    /// raid6: raid5's right-symmetric, and Q on the last member.
    RightSymmetric6,
    /// raid6: P on the first member, Q on the last.
    ParityFirst6,
}

/// Every layout with md's number and mdadm's name, in mdadm's order: the default first.
const LAYOUTS: [(ParityLayout, u32, &str); 14] = [
    (ParityLayout::LeftSymmetric, 2, "left-symmetric"),
    (ParityLayout::LeftAsymmetric, 0, "left-asymmetric"),
    (ParityLayout::RightSymmetric, 3, "right-symmetric"),
    (ParityLayout::RightAsymmetric, 1, "right-asymmetric"),
    (ParityLayout::ParityFirst, 4, "parity-first"),
    (ParityLayout::ParityLast, 5, "parity-last"),
    (ParityLayout::DdfZeroRestart, 8, "ddf-zero-restart"),
    (ParityLayout::DdfNRestart, 9, "ddf-N-restart"),
    (ParityLayout::DdfNContinue, 10, "ddf-N-continue"),
    (ParityLayout::LeftSymmetric6, 18, "left-symmetric-6"),
    (ParityLayout::LeftAsymmetric6, 16, "left-asymmetric-6"),
    (ParityLayout::RightSymmetric6, 19, "right-symmetric-6"),
    (ParityLayout::RightAsymmetric6, 17, "right-asymmetric-6"),
    (ParityLayout::ParityFirst6, 20, "parity-first-6"),
];
/// The number from which on layouts are raid6's alone.
const FIRST_OF_RAID6: u32 = 8;
/// The abbreviations that `mdadm --layout` accepts.
const SHORT_NAMES: [(ParityLayout, &str); 4] = [
    (ParityLayout::LeftAsymmetric, "la"),
    (ParityLayout::RightAsymmetric, "ra"),
    (ParityLayout::LeftSymmetric, "ls"),
    (ParityLayout::RightSymmetric, "rs"),
];

impl ParityLayout {
    /// Every layout there is, mdadm's default first.
    pub fn all() -> impl Iterator<Item = ParityLayout> {
        LAYOUTS.iter().map(|(layout, _, _)| *layout)
    }

    /// The layouts that arrays of this level can have, mdadm's default first.
    pub fn of(level: ParityLevel) -> impl Iterator<Item = ParityLayout> {
        ParityLayout::all().filter(move |layout| layout.suits(level))
    }

    /// The layout of md's number, as superblocks hold it. A raid4's number says nothing: whatever
    /// it is, md puts the parity on the last member.
    ///
    /// # Errors
    /// A number that the level does not have.
    pub fn from_number(level: ParityLevel, number: u32) -> Result<ParityLayout, LayoutError> {
        if level == ParityLevel::Raid4 {
            return Ok(ParityLayout::ParityLast);
        }
        LAYOUTS
            .iter()
            .find(|(layout, of_layout, _)| *of_layout == number && layout.suits(level))
            .map(|(layout, _, _)| *layout)
            .ok_or(LayoutError::Parity { level, number })
    }

    /// The layout that mdadm calls `text`, also for short. Whether a level has it is
    /// [`ParityLayout::suits`]'s to say.
    #[must_use]
    pub fn from_name(text: &str) -> Option<ParityLayout> {
        ParityLayout::all()
            .find(|layout| layout.name() == text || layout.short_name() == Some(text))
    }

    /// mdadm's name: `left-symmetric`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The abbreviation that `mdadm --layout` accepts: `ls`.
    #[must_use]
    pub fn short_name(self) -> Option<&'static str> {
        SHORT_NAMES.iter().find(|(layout, _)| *layout == self).map(|(_, name)| *name)
    }

    /// md's number, as superblocks of raid5 and raid6 hold it.
    #[must_use]
    pub fn number(self) -> u32 {
        self.row().1
    }

    /// True if arrays of this level can have it.
    #[must_use]
    pub fn suits(self, level: ParityLevel) -> bool {
        match level {
            ParityLevel::Raid4 => self == ParityLayout::ParityLast,
            ParityLevel::Raid5 => self.number() < FIRST_OF_RAID6,
            ParityLevel::Raid6 => true,
        }
    }

    /// True if it is one of DDF, which counts all members of a stripe for the powers of Q.
    #[must_use]
    pub fn is_ddf(self) -> bool {
        matches!(
            self,
            ParityLayout::DdfZeroRestart | ParityLayout::DdfNRestart | ParityLayout::DdfNContinue
        )
    }

    /// Its row of the table.
    fn row(self) -> &'static (ParityLayout, u32, &'static str) {
        LAYOUTS.iter().find(|(layout, _, _)| *layout == self).expect("every layout has a row")
    }
}

impl fmt::Display for ParityLayout {
    /// As mdadm prints it: `left-symmetric`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_refused_or_comes_back_by_number_and_by_name() {
        for (level, accepted) in [(ParityLevel::Raid5, 6), (ParityLevel::Raid6, 14)] {
            let layouts: Vec<ParityLayout> = (0..=u32::from(u16::MAX))
                .filter_map(|number| {
                    let layout = ParityLayout::from_number(level, number).ok()?;
                    assert_eq!(layout.number(), number);
                    assert_eq!(ParityLayout::from_name(layout.name()), Some(layout));
                    assert!(layout.suits(level));
                    Some(layout)
                })
                .collect();
            assert_eq!(layouts.len(), accepted, "{level}");
        }
        assert_eq!(ParityLayout::all().count(), 14);
    }

    #[test]
    fn a_raid4_has_its_parity_on_the_last_member_whatever_its_number() {
        for number in [0, 2, 5, 77, u32::MAX] {
            let layout = ParityLayout::from_number(ParityLevel::Raid4, number);
            assert_eq!(layout, Ok(ParityLayout::ParityLast));
        }
        assert!(!ParityLayout::LeftSymmetric.suits(ParityLevel::Raid4));
    }

    #[test]
    fn short_names_are_those_of_mdadm() {
        for (short, number) in [("la", 0), ("ra", 1), ("ls", 2), ("rs", 3)] {
            assert_eq!(ParityLayout::from_name(short).map(ParityLayout::number), Some(number));
        }
        assert_eq!(ParityLayout::default().number(), 2);
    }

    #[test]
    fn other_texts_and_numbers_are_refused_with_the_reason() {
        for text in ["", "l", "left", "parity-last-6", "ddf-n-restart", "LS", "ls ", "2"] {
            assert_eq!(ParityLayout::from_name(text), None, "{text:?}");
        }
        for (level, number, message) in [
            (ParityLevel::Raid5, 6, "raid5 has no layout of number 6"),
            (ParityLevel::Raid5, 18, "raid5 has no layout of number 18"),
            (ParityLevel::Raid6, 7, "raid6 has no layout of number 7"),
            (ParityLevel::Raid6, 21, "raid6 has no layout of number 21"),
        ] {
            let error = ParityLayout::from_number(level, number).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
