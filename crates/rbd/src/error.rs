//! Reasons why an image cannot be used.

use std::time::Duration;

use braid_block::Errno;

/// Why an image cannot be opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what went wrong, and with what")]
pub enum RbdError {
    #[error("Ceph's client library is not on this machine ({why})")]
    NoLibrary { why: String },
    #[error("the configuration {conf} cannot be read: {errno}")]
    Configuration { conf: String, errno: Errno },
    #[error("the client {id} cannot connect to the cluster: {errno}")]
    Connect { id: String, errno: Errno },
    #[error("the pool {pool} cannot be opened: {errno}")]
    Pool { pool: String, errno: Errno },
    #[error("the image cannot be opened: {errno}")]
    Open { errno: Errno },
    #[error("the cluster did not answer within {} s", limit.as_secs())]
    Late { limit: Duration },
    #[error("a snapshot cannot be written")]
    Snapshot,
    #[error("its feature exclusive-lock is off, so two clients could write to it at once")]
    NoLock,
    #[error("its exclusive lock is held by {owner}, which has the image open")]
    Locked { owner: String },
    #[error("its exclusive lock is not to be had: {errno}")]
    Lock { errno: Errno },
    #[error("its size of {size} bytes is not whole blocks of 512 bytes")]
    Size { size: u64 },
    #[error("{what} has a zero byte")]
    Text { what: &'static str },
    #[error("no thread: {errno}")]
    Thread { errno: Errno },
}

impl RbdError {
    /// Returns true if another client has the image.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self, RbdError::Locked { .. })
    }

    /// Returns the next step.
    #[must_use]
    pub fn next(&self) -> &'static str {
        match self {
            RbdError::NoLibrary { .. } => {
                "install librbd1, version 15 or later: `apt install librbd1`, `dnf install librbd1`"
            }
            RbdError::Configuration { .. } => {
                "conf=FILE names the cluster's configuration, usually /etc/ceph/ceph.conf"
            }
            RbdError::Connect { .. } => {
                "id=CLIENT names a client whose key the configuration's keyring has; `ceph -s --id CLIENT` asks the \
                 cluster without braid"
            }
            RbdError::Pool { .. } | RbdError::Open { .. } => {
                "`rbd info POOL/IMAGE` asks the cluster without braid; `rbd create --size SIZE POOL/IMAGE` makes an image"
            }
            RbdError::Late { .. } => {
                "`ceph -s` says what the cluster lacks; deadline= gives it more time"
            }
            RbdError::Snapshot => "--read-only; or cow(…, store=FILE) in front of it",
            RbdError::NoLock => "`rbd feature enable POOL/IMAGE exclusive-lock`; or --read-only",
            RbdError::Locked { .. } => {
                "stop the client that has it; one that crashed loses it within 30 seconds, then try again. --read-only \
                 needs no lock"
            }
            RbdError::Lock { .. } => "`rbd lock ls POOL/IMAGE` shows its owner; or --read-only",
            RbdError::Size { .. } => "`rbd resize --size SIZE POOL/IMAGE`",
            RbdError::Text { .. } | RbdError::Thread { .. } => "correct it, and try again",
        }
    }
}
