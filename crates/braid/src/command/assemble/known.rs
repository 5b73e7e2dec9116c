//! Members that a volume is recorded with, and others that carry the identifier of its array.

use std::path::Path;

use braid_md::assembly::{Member, Set, group};

use super::{needed, options_of};
use crate::cli::Assemble;
use braid_service::control::with_next;
use braid_service::metadata::Metadata;
use braid_service::ownership::Owners;
use braid_service::record::{Record, Seen};

/// Leaves out members that the array's volume is not recorded with, and in whose company recorded ones would not take
/// part: a disk that claims to be a member, and to be the freshest, does not make others stale.
pub(super) fn without_strangers(
    found: Vec<Metadata>,
    owners: &Owners,
    assemble: &Assemble,
) -> Vec<Metadata> {
    let mut strangers = Vec::new();
    for set in sets_of(&found, &[]) {
        let uuid = set.uuid.to_string();
        let Ok(Some(owned)) = owners.of(&uuid) else { continue };
        let members: Vec<&Metadata> =
            found.iter().filter(|one| one.superblock.array_uuid == set.uuid).collect();
        let others: Vec<(&Path, String)> = members
            .iter()
            .filter_map(|one| Some((one.path.as_path(), stranger(&owned.record, one, &members)?)))
            .collect();
        let paths: Vec<&Path> = others.iter().map(|(path, _)| *path).collect();
        let rest = sets_of(&found, &paths);
        let rest = rest.iter().find(|rest| rest.uuid == set.uuid);
        let displaces = |rest: &Set| {
            let alone = rest.assess(options_of(assemble));
            let all = set.assess(options_of(assemble));
            let stays = |one: &Member| all.members().any(|other| other.label == one.label);
            alone.can_start >= needed(assemble) && !alone.members().all(stays)
        };
        if rest.is_some_and(displaces) {
            for (path, why) in others {
                let volume = &owned.volume;
                let why = format!("{}: {volume} does not have it: {why}", path.display());
                let next = format!(
                    "if it became a member elsewhere: braid forget {volume}, then the same again"
                );
                eprintln!("braid: passed over: {}", with_next(why, Some(&next)));
                strangers.push(path.to_owned());
            }
        }
    }
    found.into_iter().filter(|one| !strangers.contains(&one.path)).collect()
}

/// The arrays of `found`, without what lies at `paths`.
fn sets_of(found: &[Metadata], paths: &[&Path]) -> Vec<Set> {
    let rest = found.iter().filter(|one| !paths.contains(&one.path.as_path()));
    group(rest.map(Metadata::candidate).collect())
}

/// Why `one`, whose superblock is of the array of `record`, is none of the members that it was recorded with;
/// `beside` are the other members that were found.
pub(in crate::command) fn stranger(
    record: &Record,
    one: &Metadata,
    beside: &[&Metadata],
) -> Option<String> {
    let array = one.superblock.array_uuid.to_string();
    let members = record.members.iter().filter(|known| known.array.as_ref() == Some(&array));
    let is_recorded = |one: &Metadata| {
        let seen = Seen::at(&one.path);
        let is_it = |seen: &Seen| record.members.iter().any(|known| known.is(seen));
        seen.as_ref().is_some_and(is_it)
    };
    let device = one.device()?;
    let mut known = Vec::new();
    for member in members {
        // Where one is not known by its identifier, any may be that one.
        known.push(member.device.as_ref()?);
    }
    if is_recorded(one) || known.is_empty() {
        return None;
    }
    if !known.contains(&&device) {
        return Some(format!("its device UUID, {device}, is not recorded"));
    }
    let is_twin = |other: &&&Metadata| {
        other.path != one.path && other.device().as_ref() == Some(&device) && is_recorded(other)
    };
    let twin = beside.iter().find(is_twin)?;
    Some(format!("it is a copy of {}, which is recorded", twin.path.display()))
}
