//! What an array says of itself.

use std::time::Duration;

use braid_array::{ArraySpan, Role};
use braid_md::Resync;

use super::Redundant;
use super::found::Mismatch;
use super::history::JobRecord;
use super::job::{JobStatus, LastScrub};
use super::keeping::{CacheStatus, Inner};
use super::kind::JobKind;
use super::log::{Consistency, LogCost};
use super::roster::{Member, MemberState};
use super::scrub::ScrubPlace;
use super::throttle::Speed;

/// A member, as it is now.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// Its path.
    pub label: String,
    /// md's device number.
    pub number: u32,
    /// Its role, if it has one.
    pub role: Option<Role>,
    /// What it is good for.
    pub state: MemberState,
    /// Fills up beside the member that it replaces.
    pub replacement: bool,
    /// Spared by reads.
    pub write_mostly: bool,
    /// Read errors that were put right.
    pub corrected_reads: u32,
    /// Known bad ranges.
    pub bad_blocks: usize,
    /// Why it is faulty.
    pub remark: String,
}

/// A write-intent bitmap, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitmapStatus {
    /// What a bit stands for, in bytes.
    pub chunk_size: u64,
    /// How many chunks there are.
    pub chunks: u64,
    /// How many of them have their bit set.
    pub set: u64,
}

/// An array, as it is now.
#[derive(Clone, Debug)]
pub struct Status {
    /// How many members take part.
    pub raid_disks: usize,
    /// For each role, whether a member has it and is in sync.
    pub in_sync: Vec<bool>,
    /// All members that are there.
    pub members: Vec<MemberStatus>,
    /// The superblocks say that writes may be under way.
    pub active: bool,
    /// Whether the copies agree.
    pub resync: Resync,
    /// Changes of state so far.
    pub events: u64,
    /// Nothing can be recorded any more.
    pub broken: bool,
    /// What is done now.
    pub job: Option<JobStatus>,
    /// Jobs that wait, run or ended last, the oldest first.
    pub jobs: Vec<JobRecord>,
    /// A scrub that was asked for and waits.
    pub requested: Option<JobKind>,
    /// How far the scrub is that runs for a time, or that paused when that was over.
    pub scrub_place: Option<ScrubPlace>,
    /// The last scrub that ended.
    pub last_scrub: Option<LastScrub>,
    /// Bytes that differed in the pass that runs or ran last.
    pub mismatches: u64,
    /// The first places of these, neighbours as one.
    pub mismatch_places: Vec<Mismatch>,
    /// For each role that is proved to be wrong somewhere, in how many bytes: by a majority of copies, or by
    /// both parities if one member alone is wrong.
    pub suspects: Vec<(Role, u64)>,
    /// Bytes of mismatches of which it is not proved which member is wrong.
    pub unproved: u64,
    /// Bytes that the pass wrote again.
    pub repaired: u64,
    /// Bytes of which several members were read and compared.
    pub compared: u64,
    /// Bytes that were not compared because a bad-block log lists them.
    pub listed: u64,
    /// Bytes that could not be compared, or not be made to agree.
    pub unread: u64,
    /// The first places of these: in bytes of the array; with parity, of each member's data.
    pub unread_places: Vec<(u64, u64)>,
    /// What no member has, by their bad-block logs.
    pub lost: Vec<ArraySpan>,
    /// What makes good what a crash leaves.
    pub consistency: Consistency,
    /// What the log has cost since the array was started, if there is one.
    pub log_cost: Option<LogCost>,
    /// Memory for stripes under way; only with parity.
    pub stripe_cache: Option<CacheStatus>,
    /// The write-intent bitmap, if there is one.
    pub bitmap: Option<BitmapStatus>,
    /// Limits of passes.
    pub speed: Speed,
    /// What happened (unix time), oldest first.
    pub log: Vec<(Duration, String)>,
}

impl Redundant {
    /// The array as it is now.
    pub fn status(&self) -> Status {
        let Inner { core, keeping } = &*self.inner;
        let in_sync: Vec<bool> =
            core.roster.slots().values().map(|slot| slot.readable().is_some()).collect();
        let found = core.work.found();
        let bitmap = core.lane.bitmap().map(|bitmap| BitmapStatus {
            chunk_size: bitmap.header.chunk_size,
            chunks: bitmap.chunk_count(),
            set: bitmap.count_set(),
        });
        let log = keeping.log();
        let without_log = if bitmap.is_some() { Consistency::Bitmap } else { Consistency::Resync };
        Status {
            raid_disks: in_sync.len(),
            in_sync,
            members: core.roster.members().iter().map(|member| member.status()).collect(),
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

impl Member {
    fn status(&self) -> MemberStatus {
        MemberStatus {
            label: self.label.clone(),
            number: self.number,
            role: self.role(),
            state: self.state(),
            replacement: self.is_replacement(),
            write_mostly: self.write_mostly,
            corrected_reads: self.corrected.get(),
            bad_blocks: self.bad_blocks.borrow().entries(),
            remark: self.remark(),
        }
    }
}
