//! The status of an array.

use std::rc::Rc;
use std::time::Duration;

use braid_array::{ArraySpan, Role};
use braid_md::Resync;

use super::Redundant;
use super::core::Core;
use super::found::Mismatch;
use super::history::JobRecord;
use super::job::{JobStatus, LastScrub};
use super::keeping::{CacheStatus, Inner};
use super::kind::JobKind;
use super::log::{Consistency, LogCost};
use super::roster::{Member, MemberState};
use super::scrub::ScrubPlace;
use super::throttle::Speed;

/// The present state of a member.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// Its path.
    pub label: String,
    /// md's device number.
    pub number: u32,
    /// The role, if the member has one.
    pub role: Option<Role>,
    /// The state.
    pub state: MemberState,
    /// The member is filled beside the member that it replaces.
    pub replacement: bool,
    /// Reads avoid the member.
    pub write_mostly: bool,
    /// Number of read errors that were corrected.
    pub corrected_reads: u32,
    /// Number of known bad ranges.
    pub bad_blocks: usize,
    /// The member is in sync, and some data cannot be read without it.
    pub needed: bool,
    /// The reason why the member is faulty.
    pub remark: String,
}

/// The present state of a write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapStatus {
    /// Bytes for which a bit stands.
    pub chunk_size: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of set bits.
    pub set: u64,
    /// Writes that write-mostly members may have later than others.
    pub write_behind: u32,
    /// Writes that they do not have now.
    pub behind: usize,
}

/// The present state of an array.
#[derive(Clone, Debug)]
pub struct Status {
    /// Number of roles.
    pub raid_disks: usize,
    /// For each role, true if it has a member in sync.
    pub in_sync: Vec<bool>,
    /// All members that are there.
    pub members: Vec<MemberStatus>,
    /// The superblocks say that writes may be in flight.
    pub active: bool,
    /// The extent to which copies agree.
    pub resync: Resync,
    /// Events so far.
    pub events: u64,
    /// The array is stopped: no state can be recorded any more.
    pub broken: bool,
    /// The running pass.
    pub job: Option<JobStatus>,
    /// Jobs that wait, run or ended last, the oldest first.
    pub jobs: Vec<JobRecord>,
    /// A scrub that was ordered and waits.
    pub requested: Option<JobKind>,
    /// Progress of a scrub with a time limit, running or paused at the limit.
    pub scrub_place: Option<ScrubPlace>,
    /// The last scrub that ended.
    pub last_scrub: Option<LastScrub>,
    /// Bytes that differed in the pass that runs or ran last.
    pub mismatches: u64,
    /// The first of these places, with adjacent places joined.
    pub mismatch_places: Vec<Mismatch>,
    /// Bytes that are proved to be wrong, by role: by a majority of copies, or by both parities if one member
    /// alone is wrong.
    pub suspects: Vec<(Role, u64)>,
    /// Bytes of mismatches in which no member is proved wrong.
    pub unproved: u64,
    /// Bytes that the pass rewrote.
    pub repaired: u64,
    /// Bytes that were read from several members and compared.
    pub compared: u64,
    /// Bytes that were not compared because a bad-block log lists them.
    pub listed: u64,
    /// Bytes that could not be compared, or be made to agree.
    pub unread: u64,
    /// The first of these places: in bytes of the array; with parity, of each member's data.
    pub unread_places: Vec<(u64, u64)>,
    /// Data that no member has, by the bad-block logs.
    pub lost: Vec<ArraySpan>,
    /// The protection of stripes against a crash.
    pub consistency: Consistency,
    /// Cost of the log since the array was started, if there is one.
    pub log_cost: Option<LogCost>,
    /// Memory for stripes in flight; only with parity.
    pub stripe_cache: Option<CacheStatus>,
    /// The write-intent bitmap, if there is one.
    pub bitmap: Option<BitmapStatus>,
    /// Limits of passes.
    pub speed: Speed,
    /// Notes with their Unix time, oldest first.
    pub log: Vec<(Duration, String)>,
}

impl Redundant {
    /// Returns the present state of the array.
    pub fn status(&self) -> Status {
        let Inner { core, keeping } = &*self.inner;
        let in_sync: Vec<bool> =
            core.roster.slots().values().map(|slot| slot.readable().is_some()).collect();
        let found = core.work.found();
        let bitmap = core.lane.bitmap().map(|bitmap| BitmapStatus {
            chunk_size: bitmap.header.chunk_size,
            chunks: bitmap.chunk_count(),
            set: bitmap.count_set(),
            write_behind: bitmap.header.write_behind,
            behind: core.behind.count(),
        });
        let log = keeping.log();
        let without_log = if bitmap.is_some() { Consistency::Bitmap } else { Consistency::Resync };
        Status {
            raid_disks: in_sync.len(),
            in_sync,
            members: core
                .roster
                .members()
                .iter()
                .map(|member| core.member_status(member))
                .collect(),
            active: core.gate.is_active(),
            resync: core.agreement.resync(),
            events: core.publisher.events(),
            broken: core.gate.is_stopped(),
            job: core.work.status(core.clock.now()),
            jobs: core.work.jobs(core.clock.unix_time()),
            requested: core.work.requested(core.clock.unix_time()),
            scrub_place: core.work.place(),
            last_scrub: core.work.last(),
            unread_places: found.unread_ranges(),
            mismatches: found.mismatches,
            mismatch_places: found.places,
            suspects: found.suspects.into_iter().collect(),
            unproved: found.unproved,
            repaired: found.repaired,
            compared: found.compared,
            listed: found.listed,
            unread: found.unread,
            lost: keeping.lost(&self.inner),
            consistency: log.map_or(without_log, |(consistency, _)| consistency),
            log_cost: log.map(|(_, cost)| cost),
            stripe_cache: keeping.cache_bytes(),
            bitmap,
            speed: core.work.speed(),
            log: core.notes.all(),
        }
    }
}

impl Core {
    fn member_status(&self, member: &Rc<Member>) -> MemberStatus {
        MemberStatus {
            label: member.label.clone(),
            number: member.number,
            role: member.role(),
            state: member.state(),
            replacement: member.is_replacement(),
            write_mostly: member.write_mostly,
            corrected_reads: member.corrected.get(),
            bad_blocks: member.bad_blocks.borrow().entries(),
            needed: member.is_in_sync() && !self.can_do_without(&[member]),
            remark: member.remark(),
        }
    }
}
