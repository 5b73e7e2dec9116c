//! Holding a volume to the members that its record knows.
//!
//! A stack without superblocks leaves no mark on its members: of two that changed places, of one
//! that was cut off, nothing on them tells. What tells is the record, so nothing is started for
//! writing on members that are not what it says.
//!
//! | the path of a member leads to | without superblocks | in an `md(…)` level |
//! |---|---|---|
//! | the same device or file, of the same size | used | used |
//! | the same, of another size | refused | used: the superblock says how much |
//! | another one, and a disk with the right serial number is elsewhere | that one is used | so, too |
//! | another one | refused | used if its superblock is of the array |
//! | nothing, or one of no such array | refused by whoever opens it | another device with a superblock of the array is used in its place; without one, left out by whoever assembles it |
//!
//! Deliberately absent: what members carry; and changing the record, which happens only where
//! somebody says that these are the members now.

use std::cell::OnceCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use braid_probe::{Named, named_devices};
use braid_stack::{File, Node, Stack};

use crate::metadata::{Metadata, block_devices, is_behind_another};
use crate::record::{Known, Record, Seen, lasting};

/// What became of the members that a record knows.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// Members that are what they were accepted as, but for their size: what they carry is the
    /// volume's. By the paths at which they are now.
    pub(crate) recognised: Vec<PathBuf>,
    /// Members that are found by another path now: from, to, and what tells them apart.
    pub(crate) moved: Vec<(PathBuf, PathBuf, String)>,
    /// Paths of members of arrays that are nowhere now.
    absent: Vec<PathBuf>,
    /// What is not as the record says, a line each.
    pub(crate) changed: Vec<String>,
    /// Members of those that carry something: whoever accepts them has to name them again.
    pub(crate) to_force: Vec<PathBuf>,
}

/// How the machine is asked, so that it can be made up.
struct World<'a> {
    /// What a path leads to; none if there is nothing, or nothing that can be looked at.
    look: &'a dyn Fn(&Path) -> Option<Seen>,
    /// The path of the one disk with such an identity.
    find: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The array that what is at a path is a member of.
    array_at: &'a dyn Fn(&Path) -> Option<String>,
    /// The block devices that carry a superblock of an array, by the kernel's names for them.
    members_of: &'a dyn Fn(&str) -> Vec<PathBuf>,
    /// A path without its links.
    real: &'a dyn Fn(&Path) -> PathBuf,
}

impl Membership {
    /// Compares the members of `record` with what they are now, on this machine.
    pub(crate) fn of(record: &Record) -> Membership {
        let array = |metadata: Metadata| metadata.superblock.array_uuid.to_string();
        let array_at = |path: &Path| Metadata::read(path).ok().map(array);
        // Where many members are missing, as while they come at boot, the machine is looked over once.
        let all: OnceCell<Vec<(PathBuf, String)>> = OnceCell::new();
        let members_of = |wanted: &str| {
            let all = all.get_or_init(|| {
                let devices = block_devices().unwrap_or_default().into_iter();
                devices.filter_map(|path| array_at(&path).map(|uuid| (path, uuid))).collect()
            });
            let of = all.iter().filter(|(path, uuid)| uuid == wanted && !is_behind_another(path));
            of.map(|(path, _)| path.clone()).collect()
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let world = World {
            look: &Seen::at,
            find: &find_device,
            array_at: &array_at,
            members_of: &members_of,
            real: &real,
        };
        Membership::on(record, &world)
    }

    fn on(record: &Record, world: &World<'_>) -> Membership {
        let mut membership = Membership::default();
        let leaves = leaves(&record.stack);
        for (path, is_described) in &leaves {
            match record.known(path) {
                Some(known) => membership.compare(record, known, *is_described, world),
                // What has never been up has nothing to be held to.
                None if record.members.is_empty() || *is_described => {}
                None => membership.changed.push(format!(
                    "{} is in the stack, and was not among the members when it was last up",
                    path.display()
                )),
            }
        }
        membership.compare_order(record, &leaves);
        membership.search(record, &leaves, world);
        membership
    }

    /// Members with superblocks whose disks have no serial number: by what they carry.
    fn search(&mut self, record: &Record, leaves: &[(PathBuf, bool)], world: &World<'_>) {
        let mut arrays = record.arrays();
        arrays.retain(|(path, array)| {
            let is_described = leaves.contains(&(path.clone(), true));
            // A device number says little of what is there now.
            let is_found = self.moved.iter().any(|(from, ..)| from == path)
                || (world.array_at)(path).as_ref() == Some(array);
            is_described && !is_found
        });
        // A member is known by a link that stays, and found by the kernel's name for the device.
        let known = record.members.iter().map(|known| known.path.as_path());
        let mut taken: Vec<PathBuf> =
            known.chain(self.recognised.iter().map(PathBuf::as_path)).map(world.real).collect();
        for (path, array) in arrays {
            let is_free = |device: &PathBuf| !taken.contains(device);
            if let Some(device) = (world.members_of)(&array).into_iter().find(is_free) {
                taken.push(device.clone());
                self.recognised.push(device.clone());
                self.moved.push((path, device, format!("of the array {array}")));
            }
        }
    }

    fn compare(&mut self, record: &Record, known: &Known, is_described: bool, world: &World<'_>) {
        let at_path = (world.look)(&known.path);
        let is_it = |seen: &Seen| known.is(seen);
        let elsewhere = || {
            let path = (world.find)(known.lasting()?)?;
            (world.look)(&path).filter(is_it)
        };
        let Some(seen) = at_path.clone().filter(is_it).or_else(elsewhere) else {
            if is_described {
                self.absent.push(known.path.clone());
            }
            if let (Some(other), false) = (at_path, is_described) {
                self.changed.push(told_apart(record, known, &other));
                self.to_force.extend(Some(other.path).filter(|_| other.carries_something));
            }
            return;
        };
        if seen.path != known.path {
            self.moved.push((known.path.clone(), seen.path.clone(), known.identity.clone()));
        }
        if seen.size_bytes != known.size_bytes && !is_described {
            self.changed.push(format!(
                "{} has {} bytes, and had {}",
                seen.path.display(),
                seen.size_bytes,
                known.size_bytes
            ));
        }
        self.recognised.push(seen.path);
    }

    /// Members of one level must be in the order in which they were accepted.
    fn compare_order(&mut self, record: &Record, leaves: &[(PathBuf, bool)]) {
        let plain = |path: &&Path| leaves.iter().any(|(leaf, md)| leaf == path && !md);
        let then: Vec<&Path> =
            record.members.iter().map(|known| known.path.as_path()).filter(plain).collect();
        let now: Vec<&Path> = leaves
            .iter()
            .filter(|(path, is_described)| !is_described && record.known(path).is_some())
            .map(|(path, _)| path.as_path())
            .collect();
        if then != now {
            let list = |paths: &[&Path]| {
                paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
            };
            self.changed.push(format!(
                "the members are in the order {}, and were in the order {}",
                list(&now),
                list(&then)
            ));
        }
    }

    /// `stack` with its members at the paths at which they are now.
    pub(crate) fn resolve(&self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        self.move_members(&mut stack);
        stack
    }

    fn move_members(&self, stack: &mut Stack) {
        if let Node::Md(array) = &mut stack.node {
            // Another member may have its path now, which would be there twice.
            let is_taken = |path: &Path| self.moved.iter().any(|(_, to, _)| to == path);
            let is_absent = |path: &Path| self.absent.iter().any(|absent| absent == path);
            array.members.retain(|member| match &member.node {
                Node::File(file) => !is_absent(&file.name()) || !is_taken(&file.name()),
                _ => true,
            });
        }
        if let Node::File(file) = &mut stack.node {
            let name = file.name();
            let to = self.moved.iter().find(|(from, ..)| *from == name);
            // A path that is no text stays as it is: the stack could not say it.
            if let Some(to) = to.and_then(|(_, to, _)| to.to_str()) {
                *file = File::called(to);
            }
        }
        stack.members_mut().iter_mut().for_each(|member| self.move_members(member));
    }

    /// What is to be known though nothing stands in the way.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |(from, to, identity): &(PathBuf, PathBuf, String)| {
            format!("the member {} ({identity}) is {} now", from.display(), to.display())
        };
        self.moved.iter().map(note).collect()
    }

    /// What is not as it was, a line each.
    pub(crate) fn changes_in_words(&self) -> String {
        self.changed.iter().fold(String::new(), |mut text, line| {
            // Writing to a string does not fail.
            let _ = write!(text, "\n  {line}");
            text
        })
    }
}

/// The members that no superblock describes.
pub(crate) fn without_superblocks(stack: &Stack) -> Vec<PathBuf> {
    let plain = leaves(stack).into_iter().filter(|(_, is_described)| !is_described);
    plain.map(|(path, _)| path).collect()
}

/// The one disk, or partition, of this machine that has this identity.
pub(crate) fn find_device(identity: &str) -> Option<PathBuf> {
    let has = |one: &Named| {
        let all = lasting(one.wwn.as_deref(), one.serial.as_deref(), one.partition);
        all.iter().any(|own| own == identity)
    };
    let mut found = named_devices().ok()?.into_iter().filter(has);
    let first = found.next()?;
    // Two slots of a card reader have one serial number.
    found.next().is_none().then_some(first.path)
}

/// Takes the members of the stack in as they are now. What cannot be looked at stays known as it
/// was.
pub(crate) fn accept_all(record: &mut Record) {
    let paths = record.stack.member_names().into_iter().map(|(name, _)| name);
    let paths: Vec<PathBuf> = paths.collect();
    let now = |path: &PathBuf| look_at(path).or_else(|| record.known(path).cloned());
    record.members = paths.iter().filter_map(now).collect();
}

/// Takes one member in as it is now, and forgets those that are not in the stack any more.
pub(crate) fn accept(record: &mut Record, path: &Path) {
    record.members.retain(|known| known.path != path);
    record.members.extend(look_at(path));
    let names = record.stack.member_names();
    record.members.retain(|known| names.iter().any(|(name, _)| *name == known.path));
}

/// What a member is to be known by.
fn look_at(path: &Path) -> Option<Known> {
    let known = Known::from(Seen::at(path)?);
    Some(match Metadata::read(path) {
        Ok(metadata) => known.of_array(metadata.superblock.array_uuid),
        Err(_) => known,
    })
}

/// Another file or device lies where a member was: which, if the record knows.
fn told_apart(record: &Record, known: &Known, other: &Seen) -> String {
    let path = known.path.display();
    let was = record.members.iter().find(|one| one.path != known.path && one.is(other));
    match was {
        Some(was) => format!("{path} is what {} was ({})", was.path.display(), was.identity),
        None => format!(
            "{path} is not the one that it was: it is {}, and was {}",
            other.identity(),
            known.identity
        ),
    }
}

/// The paths of a stack, from left to right, and whether their superblocks describe them.
fn leaves(stack: &Stack) -> Vec<(PathBuf, bool)> {
    let mut all = stack.member_names();
    // Two parts of one file are one member.
    let mut seen = std::collections::HashSet::new();
    all.retain(|(path, _)| seen.insert(path.clone()));
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SIZE: u64 = 1 << 20;

    fn seen(path: &str, identity: &str, size_bytes: u64) -> Seen {
        Seen {
            path: path.into(),
            identities: vec![identity.to_owned()],
            size_bytes,
            carries_something: false,
        }
    }

    fn record(stack: &str, members: &[(&str, &str)]) -> Record {
        let mut record = Record::new(Stack::parse(stack).expect("a stack"));
        record.members = members
            .iter()
            .map(|(path, identity)| Known {
                path: path.into(),
                identity: (*identity).to_owned(),
                size_bytes: SIZE,
                array: None,
            })
            .collect();
        record
    }

    /// What becomes of `record` on a machine with these paths: identity and size.
    fn on(record: &Record, machine: &[(&str, &str, u64)]) -> Membership {
        let paths: BTreeMap<&str, Seen> = machine
            .iter()
            .map(|(path, identity, size)| (*path, seen(path, identity, *size)))
            .collect();
        let look = |path: &Path| paths.get(path.to_str()?).cloned();
        let find = |identity: &str| {
            let mut found = paths.values().filter(|one| one.identities[0] == identity);
            found.next().map(|one| one.path.clone())
        };
        let array_at = |path: &Path| {
            paths.get(path.to_str()?)?.identities[0].strip_prefix("md ").map(str::to_owned)
        };
        let members_of = |array: &str| {
            let is_of = |path: &&PathBuf| array_at(path).as_deref() == Some(array);
            let is_link = |path: &&&str| path.starts_with("/dev/by-id");
            let all: Vec<PathBuf> =
                paths.keys().filter(|path| !is_link(path)).map(PathBuf::from).collect();
            all.iter().filter(is_of).cloned().collect()
        };
        let real = |path: &Path| match path.strip_prefix("/dev/by-id") {
            Ok(name) => Path::new("/dev").join(name),
            Err(_) => path.to_owned(),
        };
        let world = World {
            look: &look,
            find: &find,
            array_at: &array_at,
            members_of: &members_of,
            real: &real,
        };
        Membership::on(record, &world)
    }

    /// One of two members is gone: the other one, found by the kernel's name, does not stand for it.
    #[test]
    fn a_member_that_is_known_by_a_link_is_a_member_once() {
        let paths = ["/dev/by-id/sda", "/dev/by-id/sdb"];
        let members = [(paths[0], "md 1"), (paths[1], "serial B")];
        let mut record = record("md(/dev/by-id/sda, /dev/by-id/sdb)", &members);
        record.members.iter_mut().for_each(|known| known.array = Some("1".to_owned()));
        let there =
            [(paths[0], "md 1", SIZE), ("/dev/sda", "md 1", SIZE), ("/dev/sdc", "md 1", SIZE)];
        let now = on(&record, &there[..2]);
        assert!(now.moved.is_empty(), "{now:?}");
        assert_eq!(now.resolve(&record.stack), record.stack);
        // Another one does.
        let now = on(&record, &there);
        assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/by-id/sda, /dev/sdc)");
    }

    #[test]
    fn disks_without_serial_numbers_are_found_by_their_superblocks() {
        let mut record = record("md(/dev/sda, /dev/sdb)", &[("/dev/sda", "x"), ("/dev/sdb", "y")]);
        record.members.iter_mut().for_each(|known| known.array = Some("1".to_owned()));
        // The names went on by one; there is a stranger where the first was.
        let machine = [
            ("/dev/sda", "serial S", SIZE),
            ("/dev/sdb", "md 1", SIZE),
            ("/dev/sdc", "md 1", SIZE),
            ("/dev/sdd", "md 2", SIZE),
        ];
        let now = on(&record, &machine);
        assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/sdc, /dev/sdb)");
        assert_eq!(now.notes(), ["the member /dev/sda (of the array 1) is /dev/sdc now"]);
        assert_eq!(now.recognised, [PathBuf::from("/dev/sdc")]);
        // Both are gone, and one is there: it stands for one of them.
        let now = on(&record, &machine[2..]);
        assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/sdc, /dev/sdb)");
        assert!(on(&record, &machine[3..]).moved.is_empty());
    }

    const DISKS: [(&str, &str); 2] = [("/dev/sdb", "serial B"), ("/dev/sdc", "wwn C")];

    #[test]
    fn what_is_as_it_was_is_recognised() {
        let record = record("raid0(/dev/sdb, /dev/sdc)", &DISKS);
        let now = on(&record, &[("/dev/sdb", "serial B", SIZE), ("/dev/sdc", "wwn C", SIZE)]);
        assert_eq!((now.recognised.len(), now.moved.len(), now.changed.len()), (2, 0, 0));
        assert_eq!(now.resolve(&record.stack), record.stack);
    }

    #[test]
    fn disks_that_changed_places_are_found_by_their_serial_numbers() {
        let record = record("raid0(/dev/sdb, /dev/sdc)", &DISKS);
        let now = on(&record, &[("/dev/sdc", "serial B", SIZE), ("/dev/sdb", "wwn C", SIZE)]);
        assert_eq!(now.changed, [""; 0]);
        assert_eq!(now.resolve(&record.stack).to_string(), "raid0(chunk=512K, /dev/sdc, /dev/sdb)");
        assert_eq!(now.notes()[0], "the member /dev/sdb (serial B) is /dev/sdc now");
    }

    /// The first of two disks is gone, and the second has its name since.
    #[test]
    fn a_disk_that_took_the_name_of_one_that_is_gone_is_a_member_once() {
        let record = record("md(/dev/sdb, /dev/sdc)", &DISKS);
        let now = on(&record, &[("/dev/sdb", "wwn C", SIZE)]);
        assert_eq!(now.changed, [""; 0]);
        assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/sdb)");
        let now = on(&record, &[("/dev/sdc", "wwn C", SIZE)]);
        let stays = "it is left out by whoever assembles the array";
        assert_eq!(now.resolve(&record.stack), record.stack, "{stays}");
    }

    #[test]
    fn a_disk_that_is_elsewhere_must_have_its_size() {
        let record = record("raid0(/dev/sdb, /dev/sdc)", &DISKS);
        let now = on(&record, &[("/dev/sdd", "serial B", 2 * SIZE), ("/dev/sdc", "wwn C", SIZE)]);
        assert_eq!(now.changed, ["/dev/sdd has 2097152 bytes, and had 1048576"]);
    }

    #[test]
    fn files_that_changed_places_are_told() {
        let members = [("/a", "inode 1"), ("/b", "inode 2")];
        let record = record("raid0(/a, /b)", &members);
        let now = on(&record, &[("/a", "inode 2", SIZE), ("/b", "inode 1", SIZE)]);
        assert_eq!(now.changed, ["/a is what /b was (inode 2)", "/b is what /a was (inode 1)"]);
        let now = on(&record, &[("/a", "inode 1", SIZE), ("/b", "inode 7", SIZE)]);
        let expected = "/b is not the one that it was: it is inode 7, and was inode 2";
        assert_eq!(now.changed, [expected]);
        let now = on(&record, &[("/a", "inode 1", SIZE), ("/b", "inode 2", SIZE / 2)]);
        assert_eq!(now.changed, ["/b has 524288 bytes, and had 1048576"]);
    }

    #[test]
    fn the_stack_is_held_to_the_order_and_to_the_members() {
        let members = [("/a", "inode 1"), ("/b", "inode 2")];
        let machine = [("/a", "inode 1", SIZE), ("/b", "inode 2", SIZE), ("/c", "inode 3", SIZE)];
        let now = on(&record("raid0(/b, /a)", &members), &machine);
        let expected = "the members are in the order /b, /a, and were in the order /a, /b";
        assert_eq!(now.changed, [expected]);
        let now = on(&record("raid0(/a, /c)", &members), &machine);
        assert!(now.changed[0].starts_with("/c is in the stack, and was not"), "{now:?}");
        assert!(on(&record("raid0(/a, /c)", &[]), &machine).changed.is_empty(), "nothing is known");
    }

    #[test]
    fn superblocks_speak_for_themselves() {
        let members = [("/a", "inode 1"), ("/b", "inode 2")];
        let record = record("md(/b, /a, /c)", &members);
        let now = on(&record, &[("/a", "inode 2", SIZE), ("/b", "inode 9", SIZE)]);
        assert_eq!(now.changed, [""; 0]);
        assert_eq!(now.recognised.len(), 0);
    }
}
