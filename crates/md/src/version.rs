//! The places of the four versions of the superblock on a member.
//!
//! ```text
//! 1.1   | sb |                data …                                  |
//! 1.2   |    | sb (4 KiB) |   data …                                  |
//! 1.0   |    data …                             | sb (8 KiB before the end, on 4 KiB) |
//! 0.90  |    data …                       | sb (last whole 64 KiB but one)            |
//! ```
//!
//! Source: Linux `drivers/md/md.c` (`super_1_load`, `calc_dev_sboffset`), `md_p.h`
//! (`MD_NEW_SIZE_SECTORS`).

use std::fmt;
use std::str::FromStr;

/// A version of md's superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Version {
    /// The old one: 4 KiB near the end, at most 27 members, members below 4 TiB.
    V0_90,
    /// Near the end, so that the data starts where the member does.
    V1_0,
    /// At the start.
    V1_1,
    /// 4 KiB from the start: mdadm's default.
    #[default]
    V1_2,
}

impl Version {
    /// All of them, in the order in which they are looked for.
    pub const ALL: [Version; 4] = [Version::V1_2, Version::V1_1, Version::V1_0, Version::V0_90];

    /// Returns the offset of the superblock on a member of `size` bytes; `None` if the member is too small to
    /// have one.
    #[must_use]
    pub fn superblock_offset(self, size: u64) -> Option<u64> {
        const K: u64 = 1024;
        let sectors_down = size / 512 * 512;
        match self {
            Version::V0_90 => (size / (64 * K) * (64 * K)).checked_sub(64 * K),
            Version::V1_0 => {
                sectors_down.checked_sub(8 * K).map(|offset| offset / (4 * K) * (4 * K))
            }
            Version::V1_1 => (size >= 4 * K).then_some(0),
            Version::V1_2 => (size >= 8 * K).then_some(4 * K),
        }
    }

    /// Returns true if the superblock lies behind the data.
    #[must_use]
    pub fn is_at_end(self) -> bool {
        matches!(self, Version::V0_90 | Version::V1_0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Version::V0_90 => "0.90",
            Version::V1_0 => "1.0",
            Version::V1_1 => "1.1",
            Version::V1_2 => "1.2",
        })
    }
}

impl FromStr for Version {
    type Err = String;

    /// As mdadm's `--metadata` takes it: `0`, `0.90`, `1`, `1.0`, `1.1`, `1.2`, `default`.
    fn from_str(text: &str) -> Result<Version, String> {
        match text {
            "0" | "0.9" | "0.90" | "0.91" => Ok(Version::V0_90),
            "1.0" => Ok(Version::V1_0),
            "1.1" => Ok(Version::V1_1),
            "1" | "1.2" | "default" => Ok(Version::V1_2),
            _ => Err(format!("{text:?} is no metadata version: there are 1.2, 1.1, 1.0 and 0.90")),
        }
    }
}
