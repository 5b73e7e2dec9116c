//! The choice of the log that closes the write hole of an array with parity, by the contents of its members.
//!
//! ```text
//!   superblocks name a partial parity log ──▶ Partial
//!   a member in sync has the head of a stripe log, and all have room for one ──▶ Records
//!   else ──▶ None: the bitmap, or a resync of everything
//! ```
//!
//! A member in sync whose head is damaged or gone gets a new one; otherwise a flipped bit would turn the log
//! off for good. The rows that the lost head covered are resynchronised after a crash. If missing members make
//! a resync impossible, the log counts only if all of its heads are present.
//!
//! Deliberately absent: the decision whether a log allows an array to start (assembly makes it), and the log's
//! contents, which the engine reads at the start.

use std::io;

use braid_md::assembly::{Assembly, Candidate, Member, Set, Slot, State};
use braid_md::{Level, Superblock, ppl, stripe_log};

use super::{Carried, Logs};
use crate::redundant::LogSetup;

/// The log of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// No log: the bitmap, or a resync of everything.
    None,
    /// md's partial parity log, at the place that each superblock names.
    Partial,
    /// braid's stripe log, in front of the data of each member.
    Records {
        /// Bytes of the log on each member, the head included.
        area: u64,
    },
}

impl LogPlace {
    /// Returns the log that the members have. `of` gives the contents of the candidate with an index. If a
    /// member in sync has foreign data in the log's place that may still be of use, there is no log.
    pub fn of<'a>(
        superblock: &Superblock,
        set: &Set,
        assembly: &Assembly,
        of: &impl Fn(usize) -> &'a Carried,
    ) -> LogPlace {
        if superblock.level == Level::Raid5 && superblock.ppl.is_some() {
            return LogPlace::Partial;
        }
        let in_sync = assembly.slots.iter().filter(|slot| slot.is_in_sync());
        let logs: Vec<&Logs> =
            in_sync.filter_map(|slot| Some(&of(slot.member()?.candidate).logs)).collect();
        let needs_all = matches!(assembly.state, State::DegradedDirty { .. });
        let is_lost = |logs: &&Logs| logs.is_foreign || needs_all && logs.head.is_none();
        let head = logs.iter().find_map(|logs| logs.head.as_ref());
        let Some(area) = head.filter(|_| !logs.iter().any(is_lost)).map(|head| head.area) else {
            return LogPlace::None;
        };
        let has_room =
            |member: &Member| room_for_records(&candidate(set, member).superblock) >= area;
        match all_members(assembly).all(has_room) {
            true => LogPlace::Records { area },
            false => LogPlace::None,
        }
    }

    /// Checks that a member with this superblock has room for the log that the other members have.
    ///
    /// # Errors
    /// The missing room.
    pub fn check_room(self, superblock: &Superblock) -> Result<(), String> {
        match self {
            LogPlace::None => Ok(()),
            LogPlace::Partial if superblock.ppl.is_some() => Ok(()),
            LogPlace::Partial => Err("it has no room for the partial parity log".to_owned()),
            LogPlace::Records { area } => match room_for_records(superblock) {
                room if room >= area => Ok(()),
                room => Err(format!(
                    "it has room for {room} bytes of a stripe log in front of its data, and the \
                     other members have {area}"
                )),
            },
        }
    }

    /// Returns the areas of the log of a member with this superblock: offsets and lengths in bytes.
    #[must_use]
    pub fn areas(self, superblock: &Superblock) -> Vec<(u64, u64)> {
        let place = match self {
            LogPlace::None => None,
            LogPlace::Partial => superblock.ppl.and_then(|(offset, len)| {
                Some((superblock.super_offset.checked_add_signed(offset)?, len))
            }),
            LogPlace::Records { area } => {
                superblock.data_offset.checked_sub(area).map(|start| (start, area))
            }
        };
        place.into_iter().collect()
    }

    /// Returns the log's setup for the engine.
    ///
    /// # Errors
    /// The error of `nonce`, which must return a number that no earlier run had.
    pub fn setup(
        self,
        superblock: &Superblock,
        nonce: impl FnOnce() -> io::Result<u64>,
    ) -> io::Result<Option<LogSetup>> {
        let array_uuid = superblock.array_uuid;
        Ok(match self {
            LogPlace::None => None,
            LogPlace::Partial => Some(LogSetup::Partial { signature: ppl::signature(&array_uuid) }),
            LogPlace::Records { area } => {
                Some(LogSetup::Records { array_uuid, area, nonce: nonce()? })
            }
        })
    }
}

/// Returns the members that take part and whose part of a log is not used, each with the reason. An outdated
/// log matters only after a crash; otherwise the log starts anew.
#[must_use]
pub fn log_troubles(set: &Set, assembly: &Assembly) -> Vec<(String, String)> {
    let array = &set.candidates()[assembly.freshest].superblock;
    let is_dirty = matches!(assembly.state, State::Dirty(_) | State::DegradedDirty { .. });
    let in_sync =
        || assembly.slots.iter().filter(|slot| slot.is_in_sync()).filter_map(Slot::member);
    let is_logged = in_sync().any(|member| candidate(set, member).log_head.is_some());
    let trouble = |member: &Member| {
        let one = candidate(set, member);
        let stale = || {
            let head = one.log_head.as_ref().filter(|_| is_dirty)?;
            let current = head.check_current(array.events, array.updated);
            current.err().map(|why| why.to_string())
        };
        let is_gone = is_logged && one.log_head.is_none() && in_sync().any(|other| other == member);
        let gone = || is_gone.then(|| "it has no head of the stripe log of the others".to_owned());
        let why = one.log_trouble.clone().or_else(stale).or_else(gone)?;
        Some((member.label.clone(), why))
    };
    assembly.members().filter_map(trouble).collect()
}

/// Returns true if parity may be stale, members are missing, and only a log can repair parity.
pub(super) fn is_closed_by_log(state: &State) -> bool {
    matches!(state, State::DegradedDirty { log: Some(_), .. })
}

fn candidate<'a>(set: &'a Set, member: &Member) -> &'a Candidate {
    &set.candidates()[member.candidate]
}

/// Returns the members that have a log, or get one when they take over a role.
fn all_members(assembly: &Assembly) -> impl Iterator<Item = &Member> {
    let replacements = assembly.replacements.iter().map(|(_, member, _)| member);
    assembly.members().chain(replacements).chain(&assembly.spares)
}

fn room_for_records(superblock: &Superblock) -> u64 {
    stripe_log::place(superblock).map_or(0, |place| place.room)
}
