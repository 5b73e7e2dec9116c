//! The identity of a member's storage, so that one device is never taken for two.
//!
//! ```text
//!   file, hard link, symbolic link ──▶ file system and inode
//!   loop device ──▶ its file           partition ──▶ its disk
//!   device-mapper, md ──▶ all devices below
//!   URI ──▶ socket and export          nothing there ──▶ the text
//! ```
//!
//! Invariant: two members that share bytes have an identity in common. The reverse does not hold: two
//! partitions of one disk share one too, because measuring both at once measures neither.
//!
//! Deliberately absent: files and the disk on which they lie. Many image files on one disk are usual, and
//! [`super::note_on_sharing`] explains the consequence.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use braid_nbd::uri::{Socket, Uri};
use braid_probe::{BlockDevice, DeviceNumber, Identity as Probed, identify};

use super::{MAX_NESTING, Member, members_of};
use crate::campaign::Source;

/// The identity of a member: a word for its kind, and a value that is unique within the kind. A `disk` is a
/// whole disk, or a device about which the kernel says no more; a `text` is an absent or unknown member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity(pub(crate) String);

impl Identity {
    fn text(text: impl fmt::Display) -> Self {
        Self(format!("text {text}"))
    }
}

/// Returns the identities that a source occupies, each with the member's text. Reads `/sys`. Memory and models
/// are never shared.
pub(crate) fn identities_of(source: &Source) -> BTreeMap<Identity, String> {
    let mut found = BTreeMap::new();
    for member in members_of(source) {
        let identities = match &member {
            Member::Path(path) => of_path(Path::new(path), 0),
            Member::Remote(uri) => vec![of_uri(uri)],
            Member::Memory(_) | Member::Model { .. } => Vec::new(),
        };
        found.extend(identities.into_iter().map(|one| (one, member.text().to_owned())));
    }
    found
}

fn of_uri(uri: &str) -> Identity {
    match uri.parse::<Uri>() {
        Ok(address) => {
            let socket = match address.socket {
                Socket::Unix(path) => real_path(Path::new(&path)).display().to_string(),
                Socket::Tcp(place) => place.to_ascii_lowercase(),
            };
            Identity(format!("export {socket:?} {:?}", address.export))
        }
        Err(_) => Identity::text(uri),
    }
}

fn of_path(path: &Path, depth: u32) -> Vec<Identity> {
    match identify(path) {
        Ok((_, Probed::Block(number))) => of_device(number, depth),
        Ok((_, Probed::File { device, inode })) => {
            vec![Identity(format!("file {device} {inode}"))]
        }
        Err(_) => vec![Identity::text(path.display())],
    }
}

fn of_device(number: DeviceNumber, depth: u32) -> Vec<Identity> {
    match BlockDevice::find(number) {
        Ok(Some(device)) => under(&device, depth),
        _ => vec![Identity(format!("disk {number}"))],
    }
}

/// Follows a block device down to the devices below.
fn under(device: &BlockDevice, depth: u32) -> Vec<Identity> {
    let disk = device.whole_disk();
    if depth < MAX_NESTING {
        // A deleted file, or one in another namespace, cannot be followed.
        if let Some(file) = disk.backing_file().filter(|file| file.exists()) {
            return of_path(&file, depth + 1);
        }
        let below = disk.slaves().unwrap_or_default();
        if !below.is_empty() {
            return below.iter().flat_map(|one| under(one, depth + 1)).collect();
        }
    }
    let number = disk.number().map_or_else(|| disk.name(), |number| number.to_string());
    vec![Identity(format!("disk {number}"))]
}

/// Returns the same path for every spelling of an existing path; for other paths the absolute text.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    fs::canonicalize(path).unwrap_or_else(|_| absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: Source) -> Vec<Identity> {
        identities_of(&source).into_keys().collect()
    }

    fn stack(path: &Path) -> Source {
        Source::Stack(format!("raid0({}, ram(1M))", path.display()).into())
    }

    #[test]
    fn links_and_spellings_of_a_file_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let [file, other, hard, soft] =
            ["a", "b", "hard", "soft"].map(|name| dir.path().join(name));
        fs::write(&file, b"").unwrap();
        fs::write(&other, b"").unwrap();
        fs::hard_link(&file, &hard).unwrap();
        std::os::unix::fs::symlink(&file, &soft).unwrap();
        let a = of(stack(&file));
        assert_eq!(a.len(), 1);
        for same in [&hard, &soft, &dir.path().join(".").join("a")] {
            assert_eq!(of(stack(same)), a);
            assert_eq!(of(Source::Path(same.display().to_string())), a);
        }
        assert_ne!(of(stack(&other)), a);
        // A folder is itself, not its contents.
        let folder = of(Source::Directory(dir.path().display().to_string()));
        assert_eq!(folder.len(), 1);
        assert_ne!(folder, a);
    }

    #[test]
    fn what_is_not_there_is_its_text_and_memory_is_nobodys() {
        assert_eq!(of(Source::Path("/nowhere/a".into())), [Identity::text("/nowhere/a")]);
        assert_eq!(of(Source::Stack("raid0(ram(1M), model(hdd, size=1M))".into())), []);
        assert_eq!(of(Source::Zram("1G".into())), []);
    }

    #[test]
    fn spellings_of_an_export_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        fs::write(&socket, b"").unwrap();
        let of = |uri: String| of(Source::Nbd(uri));
        let one = of(format!("nbd+unix:///?socket={}", socket.display()));
        let again = dir.path().join(".").join("s");
        assert_eq!(of(format!("nbd+unix:///?socket={}", again.display())), one);
        assert_ne!(of(format!("nbd+unix:///x?socket={}", socket.display())), one);
        assert_eq!(of("nbd://Host/x".into()), of("nbd://host:10809/x".into()));
        assert_ne!(of("nbd://host/x".into()), of("nbd://host/y".into()));
        assert_eq!(of("ftp://host".into()), [Identity::text("ftp://host")]);
    }

    /// Uses folders with the structure of `/sys`.
    #[test]
    fn a_partition_is_its_disk_and_a_mapped_device_is_what_lies_below() {
        let sys = tempfile::tempdir().unwrap();
        let disk = |name: &str, number: &str| {
            let folder = sys.path().join(name);
            fs::create_dir_all(folder.join("slaves")).unwrap();
            fs::write(folder.join("dev"), format!("{number}\n")).unwrap();
            folder
        };
        let (sda, sdb, dm) = (disk("sda", "8:0"), disk("sdb", "8:16"), disk("dm-0", "253:0"));
        let part = sda.join("sda1");
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join("partition"), "1\n").unwrap();
        fs::write(part.join("dev"), "8:1\n").unwrap();
        for below in [&part, &sdb] {
            let link = dm.join("slaves").join(below.file_name().unwrap());
            std::os::unix::fs::symlink(below, link).unwrap();
        }
        let number = |text: &str| Identity(format!("disk {text}"));
        let under = |folder: &Path| super::under(&BlockDevice::at(folder.to_owned()), 0);
        assert_eq!(under(&part), [number("8:0")]);
        let mut found = under(&dm);
        found.sort();
        assert_eq!(found, [number("8:0"), number("8:16")]);
        // A loop device is its file.
        let image = sys.path().join("a.img");
        fs::write(&image, b"").unwrap();
        let disk_of_file = disk("loop0", "7:0");
        fs::create_dir(disk_of_file.join("loop")).unwrap();
        let told = format!("{}\n", image.display());
        fs::write(disk_of_file.join("loop/backing_file"), told).unwrap();
        assert_eq!(under(&disk_of_file), of(Source::Path(image.display().to_string())));
        fs::remove_file(&image).unwrap();
        assert_eq!(under(&disk_of_file), [number("7:0")]);
    }
}
