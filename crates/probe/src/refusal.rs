//! May this path become a member? Default-deny, with the reason and the next command. The table of
//! what is refused when is at [`check_member`].
//!
//! Invariants: only signatures can be forced, and only by the same path named again. Whatever cannot
//! be examined is refused.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use braid_shell::shell_path;
use braid_stack::ByteSize;

use crate::ProbeError;
use crate::duplicates::{Relation, find_duplicates};
use crate::facts::{MemberFacts, gather, open_member};
use crate::identity::{FileKind, Identity, identify};
use crate::place::Place;
use crate::signature::{Class, FileImage, Signature, scan_signatures};
use crate::usage::{Holder, find_processes, users_by_kernel};

/// The intention of the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy<'a> {
    /// The paths named again by `--force`, spelt as the member is.
    pub force: &'a [PathBuf],
    /// Nothing will be written.
    pub read_only: bool,
    /// The least useful size in bytes.
    pub min_bytes: u64,
    /// Members may share bytes: they are only read, each for itself.
    pub may_share: bool,
}

/// Why a path may not become a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// There is no such path.
    #[error("it does not exist")]
    Missing,
    /// It is not a regular file or a block device.
    #[error("it is {kind}")]
    WrongKind {
        /// Its kind.
        kind: FileKind,
    },
    /// It has too few bytes.
    #[error("it has {:#}, and at least {:#} are needed", ByteSize(*size), ByteSize(*min_bytes))]
    TooSmall {
        /// Its size in bytes.
        size: u64,
        /// The least size in bytes.
        min_bytes: u64,
    },
    /// It is in use.
    #[error("it is in use: {}", join(holders, ", "))]
    InUse {
        /// The holder that stands in the way.
        holders: Vec<Holder>,
    },
    /// It contains something that would be overwritten.
    #[error("it contains {}", join(signatures, " and "))]
    Contents {
        /// The content.
        signatures: Vec<Signature>,
    },
    /// It is the image of a virtual disk in a format of its own.
    #[error("it is a {format} image, not a raw one")]
    NotRaw {
        /// The format, such as `qcow2`.
        format: &'static str,
    },
    /// It shares bytes with another member.
    #[error("{}", describe_relation(*relation, other))]
    Shared {
        /// The other member.
        other: PathBuf,
        /// The way in which they share; "first" is this member, "second" is the other.
        relation: Relation,
    },
    /// It could not be examined, so nothing is known about it.
    #[error("it cannot be examined: {error}")]
    Unknown {
        /// The error.
        error: ProbeError,
    },
}

/// A path that may not become a member: what, why, and the next command.
#[derive(Debug)]
pub struct Refusal {
    /// The path as it was given.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
    /// The facts about it, if it could be examined.
    pub facts: Option<Box<MemberFacts>>,
    /// The use of the path; callers that know more than the default set it.
    pub purpose: Purpose,
}

/// The use of a path, on which the next command depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Its contents are overwritten.
    #[default]
    Overwritten,
    /// Its contents are served as they are: only clients of the volume change them.
    Served,
    /// It is the log of a write-back cache, which may hold writes that the origin does not have.
    Log,
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Unknown { error } => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    /// Up to two lines: what is refused and why; what it is. [`Refusal::next`] says what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is refused: {}", self.path.display(), self.reason)?;
        match (&self.facts, &self.reason) {
            // The first line has said what it contains.
            (Some(facts), Reason::Contents { .. }) => write!(f, "\n  {}", facts.describe()),
            (Some(facts), _) => write!(f, "\n  {facts}"),
            (None, _) => Ok(()),
        }
    }
}

impl Refusal {
    fn new(path: &Path, reason: Reason, facts: Option<MemberFacts>) -> Self {
        Self {
            path: path.to_owned(),
            reason,
            facts: facts.map(Box::new),
            purpose: Purpose::default(),
        }
    }

    /// Returns true if naming the path again with `--force` would help.
    #[must_use]
    pub fn is_forceable(&self) -> bool {
        matches!(self.reason, Reason::Contents { .. } | Reason::NotRaw { .. })
    }

    /// The next command, or what to change.
    #[must_use]
    pub fn next(&self) -> String {
        let path = shell_path(&self.path);
        match &self.reason {
            Reason::Missing => self.next_of_missing(&path),
            Reason::WrongKind { .. } => "name a regular file or a block device".to_owned(),
            Reason::TooSmall { min_bytes, .. } if self.is_regular_file() => {
                format!("truncate -s {min_bytes} {path}, or name a larger one")
            }
            Reason::TooSmall { size: 0, .. } => {
                format!("give it back its medium or its backing file: lsblk {path}; losetup --list")
            }
            Reason::TooSmall { .. } => "name a larger one".to_owned(),
            Reason::InUse { holders } => {
                // A mount on a loop device goes before the loop device does.
                let first = holders.iter().find(|holder| holder.is_exclusive()).or(holders.first());
                first.map_or_else(|| "stop its users".to_owned(), |holder| release(holder, &path))
            }
            Reason::Contents { .. } if self.purpose == Purpose::Served => format!(
                "a start writes nothing to it, clients of the volume may: to serve what it contains: \
                 --force {path}"
            ),
            Reason::Contents { .. } => format!("to overwrite it: --force {path}"),
            Reason::NotRaw { .. } => {
                format!(
                    "qemu-img convert -O raw {path} RAW; to take its bytes as they are: --force {path}"
                )
            }
            Reason::Shared { .. } => "name each member once".to_owned(),
            Reason::Unknown { error } if is_permission(error) => {
                "run as a user that may read it".to_owned()
            }
            Reason::Unknown { .. } => "repair the cause, then try again".to_owned(),
        }
    }

    /// Only a regular file can be made, and only where its folder is.
    fn next_of_missing(&self, path: &str) -> String {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if self.purpose == Purpose::Log {
            return format!(
                "bring it back: it may hold flushed writes that the origin does not have; to give them \
                 up: truncate -s SIZE {path}"
            );
        }
        if self.path.starts_with("/dev") {
            return "look for the device: lsblk; its names that stay: ls -l /dev/disk/by-id"
                .to_owned();
        }
        if let Some(folder) = parent.filter(|parent| !parent.exists()) {
            return format!("check the path: there is no folder {}", shell_path(folder));
        }
        format!("for a new image file: truncate -s SIZE {path}")
    }

    /// Returns true if the reason may be over in a moment: a process looks at a block device.
    fn may_pass(&self) -> bool {
        let is_device = self.facts.as_ref().is_some_and(|facts| facts.kind == FileKind::Block);
        let Reason::InUse { holders } = &self.reason else { return false };
        is_device && holders.iter().all(Holder::may_pass)
    }

    fn is_regular_file(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.kind == FileKind::Regular)
    }
}

fn is_permission(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
}

/// The command that ends a use. A use is never forced, so this is the only way on.
fn release(holder: &Holder, path: &str) -> String {
    match holder {
        Holder::Mounted { at } => format!("umount {}", shell_path(at)),
        Holder::Swap => "swapoff it (see swapon --show)".to_owned(),
        Holder::Device { name } => format!("stop /dev/{name} (see lsblk /dev/{name})"),
        Holder::Exclusive => {
            format!("find the process that holds it: lsblk {path}; fuser -v {path}")
        }
        Holder::BackingFile { device } => format!("losetup --detach {}", shell_path(device)),
        Holder::Process { pid, command, .. } => format!("end {command} (pid {pid})"),
    }
}

fn join(items: &[impl fmt::Display], separator: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

fn describe_relation(relation: Relation, other: &Path) -> String {
    let other = other.display();
    match relation {
        Relation::Same => format!("it is the same as {other}"),
        Relation::PartOfFirst => format!("{other} is a partition of it"),
        Relation::PartOfSecond => format!("it is a partition of {other}"),
    }
}

/// Time for which a process that only looks at a block device may have it open.
const PASSING: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Examines one path and says what is known about it.
///
/// | found                              | to write             | to read only            |
/// |------------------------------------|----------------------|-------------------------|
/// | missing, directory, pipe, …        | refused              | refused                 |
/// | smaller than `min_bytes`           | refused              | refused                 |
/// | mounted, swap, held by a device    | refused              | refused                 |
/// | backing file of an unused loop     | refused              | fine                    |
/// | open by a process                  | refused (1)          | fine                    |
/// | file system, md, GPT, LUKS, …      | refused, forceable   | fine                    |
/// | qcow2, vmdk, vdi, vhd              | refused, forceable   | refused, forceable (2)  |
///
/// (1) A block device only if the process can write: udev, SMART daemons and the like open block
///     devices for reading all the time.
/// (2) Read as raw bytes it would give garbage, not the disk inside.
///
/// udev's programs, `losetup` and `mdadm` open block devices for a moment, some to write: a device that a process has
/// open is looked at again for a second before it is refused.
///
/// "To read only" suits `cat` and `examine`. What is mounted or otherwise exclusively held is refused
/// there too: its bytes change while they are read, so the answer would be a mixture.
///
/// # Errors
/// A [`Refusal`]: the first row of the table that applies, or what could not be examined.
pub fn check_member(path: &Path, policy: &Policy<'_>) -> Result<MemberFacts, Refusal> {
    check_each(&[path], policy).map(|mut facts| facts.remove(0))
}

/// Examines each path as [`check_member`] does.
fn check_each(
    paths: &[impl AsRef<Path>],
    policy: &Policy<'_>,
) -> Result<Vec<MemberFacts>, Refusal> {
    let begun = Instant::now();
    loop {
        let (examined, failed) = examine(paths);
        let checked: Result<Vec<_>, _> =
            examined.into_iter().map(|facts| check(facts, policy)).collect();
        match checked.and_then(|facts| failed.map_or(Ok(facts), Err)) {
            Err(refusal) if refusal.may_pass() && begun.elapsed() < PASSING => {
                std::thread::sleep(LOOK_AGAIN);
            }
            result => return result,
        }
    }
}

/// Refuses a member by what is known about it.
fn check(facts: MemberFacts, policy: &Policy<'_>) -> Result<MemberFacts, Refusal> {
    let is_obstacle = |holder: &&Holder| blocks(holder, facts.kind, policy);
    let holders: Vec<Holder> = facts.holders.iter().filter(is_obstacle).cloned().collect();
    let reason = if facts.size < policy.min_bytes {
        Some(Reason::TooSmall { size: facts.size, min_bytes: policy.min_bytes })
    } else if !holders.is_empty() {
        Some(Reason::InUse { holders })
    } else {
        find_contents_reason(&facts, policy)
    };
    match reason {
        Some(reason) => Err(Refusal::new(&facts.path.clone(), reason, Some(facts))),
        None => Ok(facts),
    }
}

/// Examines all members and refuses the first that may not be one, or that shares bytes with an
/// earlier one. The processes of the machine are looked into once for all members.
///
/// # Errors
/// A [`Refusal`].
pub fn check_members(paths: &[PathBuf], policy: &Policy<'_>) -> Result<Vec<MemberFacts>, Refusal> {
    let facts = check_each(paths, policy)?;
    if policy.may_share { Ok(facts) } else { apart(paths, facts) }
}

/// Checks that no two of `paths`, each of which was checked before, share bytes.
///
/// # Errors
/// A [`Refusal`] of the first that shares bytes with an earlier one.
pub fn check_apart(paths: &[PathBuf]) -> Result<(), Refusal> {
    apart(paths, Vec::new()).map(drop)
}

/// Refuses the first of `paths` that shares bytes with an earlier one. `facts` are about those that are known.
fn apart(paths: &[PathBuf], facts: Vec<MemberFacts>) -> Result<Vec<MemberFacts>, Refusal> {
    let duplicates = match find_duplicates(paths) {
        Ok(duplicates) => duplicates,
        Err(error) => {
            let path = paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
            return Err(Refusal::new(path, Reason::Unknown { error }, None));
        }
    };
    let Some(duplicate) = duplicates.into_iter().next() else { return Ok(facts) };
    // A duplicate is told from its second path, the one that a person would take away.
    let relation = match duplicate.relation {
        Relation::Same => Relation::Same,
        Relation::PartOfFirst => Relation::PartOfSecond,
        Relation::PartOfSecond => Relation::PartOfFirst,
    };
    let second = facts.into_iter().rfind(|facts| facts.path == duplicate.second);
    Err(Refusal::new(
        &duplicate.second,
        Reason::Shared { other: duplicate.first, relation },
        second,
    ))
}

/// Facts about the paths in turn, up to the first that cannot be examined, and the refusal of that one.
fn examine(paths: &[impl AsRef<Path>]) -> (Vec<MemberFacts>, Option<Refusal>) {
    let (mut all, mut usages, mut failed) = (Vec::new(), Vec::new(), None);
    for path in paths.iter().map(AsRef::as_ref) {
        let unknown = |error| Refusal::new(path, Reason::Unknown { error }, None);
        let looked = look_at(path).and_then(|facts| {
            users_by_kernel(path, facts.identity).map_err(unknown).map(|usage| (facts, usage))
        });
        match looked {
            Ok((facts, usage)) => {
                all.push(facts);
                usages.push(usage);
            }
            Err(refusal) => {
                failed = Some(refusal);
                break;
            }
        }
    }
    let identities: Vec<Identity> = all.iter().map(|facts| facts.identity).collect();
    if let Err(error) = find_processes(&identities, &mut usages)
        && let Some(first) = all.first()
    {
        let refusal = Refusal::new(&first.path, Reason::Unknown { error }, None);
        return (Vec::new(), Some(refusal));
    }
    for (facts, usage) in all.iter_mut().zip(usages) {
        facts.holders = usage.holders;
    }
    (all, failed)
}

/// Returns the content at the path, without its users: those are to be asked of every process.
///
/// # Errors
/// A [`Refusal`]: nothing, or nothing that can be a member, is there, or it cannot be examined.
pub fn look_at(path: &Path) -> Result<MemberFacts, Refusal> {
    let refuse = |reason| Refusal::new(path, reason, None);
    let place = match Place::of(path) {
        Ok(place) => place,
        Err(ProbeError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(refuse(Reason::Missing));
        }
        Err(error) => return Err(refuse(Reason::Unknown { error })),
    };
    let (kind, identity) = match identify(path) {
        Ok(identified) => identified,
        Err(ProbeError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(refuse(Reason::Missing));
        }
        Err(error) => return Err(refuse(Reason::Unknown { error })),
    };
    if !matches!(kind, FileKind::Regular | FileKind::Block) {
        return Err(refuse(Reason::WrongKind { kind }));
    }
    let look = || -> Result<MemberFacts, ProbeError> {
        let mut file = open_member(&place.path, identity)?;
        let mut facts = gather(path, kind, identity, &mut file)?;
        facts.size = place.size_in(facts.size).map_err(ProbeError::io("use", path))?;
        facts.partition = place.partition.or(facts.partition);
        let image = FileImage { file: &file, start: place.start, size: facts.size };
        facts.signatures = scan_signatures(&image).map_err(ProbeError::io("read", path))?;
        Ok(facts)
    };
    look().map_err(|error| refuse(Reason::Unknown { error }))
}

fn blocks(holder: &Holder, kind: FileKind, policy: &Policy<'_>) -> bool {
    match holder {
        _ if policy.read_only => holder.is_exclusive(),
        Holder::Process { can_write, .. } => *can_write || kind == FileKind::Regular,
        _ => true,
    }
}

fn find_contents_reason(facts: &MemberFacts, policy: &Policy<'_>) -> Option<Reason> {
    if policy.force.contains(&facts.path) {
        return None;
    }
    let image = facts.signatures.iter().find(|signature| signature.class == Class::DiskImage);
    if let Some(signature) = image {
        return Some(Reason::NotRaw { format: signature.name });
    }
    if policy.read_only || facts.signatures.is_empty() {
        return None;
    }
    Some(Reason::Contents { signatures: facts.signatures.clone() })
}
