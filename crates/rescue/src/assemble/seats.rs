//! Which member sits on which role.

use std::cmp::Reverse;

use braid_level::size::suffice;
use braid_md::{Features, Role, Superblock};

use super::layout::{Ranges, joined};
use super::{Claimant, Exchange, bitmap_of, changed_since, in_data, present};

/// A member that a role is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The index of the claimant.
    pub claimant: usize,
    /// Why it may be used.
    pub standing: Standing,
    /// Bytes of its data that are not read: they cannot be, or are out of date.
    pub holes: Ranges,
}

/// Why a member may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The array's last state counts on it.
    Last,
    /// The array failed when it left, so that nothing was written after it.
    LeftLast,
    /// It is stale; what was written after it left is known and not read from it.
    ByBitmap,
    /// It is stale, and what was written after it left is not known.
    Stale,
    /// It has no superblock, and its role is the only one left.
    Guessed,
    /// Another member claims the role with equal right.
    Ambiguous,
}

/// A member that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The index of the claimant.
    pub claimant: usize,
    /// The reason.
    pub why: WhyLeftOut,
}

/// Why a member is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhyLeftOut {
    /// It is a copy of another one, with equal content.
    #[error("it is the same as {of}, given twice or copied")]
    Same {
        /// The label of the other.
        of: String,
    },
    /// It is an older copy of another one.
    #[error("it is an older copy of {of}")]
    OldCopy {
        /// The label of the other.
        of: String,
    },
    /// The array went on without it.
    #[error("it is stale: the array went on without it, and no bitmap says what was written since")]
    Stale,
    /// It was forced in, and the array had failed when another member left, which has more.
    #[error(
        "it was forced in after the array had gone on without it: {without} has more of what was written until then"
    )]
    Forced {
        /// The label of the other.
        without: String,
    },
    /// It is stale, and a bitmap says what was written since.
    #[error("it is stale, and not needed: no other member has holes that it could fill")]
    NotNeeded,
    /// It has no superblock.
    #[error("it has no superblock, and is not needed")]
    Unclaimed,
    /// Another member has the role.
    #[error("it claims role {role}, which {of} has with more events")]
    Older {
        /// The role.
        role: u16,
        /// The label of the other.
        of: String,
    },
    /// It describes another array.
    #[error(
        "its {what} is {own}, and the freshest member's is {freshest}: it was re-created, or is of an older array"
    )]
    OtherShape {
        /// Which value differs.
        what: &'static str,
        /// Its own.
        own: String,
        /// The freshest member's.
        freshest: String,
    },
    /// It holds no data.
    #[error("it holds no data of the array: its superblock calls it {0}")]
    NoData(&'static str),
}

/// The members of all roles, as far as they are decided.
pub(super) struct Seats {
    pub(super) freshest: usize,
    pub(super) seats: Vec<Option<Seat>>,
    pub(super) left_out: Vec<LeftOut>,
    /// Stale members, the freshest first, with their roles.
    stale: Vec<(usize, u16)>,
}

impl Seats {
    /// Seats those that nothing was written without; the others are stale or left out.
    pub(super) fn of(claimants: &[Claimant]) -> Seats {
        let mut order: Vec<usize> = (0..claimants.len()).collect();
        order.sort_by_key(|index| {
            let one = &claimants[*index];
            let takes_part = matches!(one.superblock.role(), Role::Active(_)) && !one.is_guessed;
            let rank = (takes_part, one.superblock.events, one.superblock.updated);
            (Reverse(rank), one.label.clone())
        });
        let freshest = order[0];
        let array = &claimants[freshest].superblock;
        let disks = array.raid_disks as usize;
        let (seats, left_out, stale) = (vec![None; disks], Vec::new(), Vec::new());
        let mut this = Seats { freshest, seats, left_out, stale };
        // The roles that the array's last state counts on, whether their members are here or not.
        let mut alive: Vec<bool> = (0..array.raid_disks)
            .map(|role| {
                array.roles.contains(&Role::Active(u16::try_from(role).unwrap_or(u16::MAX)))
            })
            .collect();
        let mut seen: Vec<usize> = Vec::new();
        for group in order.chunk_by(|a, b| events(claimants, *a) == events(claimants, *b)) {
            let before = alive.clone();
            for index in group {
                let claim = claim(claimants, freshest, &seen, *index);
                seen.push(*index);
                let role = match claim {
                    Ok(role) => role,
                    Err(why) => {
                        this.left_out.push(LeftOut { claimant: *index, why });
                        continue;
                    }
                };
                if claimants[*index].is_guessed {
                    this.stale.push((*index, role));
                    continue;
                }
                let superblock = &claimants[*index].superblock;
                let counted = array.roles.get(superblock.device_number as usize);
                let is_last = counted == Some(&Role::Active(role))
                    && superblock.events.saturating_add(1) >= array.events;
                let others = others_when(claimants, *index, &before);
                let has_run_on = suffice(array.level, array.layout, &others);
                let standing = match (is_last, has_run_on) {
                    (true, _) => Standing::Last,
                    (false, false) => Standing::LeftLast,
                    (false, true) => {
                        this.stale.push((*index, role));
                        continue;
                    }
                };
                alive[usize::from(role)] = true;
                this.seat(claimants, *index, role, standing, Vec::new());
            }
        }
        this
    }

    /// Gives a role to a member, unless another has it.
    fn seat(
        &mut self,
        claimants: &[Claimant],
        claimant: usize,
        role: u16,
        standing: Standing,
        changed: Ranges,
    ) {
        let one = &claimants[claimant];
        if let Some(holder) = &mut self.seats[usize::from(role)] {
            let other = &claimants[holder.claimant];
            if other.superblock.events == one.superblock.events {
                holder.standing = Standing::Ambiguous;
            }
            let why = WhyLeftOut::Older { role, of: other.label.clone() };
            self.left_out.push(LeftOut { claimant, why });
            return;
        }
        let array = &claimants[self.freshest].superblock;
        let used = match array.level.is_redundant() {
            true => array.component_size,
            false => one.superblock.used(),
        };
        let mut holes = in_data(one, used);
        holes.extend(changed);
        // A member that is being filled has its data below that place only.
        if let Some(from) = one.superblock.recovery_offset {
            let by_bitmap = one.superblock.features.contains(Features::RECOVERY_BITMAP);
            let changed = bitmap_of(claimants, array).filter(|_| by_bitmap);
            match changed.and_then(|bitmap| changed_since(array, bitmap, usize::from(role))) {
                Some(changed) => holes.extend(changed),
                None => holes.push(from.min(used)..used),
            }
        }
        let holes = joined(holes);
        self.seats[usize::from(role)] = Some(Seat { claimant, standing, holes });
    }

    /// Those without which the array went on.
    pub(super) fn stale(&self) -> Vec<usize> {
        self.stale.iter().map(|(claimant, _)| *claimant).collect()
    }

    /// Takes in stale members where they can help: by the bitmap if another member has holes or the array needs
    /// them, without one only if the array needs them.
    pub(super) fn take_stale(&mut self, claimants: &[Claimant]) {
        let array = &claimants[self.freshest].superblock;
        let bitmap = bitmap_of(claimants, array);
        let has_holes = self.seats.iter().flatten().any(|seat| !seat.holes.is_empty());
        let stale = std::mem::take(&mut self.stale);
        let mut unknown = Vec::new();
        for (index, role) in stale {
            let superblock = &claimants[index].superblock;
            let changed = bitmap
                .filter(|_| !claimants[index].is_guessed)
                .filter(|bitmap| superblock.events >= bitmap.header.events_cleared)
                .and_then(|bitmap| changed_since(array, bitmap, usize::from(role)));
            let is_enough = suffice(array.level, array.layout, &present(&self.seats));
            match changed {
                Some(changed) if has_holes || !is_enough => {
                    self.seat(claimants, index, role, Standing::ByBitmap, changed);
                }
                Some(_) => self.leave_out(index, WhyLeftOut::NotNeeded),
                None => unknown.push((index, role)),
            }
        }
        for (index, role) in unknown {
            let is_enough = suffice(array.level, array.layout, &present(&self.seats));
            let (why, standing) = match claimants[index].is_guessed {
                true => (WhyLeftOut::Unclaimed, Standing::Guessed),
                false => (WhyLeftOut::Stale, Standing::Stale),
            };
            match is_enough {
                true => self.leave_out(index, why),
                false => self.seat(claimants, index, role, standing, Vec::new()),
            }
        }
        self.left_out.sort_by_key(|one| one.claimant);
    }

    /// Gives a member that was left out the place beside the others of one that was forced in.
    pub(super) fn exchange(&mut self, claimants: &[Claimant], exchange: &Exchange) {
        let (index, role) = exchange.better;
        if let Some(forced) = self.seats[exchange.forced].take() {
            self.left_out.retain(|one| one.claimant != index);
            self.seat(claimants, index, role, Standing::Stale, Vec::new());
            let without = claimants[index].label.clone();
            self.leave_out(forced.claimant, WhyLeftOut::Forced { without });
            self.left_out.sort_by_key(|one| one.claimant);
        }
    }

    fn leave_out(&mut self, claimant: usize, why: WhyLeftOut) {
        self.left_out.push(LeftOut { claimant, why });
    }
}

/// For each role but this member's, whether its holder may have stayed when this member left: one of `alive`, the
/// roles of the last state and of fresher members, or one that the member's own table counts on, and of which no
/// superblock as old as this one is here.
fn others_when(claimants: &[Claimant], index: usize, alive: &[bool]) -> Vec<bool> {
    let this = &claimants[index].superblock;
    let left_with_it = |role: Role| {
        let others = claimants.iter().map(|one| &one.superblock);
        others.filter(|other| other.role() == role).any(|other| other.events >= this.events)
    };
    let stayed = |(number, alive): (u16, &bool)| {
        let role = Role::Active(number);
        let is_other = role != this.role() && this.roles.contains(&role);
        *alive || is_other && !left_with_it(role)
    };
    (0..).zip(alive).map(stayed).collect()
}

fn events(claimants: &[Claimant], index: usize) -> u64 {
    claimants[index].superblock.events
}

/// The role that a claimant has data of, or why it has none. `seen` are those with as many events or more.
fn claim(
    claimants: &[Claimant],
    freshest: usize,
    seen: &[usize],
    index: usize,
) -> Result<u16, WhyLeftOut> {
    let (one, array) = (&claimants[index], &claimants[freshest].superblock);
    let this = &one.superblock;
    let twin = seen.iter().map(|other| &claimants[*other]).find(|other| {
        let other = &other.superblock;
        let is_numbered = this.device_uuid.is_nil() && other.device_number == this.device_number;
        other.device_uuid == this.device_uuid && (is_numbered || !this.device_uuid.is_nil())
    });
    if let Some(twin) = twin {
        let of = twin.label.clone();
        let is_equal = twin.superblock.events == this.events;
        if is_equal && twin.content == one.content {
            return Err(WhyLeftOut::Same { of });
        }
        if !is_equal {
            return Err(WhyLeftOut::OldCopy { of });
        }
    }
    same_shape(this, array)?;
    match this.role() {
        Role::Active(role) if u32::from(role) < array.raid_disks => Ok(role),
        Role::Active(_) => Err(WhyLeftOut::NoData("a member beyond the array's last")),
        Role::Spare => Err(WhyLeftOut::NoData("a spare")),
        Role::Faulty => Err(WhyLeftOut::NoData("failed")),
        Role::Journal => Err(WhyLeftOut::NoData("a journal")),
    }
}

/// Checks that a member describes the array of the freshest one.
fn same_shape(this: &Superblock, array: &Superblock) -> Result<(), WhyLeftOut> {
    type Show = fn(&Superblock) -> String;
    let compared: [(&'static str, Show); 6] = [
        ("creation time", |one| one.created.seconds.to_string()),
        ("level", |one| one.level.to_string()),
        ("layout", |one| one.layout.to_string()),
        ("chunk", |one| one.chunk.to_string()),
        ("component size", |one| one.component_size.to_string()),
        ("number of members", |one| one.raid_disks.to_string()),
    ];
    for (what, show) in compared {
        let (own, freshest) = (show(this), show(array));
        if own != freshest {
            return Err(WhyLeftOut::OtherShape { what, own, freshest });
        }
    }
    Ok(())
}
