//! The chain from a file or a device down to a volume: a graph, and its ways in words. Pure.
//!
//! ```text
//!  /mnt/log.img ── ext4 ── /dev/loop1 ── volume s              a file on the volume's own file system
//!  /dev/dm-0 ── /dev/loop1p2 ── /dev/loop1 ── volume s         what is mapped onto a partition of it
//!  /dev/loop2 ── volume t ── /dev/loop1 ── volume s            another volume, whose member it is
//! ```
//!
//! Objects are distinguished by device numbers; a path is only a name.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use crate::identity::DeviceNumber;

/// Something that bytes lie on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ground {
    /// A file, on the file system with this number.
    File { path: PathBuf, device: DeviceNumber },
    /// A file system, and the block device that it was mounted from, if it has one.
    FileSystem { kind: String, block: Option<DeviceNumber> },
    /// A block device, by the path that a person or the kernel gives it.
    Block { number: DeviceNumber, path: PathBuf },
    /// A volume, by the folder that its file is served in.
    Volume { mount: PathBuf },
}

/// The shortest way from `from` down to something that `is_it`, both included; `below` says what a thing
/// stands on. Each thing is looked at once, so that circles end.
pub(crate) fn find_way<E>(
    from: Ground,
    mut below: impl FnMut(&Ground) -> Result<Vec<Ground>, E>,
    is_it: impl Fn(&Ground) -> bool,
) -> Result<Option<Vec<Ground>>, E> {
    let mut above: BTreeMap<Ground, Option<Ground>> = BTreeMap::from([(from.clone(), None)]);
    let mut to_visit = VecDeque::from([from]);
    while let Some(here) = to_visit.pop_front() {
        if is_it(&here) {
            let mut way = vec![here];
            while let Some(Some(next)) = way.last().and_then(|last| above.get(last)) {
                way.push(next.clone());
            }
            way.reverse();
            return Ok(Some(way));
        }
        for next in below(&here)? {
            if !above.contains_key(&next) {
                above.insert(next.clone(), Some(here.clone()));
                to_visit.push_back(next);
            }
        }
    }
    Ok(None)
}

/// A way as a sentence: `/mnt/log.img lies on ext4 on /dev/loop1, which is volume s itself`.
pub(crate) fn in_words(way: &[Ground]) -> String {
    let name = |ground: &Ground| match ground {
        Ground::File { path, .. } | Ground::Block { path, .. } => path.display().to_string(),
        Ground::FileSystem { kind, .. } => kind.clone(),
        Ground::Volume { mount } => format!("volume {}", volume_name(mount)),
    };
    let mut text = way.first().map(name).unwrap_or_default();
    for (index, pair) in way.windows(2).enumerate() {
        let verb = match (&pair[0], &pair[1]) {
            (Ground::FileSystem { .. }, _) => "on",
            (_, Ground::Volume { .. }) => "is",
            (_, Ground::FileSystem { .. }) => "lies on",
            _ => "stands on",
        };
        let which = if index > 0 && verb != "on" { ", which" } else { "" };
        text.push_str(&format!("{which} {verb} {}", name(&pair[1])));
    }
    text + " itself"
}

/// The name of the volume whose file is served in the folder `mount`, `NAME.mount`.
pub(crate) fn volume_name(mount: &Path) -> String {
    mount.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The folder of the volume that an NBD client was told to connect to, by the words of its command line:
/// sockets are beside that folder, as `NAME.nbd`. A volume on TCP cannot be told.
pub(crate) fn served_to(command_line: &[u8]) -> Option<PathBuf> {
    command_line.split(|byte| *byte == 0).find_map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        let socket = Path::new(word.rsplit('=').next()?);
        let is_socket = socket.is_absolute() && socket.extension()? == "nbd";
        is_socket.then(|| socket.with_extension("mount"))
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn number(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 7, minor }
    }

    fn block(minor: u32) -> Ground {
        Ground::Block { number: number(minor), path: format!("/dev/loop{minor}").into() }
    }

    fn file(path: &str) -> Ground {
        Ground::File { path: path.into(), device: number(1) }
    }

    fn ext4(minor: u32) -> Ground {
        Ground::FileSystem { kind: "ext4".to_owned(), block: Some(number(minor)) }
    }

    fn volume(name: &str) -> Ground {
        Ground::Volume { mount: format!("/run/braid/{name}.mount").into() }
    }

    fn way(from: Ground, edges: &[(Ground, Ground)]) -> Option<String> {
        let below = |ground: &Ground| {
            let of = edges.iter().filter(|(above, _)| above == ground);
            Ok::<_, Infallible>(of.map(|(_, below)| below.clone()).collect())
        };
        let is_it = |ground: &Ground| *ground == volume("s");
        find_way(from, below, is_it).unwrap_or_default().map(|way| in_words(&way))
    }

    #[test]
    fn a_way_is_told_from_the_top() {
        let edges = [
            (file("/mnt/log.img"), ext4(1)),
            (ext4(1), block(1)),
            (block(1), volume("s")),
            (block(2), file("/mnt/log.img")),
            (block(3), volume("t")),
            (volume("t"), block(2)),
        ];
        let told = |from| way(from, &edges).expect("a way");
        assert_eq!(told(block(1)), "/dev/loop1 is volume s itself");
        let on_file = "/mnt/log.img lies on ext4 on /dev/loop1, which is volume s itself";
        assert_eq!(told(file("/mnt/log.img")), on_file);
        let in_file = on_file.replace("lies", ", which lies").replace(" ,", ",");
        assert_eq!(told(block(2)), format!("/dev/loop2 stands on {in_file}"));
        let through = format!(
            "/dev/loop3 is volume t, which stands on /dev/loop2, which stands on {in_file}"
        );
        assert_eq!(told(block(3)), through);
    }

    #[test]
    fn the_shortest_way_is_found_and_circles_end() {
        let circle = [(block(1), block(2)), (block(2), block(1))];
        assert_eq!(way(block(1), &circle), None);
        let two = [
            (block(1), block(2)),
            (block(2), block(1)),
            (block(2), volume("s")),
            (block(1), block(3)),
            (block(3), block(4)),
            (block(4), volume("s")),
        ];
        let expected = "/dev/loop1 stands on /dev/loop2, which is volume s itself";
        assert_eq!(way(block(1), &two).as_deref(), Some(expected));
        assert_eq!(way(file("/a"), &[(file("/a"), ext4(5)), (ext4(5), block(5))]), None);
        assert_eq!(way(file("/a"), &[(file("/a"), ext4(5)), (ext4(6), volume("s"))]), None);
    }

    #[test]
    fn an_nbd_client_names_its_volume() {
        let mount = Some(PathBuf::from("/run/braid/s.mount"));
        let told = |words: &str| served_to(words.replace(' ', "\0").as_bytes());
        assert_eq!(told("nbd-client -unix /run/braid/s.nbd /dev/nbd0"), mount);
        assert_eq!(told("nbdfuse m nbd+unix:///?socket=/run/braid/s.nbd"), mount);
        assert_eq!(told("nbd-client localhost /dev/nbd0"), None);
        assert_eq!(told("nbd-client -unix s.nbd"), None, "relative to a folder that is not known");
    }
}
