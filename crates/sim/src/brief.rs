//! Superblocks and arrays in a line, for the messages of a check that failed.

use braid_engine::redundant::Redundant;
use braid_md::Role;

use crate::found::There;

/// The content of superblocks, in a line.
pub(crate) fn describe<'a>(there: impl IntoIterator<Item = &'a There>) -> String {
    let one = |There { disk, carried }: &There| {
        let superblock = &carried.superblock;
        let roles = superblock.roles.iter().take(8).map(|role| match role {
            Role::Active(role) => role.to_string(),
            Role::Spare => "-".to_owned(),
            Role::Faulty => "F".to_owned(),
            Role::Journal => "J".to_owned(),
        });
        let filled =
            superblock.recovery_offset.map_or(String::new(), |at| format!(", filled to {at}"));
        let replaces = if superblock.is_replacement() { ", replaces" } else { "" };
        let (events, resync) = (superblock.events, superblock.resync);
        let (number, roles) = (superblock.device_number, roles.collect::<String>());
        format!("disk{disk}: {number} of [{roles}], events {events}, {resync:?}{filled}{replaces}")
    };
    there.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The status of an array, in a line.
pub(crate) fn brief(array: &Redundant) -> String {
    let status = array.status();
    let members: Vec<String> = status
        .members
        .iter()
        .map(|one| {
            let role = one.role.map_or("-".to_owned(), |role| role.to_string());
            format!("{}[{role}] {:?}", one.label, one.state)
        })
        .collect();
    let last: Vec<&str> = status.log.iter().rev().take(6).map(|(_, text)| &text[..]).collect();
    format!(
        "{:?}, {}{}events {}, {}{}; log: {}",
        status.resync,
        if status.active { "active, " } else { "" },
        if status.broken { "broken, " } else { "" },
        status.events,
        members.join(" "),
        status.job.map_or(String::new(), |job| format!(", {} at {}", job.kind, job.done)),
        last.into_iter().rev().collect::<Vec<_>>().join(" | ")
    )
}
