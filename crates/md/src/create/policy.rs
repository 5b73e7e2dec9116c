//! The protection of a new array against a crash, and the room that it takes.
//!
//! ```text
//!                        raid4, raid6       raid5            other redundant levels
//!  1.1, 1.2              log                ppl              bitmap if large, else resync
//!  1.0                   bitmap if large    ppl              the same
//!  0.90                  bitmap if large    bitmap if large  the same
//! ```
//!
//! The table is for arrays without a requested policy. If the members have no room for a log, a requested log
//! is refused, and a default one is left out. A requested bitmap replaces a log.

use std::fmt;
use std::str::FromStr;

use super::place::{self, BAD_BLOCKS, MIB, SUPERBLOCK};
use super::{BITMAP_FROM, BitmapChoice, Consistency, CreateError, Request, super_start};
use crate::stripe_log::{BLOCK, LEAST_AREA};
use crate::{Level, Version, ppl};
use braid_level::size::round_down;

/// The default size of the stripe log.
const LOG_AREA: u64 = 4 * MIB;
/// Number of records of a whole chunk that fit the ring.
const LOG_RECORDS: u64 = 8;
/// Divisor of a small member's size that limits the log.
const LOG_SHARE: u64 = 16;
/// The kernel keeps members that have a log in a set of as many bits as a word has.
const MOST_PPL_MEMBERS: usize = 64;

/// Returns the policy, and the fallback if there is no room for it.
pub(super) fn policies(request: &Request) -> Result<(Policy, Option<Policy>), CreateError> {
    let Some(wanted) = request.consistency else { return Ok(defaults(request)) };
    check(request, wanted)?;
    let policy = match wanted {
        Consistency::Resync => Policy::Resync,
        Consistency::Bitmap => Policy::Bitmap,
        Consistency::Ppl => Policy::Ppl,
        Consistency::Log => Policy::Log,
    };
    Ok((policy, None))
}

/// A policy, decided except for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Resync,
    /// A bitmap on arrays of a size for which a resync takes hours.
    BitmapIfLarge,
    Bitmap,
    Ppl,
    Log,
}

impl Policy {
    /// Returns true if there is a bitmap for this size used of each member.
    pub(super) fn has_bitmap(self, component_size: u64) -> bool {
        match self {
            Policy::Bitmap => true,
            Policy::BitmapIfLarge => component_size > BITMAP_FROM,
            Policy::Resync | Policy::Ppl | Policy::Log => false,
        }
    }

    /// Bytes beside the superblock that are kept free on a member of this size: for a bitmap, or
    /// for the partial parity log.
    pub(super) fn reserved(self, version: Version, member_size: u64) -> u64 {
        match self {
            Policy::Ppl => ppl::AREA_BYTES,
            _ => place::bitmap_room(version, member_size),
        }
    }
}

fn defaults(request: &Request) -> (Policy, Option<Policy>) {
    let (level, version) = (request.level, request.version);
    let otherwise = match request.bitmap {
        BitmapChoice::Internal { .. } => return (Policy::Bitmap, None),
        BitmapChoice::Default if level.is_redundant() => Policy::BitmapIfLarge,
        BitmapChoice::Default | BitmapChoice::None => Policy::Resync,
    };
    match level {
        Level::Raid5 if has_ppl(request) => (Policy::Ppl, Some(otherwise)),
        Level::Raid4 | Level::Raid6 if has_log(version) => (Policy::Log, Some(otherwise)),
        _ => (otherwise, None),
    }
}

fn has_ppl(request: &Request) -> bool {
    request.version != Version::V0_90 && request.members.len() <= MOST_PPL_MEMBERS
}

fn has_log(version: Version) -> bool {
    matches!(version, Version::V1_1 | Version::V1_2)
}

/// Checks the requested policy.
fn check(request: &Request, wanted: Consistency) -> Result<(), CreateError> {
    let (level, version) = (request.level, request.version);
    let policy = wanted.name();
    let refused = |with: String| Err(CreateError::Policy { policy, with });
    match (wanted, request.bitmap) {
        (Consistency::Bitmap, BitmapChoice::None) => return refused("no bitmap".to_owned()),
        (Consistency::Bitmap, _) | (_, BitmapChoice::Default | BitmapChoice::None) => {}
        (_, BitmapChoice::Internal { .. }) => return refused("a bitmap".to_owned()),
    }
    match wanted {
        Consistency::Ppl if level != Level::Raid5 => refused(format!("{level}, only with raid5")),
        Consistency::Ppl if version == Version::V0_90 => refused("metadata 0.90".to_owned()),
        Consistency::Ppl if !has_ppl(request) => {
            let given = request.members.len();
            refused(format!("{given} members, only with up to {MOST_PPL_MEMBERS}"))
        }
        Consistency::Log if !matches!(level, Level::Raid4 | Level::Raid5 | Level::Raid6) => {
            refused(format!("{level}, which has no parity"))
        }
        Consistency::Log if !has_log(version) => {
            refused(format!("metadata {version}, only with 1.1 and 1.2"))
        }
        _ => Ok(()),
    }
}

/// Returns the start of the data, and the bytes of the stripe log in front of it (0 without one), on members of
/// which the smallest has `smallest` bytes and the first `first`.
pub(super) fn data_offset_and_log(
    request: &Request,
    policy: Policy,
    chunk: u64,
) -> Result<(u64, u64), CreateError> {
    let version = request.version;
    let first = request.devices().next().map_or(0, |device| device.size);
    let smallest = request.devices().map(|device| device.size).min().unwrap_or(0);
    let reserved = policy.reserved(version, first);
    let before = super_start(request) + SUPERBLOCK + reserved + BAD_BLOCKS;
    // What a given size leaves, whichever way the data's start is rounded.
    let left = smallest.saturating_sub(request.size.unwrap_or(0)).saturating_sub(before + MIB);
    let wanted = if policy == Policy::Log { log_area(chunk, smallest, left) } else { 0 };
    let offset = match request.data_offset {
        None => place::default_data_offset(version, first, chunk, reserved, wanted),
        Some(offset) if version.is_at_end() => {
            return Err(CreateError::DataOffsetWithoutMeaning { version, offset });
        }
        Some(offset) if !offset.is_multiple_of(4096) => {
            let least = super_start(request) + SUPERBLOCK;
            return Err(CreateError::DataOffset { offset, least });
        }
        Some(offset) => offset,
    };
    if wanted == 0 {
        return Ok((offset, 0));
    }
    let (room, needed) = (offset.saturating_sub(before), least_log_area(chunk));
    if room < needed {
        return Err(CreateError::NoRoomForLog { offset, room, needed });
    }
    Ok((offset, wanted.min(room)))
}

/// Bytes of the log: 4 MiB, or 8 records of a chunk; less where the smallest member is small, or
/// the data leaves less.
fn log_area(chunk: u64, smallest: u64, left: u64) -> u64 {
    let records = LOG_RECORDS * (chunk + BLOCK as u64);
    let most = LOG_AREA.max(records.next_multiple_of(MIB));
    let room = round_down(left.min(smallest / LOG_SHARE), BLOCK as u64);
    most.min(room.max(least_log_area(chunk)))
}

/// The least that a log makes sense with: the head, and two records of a chunk.
fn least_log_area(chunk: u64) -> u64 {
    LEAST_AREA.max(2 * (chunk + BLOCK as u64) + BLOCK as u64)
}

impl Consistency {
    /// All of them.
    pub const ALL: [Consistency; 4] =
        [Consistency::Resync, Consistency::Bitmap, Consistency::Ppl, Consistency::Log];

    fn name(self) -> &'static str {
        match self {
            Consistency::Resync => "resync",
            Consistency::Bitmap => "bitmap",
            Consistency::Ppl => "ppl",
            Consistency::Log => "log",
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Consistency {
    type Err = String;

    /// As mdadm's `--consistency-policy` spells them, and `log`.
    fn from_str(text: &str) -> Result<Consistency, String> {
        Consistency::ALL.into_iter().find(|policy| policy.name() == text).ok_or_else(|| {
            format!("{text:?} is no consistency policy: there are resync, bitmap, ppl and log")
        })
    }
}
