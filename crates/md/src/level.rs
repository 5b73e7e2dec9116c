//! md's levels, by the numbers that superblocks hold.

use std::fmt;
use std::str::FromStr;

/// How an array keeps its data. The numbers are md's (`include/uapi/linux/raid/md_u.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Level {
    /// One member behind the other (-1).
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
    /// The level of md's number; `None` for those that braid does not know (multipath -4,
    /// faulty -5, container -100, and whatever comes).
    #[must_use]
    pub fn from_number(number: i32) -> Option<Level> {
        Some(match number {
            -1 => Level::Linear,
            0 => Level::Raid0,
            1 => Level::Raid1,
            4 => Level::Raid4,
            5 => Level::Raid5,
            6 => Level::Raid6,
            10 => Level::Raid10,
            _ => return None,
        })
    }

    /// md's number.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }

    /// Whether a chunk size has a meaning.
    #[must_use]
    pub fn has_chunk(self) -> bool {
        self != Level::Raid1
    }

    /// Whether data survives the loss of a member.
    #[must_use]
    pub fn is_redundant(self) -> bool {
        !matches!(self, Level::Linear | Level::Raid0)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Linear => "linear",
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Raid4 => "raid4",
            Level::Raid5 => "raid5",
            Level::Raid6 => "raid6",
            Level::Raid10 => "raid10",
        })
    }
}

impl FromStr for Level {
    type Err = String;

    /// As mdadm's `--level` takes it: `raid1`, `1`, `mirror`, `stripe`, `linear`…
    fn from_str(text: &str) -> Result<Level, String> {
        Ok(match text {
            "linear" | "-1" => Level::Linear,
            "raid0" | "0" | "stripe" => Level::Raid0,
            "raid1" | "1" | "mirror" => Level::Raid1,
            "raid4" | "4" => Level::Raid4,
            "raid5" | "5" => Level::Raid5,
            "raid6" | "6" => Level::Raid6,
            "raid10" | "10" => Level::Raid10,
            _ => {
                return Err(format!(
                    "{text:?} is no level: there are linear, raid0, raid1, raid10, raid4, raid5 and raid6"
                ));
            }
        })
    }
}
