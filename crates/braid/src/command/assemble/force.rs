//! `--force`: rewrites superblocks so that the used members agree.
//!
//! As in mdadm, a stale member gets the event count of the freshest member, and unverified parity
//! is marked clean. The role tables of all members list the active members; members left out are
//! stale from then on.
//!
//! Invariant: the new superblocks are judged again, without force, before they are written. They
//! are written only if the array can then be started.
//!
//! Source: mdadm `Assemble.c` (`force_array`), `super1.c` (`update_super1`: force-one, force-array,
//! assemble).

use std::path::Path;

use braid_level::Raid0Layout;
use braid_md::assembly::{Assembly, Candidate, Member, Options, Risk, Set, Start, group};
use braid_md::{Resync, Role, Superblock, Version};
use braid_probe::MemberFacts;

use braid_service::failure::Failure;
use braid_service::metadata::{Change, Held, Patch, Saved};
use braid_service::record::Known;
use braid_service::volume::is_served;

/// Returns the bytes to write, with the data to undo them; `None` if all members agree.
///
/// # Errors
/// The array could not be started even then, or a member is in use.
pub(super) fn change(
    set: &Set,
    assembly: &Assembly,
    raid0_layout: Option<Raid0Layout>,
    facts: &[MemberFacts],
) -> Result<Option<(Change, Saved)>, Failure> {
    if assembly.risks.is_empty() {
        return Ok(None);
    }
    let agreed = agreed(set, assembly);
    check(set, &agreed, raid0_layout)?;
    let mut patches = Vec::new();
    for (candidate, superblock) in &agreed {
        let before = &set.candidates()[*candidate];
        if before.superblock == *superblock {
            continue;
        }
        let is_it = |facts: &MemberFacts| facts.path == Path::new(&before.label);
        patches.push(Patch {
            member: facts.iter().position(is_it).expect("each taken member was judged"),
            offset: superblock.super_offset,
            what: "superblock",
            bytes: superblock.encode(),
        });
    }
    if patches.is_empty() {
        return Ok(None);
    }
    let saved = Saved {
        names: vec![set.short_name().to_owned()],
        arrays: vec![set.uuid.to_string()],
        members: facts.iter().map(Known::of).collect(),
        ..Saved::new("assemble --force")
    };
    let members = facts.iter().map(Held::open).collect::<Result<Vec<_>, _>>()?;
    Ok(Some((Change { members, patches }, saved)))
}

/// Returns the new superblocks of the members with data.
fn agreed(set: &Set, assembly: &Assembly) -> Vec<(usize, Superblock)> {
    let freshest = &set.candidates()[assembly.freshest].superblock;
    let replacements = assembly.replacements.iter().map(|(_, member, _)| member);
    let taking_part: Vec<&Member> = assembly.members().chain(replacements).collect();
    let superblock = |member: &Member| &set.candidates()[member.candidate].superblock;
    let is_here = |number: usize, role: Role| {
        taking_part.iter().any(|member| {
            let one = superblock(member);
            one.device_number as usize == number && one.role() == role
        })
    };
    let absent = if freshest.version == Version::V0_90 { Role::Faulty } else { Role::Spare };
    let mut roles = freshest.roles.clone();
    for (number, role) in roles.iter_mut().enumerate() {
        if matches!(role, Role::Active(_)) && !is_here(number, *role) {
            *role = absent;
        }
    }
    for member in &taking_part {
        let one = superblock(member);
        if let Some(role) = roles.get_mut(one.device_number as usize) {
            *role = one.role();
        }
    }
    let has_hole = assembly.risks.contains(&Risk::WriteHole);
    let resync = if has_hole { Resync::Clean } else { freshest.resync };
    let agree = |member: &&Member| {
        let mut superblock = superblock(member).clone().at_event(freshest.events);
        superblock.set_resync(resync);
        superblock.set_membership(freshest.raid_disks, (0..).zip(roles.iter().copied()));
        (member.candidate, superblock)
    };
    taking_part.iter().map(agree).collect()
}

/// Checks that the array can be started without force with these superblocks.
fn check(
    set: &Set,
    agreed: &[(usize, Superblock)],
    raid0_layout: Option<Raid0Layout>,
) -> Result<(), Failure> {
    let refuse = |why: String| Failure::refused(format!("{} cannot be forced: {why}", set.uuid));
    let mut candidates = Vec::new();
    for (candidate, superblock) in agreed {
        let before = &set.candidates()[*candidate];
        if before.superblock.has_unknown() {
            let label = &before.label;
            return Err(refuse(format!("{label} uses something unknown, and must not be written")));
        }
        let (version, super_offset) = (superblock.version, superblock.super_offset);
        let mut bytes = superblock.encode();
        bytes.resize(braid_md::superblock::SUPERBLOCK_BYTES.max(bytes.len()), 0);
        let superblock = Superblock::parse(version, super_offset, before.size, &bytes)
            .map_err(|rejection| refuse(rejection.to_string()))?;
        candidates.push(Candidate { superblock, ..before.clone() });
    }
    let options = Options {
        force: false,
        read_only: false,
        degraded: false,
        raid0_layout,
        supported: &is_served,
    };
    let verdicts: Vec<Assembly> = group(candidates).iter().map(|set| set.assess(options)).collect();
    match &verdicts[..] {
        [one] if one.can_start == Start::ReadWrite => Ok(()),
        [one] => Err(refuse(one.to_string())),
        _ => Err(refuse("its members would not be of one array".to_owned())),
    }
}
