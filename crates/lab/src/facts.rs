//! The hardware under a subject: its members, and their physical devices.
//!
//! It decides whether a layout can scale at all: four image files on one disk are one disk. [`note_on_sharing`]
//! says so in words, and the report shows them.
//!
//! Deliberately absent: any judgement of a number; this reads names and `/sys` only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use braid_probe::{
    BlockDevice, DeviceNumber, Identity as Probed, ProbeError, identify, parse_mounts,
};
use serde::{Deserialize, Serialize};

use crate::campaign::Source;

mod identity;
mod members;
mod mounts;
pub(crate) use identity::{Identity, identities_of, real_path};
pub(crate) use members::leaf_text;
pub use members::{Member, members_of};
pub(crate) use mounts::mount_of;

/// Largest nesting: the kernel allows 8 loop devices upon each other, and as many mapped ones.
const MAX_NESTING: u32 = 8;

/// A member and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The member as written in the stack.
    pub member: String,
    /// The hardware; equal places are one piece of hardware.
    pub place: Place,
}

/// A piece of hardware, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A whole disk, by its kernel name, with the kernel's facts about it.
    Disk(Disk),
    /// This machine's memory.
    Memory,
    /// A modelled bus.
    Bus(String),
    /// Another machine or process.
    Remote(String),
    /// Unknown, with the reason.
    Unknown(String),
}

/// A whole disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Disk {
    /// Kernel name: `sda`, `nvme0n1`.
    pub name: String,
    /// Model, if the kernel knows one.
    pub model: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// True if the disk says that it rotates. Virtual disks often say so wrongly.
    pub rotational: bool,
}

impl Place {
    /// Returns the name for a sentence.
    pub fn describe(&self) -> String {
        match self {
            Self::Disk(disk) => match &disk.model {
                Some(model) => format!("/dev/{} ({model})", disk.name),
                None => format!("/dev/{}", disk.name),
            },
            Self::Memory => "this machine's memory".to_owned(),
            Self::Bus(bus) => format!("the modelled bus {bus}"),
            Self::Remote(uri) => uri.clone(),
            Self::Unknown(why) => format!("an unknown device ({why})"),
        }
    }
}

/// Returns the place of each member of a subject. Reads `/sys` and `/proc/self/mountinfo`.
pub fn place_members(source: &Source) -> Vec<Placed> {
    members_of(source)
        .into_iter()
        .enumerate()
        .map(|(index, member)| {
            let place = match &member {
                Member::Path(path) => place_path(Path::new(path)),
                Member::Memory(_) => Place::Memory,
                // A model without a bus has one of its own.
                Member::Model { bus: Some(bus), .. } => Place::Bus(bus.clone()),
                Member::Model { bus: None, .. } => Place::Bus(format!("of member {}", index + 1)),
                Member::Remote(uri) => Place::Remote(uri.clone()),
            };
            Placed { member: member.text().to_owned(), place }
        })
        .collect()
}

/// Returns a sentence about members that share hardware, if any do.
pub fn note_on_sharing(placed: &[Placed]) -> Option<String> {
    let mut groups: BTreeMap<&Place, usize> = BTreeMap::new();
    for member in placed {
        if !matches!(member.place, Place::Unknown(_) | Place::Remote(_)) {
            *groups.entry(&member.place).or_default() += 1;
        }
    }
    let all = placed.len();
    let sentences: Vec<String> = groups
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(place, count)| {
            let members = if count == all && all == 2 {
                "Both members lie".to_owned()
            } else if count == all {
                format!("All {all} members lie")
            } else {
                format!("{count} of the {all} members lie")
            };
            sentence(&members, place)
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn sentence(members: &str, place: &Place) -> String {
    let what = place.describe();
    match place {
        Place::Memory => format!(
            "{members} in {what}: the numbers show the cost of the software and say nothing about disks."
        ),
        Place::Bus(_) => {
            let members = members.replace(" lie", " hang");
            format!("{members} on {what}: they share its bandwidth.")
        }
        _ => format!(
            "{members} on one device, {what}: striping cannot add that device's bandwidth to itself, \
             and mirroring does not outlive it."
        ),
    }
}

/// Returns the hardware under a file or block device.
pub(crate) fn place_path(path: &Path) -> Place {
    match find_disk(path, 0) {
        Ok(place) => place,
        Err(why) => Place::Unknown(why),
    }
}

fn find_disk(path: &Path, depth: u32) -> Result<Place, String> {
    if depth > MAX_NESTING {
        return Err("loop devices are nested too deep".to_owned());
    }
    let words = |error: ProbeError| error.to_string();
    let number = match identify(path).map_err(words)? {
        (_, Probed::Block(number)) => number,
        (_, Probed::File { device, .. }) => device,
    };
    match BlockDevice::find(number).map_err(words)? {
        Some(device) => find_under(&device, depth),
        // There is no block device: tmpfs, btrfs, overlay, a network file system.
        None => find_by_mount(number, depth),
    }
}

/// Follows a block device down to the whole disk.
fn find_under(device: &BlockDevice, depth: u32) -> Result<Place, String> {
    let whole = device.whole_disk();
    if let Some(file) = whole.backing_file() {
        return find_disk(&file, depth + 1);
    }
    if let [only] = whole.slaves().unwrap_or_default().as_slice() {
        return if depth > MAX_NESTING {
            Err("devices are nested too deep".to_owned())
        } else {
            find_under(only, depth + 1)
        };
    }
    let name = whole.name();
    if name.starts_with("ram") || name.starts_with("zram") {
        return Ok(Place::Memory);
    }
    let sectors: u64 = whole.attribute("size").and_then(|text| text.parse().ok()).unwrap_or(0);
    Ok(Place::Disk(Disk {
        name,
        model: whole.attribute("device/model"),
        // /sys counts in 512-byte sectors whatever the device's own block is.
        size_bytes: sectors * 512,
        rotational: whole.attribute("queue/rotational").is_some_and(|text| text == "1"),
    }))
}

fn find_by_mount(number: DeviceNumber, depth: u32) -> Result<Place, String> {
    let table = fs::read("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let mount = parse_mounts(&table)
        .into_iter()
        .find(|mount| mount.device == number)
        .ok_or_else(|| format!("no mount has the device number {number}"))?;
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" => Ok(Place::Memory),
        _ if mount.source.starts_with("/dev") => find_disk(&mount.source, depth + 1),
        kind => Err(format!("it is on {kind}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(member: &str, place: Place) -> Placed {
        Placed { member: member.to_owned(), place }
    }

    fn disk(name: &str) -> Place {
        Place::Disk(Disk { name: name.to_owned(), model: None, size_bytes: 0, rotational: false })
    }

    #[test]
    fn members_on_one_disk_are_named() {
        let four: Vec<Placed> = ["a", "b", "c", "d"].map(|m| on(m, disk("vda"))).to_vec();
        let note = note_on_sharing(&four).unwrap();
        assert!(note.starts_with("All 4 members lie on one device, /dev/vda:"), "{note}");
        let two = [on("a", Place::Bus("usb2:0".into())), on("b", Place::Bus("usb2:0".into()))];
        let note = note_on_sharing(&two).unwrap();
        assert!(note.starts_with("Both members hang on the modelled bus usb2:0"), "{note}");
        let part = [on("a", disk("sda")), on("b", disk("sda")), on("c", disk("sdb"))];
        assert!(note_on_sharing(&part).unwrap().starts_with("2 of the 3 members lie"));
    }

    #[test]
    fn members_apart_are_not() {
        assert_eq!(note_on_sharing(&[on("a", disk("sda")), on("b", disk("sdb"))]), None);
        assert_eq!(note_on_sharing(&[on("a", disk("sda"))]), None);
        let unknown = |m: &str| on(m, Place::Unknown("?".into()));
        assert_eq!(note_on_sharing(&[unknown("a"), unknown("b")]), None);
    }

    #[test]
    fn models_without_a_bus_are_apart() {
        let source = Source::Stack("raid0(model(hdd, size=1G), model(hdd, size=1G))".into());
        assert_eq!(note_on_sharing(&place_members(&source)), None);
    }

    #[test]
    fn two_files_of_one_directory_share_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        fs::write(&a, b"").unwrap();
        fs::write(&b, b"").unwrap();
        assert_eq!(place_path(&a), place_path(&b));
    }
}
