//! Which members of a stack may be used, and which ones an array can be asked to do without.
//!
//! ```text
//!   all paths ──probe──▶ free, raw, its own contents ──▶ used
//!                 │
//!                 ├─ in use, or named twice ─────────────▶ refused, always
//!                 └─ missing, blank, cut off, unreadable
//!                        ├─ of a level without superblocks ──▶ refused: nothing says what it had
//!                        └─ of an `md(…)` level ─────────────▶ unusable: assembly decides
//! ```
//!
//! Invariant: a member that another program uses is never taken for one that is missing: its array
//! would go on twice.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use braid_device::Access;
use braid_member::Named;
use braid_probe::{
    Class, Holder, MemberFacts, Policy, ProbeError, Purpose, Reason, Refusal, Signature,
    check_apart, check_members, look_at,
};
use braid_stack::{Node, Stack};

use super::options::{OpenOptions, Unusable};
use crate::metadata::{Metadata, MetadataError};

/// Examines the members of `stack`; what `accepted` ones carry is no obstacle. Answers those that
/// their arrays have to do without.
///
/// # Errors
/// The refusal of a member that stands in the way of all.
pub fn admit(
    stack: &Stack,
    accepted: &[PathBuf],
    options: &OpenOptions,
) -> Result<Vec<Unusable>, Box<Refusal>> {
    let mut accepted = accepted.to_vec();
    accepted.extend(md_members(stack).into_iter().flatten().filter(|path| is_own(path)));
    accepted.extend(logs(stack).into_iter().filter(|path| is_log(path)));
    let is_read = options.read_only;
    let policy =
        Policy { force: &accepted, read_only: is_read, min_bytes: 4096, may_share: is_read };
    let of = |is_written: bool| {
        let files = stack.files().into_iter().filter(|used| used.is_written == is_written);
        files.map(|used| used.name()).collect::<Vec<PathBuf>>()
    };
    let (mut written, mut read) = (of(true), of(false));
    let mut unusable = admit_paths(stack, &mut written, &policy, options)?;
    if !read.is_empty() {
        let policy = Policy { read_only: true, may_share: true, ..policy };
        unusable.extend(admit_paths(stack, &mut read, &policy, options)?);
        if !is_read {
            // A member that is only read may share bytes with another such one, not with one that is written.
            let beside = |path: PathBuf| written.iter().cloned().chain([path]).collect::<Vec<_>>();
            read.into_iter().try_for_each(|path| check_apart(&beside(path)))?;
        }
    }
    if !is_read {
        stack.remotes().into_iter().try_for_each(|(one, is_written)| match is_written {
            true => admit_remote(stack, one, &accepted),
            false => Ok(()),
        })?;
    }
    Ok(unusable)
}

/// Examines a remote member without a superblock that is to be written. One that cannot be reached is told of when it
/// is opened.
fn admit_remote(stack: &Stack, one: &Stack, accepted: &[PathBuf]) -> Result<(), Box<Refusal>> {
    let Some(name) = path_of(one).filter(|name| !accepted.contains(name)) else { return Ok(()) };
    let described = md_members(stack).iter().any(|array| array.contains(&name));
    let purpose = purpose_of(stack, &name);
    if described || purpose == Purpose::Served {
        return Ok(());
    }
    let Ok(remote) = Named::open(&name, Access::ReadOnly) else { return Ok(()) };
    let (path, facts) = (name, None);
    let reason = match remote.remote_signatures() {
        Ok(signatures) if signatures.is_empty() => return Ok(()),
        Ok(signatures) => Reason::Contents { signatures },
        Err(source) => {
            let (action, path) = ("read", path.clone());
            Reason::Unknown { error: ProbeError::Io { action, path, source } }
        }
    };
    Err(Box::new(Refusal { path, reason, facts, purpose }))
}

/// Examines `paths`, members of `stack`, and takes those out that their arrays have to do without. Answers these.
fn admit_paths(
    stack: &Stack,
    paths: &mut Vec<PathBuf>,
    policy: &Policy<'_>,
    options: &OpenOptions,
) -> Result<Vec<Unusable>, Box<Refusal>> {
    let mut described = md_members(stack);
    described.iter_mut().for_each(|array| array.retain(|path| paths.contains(path)));
    let mut unusable = Vec::new();
    loop {
        let refusal = match check_patiently(paths, policy) {
            Ok(_) => {
                if policy.may_share {
                    // Two names of a member that a superblock describes are one member.
                    described.iter().try_for_each(|array| check_apart(array))?;
                }
                return Ok(unusable);
            }
            Err(refusal) => Refusal { purpose: purpose_of(stack, &refusal.path), ..refusal },
        };
        let array = described.iter_mut().find(|array| array.contains(&refusal.path));
        // A level of which nothing is left is told what became of its first member.
        let Some(array) = array.filter(|array| array.len() > 1) else {
            return Err(Box::new(refusal));
        };
        if !can_be_missed(&refusal, options.degraded) {
            return Err(Box::new(refusal));
        }
        array.retain(|path| *path != refusal.path);
        paths.retain(|path| *path != refusal.path);
        unusable.push(Unusable { why: refusal.reason.to_string(), path: refusal.path });
    }
}

/// Time limit for a process that has been killed to close its files.
const DYING: Duration = Duration::from_secs(2);
/// Time between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// Examines all members as [`check_members`] does, and waits for processes that have one open and
/// are about to end.
///
/// # Errors
/// A refusal.
pub fn check_patiently(
    paths: &[PathBuf],
    policy: &Policy<'_>,
) -> Result<Vec<MemberFacts>, Refusal> {
    let deadline = Instant::now() + DYING;
    loop {
        match check_members(paths, policy) {
            Err(refusal) if is_ending(&refusal.reason) && Instant::now() < deadline => {
                std::thread::sleep(RETRY);
            }
            result => return result,
        }
    }
}

/// Returns true if only processes that have been killed use the member.
fn is_ending(reason: &Reason) -> bool {
    let ends = |holder: &Holder| match holder {
        Holder::Process { pid, .. } => braid_control::is_ending(*pid),
        _ => false,
    };
    matches!(reason, Reason::InUse { holders } if holders.iter().all(ends))
}

/// Returns true if a member with superblocks that was refused may be treated as missing.
fn can_be_missed(refusal: &Refusal, degraded: bool) -> bool {
    match &refusal.reason {
        Reason::Missing
        | Reason::WrongKind { .. }
        | Reason::TooSmall { .. }
        | Reason::Unknown { .. } => true,
        // It carries something beside what the array put there: an operator has to say that it is not
        // needed any more, unless there is nothing of the array on it.
        Reason::Contents { .. } | Reason::NotRaw { .. } => {
            degraded || Metadata::look(&refusal.path).is_err()
        }
        _ => false,
    }
}

/// The members of each `md(…)` level.
fn md_members(stack: &Stack) -> Vec<Vec<PathBuf>> {
    let mut all = Vec::new();
    if let Node::Md(md) = &stack.node {
        all.push(md.members.iter().filter_map(path_of).collect());
    }
    all.extend(stack.members().iter().flat_map(md_members));
    all
}

/// The files and devices that are logs of caches.
pub fn logs(stack: &Stack) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Node::Cache(cache) = &stack.node
        && let Some(log) = cache.log()
    {
        all.extend(path_of(log));
    }
    all.extend(stack.members().iter().flat_map(logs));
    all
}

/// The use of `path` in `stack`. A level with redundancy writes to its members at a start.
fn purpose_of(stack: &Stack, path: &Path) -> Purpose {
    let is_it = |member: &Stack| path_of(member).as_deref() == Some(path);
    if logs(stack).iter().any(|log| log == path) {
        return Purpose::Log;
    }
    let passes_on = matches!(
        stack.node,
        Node::Linear(_)
            | Node::Raid0(_)
            | Node::Cache(_)
            | Node::Model(_)
            | Node::File(_)
            | Node::Nbd(_)
            | Node::Rbd(_)
            | Node::Slice(_)
    );
    let is_below = |member: &Stack| purpose_of(member, path) == Purpose::Served;
    match passes_on && (is_it(stack) || stack.members().iter().any(is_below)) {
        true => Purpose::Served,
        false => Purpose::Overwritten,
    }
}

/// Returns true if a path carries nothing but a cache's log, which is judged when it is opened.
pub(super) fn is_log(path: &Path) -> bool {
    let found = signatures(path);
    !found.is_empty() && found.iter().all(|one| one.name == braid_probe::CACHE_LOG)
}

/// Signatures on a path, which have to be accepted. None if it cannot be examined, or is a virtual disk: the check of all
/// members refuses it then.
fn signatures(path: &Path) -> Vec<Signature> {
    let found = look_at(path).map(|facts| facts.signatures).unwrap_or_default();
    let is_disk = found.iter().any(|one| one.class == Class::DiskImage);
    if is_disk { Vec::new() } else { found }
}

/// Returns the name of a member.
pub(super) fn path_of(member: &Stack) -> Option<PathBuf> {
    member.member_name()
}

/// Returns true if a member carries nothing but what is the array's: its superblock, and what lies in its
/// data. Something else in front of the data says that the disk has been given to another use
/// since.
fn is_own(path: &Path) -> bool {
    let metadata = match Metadata::look(path) {
        Ok(metadata) => metadata,
        // Opening the member reports the fault of its superblock, and changes nothing.
        Err(
            MetadataError::Damaged { .. }
            | MetadataError::BadBlocks { .. }
            | MetadataError::Several { .. }
            | MetadataError::OfPartition { .. },
        ) => return true,
        Err(_) => return false,
    };
    let (data_offset, data_size) = (metadata.superblock.data_offset, metadata.superblock.data_size);
    signatures(path).iter().all(|one| {
        one.name.starts_with("md ")
            || (data_offset..data_offset.saturating_add(data_size)).contains(&one.offset)
    })
}

/// `b.img: it does not exist; c.img: …`
pub(super) fn in_words(unusable: &[Unusable]) -> String {
    let one = |one: &Unusable| format!("{}: {}", one.path.display(), one.why);
    unusable.iter().map(one).collect::<Vec<_>>().join("; ")
}
