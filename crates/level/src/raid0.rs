//! raid0's layouts: how the stripes behind the shortest member's end are dealt.
//!
//! Members of equal sizes have one zone of stripes, and both layouts are the same. An array whose
//! layout was not recorded (number 0) cannot be told apart by looking at it, which is why md
//! records it since Linux 5.4.
//!
//! Source: Linux `drivers/md/raid0.h` (`enum r0layout`), `raid0.c` (`default_layout`).

use std::fmt;

/// The placement of chunks in zones after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Raid0Layout {
    /// md's layout 1, of Linux up to 3.13: chunks counted from the start of the array.
    Original,
    /// md's layout 2, of Linux from 3.14 on: chunks counted from the start of the zone.
    #[default]
    Alternate,
}

impl Raid0Layout {
    /// Both, in the order of md's numbers.
    pub const ALL: [Raid0Layout; 2] = [Raid0Layout::Original, Raid0Layout::Alternate];

    /// The layout of md's number; `None` for 0, where none was recorded, and for others.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Raid0Layout> {
        Raid0Layout::ALL.into_iter().find(|layout| layout.number() == number)
    }

    /// md's number.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Raid0Layout::Original => 1,
            Raid0Layout::Alternate => 2,
        }
    }

    /// The layout that md and mdadm call `text`.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Raid0Layout> {
        Raid0Layout::ALL.into_iter().find(|layout| layout.name() == text)
    }

    /// md's and mdadm's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Raid0Layout::Original => "original",
            Raid0Layout::Alternate => "alternate",
        }
    }
}

impl fmt::Display for Raid0Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
