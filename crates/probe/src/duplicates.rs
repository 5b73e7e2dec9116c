//! Members that are listed twice, so that one member is never used as two.
//!
//! Deliberately absent: members that share bytes through a mapping. Those are found as holders, see
//! [`crate::find_users`].

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use crate::ProbeError;
use crate::identity::{Identity, identify};
use crate::place::Place;
use crate::sysfs::BlockDevice;

/// The way in which two members share bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They are the same file or device.
    Same,
    /// The second is a partition of the first.
    PartOfFirst,
    /// The first is a partition of the second.
    PartOfSecond,
}

/// Two members that share bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The path that comes first in the list.
    pub first: PathBuf,
    /// The path that comes later in the list.
    pub second: PathBuf,
    /// The way in which they share bytes.
    pub relation: Relation,
}

/// The members that are listed twice, also through a symbolic link, a hard link or another device node; and
/// partitions that are listed beside their whole disk.
///
/// # Errors
/// [`ProbeError::Io`] if one of the paths cannot be examined.
pub fn find_duplicates(paths: &[PathBuf]) -> Result<Vec<Duplicate>, ProbeError> {
    let mut seen: HashMap<Identity, Vec<(&PathBuf, Range<u64>)>> = HashMap::new();
    let mut duplicates = Vec::new();
    for second in paths {
        let (_, identity) = identify(second)?;
        let Place { start, length, .. } = Place::of(second)?;
        let range = start..length.map_or(u64::MAX, |length| start.saturating_add(length));
        let there = seen.entry(identity).or_default();
        let shares = |other: &Range<u64>| other.start < range.end && range.start < other.end;
        if let Some((first, _)) = there.iter().find(|(_, other)| shares(other)) {
            let (first, second) = (first.to_path_buf(), second.clone());
            duplicates.push(Duplicate { first, second, relation: Relation::Same });
        } else {
            there.push((second, range));
        }
    }
    let firsts = seen.iter().filter_map(|(identity, there)| Some((*identity, there.first()?.0)));
    let firsts = firsts.collect();
    duplicates.extend(find_partitions_beside_disks(paths, &firsts)?);
    Ok(duplicates)
}

fn find_partitions_beside_disks(
    paths: &[PathBuf],
    members: &HashMap<Identity, &PathBuf>,
) -> Result<Vec<Duplicate>, ProbeError> {
    let position = |path: &PathBuf| paths.iter().position(|other| other == path);
    let mut found = Vec::new();
    for (identity, part) in members {
        let Identity::Block(number) = identity else { continue };
        let Some(disk) = BlockDevice::find(*number)?.and_then(|device| device.parent_disk()) else {
            continue;
        };
        let Some(whole) = members.get(&Identity::Block(disk)) else { continue };
        let (part, whole) = (part.to_path_buf(), whole.to_path_buf());
        found.push(if position(&whole) < position(&part) {
            Duplicate { first: whole, second: part, relation: Relation::PartOfFirst }
        } else {
            Duplicate { first: part, second: whole, relation: Relation::PartOfSecond }
        });
    }
    // The map's order is arbitrary; that of the report must not be.
    found.sort_by_key(|duplicate| (position(&duplicate.first), position(&duplicate.second)));
    Ok(found)
}
