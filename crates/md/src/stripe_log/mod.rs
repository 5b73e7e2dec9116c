//! braid's log of partial-stripe writes, for raid4, raid5 and raid6.
//!
//! ```text
//!  a member:  | superblock, … | ring of records                    | head | data …
//!                             ^ data_offset - area                 ^ - 4096  ^ data_offset
//!
//!  a record:  | header 4096 | payload, padded to 4096 |      contiguous; starts at whole 4096
//!
//!  head    0  "braidlog"              record   0  "braidrec"
//!          8  version 1    le32                8  version 1          le32
//!         12  checksum     le32               12  checksum of header le32
//!         16  array UUID   16                 16  array UUID         16
//!         32  device number le32              32  device number      le32
//!         40  area         le64               36  role               le16
//!         48  events       le64               38  parts              le16
//!         56  tail         le64               40  sequence           le64
//!         64  nonce        le64               48  tail               le64
//!         72  synced       le64               56  nonce              le64
//!         80  updated, and before it          64  payload length     le32
//!             seconds le64, micros le32       68  payload checksum   le32
//!        104  zeroes                          72  participants       384 bits
//!                                            120  64 parts of: offset le64, length le32
//!                                            888  zeroes
//! ```
//!
//! A write of less than a stripe stores, on each member that it changes, the new contents (data, P or Q) as a
//! record; all records of one write have one *sequence*. Once they are durable on all of these members, its
//! *participants*, it writes in place. After a crash a sequence is *complete* if every participant that still
//! has a member in sync has its record. Complete sequences are replayed in place, in order; an incomplete one
//! never began in place, and is dropped. So every stripe is old or new, even if members are missing.
//!
//! A record without a payload is of a whole stripe, every column of which is written: nothing in its rows is to
//! be kept. After a crash their parity is recomputed from the data that arrived.
//!
//! Duties of the writer
//! * Writes in place come only after all records are durable; on the same rows only one sequence at a time.
//! * A record's place is reused only when heads with a higher tail are durable on all members that are in sync
//!   ([`Ring::retire_below`]), and so are the writes in place below that tail. Otherwise an older sequence
//!   could be complete after a crash and a newer one not.
//! * For the same reason no write in place without a record (whole stripes, resync) comes while an earlier
//!   record may still be replayed: first a durable tail above that record.
//! * A member that was filled is in sync only when heads with a tail above every record that it lacks are durable,
//!   for the same reason.
//! * Before superblocks are written, heads that know their events and time are durable: a log whose head does
//!   not know the array's is not used, because another program, which does not know the log, wrote the array
//!   since.
//! * At a start, after replaying, heads with a new nonce and a tail above every sequence seen are
//!   durable on all members before anything else is written.
//!
//! The *nonce* is a number that users of the array do not know: their data, which lie in payloads, cannot pass
//! for records. The fields of the head lie in one sector, which a crash does not tear. The superblock does not
//! name the log: for md it is room in front of the data.
//!
//! Invariants: no bytes, whatever they are, lead to a panic, or to memory beyond a fixed factor of the area; a
//! payload is used only after its checksum. Deliberately absent: I/O; the order of waits; randomness (the nonce
//! is an argument); parity.

mod head;
mod record;
mod replay;
mod ring;
mod scan;

pub use head::Head;
pub use record::{Part, Record, Roles};
pub use replay::{Dropped, MemberLog, Replay, ReplayPart, Transaction, plan_replay};
pub use ring::Ring;
pub use scan::{Found, scan};

use braid_level::size::round_down;

use crate::Superblock;

/// Bytes of a head, and of a record's header; the unit of places and sizes.
pub const BLOCK: usize = 4096;
/// Parts that a record has room for.
pub const MOST_PARTS: usize = 64;
/// Roles that can take part in a write.
pub const MOST_ROLES: usize = 384;
/// The smallest area: a head, and a record of one block.
pub const LEAST_AREA: u64 = 3 * BLOCK as u64;

const VERSION: u32 = 1;

/// The place of each field that heads and records share, in bytes.
mod at {
    pub(super) const VERSION: usize = 8;
    pub(super) const CHECKSUM: usize = 12;
    pub(super) const ARRAY: usize = 16;
    pub(super) const DEVICE: usize = 32;
}

/// The place for a member's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Place of its head, in bytes from the member's start.
    pub head: u64,
    /// Unused bytes in front of the data: the most of [`Head::area`].
    pub room: u64,
}

/// Returns the place for the log of the member with this superblock; `None` if there is no room, as in versions
/// whose superblock lies behind the data. Only the first page of a bitmap is considered, whose length is in its
/// header.
#[must_use]
pub fn place(superblock: &Superblock) -> Option<Place> {
    let start = superblock.super_offset;
    let data = superblock.data_offset;
    if superblock.version.is_at_end() {
        return None;
    }
    let areas = [
        Some((0, BLOCK as u64)),
        superblock.bitmap_offset.map(|offset| (offset, BLOCK as u64)),
        superblock.ppl,
        superblock.bad_block_log.map(|log| (log.offset, log.size)),
    ];
    let end = |(offset, len): (i64, u64)| start.checked_add_signed(offset)?.checked_add(len);
    let ends = areas.into_iter().flatten().filter_map(end).filter(|end| *end <= data);
    let room = data - ends.max()?;
    let room = round_down(room, BLOCK as u64);
    (room >= LEAST_AREA).then_some(Place { head: data - BLOCK as u64, room })
}

/// A payload's bytes with its padding.
#[must_use]
pub fn padded(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64)
}
