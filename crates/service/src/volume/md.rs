//! An array whose members describe it themselves: from their superblocks to what the engine is
//! given.
//!
//! ```text
//!   paths ──open──▶ locked ──read──▶ superblocks ──assess──▶ participants: members at work
//!                                                    │
//!                                                    └──▶ or why not, and the next command
//! ```
//!
//! [`braid_engine::assembled`] decides which members take part, and in which roles; here members are opened.
//!
//! Invariant: nothing is written here; and what is found on the members is only believed after
//! `braid_md` has checked it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use braid_block::{HasLimits, Limits};
use braid_engine::assembled::{self, Assembled, Level, LogPlace, Refusal, assemble};
use braid_level::Raid0Layout;
use braid_md::{Superblock, Uuid};
use braid_md_text::next::command;
use braid_member::{Member, MemberError, Named};
use braid_stack::Stack;

use super::admission;
use super::deadline::MemberDeadline;
use super::options::{Accepted, OpenOptions, Unusable};
use super::unopened::member_failure;
use super::warnings::Warning;
use crate::control::{ErrorCode, LeftOutStatus};
use crate::failure::{Failure, FailureKind};
use crate::metadata::{Image, Metadata, MetadataError};

pub use braid_engine::assembled::is_served;

/// Why members do not make an array.
#[derive(Debug, thiserror::Error)]
pub enum MdError {
    #[error("{0}")]
    Metadata(#[from] MetadataError),
    #[error("{refusal}")]
    Refused {
        refusal: Refusal,
        /// Commands that lead on.
        next: Vec<String>,
    },
    #[error("{0}")]
    Member(#[from] MemberError),
}

impl MdError {
    /// The failure that says so.
    pub(super) fn failure(&self) -> Failure {
        let refused = Failure::refused(self).code(ErrorCode::NotStartable);
        match self {
            MdError::Metadata(error) => refused.led_on(error.next()),
            MdError::Refused { next, .. } if next.is_empty() => refused,
            MdError::Refused { next, .. } => refused.next(next.join("\n")),
            MdError::Member(error) => {
                Failure { kind: FailureKind::Refused, ..member_failure(error) }
            }
        }
    }
}

/// An open member, and what it carries.
type Opened = (Named, Metadata);

/// An array that was assembled.
pub struct MdArray {
    pub level: Level,
    /// The name of the array in messages.
    pub name: String,
    pub warnings: Vec<Warning>,
    /// Members of old that are there, and take no part.
    pub left_out: Vec<LeftOutStatus>,
    /// Members of old that an operator wanted back, and that no bitmap brings back.
    to_fill: Mutex<BTreeSet<String>>,
    /// The members that the stack names, and those that came since, wherever they are.
    named: Mutex<BTreeSet<String>>,
    /// The freshest superblock.
    pub superblock: Superblock,
    /// The log that closes the write hole.
    pub(super) log: LogPlace,
    /// The superblocks count on a member that does not take part.
    pub is_changed: bool,
    pub(super) assembled: Assembled,
    limits: Limits,
    /// The open members, those first that it was assembled of: a member that is let go of is
    /// closed, so that others may have it.
    open: Mutex<Vec<Arc<Member>>>,
    /// Those that were let go of while they had requests under way, which stay open as long.
    former: Mutex<Vec<Arc<Member>>>,
    /// Time limits for requests to members.
    pub(super) deadline: MemberDeadline,
}

impl MdArray {
    /// Opens the members, reads their superblocks, and decides which take part; closes the others. A member that
    /// cannot be opened is one that is missing. `raid0_layout` is used where none is recorded.
    pub fn open(
        members: &[Stack],
        raid0_layout: Option<Raid0Layout>,
        options: &OpenOptions,
    ) -> Result<MdArray, MdError> {
        let (opened, unusable) = open_named(members, options)?;
        let found: Vec<_> = opened.iter().map(|(_, one)| (one.label(), &one.carried)).collect();
        let OpenOptions { read_only, degraded, .. } = *options;
        let how = assembled::Options { read_only, degraded, raid0_layout };
        let assembled =
            assemble(&found, how).map_err(|refusal| led_on(refusal, &unusable, options))?;
        let open = open_members(&assembled, &opened, options)?;
        let combined = Limits::combine(open.iter().map(|leaf| leaf.limits()));
        let left_out = |(member, by_bitmap): &(String, bool)| LeftOutStatus {
            member: member.clone(),
            by_bitmap: *by_bitmap,
        };
        let label = |path: &Path| path.display().to_string();
        let uuid = assembled.superblock.array_uuid.to_string();
        let of_array = |text, member| Warning::of_array(text, uuid.clone(), member);
        let mut warnings: Vec<Warning> =
            assembled.warnings.iter().map(|text| of_array(text.clone(), None)).collect();
        for Unusable { path, why } in &unusable {
            let text = format!("{}: {} is not used: {why}", assembled.name, path.display());
            warnings.push(of_array(text, Some(label(path))));
        }
        Ok(MdArray {
            level: assembled.level.clone(),
            name: assembled.name.clone(),
            warnings,
            named: Mutex::new(
                members.iter().filter_map(admission::path_of).map(|one| label(&one)).collect(),
            ),
            left_out: assembled.left_out.iter().map(left_out).collect(),
            to_fill: Mutex::default(),
            superblock: assembled.superblock.clone(),
            log: assembled.log,
            is_changed: assembled.is_changed,
            limits: Limits { size: assembled.level.size(), ..combined },
            assembled,
            open: Mutex::new(open),
            former: Mutex::default(),
            deadline: options.deadline,
        })
    }

    /// The members that take part, in the order in which the level has them.
    pub fn leaves(&self) -> Vec<Arc<Member>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if the array was made of `members`, paths of a stack.
    pub(super) fn is_of(&self, members: &[Stack]) -> bool {
        let named = self.named();
        let mut paths = members.iter().filter_map(admission::path_of);
        paths.any(|path| named.contains(&path.display().to_string()))
    }

    /// Notes that the member of old called `label` is filled whole if it comes again.
    pub(super) fn note_to_fill(&self, label: String) {
        self.to_fill.lock().unwrap_or_else(PoisonError::into_inner).insert(label);
    }

    /// Returns the members of old that were left out at the start, and those that no bitmap brings back.
    pub(super) fn left_out_now(&self) -> Vec<LeftOutStatus> {
        let to_fill = self.to_fill.lock().unwrap_or_else(PoisonError::into_inner);
        let others = self.left_out.iter().filter(|one| !to_fill.contains(&one.member));
        let filled = |member: &String| LeftOutStatus { member: member.clone(), by_bitmap: false };
        to_fill.iter().map(filled).chain(others.cloned()).collect()
    }

    /// The members that it was ever to have, wherever they are.
    pub(super) fn named(&self) -> BTreeSet<String> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the identifier of the member called `label`, if the array was assembled of it.
    pub(super) fn uuid_of(&self, label: &str) -> Option<Uuid> {
        let found = self.assembled.members.iter().find(|one| one.label == label)?;
        Some(found.superblock.device_uuid)
    }

    /// Keeps a member that came.
    pub fn adopt(&self, leaf: Arc<Member>) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(leaf.label.clone());
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(leaf);
    }

    /// Lets go of a member.
    pub fn forget(&self, label: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = open.extract_if(.., |leaf| leaf.label == label);
        let mut former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        former.extend(gone);
        former.retain(|leaf| leaf.tally().read().in_flight > 0);
    }

    /// Requests that a member of before, which `path` leads to, has not answered; none if it has
    /// answered all.
    pub(super) fn unanswered(&self, path: &Path) -> Option<u64> {
        let mut former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        former.retain(|leaf| leaf.tally().read().in_flight > 0);
        former.iter().find(|leaf| leaf.is_at(path)).map(|leaf| leaf.tally().read().in_flight)
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }
}

/// Opens the members of an `md(…)` level, and reads their superblocks, as far as that can be done.
///
/// # Errors
/// A member stays locked. None can be read: why the first one cannot.
fn open_named(
    members: &[Stack],
    options: &OpenOptions,
) -> Result<(Vec<Opened>, Vec<Unusable>), MdError> {
    let (mut found, mut unusable, mut first) = (Vec::new(), Vec::new(), None);
    for path in members.iter().filter_map(admission::path_of) {
        if let Some(known) = options.unusable.iter().find(|one| one.path == path) {
            unusable.push(known.clone());
            continue;
        }
        match open_one(&path, options)? {
            Ok(opened) => found.push(opened),
            Err(why) => {
                unusable.push(Unusable { path, why: why.brief() });
                first = first.or(Some(why));
            }
        }
    }
    match (found.is_empty(), first) {
        (false, _) => Ok((found, unusable)),
        (true, Some(why)) => Err(why.into()),
        (true, None) => Err(MetadataError::None { why: admission::in_words(&unusable) }.into()),
    }
}

/// Opens one member, and reads its superblock: locked first, then judged.
fn open_one(
    path: &Path,
    options: &OpenOptions,
) -> Result<Result<Opened, MetadataError>, MemberError> {
    let unreadable = |failure| Ok(Err(MetadataError::Unreadable(failure)));
    let member = match Named::open(path, options.access()) {
        Ok(member) => member,
        Err(MemberError::Open { source, .. }) => {
            return unreadable(Failure::failed(format!("it cannot be opened: {source}")));
        }
        Err(
            error @ (MemberError::Remote { .. }
            | MemberError::RemoteReadOnly { .. }
            | MemberError::Rbd { .. }),
        ) => {
            return unreadable(member_failure(&error));
        }
        Err(error) => return Err(error),
    };
    let image = match Image::of(path, member.kind()) {
        Ok(image) => image,
        Err(failure) => return unreadable(failure),
    };
    let metadata = Metadata::of(&image).and_then(|metadata| of_its_array(metadata, options));
    Ok(metadata.map(|metadata| (member, metadata)))
}

/// A member that was given to another array since is not this one's; nor is a device that was never its member.
fn of_its_array(metadata: Metadata, options: &OpenOptions) -> Result<Metadata, MetadataError> {
    let now: Uuid = metadata.superblock.array_uuid;
    let expected = options.arrays.iter().find(|one| one.path == metadata.path);
    match expected {
        Some(Accepted { array, .. }) if *array != now.to_string() => {
            Err(MetadataError::OtherArray {
                path: metadata.path,
                uuid: now.to_string(),
                expected: array.clone(),
            })
        }
        Some(one) if one.is_stranger(metadata.device().as_deref(), &options.arrays) => {
            Err(MetadataError::Stranger {
                device: metadata.device().unwrap_or_else(|| "none".to_owned()),
                path: metadata.path,
            })
        }
        _ => Ok(metadata),
    }
}

/// A refusal with what is wrong with the members that are missing, and the command that leads on.
fn led_on(refusal: Refusal, unusable: &[Unusable], options: &OpenOptions) -> MdError {
    let Refusal::State { what, mut state, next, without_missing } = refusal else {
        return MdError::Refused { refusal, next: Vec::new() };
    };
    if !unusable.is_empty() {
        state = format!("{state}; {}", admission::in_words(unusable));
    }
    let commands = match without_missing {
        true => vec![options.degraded_command()],
        false => next.iter().map(command).collect(),
    };
    let refusal = Refusal::State { what, state, next, without_missing };
    MdError::Refused { refusal, next: commands }
}

fn open_members(
    assembled: &Assembled,
    opened: &[Opened],
    options: &OpenOptions,
) -> Result<Vec<Arc<Member>>, MdError> {
    let open = |member: &assembled::TakesPart| {
        let of = opened.iter().find(|(_, one)| one.label() == member.label);
        let (opened, metadata) = of.expect("a member that takes part is one of the members");
        // Without copies nothing is ever recorded, so only the data is used.
        let (offset, length) = match assembled.level.is_redundant() {
            true => (0, None),
            false => (member.superblock.data_offset, Some(member.usable)),
        };
        let cannot = |source| MemberError::Open { path: metadata.path.clone(), source };
        let kind = opened.part(offset, length).map_err(cannot)?;
        let is_direct = kind.is_direct() == Some(true);
        let deadline = options.deadline.of(assembled.level.is_redundant(), is_direct);
        Ok(Arc::new(Member::new(member.label.clone(), kind, deadline)))
    };
    assembled.members.iter().map(open).collect()
}
