//! A device that is to become a member of an array at work: whether it may, and its locks and room.
//!
//! ```text
//!   control thread                           shard
//!   probe, lock, read what it carries ──▶    as what it is taken in: braid_engine::assembled
//!   room for the log ──▶ allocated           what has to lie on it before ──▶ flush
//!                                            ──▶ the engine takes it in and writes its superblock
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_engine::assembled::{self, Admitted, LogPlace, NotTaken, areas_of_log};
use braid_engine::redundant::Redundant;
use braid_member::{Member, MemberError, open_file};
use braid_probe::{Policy, check_member};
use braid_shell::shell_path;
use braid_uring::Handle;

use super::md::MdArray;
use super::options::OpenOptions;
use super::shard::Local;
use crate::control::OrderAnswer;
use crate::metadata::{Image, Metadata, allocate, random_uuid};

/// A device that is to become a member.
pub(super) struct Newcomer {
    leaf: Arc<Member>,
    pub(super) path: PathBuf,
    /// What it carries of this array already.
    known: Option<Metadata>,
    /// Where superblocks of any version lie on it.
    superblocks: Vec<u64>,
    size: u64,
}

impl Newcomer {
    pub(super) fn open(array: &MdArray, path: &Path, force: bool) -> Result<Newcomer, OrderAnswer> {
        // Nobody lets go of it while it is waited for.
        if array.leaves().iter().any(|leaf| leaf.label == path.display().to_string()) {
            return Err(OrderAnswer::refused(format!(
                "{} is in use: it is a member already\n  next: `braid member remove` lets go of one \
                 that failed",
                path.display()
            )));
        }
        // What was written to it before could land on what is written now. Nor is it to be read before
        // that is known: a read would hang, too.
        if let Some(count) = array.unanswered(path) {
            return Err(OrderAnswer::refused(format!(
                "{} is not taken: {count} requests from when it was a member are still under way, and \
                 may be carried out at any time\n  next: wait until it has answered them, or take it \
                 away; then the same again",
                path.display()
            )));
        }
        let known = Metadata::read(path)
            .ok()
            .filter(|known| known.superblock.array_uuid == array.superblock.array_uuid);
        let forced = [path.to_owned()];
        let policy = Policy {
            force: if force || known.is_some() { &forced } else { &[] },
            read_only: false,
            min_bytes: 4096,
        };
        let facts = check_member(path, &policy)
            .map_err(|refusal| OrderAnswer::refused(refusal.to_string()))?;
        let options = OpenOptions::default();
        let file = open_file(path, options.access(), 0, None).map_err(|error| match error {
            MemberError::Locked { .. } => OrderAnswer::refused(format!(
                "{} is in use: it is a member already, or another program has it locked\n  next: \
                 `braid member remove` lets go of one that failed",
                path.display()
            )),
            error => OrderAnswer::failed(error.to_string()),
        })?;
        let deadline = array.deadline.of(true, file.is_direct());
        let label = path.display().to_string();
        let leaf = Arc::new(Member::new(label, Box::new(file), deadline));
        let found = Image::open(path).map(|image| image.found);
        let superblocks = found.map_err(|failure| OrderAnswer::failed(failure.text()))?;
        // A log that is written while the array is used must not be the first to find its file
        // system full.
        let areas = areas_of_log(&array.superblock, array.log, facts.size).map_err(|why| {
            OrderAnswer::refused(format!("{} is not taken: {why}", path.display()))
        })?;
        allocate(path, &areas).map_err(|failure| OrderAnswer::failed(failure.text()))?;
        Ok(Newcomer {
            leaf,
            path: path.to_owned(),
            known,
            superblocks: superblocks.iter().map(|found| found.offset).collect(),
            size: facts.size,
        })
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
    ) -> Result<Admitted, String> {
        let dev = self.leaf.device(handle, &local.pool).map_err(|error| error.to_string())?;
        let newcomer = assembled::Newcomer {
            label: self.leaf.label.clone(),
            dev,
            known: self.known.as_ref().map(|known| &known.carried),
            anew,
            superblocks: &self.superblocks,
            size: self.size,
            uuid: random_uuid().map_err(|failure| failure.text())?,
        };
        newcomer.admit(log, engine).map_err(|why| self.led_on(&why))
    }

    fn led_on(&self, why: &NotTaken) -> String {
        match why {
            NotTaken::WentOnAlone { .. } => {
                let path = shell_path(&self.path);
                format!(
                    "{why}\n  next: to look at what it has alone: braid assemble {path} --read-only \
                     --as NAME; to lose that: braid wipe {path}, then braid member add"
                )
            }
            NotTaken::Unfit(_) => why.to_string(),
        }
    }
}
