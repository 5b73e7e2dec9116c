//! The superblock of a member, and the metadata that it points to.

use std::ops::Deref;
use std::path::PathBuf;

use braid_engine::assembled::{self, Carried, CarriedError};
use braid_md::Superblock;
use braid_md::assembly::Candidate;
use braid_md::rejection::LogRejection;
use braid_md::stripe_log::Head;

use braid_shell::shell_path;

use super::{Contents, Image, part};
use crate::failure::{Context, Failure};

/// Why nothing can be learnt from a member.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what went wrong, and with what")]
pub enum MetadataError {
    #[error("{}", .0.why)]
    Unreadable(Failure),
    #[error("{path} carries no md superblock: {looked}{}", contents.what)]
    NoSuperblock { path: PathBuf, looked: String, contents: Contents },
    #[error(
        "{path}: its superblock of version 0.90 is that of its partition {number}, which ends there"
    )]
    OfPartition { path: PathBuf, number: u32 },
    #[error("{path}: its superblock cannot be used: {why}")]
    Damaged { path: PathBuf, why: String },
    #[error("{path}: its bad-block log cannot be used: {why}")]
    BadBlocks { path: PathBuf, why: String },
    #[error(
        "{path} carries {count} valid superblocks, and which one holds cannot be told: {found}"
    )]
    Several { path: PathBuf, count: usize, found: String },
    #[error("{path} belongs to another array now, {uuid}: it was of {expected}")]
    OtherArray { path: PathBuf, uuid: String, expected: String },
    #[error(
        "{path} is not one of the volume's members, though its superblock is of the array: its device UUID, \
         {device}, is not recorded"
    )]
    Stranger { path: PathBuf, device: String },
    #[error("none of the members can be used: {why}")]
    None { why: String },
}

impl MetadataError {
    /// Returns the next command.
    pub fn next(&self) -> Option<String> {
        Some(match self {
            MetadataError::Unreadable(failure) => return failure.next.clone(),
            MetadataError::None { .. } => return None,
            MetadataError::NoSuperblock { contents, .. } => contents.next.clone(),
            MetadataError::OfPartition { path, number } => {
                format!("`braid examine {}`", shell_path(part(path, *number)))
            }
            MetadataError::Damaged { path, .. } => {
                format!("`braid examine --explain {}`", path.display())
            }
            MetadataError::BadBlocks { .. } => {
                "`braid assemble` of the other members starts the array without it".to_owned()
            }
            MetadataError::Several { path, .. } => format!(
                "`braid wipe --metadata VERSION {}` removes the one that does not",
                path.display()
            ),
            MetadataError::OtherArray { path, .. } => {
                format!("if that one is meant: `braid assemble {} MEMBER..`", path.display())
            }
            MetadataError::Stranger { .. } => {
                "if it became a member elsewhere: `braid up` with --accept-members".to_owned()
            }
        })
    }

    /// Why, of a member that was named before: in one line.
    pub fn brief(&self) -> String {
        match self {
            MetadataError::Unreadable(Failure { why, .. }) | MetadataError::None { why } => {
                why.clone()
            }
            MetadataError::NoSuperblock { looked, contents, .. } => {
                format!("it carries no md superblock: {looked}{}", contents.what)
            }
            MetadataError::OfPartition { number, .. } => {
                format!("its superblock is that of its partition {number}")
            }
            MetadataError::Damaged { why, .. } => format!("its superblock cannot be used: {why}"),
            MetadataError::BadBlocks { why, .. } => {
                format!("its bad-block log cannot be used: {why}")
            }
            MetadataError::Several { count, found, .. } => {
                format!("it carries {count} valid superblocks: {found}")
            }
            MetadataError::Stranger { device, .. } => format!(
                "its superblock is of the array, but its device UUID, {device}, is not recorded; if it became \
                 a member elsewhere: `braid up` with --accept-members"
            ),
            MetadataError::OtherArray { uuid, .. } => {
                format!("it belongs to another array now, {uuid}")
            }
        }
    }
}

impl From<MetadataError> for Failure {
    fn from(error: MetadataError) -> Failure {
        Failure::failed(&error).led_on(error.next())
    }
}

/// A member's metadata, checked: what it carries, and where.
pub struct Metadata {
    /// The path of the member.
    pub path: PathBuf,
    /// Its superblock and all that belongs to it.
    pub carried: Carried,
}

impl Deref for Metadata {
    type Target = Carried;

    fn deref(&self) -> &Carried {
        &self.carried
    }
}

impl Metadata {
    /// Reads the superblock of an open member that holds, and what it points to.
    ///
    /// # Errors
    /// It cannot be read, or has none that can be believed.
    pub fn of(image: &Image) -> Result<Metadata, MetadataError> {
        let path = image.path.clone();
        if let Some(number) = image.partition_of_superblock() {
            return Err(MetadataError::OfPartition { path, number });
        }
        let found = image.found.clone();
        let carried = match image.with_source(|source| Carried::of(found, source)) {
            Ok(carried) => carried,
            Err(CarriedError::Unreadable(error)) => {
                let failure = Err::<(), _>(error).context(image.cannot_read());
                return Err(MetadataError::Unreadable(failure.expect_err("it is one")));
            }
            Err(CarriedError::Several(count, found)) => {
                return Err(MetadataError::Several { path, count, found });
            }
            Err(CarriedError::BadBlocks(why)) => {
                return Err(MetadataError::BadBlocks { path, why });
            }
            Err(CarriedError::NoSuperblock(found)) => {
                let looked = image.places();
                let rejected = found.into_iter().find_map(|one| one.result.err());
                return Err(match rejected {
                    Some(why) => MetadataError::Damaged { path, why: why.to_string() },
                    None => {
                        let contents = Contents::of(&path);
                        MetadataError::NoSuperblock { path, looked, contents }
                    }
                });
            }
        };
        Ok(Metadata { path, carried })
    }

    /// The identifier of the member itself, which version 0.90 does not have.
    pub fn device(&self) -> Option<String> {
        let device = self.superblock.device_uuid;
        (!device.is_nil()).then(|| device.to_string())
    }

    /// Returns the name of the member in messages.
    pub fn label(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the facts that assembly needs.
    pub fn candidate(&self) -> Candidate {
        self.carried.candidate(self.label())
    }
}

/// The head of a stripe log on `image`, or what is wrong with it; `None` where nothing looks like
/// one.
///
/// # Errors
/// The member cannot be read.
pub fn stripe_log_head(
    image: &Image,
    superblock: &Superblock,
) -> Result<Option<Result<Head, LogRejection>>, Failure> {
    image
        .with_source(|source| assembled::stripe_log_head(source, superblock))
        .context(image.cannot_read())
}
