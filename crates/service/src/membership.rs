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
//! | nothing, or one of no such array | refused when it is opened | the device with the member's own identifier is used in its place; without one, left out by assembly |
//! | another one, of the array, whose own identifier is not recorded | | a stranger: the same |
//!
//! A disk or a file that is known by more than the kernel's number is the member, whatever identifier it was
//! given since: the kernel's md gives it another one when it takes a former member in anew.
//!
//! Deliberately absent: what members carry; and changing the record, which happens only when an operator
//! accepts the members.

use std::cell::OnceCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use braid_probe::{Named, named_devices};
use braid_stack::{File, Node, Stack};

use crate::failure::Failure;
use crate::metadata::{Metadata, block_devices, is_behind_another};
use crate::record::{Known, Record, Seen, lasting};
use crate::volume::Accepted;

/// Present places and states of the members that a record knows.
#[derive(Debug, Default)]
pub struct Membership {
    /// Members that are what they were accepted as, but for their size: what they carry is the
    /// volume's. By the paths at which they are now.
    pub recognised: Vec<PathBuf>,
    /// Members that are found by another path now: from, to, and what tells them apart.
    pub moved: Vec<(PathBuf, PathBuf, String)>,
    /// Paths of members of arrays that are nowhere now.
    absent: Vec<PathBuf>,
    /// Paths of members at which nothing is now, and which are not found at another one.
    pub lost: Vec<PathBuf>,
    /// Members of `recognised` that are known by more than the kernel's number for a device.
    known_for_sure: Vec<PathBuf>,
    /// Members of arrays that are smaller than they were, in words.
    cut: Vec<String>,
    /// Differences to the record, a line each.
    pub changed: Vec<String>,
    /// Members of those that carry something: to accept them, the operator has to name them again.
    pub to_force: Vec<PathBuf>,
}

/// Questions to the machine, which tests answer themselves.
struct World<'a> {
    /// Returns the object at a path; `None` without one, or if it cannot be examined.
    look: &'a dyn Fn(&Path) -> Option<Seen>,
    /// The path of the one disk with such an identity.
    find: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The member of an array at a path.
    member_at: &'a dyn Fn(&Path) -> Option<Accepted>,
    /// The block devices that carry a superblock of an array, by the kernel's names for them.
    members_of: &'a dyn Fn(&str) -> Vec<Accepted>,
    /// A path without its links.
    real: &'a dyn Fn(&Path) -> PathBuf,
}

impl Membership {
    /// Compares the members of `record` with what they are now, on this machine.
    pub fn of(record: &Record) -> Membership {
        let member_at = |path: &Path| {
            let metadata = Metadata::look(path).ok()?;
            let array = metadata.superblock.array_uuid.to_string();
            Some(Accepted { path: path.to_owned(), array, device: metadata.device() })
        };
        // Where many members are missing, as while they come at boot, the machine is looked over once.
        let all: OnceCell<Vec<Accepted>> = OnceCell::new();
        let members_of = |wanted: &str| {
            let all = all.get_or_init(|| {
                let devices = block_devices().unwrap_or_default();
                devices.iter().filter_map(|path| member_at(path)).collect()
            });
            let is_of = |one: &&Accepted| one.array == wanted && !is_behind_another(&one.path);
            all.iter().filter(is_of).cloned().collect()
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let world = World {
            look: &Seen::at,
            find: &find_device,
            member_at: &member_at,
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
        let all = self.accepted(record);
        let is_stranger =
            |one: &Accepted, there: &Accepted| one.is_stranger(there.device.as_deref(), &all);
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for one in all.iter().filter(|one| leaves.contains(&(one.path.clone(), true))) {
            // A device number says little of what is there now.
            match (world.member_at)(&one.path) {
                Some(there) if there.array == one.array && !is_stranger(one, &there) => {
                    found.extend(there.device);
                }
                _ if self.moved.iter().any(|(from, ..)| *from == one.path) => {}
                // A file is no block device.
                _ if record.known(&one.path).is_some_and(Known::is_file) => {}
                _ => missing.push(one),
            }
        }
        // A member is known by a link that stays, and found by the kernel's name for the device.
        let known = record.members.iter().map(|known| known.path.as_path());
        let mut taken: Vec<PathBuf> =
            known.chain(self.recognised.iter().map(PathBuf::as_path)).map(world.real).collect();
        for one in missing {
            let mut free: Vec<Accepted> = (world.members_of)(&one.array);
            let fits = |other: &Accepted| match (&one.device, &other.device) {
                (Some(own), Some(device)) => own == device,
                (None, Some(device)) => !all.iter().any(|one| one.device.as_ref() == Some(device)),
                (_, None) => true,
            };
            let is_found =
                |other: &Accepted| other.device.as_ref().is_some_and(|own| found.contains(own));
            free.retain(|other| !taken.contains(&other.path) && fits(other) && !is_found(other));
            if let Some(Accepted { path: device, device: own, .. }) = free.into_iter().next() {
                found.extend(own);
                taken.push(device.clone());
                self.recognised.push(device.clone());
                let known_by = format!("of the array {}", one.array);
                self.moved.push((one.path.clone(), device, known_by));
            }
        }
        let moved = &self.moved;
        self.lost.retain(|path| !moved.iter().any(|(from, ..)| from == path));
    }

    /// Returns the accepted identities of members with superblocks, without the identifiers of those that are known by more.
    pub fn accepted(&self, record: &Record) -> Vec<Accepted> {
        let mut all = record.accepted();
        let is_sure = |one: &&mut Accepted| self.known_for_sure.contains(&one.path);
        all.iter_mut().filter(is_sure).for_each(|one| one.device = None);
        all
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
            if at_path.is_none() {
                self.lost.push(known.path.clone());
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
        let (path, now, then) = (seen.path.display(), seen.size_bytes, known.size_bytes);
        let resized = format!("{path} has {now} bytes, and had {then}");
        match is_described {
            false if now != then => self.changed.push(resized),
            true if now < then => self.cut.push(resized),
            _ => {}
        }
        if !known.identity.starts_with("device ") {
            self.known_for_sure.push(known.path.clone());
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
    pub fn resolve(&self, stack: &Stack) -> Stack {
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

    /// Returns warnings about members that do not prevent a start.
    pub fn notes(&self) -> Vec<String> {
        let note = |(from, to, identity): &(PathBuf, PathBuf, String)| {
            format!("the member {} ({identity}) is {} now", from.display(), to.display())
        };
        self.moved.iter().map(note).chain(self.cut.iter().cloned()).collect()
    }

    /// `failure` of a start, with what is known of the members that it may come from.
    pub fn explain(&self, failure: Failure) -> Failure {
        self.cut.iter().fold(failure, Failure::note)
    }

    /// Returns the differences to the record, a line each.
    pub fn changes_in_words(&self) -> String {
        self.changed.iter().fold(String::new(), |mut text, line| {
            // Writing to a string does not fail.
            let _ = write!(text, "\n  {line}");
            text
        })
    }
}

/// The members that no superblock describes.
pub fn without_superblocks(stack: &Stack) -> Vec<PathBuf> {
    let plain = leaves(stack).into_iter().filter(|(_, is_described)| !is_described);
    plain.map(|(path, _)| path).collect()
}

/// The one disk, or partition, of this machine that has this identity.
pub fn find_device(identity: &str) -> Option<PathBuf> {
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
pub fn accept_all(record: &mut Record) {
    let paths = record.stack.member_names().into_iter().map(|(name, _)| name);
    let paths: Vec<PathBuf> = paths.collect();
    let now = |path: &PathBuf| look_at(path).or_else(|| record.known(path).cloned());
    record.members = paths.iter().filter_map(now).collect();
}

/// Adds what members are known by, where that was not recorded and the record is sure of the member.
pub fn complete(record: &mut Record) {
    let lacks = |known: &&mut Known| known.array.is_some() && known.device.is_none();
    for known in record.members.iter_mut().filter(lacks) {
        let is_it = Seen::at(&known.path).is_some_and(|seen| known.is(&seen));
        let now = look_at(&known.path).filter(|now| is_it && now.array == known.array);
        known.device = now.and_then(|now| now.device);
    }
}

/// Takes one member in as it is now, and forgets those that were removed.
pub fn accept(record: &mut Record, path: &Path) {
    record.members.retain(|known| known.path != path);
    record.members.extend(look_at(path));
    forget_removed(record);
}

/// Forgets the members that are not in the stack any more.
pub fn forget_removed(record: &mut Record) {
    let names = record.stack.member_names();
    record.members.retain(|known| names.iter().any(|(name, _)| *name == known.path));
}

/// Returns the identity of a member for the record.
fn look_at(path: &Path) -> Option<Known> {
    let known = Known::from(Seen::at(path)?);
    Some(match Metadata::look(path) {
        Ok(metadata) => known.carrying(&metadata.superblock),
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
mod tests;
