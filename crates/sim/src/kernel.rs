//! The behaviour of Linux's md with superblocks: a model of its rules of freshness, and the data that it would
//! read.
//!
//! ```text
//!   the freshest    most events, spares do not count; the first of equals
//!   accepted        events at most one behind the freshest's (spares: any)
//!   its number      of several with one device number the one with the most events
//!   its role        before 6.8: by its own table
//!                   since 6.8: by the freshest's, if it is behind
//!   in sync         has a role and no recovery offset
//!   is resynced     raid10: from any copy that is not faulty, also of a member that is being filled
//!   refused         two in sync in one role; parity, degraded, dirty, without partial parity log
//! ```
//!
//! A kernel may start a braid array at any time, also after a crash, so its decisions must be as right as
//! braid's. A refusal is not wrong.
//!
//! Deliberately absent: failures that are not braid's when a kernel brings such an array up:
//! * the stripe log, which the kernel does not know: after a crash it takes an array with such a log for dirty,
//!   and data that only the log holds is lost (`docs/write-hole.md`);
//! * recovery by the partial parity log with a member missing;
//! * a spare that was away when its number was given to another: superblocks do not distinguish the number of
//!   an absent spare from a free one (a kernel also gives it to another), and since 6.8 a kernel gives a
//!   returning spare the role of the member that has its number now, if that member is missing
//!   (`super_1_validate` uses the freshest's table, and a spare's events are not compared).
//!
//! Source: Linux `drivers/md/md.c` (`super_90_validate`, `super_1_load`, `super_1_validate`,
//! `analyze_sbs`), `raid1.c` (`setup_conf`), `raid10.c` (`raid10_sync_request`), `raid5.c` (`setup_conf`, `raid5_run`).

use braid_engine::assembled::Level;
use braid_md::{Bitmap, Features, Resync, Role, Superblock, Version};

use crate::atlas::is_readable;
use crate::brief::describe;
use crate::contents::{Holder, View};
use crate::found::{There, carried};
use crate::spec::{Policy, Spec};
use crate::{Image, Mismatch, Oracle};

/// Which kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Up to 6.7.
    Before6_8,
    /// From 6.8 on.
    Since6_8,
}

/// A kernel's decision about an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// It runs.
    Runs(Believed),
    /// It does not.
    Refused(&'static str),
}

/// Whom a kernel believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Believed {
    /// The place in the list of the member that determines the array's state.
    pub freshest: usize,
    /// By role: places in the list, and the number of bytes up to which their data count.
    pub roles: Vec<Vec<(usize, u64)>>,
    /// Places of members that are being filled and replace no other.
    pub filled: Vec<usize>,
}

impl Believed {
    /// For each role, true if a member is in sync.
    pub fn in_sync(&self) -> Vec<bool> {
        self.roles.iter().map(|role| role.iter().any(|one| one.1 == u64::MAX)).collect()
    }
}

/// The decision of `kernel` about these superblocks, found in this order.
pub fn make(superblocks: &[&Superblock], kernel: Kernel) -> Made {
    let Some(freshest) = freshest(superblocks) else { return Made::Refused("only spares") };
    let array = superblocks[freshest];
    let mut roles = vec![Vec::new(); array.raid_disks as usize];
    let mut replacements = roles.clone();
    for (place, superblock) in superblocks.iter().enumerate() {
        // Of those with one number the one that knows most comes first, and the others are busy.
        let has_number = |other: &&Superblock| {
            other.device_number == superblock.device_number && other.events > superblock.events
        };
        if superblocks.iter().any(has_number) {
            continue;
        }
        let Some(role) = role_of(superblock, array, kernel) else { continue };
        let list = if superblock.is_replacement() { &mut replacements } else { &mut roles };
        let Some(holders) = list.get_mut(usize::from(role)) else { continue };
        let up_to = match superblock.recovery_offset {
            // What lies below is complete, unless it is brought up to date by the bitmap.
            Some(_) if superblock.features.contains(Features::RECOVERY_BITMAP) => 0,
            Some(offset) => offset,
            None => u64::MAX,
        };
        holders.push((place, up_to));
    }
    // A rebuilt member beside one that is in sync is one too many as well.
    if roles.iter().chain(&replacements).any(|holders: &Vec<_>| holders.len() > 1) {
        return Made::Refused("two members in one role");
    }
    let all = roles.iter().flatten();
    let filled = all.filter(|one| one.1 != u64::MAX).map(|one| one.0).collect();
    // A replacement is read as well, up to its filled part, and serves instead of a missing member.
    for (holders, replacement) in roles.iter_mut().zip(replacements) {
        holders.extend(replacement);
    }
    let believed = Believed { freshest, roles, filled };
    let has_parity = matches!(
        array.level,
        braid_md::Level::Raid4 | braid_md::Level::Raid5 | braid_md::Level::Raid6
    );
    let degraded = believed.in_sync().contains(&false);
    if has_parity && degraded && array.resync != Resync::Clean && array.ppl.is_none() {
        return Made::Refused("dirty and degraded");
    }
    Made::Runs(believed)
}

fn takes_part(superblock: &Superblock) -> bool {
    !matches!(superblock.role(), Role::Spare | Role::Faulty)
}

fn freshest(superblocks: &[&Superblock]) -> Option<usize> {
    let mut freshest: Option<usize> = None;
    for (place, superblock) in superblocks.iter().enumerate() {
        let is_fresher = freshest.is_none_or(|other| superblock.events > superblocks[other].events);
        if takes_part(superblock) && is_fresher {
            freshest = Some(place);
        }
    }
    freshest
}

/// The role that a member is let in with, if it is.
fn role_of(own: &Superblock, array: &Superblock, kernel: Kernel) -> Option<u16> {
    if takes_part(own) && own.events + 1 < array.events {
        return None;
    }
    let number = own.device_number as usize;
    let table = match kernel {
        Kernel::Since6_8 if own.events < array.events && own.version != Version::V0_90 => array,
        // For version 0.90 the freshest's table has always counted: a member that is behind is a spare.
        _ => own,
    };
    match table.roles.get(number) {
        Some(Role::Active(role)) => Some(*role),
        _ => None,
    }
}

/// A spare that was away when the array was put together without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaySpare {
    /// The disk.
    pub disk: usize,
    /// The events of its superblock: others, when the array has written it again.
    pub events: u64,
}

impl AwaySpare {
    /// Returns it if `disk` with this `image` is an absent spare.
    pub fn of(disk: usize, image: &Image) -> Option<AwaySpare> {
        let superblock = carried(image).ok()?.superblock;
        let is_spare = superblock.role() == Role::Spare;
        is_spare.then_some(AwaySpare { disk, events: superblock.events })
    }
}

/// Checks that no kernel would read any data that `oracle`, which knows of the crash, does not allow. Spares
/// that were away, and are unchanged, take no part.
///
/// # Errors
/// The data that it would read.
pub fn check(
    spec: &Spec,
    there: &[There],
    away: &[AwaySpare],
    images: &[Option<Image>],
    oracle: &Oracle,
) -> Result<(), String> {
    let is_as_it_was = |one: &&There| {
        let events = one.carried.superblock.events;
        away.contains(&AwaySpare { disk: one.disk, events })
    };
    let there: Vec<&There> = there.iter().filter(|one| !is_as_it_was(one)).collect();
    let superblocks: Vec<&Superblock> = there.iter().map(|one| &one.carried.superblock).collect();
    let mut before = None;
    for kernel in [Kernel::Before6_8, Kernel::Since6_8] {
        let made = make(&superblocks, kernel);
        // A kernel that believes the same members reads the same.
        if let Made::Runs(believed) = &made
            && before.as_ref() != Some(&made)
        {
            check_one(spec, &there, images, oracle, believed)
                .map_err(|why| format!("a kernel ({kernel:?}) {why}"))?;
        }
        // In version 0.90, a member that failed one event ago keeps its role for every kernel.
        if made == Made::Refused("two members in one role")
            && kernel == Kernel::Since6_8
            && spec.version != Version::V0_90
        {
            let all = describe(there.iter().copied());
            return Err(format!("a kernel ({kernel:?}) refuses: two members in one role; {all}"));
        }
        before = Some(made);
    }
    Ok(())
}

fn check_one(
    spec: &Spec,
    there: &[&There],
    images: &[Option<Image>],
    oracle: &Oracle,
    believed: &Believed,
) -> Result<(), String> {
    let array = &there[believed.freshest].carried.superblock;
    let is_dirty = array.resync != Resync::Clean;
    if spec.policy == Policy::Log && is_dirty {
        return Ok(());
    }
    if is_dirty && array.level == braid_md::Level::Raid10 && !believed.filled.is_empty() {
        let all = describe(there.iter().copied());
        return Err(format!("would resync from a member that is being filled; {all}"));
    }
    let in_sync = believed.in_sync();
    let degraded = in_sync.contains(&false);
    if spec.has_parity() && degraded && is_dirty {
        return Ok(());
    }
    let Ok(level) = Level::of(array, None, Vec::new()) else { return Ok(()) };
    let Some(layout) = level.redundant() else { return Ok(()) };
    if !is_readable(&layout, &|role| in_sync[role]) {
        return Ok(());
    }
    let holder = |(place, up_to): &(usize, u64)| {
        let image = images[there[*place].disk].as_ref()?;
        Some(Holder { image, data_offset: array.data_offset as usize, up_to: *up_to })
    };
    let holders =
        believed.roles.iter().map(|role| role.iter().filter_map(holder).collect()).collect();
    let view = View::new(layout, holders);
    check_agreement(&view, array, there[believed.freshest].carried.bitmap.as_ref())?;
    let (mut choice, mut copies) = (0, 1);
    while choice < copies.min(3) {
        copies = check_read(&view, choice, oracle)?;
        choice += 1;
    }
    Ok(())
}

/// Checks that a crash may have left copies number `choice`. Returns the most copies of a block.
fn check_read(view: &View<'_>, choice: usize, oracle: &Oracle) -> Result<usize, String> {
    let mut gone = None::<u64>;
    let mut wrong = None::<Mismatch>;
    let copies = view.each_block(choice, |at, block| match block {
        None => gone = Some(gone.map_or(at, |one| one.min(at))),
        Some(block) => {
            if let Err(other) = oracle.check_block(at, block)
                && wrong.as_ref().is_none_or(|first| other.offset < first.offset)
            {
                wrong = Some(other);
            }
        }
    });
    match (gone, wrong) {
        (Some(offset), _) => Err(format!("has nothing for the block at {offset}")),
        (None, Some(why)) => Err(format!("would read: {why}")),
        (None, None) => Ok(copies),
    }
}

/// Checks that the parts agree that the kernel would not resync.
fn check_agreement(
    view: &View<'_>,
    array: &Superblock,
    bitmap: Option<&Bitmap>,
) -> Result<(), String> {
    let from = match array.resync {
        Resync::From(_) if array.ppl.is_some() => return Ok(()),
        Resync::From(from) => from,
        Resync::Clean => u64::MAX,
    };
    let misfits = view.misfits();
    let bitmap =
        bitmap.filter(|bitmap| bitmap.header.events >= array.events && !bitmap.header.stale);
    let resynced = |offset: &u64| {
        *offset >= from && bitmap.is_none_or(|bitmap| bitmap.is_set(bitmap.chunk_of(*offset)))
    };
    match misfits.iter().find(|offset| !resynced(offset)) {
        None => Ok(()),
        Some(offset) => Err(format!(
            "takes copies or parity at {offset} for equal, which differ ({:?})",
            array.resync
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_md::Level;
    use braid_md::superblock::Contents;

    fn pair(change: impl Fn(usize, &mut Contents)) -> Vec<Superblock> {
        let spec = Spec {
            level: Level::Raid1,
            layout: 0,
            members: 2,
            chunk: 0,
            member_size: 16 << 10,
            policy: Policy::Resync,
            version: Version::V1_2,
        };
        let superblock = |role| {
            let image = spec.disk(role, &[], |superblock| change(role, superblock));
            carried(&image).unwrap_or_else(|why| panic!("{why:?}")).superblock
        };
        (0..2).map(superblock).collect()
    }

    fn in_sync(superblocks: &[Superblock], kernel: Kernel) -> Option<Vec<bool>> {
        match make(&superblocks.iter().collect::<Vec<_>>(), kernel) {
            Made::Runs(believed) => Some(believed.in_sync()),
            Made::Refused(_) => None,
        }
    }

    #[test]
    fn who_is_two_events_behind_is_left_out() {
        let behind = |by: u64| pair(move |role, one| one.events = 10 - by * role as u64);
        for kernel in [Kernel::Before6_8, Kernel::Since6_8] {
            assert_eq!(in_sync(&behind(1), kernel), Some(vec![true, true]));
            assert_eq!(in_sync(&behind(2), kernel), Some(vec![true, false]));
        }
    }

    #[test]
    fn whose_failure_is_one_event_old_only_later_kernels_leave_out() {
        let pair = pair(|role, one| {
            one.events = 10 - role as u64;
            if role == 0 {
                one.roles[1] = Role::Faulty;
            }
        });
        assert_eq!(in_sync(&pair, Kernel::Before6_8), Some(vec![true, true]));
        assert_eq!(in_sync(&pair, Kernel::Since6_8), Some(vec![true, false]));
    }

    #[test]
    fn who_is_being_filled_is_not_in_sync() {
        let pair = pair(|role, one| one.recovery_offset = (role == 1).then_some(4096));
        assert_eq!(in_sync(&pair, Kernel::Since6_8), Some(vec![true, false]));
    }
}
