//! A member without a superblock whose role is the only one left.
//!
//! The last member that claims nothing takes the last role that the array counts on and that is not claimed, with the data
//! offset of the others. It is used only if the array cannot be read without it, and is then in doubt. If it is shorter than
//! the others, which are as long as each other, it is a copy that ended too early, and lost a superblock at its end.

use braid_md::{Role, Superblock, Uuid, Version};

use crate::assemble::{Claimant, Ranges, joined};
use crate::claimants::{Array, Examined, claimed};
use crate::scan::{How, Place};

/// Returns the arrays that members claim to be of, by UUID, with the member whose role is the only one left.
#[must_use]
pub fn arrays(members: &[Examined]) -> Vec<Array> {
    let mut arrays = claimed(members);
    let mut unclaimed = (0..members.len()).filter(|index| {
        let is_it = |one: &Claimant| one.member == *index;
        !arrays.iter().any(|array| array.claimants.iter().any(is_it))
    });
    if let (Some(index), None) = (unclaimed.next(), unclaimed.next()) {
        arrays.iter_mut().for_each(|array| guess(members, index, array));
    }
    arrays
}

/// Adds the member without a superblock to an array, if there is one such member and one role without a member.
fn guess(members: &[Examined], unclaimed: usize, array: &mut Array) {
    let newest = array.claimants.iter().max_by_key(|one| one.superblock.events);
    let newest = newest.expect("an array has a claimant");
    let member = &members[unclaimed];
    let (there, first) = (member.patient.size(), array.places[0].length);
    let are_equal = array.places.iter().all(|place| (place.start, place.length) == (0, first));
    let is_cut = are_equal && first > there && array.claimants.len() > 1;
    let length = if is_cut { first } else { there };
    let Some(superblock) = superblock(length, array, &newest.superblock) else { return };
    let end = std::iter::once(there..length).collect::<Ranges>();
    let claimant = Claimant {
        member: unclaimed,
        label: member.label.clone(),
        path: member.path.clone(),
        start: 0,
        length,
        superblock,
        bitmap: None,
        logged: None,
        holes: joined([&member.holes[..], &member.findings.unreadable, &end].concat()),
        content: member.content.clone(),
        is_guessed: true,
    };
    array.claimants.push(claimant);
    array.places.push(Place { start: 0, length, how: How::Whole });
}

/// The superblock that a member of `size` bytes would have; `None` if there is no single role for it, or no room.
fn superblock(size: u64, array: &Array, newest: &Superblock) -> Option<Superblock> {
    let is_claimed = |role: &Role| array.claimants.iter().any(|one| one.superblock.role() == *role);
    let roles = (0..u16::try_from(newest.raid_disks).ok()?).map(Role::Active);
    let mut free = roles.filter(|role| newest.roles.contains(role) && !is_claimed(role));
    let (role, None) = (free.next()?, free.next()) else { return None };
    let number = newest.roles.iter().position(|known| *known == role)?;
    let is_equal = |one: &Claimant| one.superblock.data_offset == newest.data_offset;
    if !array.claimants.iter().all(is_equal) {
        return None;
    }
    // The data end as far before the superblock, or the end of the member, as those of the others.
    let edge = |version: Version, size: u64| match version.is_at_end() {
        true => version.superblock_offset(size),
        false => Some(size / 512 * 512),
    };
    let gaps = array.claimants.iter().zip(&array.places).filter_map(|(one, place)| {
        let end = one.superblock.data_offset.checked_add(one.superblock.data_size)?;
        edge(newest.version, place.length)?.checked_sub(end)
    });
    let gap = gaps.min()?;
    let mut contents = newest.clone().into_contents();
    let edge = edge(newest.version, size)?;
    contents.data_size = edge.checked_sub(gap)?.checked_sub(contents.data_offset)?;
    contents.super_offset = newest.version.superblock_offset(size)?;
    contents.device_number = u32::try_from(number).ok()?;
    if !contents.device_uuid.is_nil() {
        contents.device_uuid = Uuid([0xff; 16]);
    }
    contents.recovery_offset = None;
    Superblock::new(contents, size).ok()
}
