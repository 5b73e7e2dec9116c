//! The specification of a volume's process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use braid_stack::{ByteSize, Stack};
use serde::{Deserialize, Serialize};

use super::deadline::MemberDeadline;
use super::options::{Accepted, OpenOptions};
use super::tls::TlsOptions;
use super::trace::TraceTo;

/// Ways in which a volume becomes a block device of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attach {
    /// The best that this machine and user have, or none
    #[default]
    Auto,
    /// A device of the kernel's ublk driver
    Ublk,
    /// A file system of one file, and a loop device on it
    Fuse,
    /// A device of the kernel's NBD client
    Nbd,
    /// Not at all
    None,
}

impl Attach {
    /// The words for it: each with what help says of it.
    pub const WORDS: &'static [(&'static str, &'static str)] = &[
        ("auto", "The best that this machine and user have, or none"),
        ("ublk", "A device of the kernel's ublk driver"),
        ("fuse", "A file system of one file, and a loop device on it"),
        ("nbd", "A device of the kernel's NBD client, over a socket of this machine"),
        ("none", "Not at all"),
    ];

    /// Returns true if a way was asked for by its name, in spite of its risk.
    pub(super) fn is_by_name(self) -> bool {
        !matches!(self, Attach::Auto | Attach::None)
    }

    /// Returns true if such a volume becomes a block device here.
    pub fn attaches(self) -> bool {
        match self {
            Attach::Auto => can_attach_by_ublk() || can_attach_by_fuse(),
            Attach::Ublk | Attach::Fuse | Attach::Nbd => true,
            Attach::None => false,
        }
    }
}

/// The driver that makes a volume a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// ublk.
    Ublk,
    /// FUSE and loop.
    Fuse,
    /// The kernel's NBD client.
    Nbd,
}

/// Returns true if this user, on this machine, can attach a volume by FUSE and loop.
fn can_attach_by_fuse() -> bool {
    rustix::process::geteuid().is_root()
        && Path::new("/dev/fuse").exists()
        && Path::new("/dev/loop-control").exists()
}

/// Returns true if this user, on this machine, can attach a volume by the ublk driver.
fn can_attach_by_ublk() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    let ask = || rustix::process::geteuid().is_root() && ublk_ability().is_ok();
    *CAN.get_or_init(ask)
}

/// Checks if volumes can be attached by the ublk driver.
///
/// # Errors
/// Why not, for people.
pub fn ublk_ability() -> Result<(), String> {
    let control = braid_uring::ublk::CONTROL;
    if !Path::new(control).exists() {
        return Err(format!("no {control}"));
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if let Some(fault) = braid_export_ublk::known_fault(&release) {
        return Err(format!("not used on Linux {release}: {fault}"));
    }
    match braid_export_ublk::Features::read() {
        Ok(features) if features.can_copy() => Ok(()),
        Ok(_) => {
            Err("the driver is older than Linux 6.5, and does not copy data on demand".to_owned())
        }
        Err(error) => Err(format!("the driver does not answer: {error}")),
    }
}

/// Method of the volume's input and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoMode {
    /// io_uring where it is allowed, else threads
    #[default]
    Auto,
    /// io_uring, or an error
    Uring,
    /// System calls on a pool of threads
    Threads,
}

impl IoMode {
    /// The same for an executor.
    pub fn executor_mode(self) -> braid_uring::Mode {
        match self {
            IoMode::Auto => braid_uring::Mode::Auto,
            IoMode::Uring => braid_uring::Mode::Uring,
            IoMode::Threads => braid_uring::Mode::Threads,
        }
    }
}

/// Policy for a member that went away and is back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReAdd {
    /// It is re-added, if copying what was written meanwhile suffices
    #[default]
    Auto,
    /// Status says so, with the command that re-adds it
    Ask,
    /// Nothing
    Never,
}

impl ReAdd {
    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            ReAdd::Auto => "auto",
            ReAdd::Ask => "ask",
            ReAdd::Never => "never",
        }
    }
}

/// Policy for arrays that stay incomplete at boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastResort {
    /// They are started without the members that did not come
    #[default]
    Degraded,
    /// They wait until they are complete, or an operator starts them
    Wait,
}

/// Everything a volume process needs; handed to it as JSON on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Its name in `status` and `down`.
    pub name: String,
    /// With absolute paths.
    pub stack: Stack,
    /// Addresses for NBD clients.
    pub nbd: Vec<String>,
    /// The socket at which a virtual machine finds it as a disk, over vhost-user-blk.
    #[serde(default)]
    pub vhost: Option<PathBuf>,
    /// Allow TCP beyond the loopback without TLS.
    pub insecure: bool,
    /// TLS of NBD clients.
    #[serde(default, skip_serializing_if = "TlsOptions::is_usual")]
    pub tls: TlsOptions,
    /// The way in which it becomes a block device of this machine, if any.
    pub attach: Attach,
    /// Nothing is written, neither by clients nor by braid.
    pub read_only: bool,
    /// Start arrays without members that they were last seen with.
    #[serde(default)]
    pub degraded: bool,
    /// Members whose contents are accepted, whatever they are.
    pub accepted: Vec<PathBuf>,
    /// Members among these that were named again.
    #[serde(default)]
    pub forced: Vec<PathBuf>,
    /// The arrays of which members with superblocks were accepted.
    #[serde(default)]
    pub arrays: Vec<Accepted>,
    /// Policy for a member that went away and is back.
    #[serde(default)]
    pub re_add: ReAdd,
    /// Volumes of one group share their spares.
    #[serde(default)]
    pub spare_group: Option<String>,
    /// Members with superblocks that can be found at another path: path, and what they are known by.
    #[serde(default)]
    pub lasting: Vec<(PathBuf, String)>,
    /// Findings of the command that brings it up, which are to be known.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The interface that carries out its input and output.
    pub io: IoMode,
    /// Time limits for requests to members.
    #[serde(default, skip_serializing_if = "MemberDeadline::is_usual")]
    pub member_deadline: MemberDeadline,
    /// Threads that serve; 0 for the machine's best.
    pub shards: usize,
    /// Most memory that serving may take, beside the content of RAM disks and caches; none for the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// The control socket; `None` for a volume in the foreground without one.
    pub control: Option<PathBuf>,
    /// The folder of a FUSE mount.
    pub mount: PathBuf,
    /// The link to the block device, under a name that stays.
    #[serde(default)]
    pub link: Option<PathBuf>,
    /// File in which client requests are recorded, if they are.
    #[serde(default)]
    pub trace: Option<TraceTo>,
    /// The folder that says which logs of caches must not be replayed.
    #[serde(default)]
    pub given_up: PathBuf,
    /// The root file system is on it: a program that ends all processes spares this one.
    #[serde(default)]
    pub root_storage: bool,
    /// File with the progress of scrubs in parts; `None` to keep none.
    #[serde(default)]
    pub scrubs: Option<PathBuf>,
    /// The folder of copies of superblocks; none are kept without.
    #[serde(default)]
    pub superblocks: Option<PathBuf>,
    /// The volume's record, which follows its members while it is up; none for a volume that is not remembered.
    #[serde(default)]
    pub record: Option<PathBuf>,
}

impl Spec {
    /// Returns the driver that makes it a block device of this machine; `None` for none.
    pub fn way(&self) -> Option<Way> {
        let has_ring = self.io != IoMode::Threads;
        match self.attach {
            Attach::Ublk => Some(Way::Ublk),
            Attach::Fuse => Some(Way::Fuse),
            Attach::Nbd => Some(Way::Nbd),
            Attach::None => None,
            Attach::Auto if has_ring && can_attach_by_ublk() => Some(Way::Ublk),
            Attach::Auto => can_attach_by_fuse().then_some(Way::Fuse),
        }
    }

    /// Returns true if clients reach it by a socket.
    pub(super) fn serves_network(&self) -> bool {
        !self.nbd.is_empty() || self.vhost.is_some()
    }

    /// Returns the options with which its stack is opened.
    pub fn open_options(&self) -> OpenOptions {
        OpenOptions {
            read_only: self.read_only,
            degraded: self.degraded,
            forced: self.forced.clone(),
            unusable: Vec::new(),
            arrays: self.arrays.clone(),
            promised: 0,
            most_ram: 0,
            given_up: self.given_up.clone(),
            deadline: self.member_deadline,
            command: self.control.as_ref().map(|_| format!("braid up {}", self.name)),
        }
    }

    /// Returns the file in which the process notes what must be cleared away if it is killed.
    pub fn traces(&self) -> PathBuf {
        self.mount.with_extension("json")
    }

    /// Returns the number of shards: the requested one, or half of the processors (the clients run on the
    /// others), at most four. One serves several connections with less processor time than two
    /// do, because it finds more to do each time it wakes; more only pay when one is saturated. Where a block device's
    /// requests come through queues of io_uring, one for each processor, each has its shard, of at most eight: it is
    /// carried out on the processor that asks.
    pub fn shard_count(&self) -> usize {
        match self.shards {
            0 => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                let has_queues = self.attach.attaches()
                    && self.io != IoMode::Threads
                    && braid_export_fuse::queues_are_offered() == Some(true);
                if has_queues { processors.clamp(1, 8) } else { (processors / 2).clamp(1, 4) }
            }
            count => count,
        }
    }
}
