//! A device that is to become a member of an array at work: whether it may, and its locks and room.
//!
//! ```text
//!   control thread                           shard
//!   probe, lock, read what it carries ──▶    as what it is taken in: braid_engine::assembled
//!   room for the log ──▶ allocated           what has to lie on it before ──▶ flush
//!                                            ──▶ the engine takes it in and writes its superblock
//! ```

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_engine::assembled::{self, Admitted, LogPlace, NotTaken, areas_of_log};
use braid_engine::redundant::Redundant;
use braid_member::{Member, MemberError, Named};
use braid_probe::{Policy, check_member};
use braid_shell::{shell_path, shown};
use braid_stack::Stack;
use braid_uring::Handle;

use super::md::MdArray;
use super::options::OpenOptions;
use super::shard::Local;
use super::unopened::member_failure;
use crate::control::ErrorCode;
use crate::failure::Failure;
use crate::metadata::{Image, Metadata, allocate, random_uuid, refuse_contents};
use crate::refusal::said;
use crate::why::Why;

/// A device that is to become a member.
pub(super) struct Newcomer {
    leaf: Arc<Member>,
    pub(super) path: PathBuf,
    /// Metadata of this array that it carries already.
    known: Option<Metadata>,
    /// Offsets of superblocks of any version on it.
    superblocks: Vec<u64>,
    size: u64,
    /// Areas of the log on it: offsets and lengths in bytes.
    areas: Vec<(u64, u64)>,
}

impl Newcomer {
    pub(super) fn open(array: &MdArray, path: &Path, force: bool) -> Result<Newcomer, Failure> {
        // Before the device is opened to be written.
        if array.limits().read_only {
            return Err(Why::ReadOnly { volume: array.name.clone() }.into());
        }
        // A member is not removed while it is waited for.
        if array.leaves().iter().any(|leaf| leaf.label == path.display().to_string()) {
            return Err(Why::AlreadyMember { device: path.display().to_string() }.into());
        }
        // What was written to it before could land on what is written now. Nor is it to be read before
        // that is known: a read would hang, too.
        if let Some(requests) = array.unanswered(path) {
            let device = path.display().to_string();
            return Err(Why::RequestsUnderWay { device, requests }.into());
        }
        let uuid = array.superblock.array_uuid;
        let is_known = Metadata::array_at(path) == Some(uuid);
        let forced = [path.to_owned()];
        let policy = Policy {
            force: if force || is_known { &forced } else { &[] },
            min_bytes: 4096,
            ..Policy::default()
        };
        let is_remote = Stack::remote_called(path).is_some();
        if !is_remote {
            check_member(path, &policy).map_err(|refusal| said(&refusal))?;
        }
        let options = OpenOptions::default();
        let member = Named::open(path, options.access()).map_err(|error| match error {
            MemberError::Locked { .. } => {
                Why::MemberLocked { device: path.display().to_string() }.into()
            }
            error => member_failure(&error),
        })?;
        if is_remote && !force && !is_known {
            refuse_contents(path, member.remote_signatures())?;
        }
        let deadline = array.deadline.of(true, member.kind().is_direct() == Some(true));
        let label = path.display().to_string();
        let leaf = Arc::new(Member::new(label, member.kind(), deadline));
        let image = Image::of(path, member.kind())?;
        let known = Metadata::of(&image).ok().filter(|known| known.superblock.array_uuid == uuid);
        if is_known && known.is_none() {
            let what = "it became something else while it was examined";
            return Err(Failure::refused(format!("{}: {what}", path.display())));
        }
        let size = image.size;
        let areas = areas_of_log(&array.superblock, array.log, size)
            .map_err(|why| unfit(why).of(format_args!("{} is not taken", path.display())))?;
        Ok(Newcomer {
            leaf,
            path: path.to_owned(),
            known,
            superblocks: image.found.iter().map(|found| found.offset).collect(),
            size,
            areas,
        })
    }

    /// Allocates the room for the log: a write to the log must not be the first to find the file system full.
    ///
    /// # Errors
    /// The file system is full.
    pub(super) fn allocate(&self) -> Result<(), Failure> {
        allocate(&self.path, &self.areas)
    }

    /// Returns the name of the device in messages.
    pub(super) fn label(&self) -> String {
        shown(&self.path.display().to_string()).into_owned()
    }

    pub(super) fn leaf(&self) -> Arc<Member> {
        Arc::clone(&self.leaf)
    }

    /// As the engine takes it in: `anew` whatever it was before. `log` is the log that it needs room
    /// for.
    pub(super) fn admit(
        &self,
        log: LogPlace,
        anew: bool,
        engine: &Redundant,
        handle: &Handle,
        local: &Local,
    ) -> Result<Admitted, Failure> {
        let dev = self.leaf.device(handle, &local.pool).map_err(Failure::refused)?;
        let newcomer = assembled::Newcomer {
            label: self.leaf.label.clone(),
            dev,
            known: self.known.as_ref().map(|known| &known.carried),
            anew,
            superblocks: &self.superblocks,
            size: self.size,
            uuid: random_uuid()?,
        };
        newcomer.admit(log, engine).map_err(|why| self.led_on(&why))
    }

    fn led_on(&self, why: &NotTaken) -> Failure {
        match why {
            NotTaken::WentOnAlone { events, ours } => {
                let path = shell_path(&self.path);
                Failure::refused(why)
                    .next(format!(
                        "to look at what it has alone: braid assemble {path} --read-only --as NAME; to lose \
                         that: braid wipe {path}, then braid member add"
                    ))
                    .code(ErrorCode::WentOnAlone)
                    .value("events", *events)
                    .value("events_of_array", *ours)
            }
            NotTaken::Unfit(_) => unfit(why),
        }
    }
}

fn unfit(why: impl Display) -> Failure {
    Failure::refused(why).code(ErrorCode::Unfit)
}
