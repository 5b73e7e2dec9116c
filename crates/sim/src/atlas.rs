//! The failures that an array must survive: the faults that may be placed now, by the members missing now.
//!
//! ```text
//!   level, policy, members in sync, spent members, whether copies are in doubt
//!        │
//!        ▼
//!   may_lose(role)     the others hold all data, and their content is not in doubt
//!   may_crash          the damage of the crash can be repaired
//!   bearable           the sets of members that may be lost with the crash
//! ```
//!
//! Only survivable faults are placed, so that every failure is a bug. The table of the faults that a level with
//! its policy survives:
//!
//! | level, policy | members lost | a crash | a crash, and members lost with it or before |
//! |---|---|---|---|
//! | raid1, raid10 | all but one copy of each byte | yes | yes |
//! | raid4, raid5, raid6; resync or bitmap | as many as parities | if complete | no: the write hole |
//! | the same; ppl or log | as many as parities | yes | as many as parities |
//!
//! Faults that md's format cannot survive, and that are therefore never placed:
//! * A silent flip, a lost or a misdirected write on a member that continues to take part: there are no
//!   checksums. They are placed on members that are out, whose content must not be trusted.
//! * A member that returns by the bitmap with other bytes than it left with: nothing shows this.
//! * More losses than the redundancy, where latent errors count as losses of their rows; also one after the
//!   other, before a spare was filled.
//! * Parity without a log: a crash while a member is missing (its superblocks are refused, which is right and
//!   no failure); a loss, or an unreadable sector, before the resync after a crash is done: a reconstruction
//!   from parity may not fit.
//! * A range that is unreadable while its parity is in doubt, and a range that fails on more members than the
//!   redundancy: these faults are placed, and may cause an error, but never other content than before.
//! * Copies that a crash left different: until they are compared, the loss of a member may turn the version
//!   that was read into the other one. Neither was durable.
//! * The loss of all members that took part in the last writes: the remaining ones do not know that they are
//!   stale.
//! * Members that report writes as durable too early.
//! * A superblock that a crash tears. Those of version 1 are one sector, here and with up to 128 roles
//!   anywhere; those of version 0.90 are eight, and are assumed to be written whole.
//! * Content of a member lost in a crash that the partial parity log and the stripe log do not promise:
//!   [`may_be_anything`].

use braid_array::geometry::Column;
use braid_array::{Geometry, Role};
use braid_engine::redundant::Layout;

use crate::Oracle;
use crate::contents::losses;
use crate::spec::{Policy, Spec};

/// An array as it is now, as far as faults are concerned.
#[derive(Clone, Debug)]
pub struct Now {
    /// For each role, whether its member is in sync.
    pub in_sync: Vec<bool>,
    /// For each role, whether something is wrong with its disk, or is about to be.
    pub spent: Vec<bool>,
    /// True if copies, or parity and data, may differ.
    pub doubt: bool,
    /// Requests failed on more members than redundancy makes up for.
    pub torn: bool,
}

impl Now {
    /// True if every member is present and without faults.
    pub fn is_whole(&self) -> bool {
        self.in_sync.iter().all(|one| *one) && !self.spent.contains(&true) && !self.doubt
    }

    /// True if every member is present and without faults, although copies may differ.
    pub fn is_complete(&self) -> bool {
        self.in_sync.iter().all(|one| *one) && !self.spent.contains(&true) && !self.torn
    }

    /// True if the array can do without the members with these roles.
    pub fn may_lose(&self, layout: &Layout, roles: &[usize]) -> bool {
        let has_parity = matches!(layout, Layout::Parity(_));
        let alive = |role: usize| self.in_sync[role] && !self.spent[role] && !roles.contains(&role);
        let is_doubtful = has_parity && self.doubt;
        !self.torn && !is_doubtful && is_readable(layout, &alive)
    }
}

/// True if all data is on, or follows from, the roles that are `alive`.
pub fn is_readable(layout: &Layout, alive: &dyn Fn(usize) -> bool) -> bool {
    let alive = |role: Role| alive(role.index());
    match layout {
        Layout::Copies(geometry) => geometry.is_readable(&alive),
        Layout::Parity(geometry) => geometry.is_readable(&alive),
    }
}

/// True if the array must survive a crash that leaves it dirty, with these roles not in sync by its
/// superblocks.
pub fn survives_crash(spec: &Spec, in_sync: &[bool]) -> bool {
    let is_logged = matches!(spec.policy, Policy::Ppl | Policy::Log);
    !spec.has_parity() || is_logged || in_sync.iter().all(|one| *one)
}

/// The sets of roles that may be lost with a crash, of an array whose superblocks say that these
/// are in sync: the empty one first.
pub fn bearable(spec: &Spec, layout: &Layout, in_sync: &[bool]) -> Vec<Vec<usize>> {
    let is_logged = matches!(spec.policy, Policy::Ppl | Policy::Log);
    if spec.has_parity() && !is_logged {
        return vec![Vec::new()];
    }
    let sets = losses(in_sync.len(), 2).into_iter();
    let bears = |lost: &Vec<usize>| {
        let is_new = lost.iter().all(|role| in_sync[*role]);
        is_new && is_readable(layout, &|role| in_sync[role] && !lost.contains(&role))
    };
    sets.filter(bears).collect()
}

/// True if the block at `offset` of the array may hold any content after a crash that left these roles
/// readable; `oracle` knows the requests in flight. Every block has its durable content or one of the later
/// versions, except
///
/// * with partial parity, non-durable blocks of a member that is missing after the crash: their rows have the
///   old or the new parity, and old or new data beside it;
/// * with records, the same blocks if every data column of the row was being written at once, and the array
///   `was_complete` then: such rows have no unwritten data to keep, and their records contain only their
///   number.
pub fn may_be_anything(
    spec: &Spec,
    layout: &Layout,
    oracle: &Oracle,
    readable: &[bool],
    was_complete: bool,
    offset: u64,
) -> bool {
    let Layout::Parity(geometry) = layout else { return false };
    let (stripe, within) = (offset / geometry.stripe(), offset % geometry.stripe());
    let (column, row) = (within / geometry.chunk(), within % geometry.chunk());
    let role = geometry.role_of(stripe, Column::Data(column as usize));
    if readable[role.index()] || oracle.is_settled(offset) {
        return false;
    }
    let in_row = |index: u64| stripe * geometry.stripe() + index * geometry.chunk() + row;
    match spec.policy {
        Policy::Ppl => true,
        Policy::Log => {
            let mut columns = 0..geometry.data() as u64;
            was_complete && columns.all(|index| !oracle.is_settled(in_row(index)))
        }
        Policy::Resync | Policy::Bitmap => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_block::Span;
    use braid_md::{Level, Version};

    fn spec(level: Level, members: usize, policy: Policy) -> Spec {
        let (chunk, member_size) = (4096, 12 << 10);
        let version = Version::V1_2;
        Spec { level, layout: 0, members, chunk, member_size, policy, version }
    }

    fn now(in_sync: &[bool]) -> Now {
        let in_sync = in_sync.to_vec();
        Now { spent: vec![false; in_sync.len()], in_sync, doubt: false, torn: false }
    }

    #[test]
    fn as_many_members_may_go_as_parity_makes_up_for() {
        let layout = spec(Level::Raid6, 4, Policy::Log).geometry(4);
        let whole = now(&[true; 4]);
        assert!(whole.is_whole() && whole.may_lose(&layout, &[0, 3]));
        assert!(!whole.may_lose(&layout, &[0, 1, 2]));
        let mut spent = whole.clone();
        spent.spent[1] = true;
        assert!(spent.may_lose(&layout, &[0]) && !spent.may_lose(&layout, &[0, 2]));
        let doubtful = Now { doubt: true, ..whole.clone() };
        assert!(!doubtful.may_lose(&layout, &[0]));
        assert!(!Now { torn: true, ..whole }.may_lose(&layout, &[0]));
    }

    #[test]
    fn copies_may_go_in_doubt() {
        let mut raid1 = spec(Level::Raid1, 2, Policy::Bitmap);
        raid1.chunk = 0;
        let layout = raid1.geometry(2);
        let doubtful = Now { doubt: true, ..now(&[true, true]) };
        assert!(doubtful.may_lose(&layout, &[1]) && !doubtful.may_lose(&layout, &[0, 1]));
        assert!(!now(&[true, false]).may_lose(&layout, &[0]));
    }

    #[test]
    fn a_crash_takes_members_only_where_a_log_knows_what_was_written() {
        let sets = |policy, in_sync: &[bool]| {
            let spec = spec(Level::Raid5, 3, policy);
            bearable(&spec, &spec.geometry(3), in_sync).len()
        };
        assert_eq!(sets(Policy::Ppl, &[true; 3]), 4);
        assert_eq!(sets(Policy::Ppl, &[true, true, false]), 1);
        assert_eq!(sets(Policy::Resync, &[true; 3]), 1);
        let holed = spec(Level::Raid5, 3, Policy::Bitmap);
        assert!(survives_crash(&holed, &[true; 3]));
        assert!(!survives_crash(&holed, &[true, false, true]));
        assert!(survives_crash(&spec(Level::Raid4, 3, Policy::Log), &[true, false, true]));
    }

    #[test]
    fn only_what_was_being_written_to_a_lost_member_is_excused() {
        let spec = spec(Level::Raid5, 3, Policy::Ppl);
        let layout = spec.geometry(3);
        let mut oracle = Oracle::new(&vec![0; layout.size() as usize], 512);
        // Column 0 of the first stripe, which is on role 0.
        oracle.begin_write(Span::new(0, 512), Some(&[1; 512]));
        let at = |spec: &Spec, readable: &[bool], offset| {
            may_be_anything(spec, &layout, &oracle, readable, true, offset)
        };
        assert!(at(&spec, &[false, true, true], 0));
        assert!(!at(&spec, &[true, false, true], 0), "its member is there");
        assert!(!at(&spec, &[true, false, true], 4096), "it was not being written");
        let logged = Spec { policy: Policy::Log, ..spec };
        assert!(!at(&logged, &[false, true, true], 0), "not the whole row");
    }
}
