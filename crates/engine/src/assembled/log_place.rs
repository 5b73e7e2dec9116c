//! Which log closes the write hole of an array with parity, by what its members hold.
//!
//! ```text
//!   superblocks name a partial parity log ──▶ Partial
//!   every member in sync has the head of a stripe log, and all have room for one ──▶ Records
//!   else ──▶ None: the bitmap, or a resync of everything
//! ```
//!
//! Deliberately absent: whether an array may be started because of its log, which is assembly's to
//! say; and what the log says, which the engine reads when it starts.

use std::io;

use braid_md::assembly::{Assembly, Candidate, Member, Set, Slot, State};
use braid_md::{Level, Superblock, ppl, stripe_log};

use crate::redundant::LogSetup;

/// The log of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// None: the bitmap, or a resync of everything.
    None,
    /// md's partial parity log, where each superblock says.
    Partial,
    /// braid's stripe log: so many bytes in front of the data of each member.
    Records {
        /// The head included.
        area: u64,
    },
}

impl LogPlace {
    /// The log that all members have. One that not all members in sync have is none: what a member
    /// does not say may be what was being written.
    pub fn of(superblock: &Superblock, set: &Set, assembly: &Assembly) -> LogPlace {
        if superblock.level == Level::Raid5 && superblock.ppl.is_some() {
            return LogPlace::Partial;
        }
        let in_sync = assembly.slots.iter().filter(|slot| slot.is_in_sync());
        let head = |slot: &Slot| candidate(set, slot.member()?).log_head.as_ref();
        let heads: Option<Vec<_>> = in_sync.map(head).collect();
        let Some(area) = heads.as_ref().and_then(|heads| Some(heads.first()?.area)) else {
            return LogPlace::None;
        };
        let has_room =
            |member: &Member| room_for_records(&candidate(set, member).superblock) >= area;
        match all_members(assembly).all(has_room) {
            true => LogPlace::Records { area },
            false => LogPlace::None,
        }
    }

    /// Whether a member with this superblock has room for the log that the others have.
    ///
    /// # Errors
    /// What is lacking.
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

    /// As the engine takes it.
    ///
    /// # Errors
    /// That of `nonce`, which is asked for a number that no run before had.
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

/// Members that take part, and why what they hold of a log is not used. That it is older than the
/// array matters after a crash only: else it starts anew.
#[must_use]
pub fn log_troubles(set: &Set, assembly: &Assembly) -> Vec<(String, String)> {
    let array = &set.candidates()[assembly.freshest].superblock;
    let is_dirty = matches!(assembly.state, State::Dirty(_) | State::DegradedDirty { .. });
    let trouble = |member: &Member| {
        let one = candidate(set, member);
        let stale = || {
            let head = one.log_head.as_ref().filter(|_| is_dirty)?;
            let current = head.check_current(array.events, array.updated);
            current.err().map(|why| why.to_string())
        };
        let why = one.log_trouble.clone().or_else(stale)?;
        Some((member.label.clone(), why))
    };
    assembly.members().filter_map(trouble).collect()
}

/// Whether parity may not fit the data, members are missing, and only a log would make it good.
pub(super) fn is_closed_by_log(state: &State) -> bool {
    matches!(state, State::DegradedDirty { log: Some(_), .. })
}

fn candidate<'a>(set: &'a Set, member: &Member) -> &'a Candidate {
    &set.candidates()[member.candidate]
}

/// Who has a log, or gets one when it takes over.
fn all_members(assembly: &Assembly) -> impl Iterator<Item = &Member> {
    let replacements = assembly.replacements.iter().map(|(_, member, _)| member);
    assembly.members().chain(replacements).chain(&assembly.spares)
}

fn room_for_records(superblock: &Superblock) -> u64 {
    stripe_log::place(superblock).map_or(0, |place| place.room)
}
