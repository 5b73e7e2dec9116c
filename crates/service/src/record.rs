//! `NAME.toml`: how a volume is brought up, and which members are its own.
//!
//! A stack without superblocks leaves no mark of its own on its members; what a file system
//! wrote at the start of the array lies at the start of the first member and looks as if it were
//! that member's. So the record keeps each member's identity as it was when it was accepted:
//! a member whose identity still matches may carry anything, because what it carries is the
//! volume's; one that does not match is judged as a stranger. And a volume is held to them: see
//! [`crate::membership`].

use std::path::{Path, PathBuf};

use braid_md::Superblock;
use braid_probe::{Identity, MemberFacts, look_at};
use braid_stack::{ByteSize, Stack};
use serde::{Deserialize, Serialize};

use crate::beside::Beside;
use crate::failure::{Context, Failure};
use crate::log;
use crate::places::Places;
use crate::volume::{Accepted, Attach, IoMode, LastResort, MemberDeadline, ReAdd, TlsOptions};

/// The contents of `NAME.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The volume's stack, with absolute paths.
    pub stack: Stack,
    /// The way in which it becomes a block device of this machine, if any.
    #[serde(default)]
    pub attach: Attach,
    /// Addresses to listen on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nbd: Vec<String>,
    /// The socket at which a virtual machine finds it as a disk, over vhost-user-blk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost: Option<PathBuf>,
    /// Nothing is written to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// TCP beyond the loopback is allowed without TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// The interface that carries out its input and output.
    #[serde(default)]
    pub io: IoMode,
    /// Time limit for requests to members; 0s for no limit.
    #[serde(default, skip_serializing_if = "MemberDeadline::is_usual")]
    pub member_deadline: MemberDeadline,
    /// Threads that serve; 0 for the machine's best.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shards: usize,
    /// Most memory that serving may take, beside the content of RAM disks and caches; none for the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// Policy for a member that went away and is back.
    #[serde(default, rename = "re-add")]
    pub re_add: ReAdd,
    /// Policy for arrays that stay incomplete at boot.
    #[serde(default, rename = "last-resort")]
    pub last_resort: LastResort,
    /// Volumes of one group share their spares.
    #[serde(default, rename = "spare-group", skip_serializing_if = "Option::is_none")]
    pub spare_group: Option<String>,
    /// TLS of NBD clients.
    #[serde(default, skip_serializing_if = "TlsOptions::is_usual")]
    pub tls: TlsOptions,
    /// The members that were accepted, each once.
    #[serde(default, rename = "member", skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Known>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A member that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Its absolute path when it was accepted.
    pub path: PathBuf,
    /// Its identity: a disk's world-wide name or serial number, with the partition; a
    /// file's inode and time of birth; else a device number, or a file's device and inode.
    pub identity: String,
    /// Its size then.
    pub size_bytes: u64,
    /// The array that its superblock was of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// The identifier of the member itself in that superblock, which version 0.90 does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// The object to which a path leads now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The path.
    pub path: PathBuf,
    /// All that it could be known by, the most lasting first.
    pub identities: Vec<String>,
    /// Its size.
    pub size_bytes: u64,
    /// It carries something that an operator would have to accept.
    pub carries_something: bool,
}

impl Seen {
    /// The same, of facts that were looked at before.
    pub fn of(facts: &MemberFacts) -> Seen {
        let mut identities =
            lasting(facts.wwn.as_deref(), facts.serial.as_deref(), facts.partition);
        match facts.identity {
            Identity::File { device, inode } => {
                let part =
                    facts.partition.map_or(String::new(), |number| format!(" partition {number}"));
                let born = |ns: u128| format!("inode {inode} born {ns}{part}");
                identities.extend(facts.born_ns.map(born));
                identities.push(format!("device {device} inode {inode}{part}"));
            }
            Identity::Block(device) => identities.push(format!("device {device}")),
        }
        Seen {
            path: facts.path.clone(),
            identities,
            size_bytes: facts.size,
            carries_something: !facts.signatures.is_empty(),
        }
    }

    /// Examines the object at a path, which need not be usable. Reading only.
    pub fn at(path: &Path) -> Option<Seen> {
        look_at(path).ok().as_ref().map(Seen::of)
    }

    /// Examines the member called `path`, of `size_bytes`, if it is there. Reading only.
    pub fn called(path: &Path, size_bytes: u64) -> Option<Seen> {
        match Stack::remote_called(path) {
            Some(remote) => Some(Seen::remote(path, &remote, size_bytes)),
            None => Seen::at(path),
        }
    }

    /// The `remote` member called `path`. A server says nothing by which it could be known elsewhere.
    pub fn remote(path: &Path, remote: &Stack, size_bytes: u64) -> Seen {
        let identities = vec![format!("remote {}", remote.remote_identity().unwrap_or_default())];
        Seen { path: path.to_owned(), identities, size_bytes, carries_something: true }
    }

    /// Returns its best identity.
    pub fn identity(&self) -> &str {
        self.identities.first().map_or("", String::as_str)
    }
}

/// Returns the identities that a disk, or a partition of it, keeps wherever it is plugged in.
pub fn lasting(wwn: Option<&str>, serial: Option<&str>, partition: Option<u32>) -> Vec<String> {
    let part = partition.map_or(String::new(), |number| format!(" partition {number}"));
    let wwn = wwn.map(|wwn| format!("wwn {wwn}{part}"));
    let serial = serial.map(|serial| format!("serial {serial}{part}"));
    wwn.into_iter().chain(serial).collect()
}

impl Known {
    /// Returns the identity of the member that `facts` describe.
    pub fn of(facts: &MemberFacts) -> Known {
        Known::from(Seen::of(facts))
    }

    /// The member that was seen, as one to be known from now on.
    pub fn from(seen: Seen) -> Known {
        let identity = seen.identity().to_owned();
        let size_bytes = seen.size_bytes;
        Known { path: seen.path, identity, size_bytes, array: None, device: None }
    }

    /// The same, of the member that `superblock` describes.
    pub fn carrying(self, superblock: &Superblock) -> Known {
        let device = superblock.device_uuid;
        let device = (!device.is_nil()).then(|| device.to_string());
        Known { array: Some(superblock.array_uuid.to_string()), device, ..self }
    }

    /// Returns true if it is the object that was seen, of any size.
    pub fn is(&self, seen: &Seen) -> bool {
        seen.identities.contains(&self.identity)
    }

    /// Returns true for a regular file.
    pub fn is_file(&self) -> bool {
        self.identity.contains("inode ")
    }

    /// Returns the identity by which it can be found at another path.
    pub fn lasting(&self) -> Option<&str> {
        let is_lasting = ["wwn ", "serial "].iter().any(|word| self.identity.starts_with(word));
        is_lasting.then_some(self.identity.as_str())
    }
}

impl Record {
    /// Returns the record of `stack` with default options.
    pub fn new(stack: Stack) -> Record {
        Record {
            stack,
            attach: Attach::Auto,
            nbd: Vec::new(),
            vhost: None,
            read_only: false,
            insecure: false,
            io: IoMode::Auto,
            member_deadline: MemberDeadline::Usual,
            shards: 0,
            memory: None,
            re_add: ReAdd::default(),
            last_resort: LastResort::default(),
            spare_group: None,
            tls: TlsOptions::default(),
            members: Vec::new(),
        }
    }

    /// Reads a record.
    pub fn read(path: &Path) -> Result<Record, Failure> {
        verbose!("reads {}", path.display());
        let text =
            braid_probe::read_text(path).context(format_args!("cannot read {}", path.display()))?;
        let record: Record = toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        record.stack.member_names().iter().for_each(|(name, _)| log::note_path(name));
        Ok(record)
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).context("cannot write the record")?;
        verbose!("writes {}", path.display());
        let text =
            format!("# How braid brings this volume up. Edit it while the volume is down.\n{text}");
        let written = Beside::replace(path, 0o644, text.as_bytes());
        written.context(format_args!("cannot write {}", path.display()))
    }

    /// Makes it the record of the volume called `name`, unless it is that already.
    pub fn store(&self, places: &Places, name: &str) -> Result<(), Failure> {
        let file = places.config_file(name);
        if Record::read(&file).is_ok_and(|there| there == *self) {
            return Ok(());
        }
        places.prepare_config()?;
        self.write(&file)
    }

    /// Returns the known facts of the member at `path`.
    pub fn known(&self, path: &Path) -> Option<&Known> {
        self.members.iter().find(|known| known.path == path)
    }

    /// Members with superblocks that can be found at another path, and what by.
    pub fn lasting(&self) -> Vec<(PathBuf, String)> {
        let of_arrays = self.members.iter().filter(|known| known.array.is_some());
        let lasting = |known: &Known| Some((known.path.clone(), known.lasting()?.to_owned()));
        of_arrays.filter_map(lasting).collect()
    }

    /// Returns the accepted identities of members with superblocks.
    pub fn accepted(&self) -> Vec<Accepted> {
        let of = |known: &Known| {
            let (path, device) = (known.path.clone(), known.device.clone());
            Some(Accepted { path, array: known.array.clone()?, device })
        };
        self.members.iter().filter_map(of).collect()
    }
}
