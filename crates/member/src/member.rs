//! A member, whatever its kind.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_block::{HasLimits, Limits};
use braid_device::{Ram, Tally};
use braid_engine::Dev;
use braid_mem::Pool;
use braid_remote::Traffic;
use braid_uring::{Failures, Handle};

use crate::kind::{Kind, OnShard};

/// A member.
pub struct Member {
    id: u64,
    /// Its path, if it is a whole file or device; else as the stack spells it.
    pub label: String,
    kind: Box<dyn Kind>,
    tally: Tally,
    deadline: Option<Duration>,
}

impl Member {
    /// A member of `kind`. A request of it may take as long as `deadline` says; for ever if `None`.
    pub fn new(label: String, kind: Box<dyn Kind>, deadline: Option<Duration>) -> Member {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Member { id, label, kind, tally: Tally::default(), deadline }
    }

    /// A number that no other member of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the counts of requests to the member.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the time that a request may take; `None`: without end.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// The path by which an operator names the member, if it is a whole file or device.
    pub fn path(&self) -> Option<String> {
        self.kind.path(&self.label)
    }

    /// See [`Kind::is_at`].
    pub fn is_at(&self, path: &Path) -> bool {
        self.kind.is_at(path)
    }

    /// See [`Kind::vanished`].
    pub fn vanished(&self) -> Option<&'static str> {
        self.kind.vanished()
    }

    /// See [`Kind::gone`].
    pub fn gone(&self) -> Option<String> {
        self.kind.gone()
    }

    /// See [`Kind::ram`].
    pub fn ram(&self) -> Option<&Ram> {
        self.kind.ram()
    }

    /// See [`Kind::is_direct`].
    pub fn is_direct(&self) -> Option<bool> {
        self.kind.is_direct()
    }

    /// See [`Kind::is_writable_image`].
    pub fn is_writable_image(&self) -> bool {
        self.kind.is_writable_image()
    }

    /// See [`Kind::failures`].
    pub fn failures(&self) -> Option<&Arc<Failures>> {
        self.kind.failures()
    }

    /// See [`Kind::traffic`].
    pub fn traffic(&self) -> Option<&Arc<Traffic>> {
        self.kind.traffic()
    }

    /// See [`Kind::release`].
    pub fn release(&self) {
        self.kind.release();
    }

    /// See [`Kind::is_on_one_shard`].
    pub fn is_on_one_shard(&self) -> bool {
        self.kind.is_on_one_shard()
    }

    /// A device on the member for the shard of `handle`.
    ///
    /// # Errors
    /// `EMFILE`: the process has too many open files.
    pub fn device(&self, handle: &Handle, pool: &Pool) -> io::Result<Dev> {
        let (label, tally, deadline) = (&*self.label, &self.tally, self.deadline);
        self.kind.device(&OnShard { handle, pool, label, tally, deadline })
    }
}

impl HasLimits for Member {
    fn limits(&self) -> Limits {
        self.kind.limits()
    }
}
