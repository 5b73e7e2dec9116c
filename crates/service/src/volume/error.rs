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
use super::tls::TlsRefusal;
use crate::control::{ErrorCode, with_next};
use crate::failure::Failure;

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
    Tls(#[from] TlsRefusal),
    #[error("{0}")]
    Export(#[from] ExportError),
    #[error("io_uring is not to be had here ({0}): --io threads does without it")]
    NoUring(io::Error),
    #[error("{name} is up already, or being brought up by another command")]
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
    #[error("{ram} has an image, but is a part of a stack")]
    NestedImage { ram: String },
    #[error("{}", .0.why)]
    NotReady(Failure),
    #[error("the RAM disk is not restored: {0}")]
    Restore(ImageError),
    #[error("the content is lost: {0}")]
    Lost(ImageError),
    #[error("a shard panicked: {0}")]
    Panicked(String),
    #[error("what was written last may be lost: {0}")]
    LastFlush(ShardError),
    #[error("{} is there already, and a trace overwrites nothing", path.display())]
    TraceExists { path: PathBuf },
    #[error("the trace {} cannot be made: {source}", path.display())]
    Trace { path: PathBuf, source: io::Error },
}

impl RunError {
    /// Returns true if another process has a member.
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

    /// The failure that says so, with its kind and what to do about it.
    pub fn failure(&self) -> Failure {
        let refused = |code| Failure::refused(self).code(code);
        match self {
            RunError::Refused(refusal) => crate::refusal::refused(refusal),
            RunError::OnItself(error) => error.failure(),
            RunError::Media(error) => error.failure(),
            RunError::NotReady(failure) => failure.clone(),
            RunError::Address(_) => Failure::usage(self),
            RunError::Tls(refusal) => refusal.failure(),
            RunError::Listen(why) => self.listen_failure(why),
            RunError::NameTaken { name } => {
                refused(ErrorCode::AlreadyUp).next(format_args!("`braid status {name}`"))
            }
            RunError::Memory(why) => self.memory_failure(why),
            RunError::TooFewFiles { .. } => {
                Failure::failed(self).next("`ulimit -n 4096`, or LimitNOFILE=4096 in the service")
            }
            RunError::Restart(error) => error.failure(),
            RunError::NestedImage { .. } => Failure::refused(self)
                .next("without image=; `braid save` saves a volume as a whole"),
            RunError::Restore(error) => {
                let Failure { kind, code, .. } = error.failure();
                kind.because(self).code(code).next(match error {
                    ImageError::Size { .. } => {
                        "give the disk the image's size, or move the image away: without it, the disk is empty"
                    }
                    _ => "put a good image there, or move it away: without it, the disk is empty",
                })
            }
            RunError::Panicked(_) => Failure::failed(self).next(
                "`braid up` makes good what was under way; it is a fault of braid, which its log shows: \
                 please report it",
            ),
            RunError::LastFlush(_) => {
                Failure::failed(self).next("look at the members: `dmesg` says what failed")
            }
            RunError::TraceExists { .. } => {
                refused(ErrorCode::FileExists).next("another file for --trace")
            }
            RunError::Trace { .. } => {
                Failure::failed(self).next("a file for --trace in a folder that is there")
            }
            RunError::Export(_)
            | RunError::NoUring(_)
            | RunError::System { .. }
            | RunError::Lost(_) => Failure::failed(self),
        }
    }

    fn listen_failure(&self, why: &ListenError) -> Failure {
        match why {
            ListenError::NotLoopback { .. } => Failure::refused(self).next(
                "--tls-certificates DIR (docs/exports.md has the commands that make them); or an address of \
                 127.0.0.1, or unix:PATH; or --insecure, which protects nothing",
            ),
            // A unit without network, or a machine without IPv6.
            ListenError::Failed { source, .. }
                if source.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) =>
            {
                Failure::failed(self).next(
                    "another address for --nbd; or, for a service, `systemctl daemon-reload`: the unit of a \
                     volume has the network if NAME.toml names an address of TCP by then",
                )
            }
            ListenError::NoUser { .. } => {
                Failure::usage(self).next("`getent passwd` lists the users; a number is a user's ID")
            }
            ListenError::Unreachable { folder, .. } => {
                Failure::refused(self).next(format_args!(
                    "a folder that these users may enter, and only root may write (docs/exports.md); or chmod go+x {}",
                    braid_shell::shell_path(folder)
                ))
            }
            ListenError::Replaceable { folder, .. } => Failure::refused(self)
                .next(format_args!(
                    "a folder that only root may write; or chmod o-w {}",
                    braid_shell::shell_path(folder)
                )),
            ListenError::Failed { .. } => Failure::failed(self).next("another address for --nbd"),
            ListenError::Occupied { .. } => Failure::failed(self),
        }
    }

    fn memory_failure(&self, why: &NotHeld) -> Failure {
        let refused = Failure::refused(self).code(ErrorCode::NoMemory);
        match why {
            NotHeld::Unlocked(_) => refused.next(
                "LimitMEMLOCK=infinity in the service, or `ulimit -l unlimited`; `--attach none` \
                 serves it over NBD; `--attach fuse` attaches it without that",
            ),
            NotHeld::Limited(_) => refused.next(
                "outside of that cgroup (`systemctl start braid@NAME`), or with block devices as \
                 members (`losetup --find --show --direct-io=on FILE` makes one of a file); `--attach \
                 none` serves it over NBD; `--attach fuse` attaches it without that",
            ),
            NotHeld::TooLittle(error) => refused.next(error.next()),
        }
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

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Failure {
        match error {
            ExportError::InUse { .. } => Failure::refused(&error).code(ErrorCode::InUse),
            ExportError::Failed(_) => Failure::failed(&error),
        }
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
    #[error("what it holds would be lost: {source}")]
    NotSaved { name: String, source: ImageError },
}

impl StopError {
    /// Returns the next command.
    pub(super) fn next(&self) -> Option<String> {
        match self {
            StopError::Export(_) => None,
            StopError::NotSaved { name, .. } => Some(format!(
                "make room; or `braid save {name} FILE` elsewhere; `braid down {name} --force` loses it"
            )),
        }
    }

    /// The text for a person.
    pub(super) fn text(&self) -> String {
        with_next(self, self.next().as_deref())
    }

    /// The users of the device, if they are the reason.
    pub(super) fn holders(&self) -> Vec<String> {
        match self {
            StopError::Export(ExportError::InUse { holders, .. }) => holders.clone(),
            StopError::Export(_) | StopError::NotSaved { .. } => Vec::new(),
        }
    }
}
