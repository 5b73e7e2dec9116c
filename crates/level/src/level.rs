//! md's levels, by the numbers that superblocks hold, and what holds for each of them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Chunks where they are powers of two, in bytes: a page at least; and what a signed 32-bit number
/// of sectors can say.
const CHUNKS: RangeInclusive<u64> = 4096..=512 << 30;
/// Chunks of raid0, which md only wants to be whole sectors.
const RAID0_CHUNKS: RangeInclusive<u64> = 512..=512 << 30;

/// The RAID level of an array. The numbers are md's (`include/uapi/linux/raid/md_u.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Level {
    /// One member after the other (-1).
    Linear = -1,
    /// Chunks dealt to the members in turn.
    Raid0 = 0,
    /// The same on every member.
    Raid1 = 1,
    /// Parity on a member of its own.
    Raid4 = 4,
    /// Parity that goes round.
    Raid5 = 5,
    /// Two parities that go round.
    Raid6 = 6,
    /// Copies of each chunk, dealt to the members.
    Raid10 = 10,
}

impl Level {
    /// All of them, in the order of md's numbers.
    pub const ALL: [Level; 7] = [
        Level::Linear,
        Level::Raid0,
        Level::Raid1,
        Level::Raid4,
        Level::Raid5,
        Level::Raid6,
        Level::Raid10,
    ];

    /// The level of md's number; `None` for those that braid does not know (multipath -4,
    /// faulty -5, container -100, and whatever comes).
    #[must_use]
    pub fn from_number(number: i32) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.number() == number)
    }

    /// md's number.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }

    /// md's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Linear => "linear",
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Raid4 => "raid4",
            Level::Raid5 => "raid5",
            Level::Raid6 => "raid6",
            Level::Raid10 => "raid10",
        }
    }

    /// The fewest members that md runs an array of.
    #[must_use]
    pub fn least_members(self) -> usize {
        match self {
            Level::Linear | Level::Raid0 | Level::Raid1 => 1,
            Level::Raid10 => 2,
            Level::Raid4 => ParityLevel::Raid4.least_members(),
            Level::Raid5 => ParityLevel::Raid5.least_members(),
            Level::Raid6 => ParityLevel::Raid6.least_members(),
        }
    }

    /// The level as one with parity, if it is one.
    #[must_use]
    pub fn with_parity(self) -> Option<ParityLevel> {
        match self {
            Level::Raid4 => Some(ParityLevel::Raid4),
            Level::Raid5 => Some(ParityLevel::Raid5),
            Level::Raid6 => Some(ParityLevel::Raid6),
            Level::Linear | Level::Raid0 | Level::Raid1 | Level::Raid10 => None,
        }
    }

    /// The requirement that a chunk of this size violates, if a chunk has a meaning.
    #[must_use]
    pub fn refuses_chunk(self, chunk: u64) -> Option<&'static str> {
        match self {
            Level::Linear | Level::Raid1 => None,
            Level::Raid0 => (!RAID0_CHUNKS.contains(&chunk) || !chunk.is_multiple_of(512))
                .then_some("a multiple of 512, up to 549755813888"),
            Level::Raid4 | Level::Raid5 | Level::Raid6 | Level::Raid10 => {
                (!CHUNKS.contains(&chunk) || !chunk.is_power_of_two())
                    .then_some("a power of two from 4096 to 549755813888")
            }
        }
    }

    /// True if a chunk size has a meaning.
    #[must_use]
    pub fn has_chunk(self) -> bool {
        self != Level::Raid1
    }

    /// True if data survives the loss of a member.
    #[must_use]
    pub fn is_redundant(self) -> bool {
        !matches!(self, Level::Linear | Level::Raid0)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    /// As mdadm's `--level` takes it: `raid1`, `1`, `mirror`, `stripe`, `linear`…
    fn from_str(text: &str) -> Result<Level, String> {
        let level = match text {
            "stripe" => Some(Level::Raid0),
            "mirror" => Some(Level::Raid1),
            _ => Level::ALL
                .into_iter()
                .find(|level| level.name() == text || level.number().to_string() == text),
        };
        level.ok_or_else(|| {
            format!(
                "{text:?} is no level: there are linear, raid0, raid1, raid10, raid4, raid5 and raid6"
            )
        })
    }
}

/// The levels that keep parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParityLevel {
    /// One parity, always on the last member.
    Raid4,
    /// One parity.
    Raid5,
    /// Two parities, P and Q.
    Raid6,
}

impl ParityLevel {
    /// The level.
    #[must_use]
    pub fn level(self) -> Level {
        match self {
            ParityLevel::Raid4 => Level::Raid4,
            ParityLevel::Raid5 => Level::Raid5,
            ParityLevel::Raid6 => Level::Raid6,
        }
    }

    /// `raid4`, `raid5` or `raid6`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.level().name()
    }

    /// The number of parities of a stripe, which is the number of members that may be lost: 1 or 2.
    #[must_use]
    pub fn parities(self) -> usize {
        match self {
            ParityLevel::Raid4 | ParityLevel::Raid5 => 1,
            ParityLevel::Raid6 => 2,
        }
    }

    /// The fewest members md takes.
    #[must_use]
    pub fn least_members(self) -> usize {
        match self {
            ParityLevel::Raid4 | ParityLevel::Raid5 => 2,
            ParityLevel::Raid6 => 4,
        }
    }
}

impl fmt::Display for ParityLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
