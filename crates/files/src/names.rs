//! Names of inodes: the entries of all directories are looked at once; then the way up to the root is
//! followed by each directory's `..`.

use std::collections::{BTreeMap, BTreeSet};

/// Names of one file that are kept.
const NAMES: usize = 16;
/// Directories on the way to the root: more than a path can have in 4096 bytes.
const DEPTH: usize = 2048;

/// The names of an inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Paths from the root of the file system, bytes as they are there: `/a/b`. The beginning of one whose
    /// directory has no name is that directory's inode: `#12/b`. Empty if there is no name.
    pub paths: Vec<Vec<u8>>,
    /// Names that were not kept.
    pub more: u64,
    /// In words, what the inode is if not a file with a name.
    pub what: Option<&'static str>,
}

/// The directories of a file system.
pub(crate) trait Directories {
    fn root(&self) -> u64;

    /// Calls `entry` with directory, name and inode for all entries of all directories.
    fn all_entries(&mut self, entry: &mut dyn FnMut(u64, &[u8], u64));

    /// The same for one directory.
    fn entries(&mut self, directory: u64, entry: &mut dyn FnMut(&[u8], u64));

    /// A description of an inode without a name.
    fn what(&mut self, inode: u64) -> Option<&'static str>;

    /// Adds a note.
    fn note(&mut self, note: String);
}

/// An entry of a directory.
type Entry = (u64, Vec<u8>);

/// The names of `inodes`, in no more than `most` bytes.
pub(crate) fn of<D: Directories + ?Sized>(
    system: &mut D,
    inodes: &BTreeSet<u64>,
    most: usize,
) -> BTreeMap<u64, Names> {
    let mut room = most;
    let mut found: BTreeMap<u64, (Vec<Entry>, u64)> =
        inodes.iter().map(|inode| (*inode, Default::default())).collect();
    let is_named = inodes.iter().any(|inode| *inode != system.root());
    if is_named {
        system.all_entries(&mut |directory, name, inode| {
            let Some((entries, more)) = found.get_mut(&inode) else { return };
            if name == b"." || name == b".." {
                return;
            }
            match room.checked_sub(name.len() + 64).filter(|_| entries.len() < NAMES) {
                Some(rest) => {
                    room = rest;
                    entries.push((directory, name.to_vec()));
                }
                None => {
                    *more += 1;
                    if entries.len() < NAMES {
                        room = 0;
                    }
                }
            }
        });
    }
    let parents = found.values().flat_map(|(entries, _)| entries).map(|(parent, _)| *parent);
    let directories = directories(system, parents.collect(), &mut room);
    let root = system.root();
    let mut names = BTreeMap::new();
    for (inode, (entries, more)) in found {
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for (parent, name) in &entries {
            let mut path = path(&directories, root, *parent);
            path.push(b'/');
            path.extend_from_slice(name);
            paths.push(path);
        }
        if inode == root {
            paths = vec![b"/".to_vec()];
        }
        paths.sort();
        let what = if paths.is_empty() { system.what(inode) } else { None };
        names.insert(inode, Names { paths, more, what });
    }
    if room == 0 {
        system.note("there are more names than are kept: some paths are not told".to_owned());
    }
    names
}

/// For each of `wanted`, and the directories above: its parent and its name there.
fn directories<D: Directories + ?Sized>(
    system: &mut D,
    mut wanted: BTreeSet<u64>,
    room: &mut usize,
) -> BTreeMap<u64, Entry> {
    let mut known: BTreeMap<u64, Entry> = BTreeMap::new();
    let mut asked = BTreeSet::from([system.root()]);
    while !wanted.is_empty() {
        let mut children: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for directory in wanted.iter().filter(|directory| !asked.contains(directory)) {
            let mut parent = None;
            system.entries(*directory, &mut |name, inode| {
                if name == b".." {
                    parent = Some(inode);
                }
            });
            if let Some(parent) = parent {
                children.entry(parent).or_default().insert(*directory);
            }
        }
        asked.append(&mut wanted);
        for (parent, children) in children {
            system.entries(parent, &mut |name, inode| {
                let rest = room.checked_sub(name.len() + 64);
                if name != b".."
                    && children.contains(&inode)
                    && let Some(rest) = rest
                {
                    *room = rest;
                    known.insert(inode, (parent, name.to_vec()));
                }
            });
            wanted.insert(parent);
        }
        wanted.retain(|directory| !asked.contains(directory));
    }
    known
}

/// The path of a directory, without a slash at its end.
fn path(directories: &BTreeMap<u64, Entry>, root: u64, directory: u64) -> Vec<u8> {
    let mut names: Vec<&[u8]> = Vec::new();
    let mut at = directory;
    while at != root && names.len() < DEPTH {
        let Some((parent, name)) = directories.get(&at) else { break };
        names.push(name);
        at = *parent;
    }
    let mut path = if at == root { Vec::new() } else { format!("#{at}").into_bytes() };
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    path
}
