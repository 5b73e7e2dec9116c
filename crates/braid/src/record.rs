//! `NAME.toml`: how a volume is brought up, and which members are its own.
//!
//! A stack without superblocks leaves no mark of its own on its members; what a file system
//! wrote at the start of the array lies at the start of the first member and looks as if it were
//! that member's. So the record keeps each member's identity as it was when it was accepted:
//! a member whose identity still matches may carry anything, because what it carries is the
//! volume's; one that does not match is judged as a stranger.

use std::io::Write;
use std::path::{Path, PathBuf};

use braid_probe::{Identity, MemberFacts, Policy, check_member};
use braid_stack::Stack;
use serde::{Deserialize, Serialize};

use crate::failure::{Context, Failure};
use crate::volume::{Attach, IoMode};

/// The contents of `NAME.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) stack: Stack,
    #[serde(default)]
    pub(crate) attach: Attach,
    /// Addresses to listen on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nbd: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read_only: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure: bool,
    #[serde(default)]
    pub(crate) io: IoMode,
    /// Threads that serve; 0 for the machine's best.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) shards: usize,
    #[serde(default, rename = "member", skip_serializing_if = "Vec::is_empty")]
    pub(crate) members: Vec<Known>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A member that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    pub(crate) path: PathBuf,
    /// What tells it apart: a disk's world-wide name or serial number; else a device number, or
    /// a file's device and inode.
    pub(crate) identity: String,
    pub(crate) size_bytes: u64,
}

impl Known {
    /// What tells the member apart that `facts` are about.
    pub(crate) fn of(facts: &MemberFacts) -> Known {
        let lasting = facts
            .wwn
            .as_ref()
            .map(|wwn| format!("wwn {wwn}"))
            .or_else(|| facts.serial.as_ref().map(|serial| format!("serial {serial}")));
        Known {
            path: facts.path.clone(),
            identity: lasting.unwrap_or_else(|| match facts.identity {
                Identity::File { device, inode } => format!("device {device} inode {inode}"),
                Identity::Block(device) => format!("device {device}"),
            }),
            size_bytes: facts.size,
        }
    }
}

/// What members are and carry, whether that would be accepted or not. Reading only.
fn look_at(path: &Path) -> Option<Known> {
    let policy = Policy { force: &[], read_only: true, min_bytes: 0 };
    check_member(path, &policy).ok().map(|facts| Known::of(&facts))
}

impl Record {
    /// How `stack` is brought up if nothing else is said.
    pub(crate) fn new(stack: Stack) -> Record {
        Record {
            stack,
            attach: Attach::Auto,
            nbd: Vec::new(),
            read_only: false,
            insecure: false,
            io: IoMode::Auto,
            shards: 0,
            members: Vec::new(),
        }
    }

    /// Reads a record.
    pub(crate) fn read(path: &Path) -> Result<Record, Failure> {
        let text = std::fs::read_to_string(path)
            .context(format_args!("cannot read {}", path.display()))?;
        toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).context("cannot write the record")?;
        let temporary = path.with_extension("toml.new");
        let write = || {
            let mut file = std::fs::File::create(&temporary)?;
            file.write_all(
                b"# How braid brings this volume up. Edit it while the volume is down.\n",
            )?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, path)
        };
        write().context(format_args!("cannot write {}", path.display()))
    }

    /// Members that are what they were when they were accepted.
    pub(crate) fn recognised(&self) -> Vec<PathBuf> {
        let same = |known: &&Known| look_at(&known.path).is_some_and(|now| now == **known);
        self.members.iter().filter(same).map(|known| known.path.clone()).collect()
    }

    /// Takes the members of the stack in as they are now.
    pub(crate) fn accept_members(&mut self) {
        self.members = self.stack.member_paths().into_iter().filter_map(look_at).collect();
    }
}
