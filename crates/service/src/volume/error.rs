//! Why a volume does not come up, or does not end well; and what leads on.

use std::io;
use std::path::PathBuf;

use braid_export_nbd::ListenError;
use braid_member::MemberError;
use braid_probe::{Reason, Refusal};
use rustix::io::Errno;

use super::image::ImageError;
use super::media::MediaError;
use super::memory::NotHeld;
use super::own::OnItself;
use super::restart::ShardError;

/// Why a volume did not come up, or did not end well.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what went wrong, and with what")]
pub enum RunError {
    #[error("{0}")]
    Refused(#[from] Box<Refusal>),
    #[error("{0}")]
    OnItself(#[from] OnItself),
    #[error("{0}")]
    Media(#[from] MediaError),
    #[error("{0}")]
    Address(#[from] braid_export_nbd::AddressError),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("{0}")]
    Export(#[from] ExportError),
    #[error("io_uring is not to be had here ({0}): --io threads does without it")]
    NoUring(io::Error),
    #[error(
        "{name} is up already, or being brought up by another command\n  next: `braid status {name}`"
    )]
    NameTaken { name: String },
    #[error("{0}")]
    Memory(#[from] NotHeld),
    #[error(
        "{limit} files may be open at once, and the volume has {open} of them open already: clients could not connect"
    )]
    TooFewFiles { limit: u64, open: u64 },
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
    #[error("{0}")]
    Restart(ShardError),
    #[error(
        "{ram} has an image, but is a part of a stack\n  next: without image=; `braid save` saves a \
         volume as a whole"
    )]
    NestedImage { ram: String },
    #[error("{0}")]
    NotReady(String),
    #[error("the RAM disk is not restored: {0}")]
    Restore(ImageError),
    #[error("the content is lost: {0}")]
    Lost(ImageError),
    #[error("a shard panicked: {0}")]
    Panicked(String),
    #[error("what was written last may be lost: {0}")]
    LastFlush(ShardError),
    #[error(
        "{} is there already, and a trace overwrites nothing\n  next: another file for --trace",
        path.display()
    )]
    TraceExists { path: PathBuf },
    #[error(
        "the trace {} cannot be made: {source}\n  next: a file for --trace in a folder that is there",
        path.display()
    )]
    Trace { path: PathBuf, source: io::Error },
}

impl RunError {
    /// Whether somebody else has a member.
    pub(super) fn is_in_use(&self) -> bool {
        match self {
            RunError::Refused(refusal) => matches!(refusal.reason, Reason::InUse { .. }),
            RunError::Media(error) => match error.of_leaf() {
                Some(MemberError::Locked { .. }) => true,
                Some(MemberError::Open { source, .. }) => {
                    source.kind() == io::ErrorKind::ResourceBusy
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether a safety rule said no.
    pub fn is_refusal(&self) -> bool {
        if let RunError::Restore(error) = self {
            return error.is_refusal();
        }
        matches!(
            self,
            RunError::Refused(_)
                | RunError::OnItself(_)
                | RunError::NameTaken { .. }
                | RunError::Memory(_)
                | RunError::Media(
                    MediaError::Md(_)
                        | MediaError::TooMuchMemory(_)
                        | MediaError::Log { .. }
                        | MediaError::Warm(_)
                )
                | RunError::NestedImage { .. }
                | RunError::TraceExists { .. }
                | RunError::Restart(ShardError::Log { .. })
                | RunError::Listen(ListenError::NotLoopback { .. })
        )
    }

    /// What to do about it, where the message does not say.
    fn next(&self) -> Option<&'static str> {
        match self {
            RunError::Media(MediaError::Geometry { .. }) => {
                Some("another chunk, or the stack without that member")
            }
            RunError::Media(MediaError::Leaf(MemberError::Memory { .. })) => {
                Some("smaller sizes, or files instead of memory")
            }
            RunError::Media(MediaError::Leaf(MemberError::Lock { .. })) => Some(
                "`ulimit -l unlimited`, or LimitMEMLOCK=infinity in the service; or without `lock`",
            ),
            RunError::Media(MediaError::Leaf(MemberError::HugePages { .. })) => Some(
                "`sysctl vm.nr_hugepages=COUNT` makes the pool larger; without `huge` the kernel \
                 gives huge pages where it has them",
            ),
            RunError::Media(MediaError::Warm(_)) => Some("another file as warm="),
            RunError::Media(MediaError::Log { .. }) => Some("another file or device as log="),
            RunError::Media(MediaError::Leaf(MemberError::Locked { .. })) => Some(
                "`braid status` shows whether a volume has it; `braid down NAME` ends that one",
            ),
            // A unit without network, or a machine without IPv6.
            RunError::Listen(ListenError::Failed { source, .. })
                if source.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) =>
            {
                Some(
                    "another address for --nbd; or, for a service, `systemctl daemon-reload`: the unit of a \
                     volume has the network if NAME.toml names an address of TCP by then",
                )
            }
            RunError::Listen(ListenError::Failed { .. }) => Some("another address for --nbd"),
            RunError::Memory(NotHeld::Unlocked(_)) => Some(
                "LimitMEMLOCK=infinity in the service, or `ulimit -l unlimited`; `--attach none` \
                 serves it over NBD; `--attach fuse` attaches it all the same",
            ),
            RunError::Memory(NotHeld::Limited(_)) => Some(
                "outside of that cgroup (`systemctl start braid@NAME`), or with block devices as \
                 members (`losetup --find --show --direct-io=on FILE` makes one of a file); `--attach \
                 none` serves it over NBD; `--attach fuse` attaches it all the same",
            ),
            RunError::TooFewFiles { .. } => {
                Some("`ulimit -n 4096`, or LimitNOFILE=4096 in the service")
            }
            RunError::Restore(ImageError::Size { .. }) => Some(
                "give the disk the image's size, or move the image away: without it, the disk is empty",
            ),
            RunError::Restore(_) => {
                Some("put a good image there, or move it away: without it, the disk is empty")
            }
            RunError::Panicked(_) => Some(
                "`braid up` makes good what was under way; it is a fault of braid, which its log shows: \
                 please report it",
            ),
            RunError::LastFlush(_) => Some("look at the members: `dmesg` says what failed"),
            _ => None,
        }
    }

    /// The message, with what to do about it.
    pub fn text(&self) -> String {
        match self.next() {
            Some(next) => format!("{self}\n  next: {next}"),
            None => self.to_string(),
        }
    }

    /// Whether what was typed makes no sense, whatever the members are.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            RunError::Address(_) | RunError::Media(MediaError::Leaf(MemberError::Model { .. }))
        )
    }
}

/// Why an export does not start, or stays.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{text}")]
    InUse { text: String, holders: Vec<String> },
    #[error("{0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl ExportError {
    pub(super) fn failed(
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ExportError {
        ExportError::Failed(error.into())
    }
}

/// The system said no to `what`.
pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::System { what, source }
}

/// Why a volume goes on though it was told to end.
#[derive(Debug, thiserror::Error)]
pub(super) enum StopError {
    #[error("{0}")]
    Export(#[from] ExportError),
    #[error(
        "what it holds would be lost: {source}\n  next: make room; or `braid save {name} FILE` elsewhere; \
         `braid down {name} --force` loses it"
    )]
    NotSaved { name: String, source: ImageError },
}

impl StopError {
    /// The users of the device, if they are the reason.
    pub(super) fn holders(&self) -> Vec<String> {
        match self {
            StopError::Export(ExportError::InUse { holders, .. }) => holders.clone(),
            StopError::Export(_) | StopError::NotSaved { .. } => Vec::new(),
        }
    }
}
