//! The exports of a volume: the ways by which clients reach it, as a list behind one trait.
//!
//! ```text
//!   prepare ──▶ start ──▶ status, users, follow ──▶ check_unused ──▶ take_down
//!   may refuse   shards     while the volume is up    all exports     the last that was started first
//!                serve
//! ```
//!
//! Invariants
//! * The list is for start, facts and end. A request passes from an export to the device of its shard without it.
//! * All exports of a shard offer the same device, each through a stopwatch of its own ([`Local::offered`]).
//! * Block devices of this machine are started last, when the memory of the process is held.
//! * No export is taken down before all were asked whether they are used.
//!
//! [`Local::offered`]: super::shard::Local::offered
//!
//! A new kind of export is a file here and a line in [`KINDS`].

mod clear;
mod device;
mod fuse;
mod link;
mod mounted;
mod nbd;
mod nbd_device;
mod ublk;
mod vhost;

use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;

use braid_block::Limits;

pub use clear::clean_up_after;
pub(super) use clear::clear_left;
pub use link::backing_file;
pub(super) use ublk::keep_inside;

use super::budget::Budget;
use super::error::{ExportError, RunError};
use super::memory;
use super::shard::Shard;
use super::spec::Spec;
use super::warnings::Warning;
use crate::control::{Event, ExportStatus};

/// All kinds, in the order in which they are started: block devices of this machine last.
const KINDS: [Kind; 5] = [nbd::KIND, vhost::KIND, fuse::KIND, ublk::KIND, nbd_device::KIND];

/// An export that was prepared, if it was asked for.
type Prepared = Result<Option<Box<dyn Export>>, RunError>;

/// A kind of export.
struct Kind {
    /// Claims the addresses of the export that `spec` asks for, if it asks for one of this kind. Adds what is to be
    /// said of it to the warnings.
    prepare: fn(&Spec, &mut Vec<Warning>) -> Prepared,
    /// Removes the export that a killed process of the volume left: the mount, and the link to the device. Returns what
    /// was done, for people.
    clear_left: fn(&Path, Option<&Path>) -> Result<Option<String>, ExportError>,
    /// Returns true if the volume goes on with the export that a killed process of it left, so that it is not removed.
    takes_over: fn(&Spec) -> bool,
}

/// A way by which clients reach the volume. Its methods are called by the threads of the process that serve no
/// requests.
pub(super) trait Export: Send + Sync {
    /// Has the shards serve clients. Returns what is to be said of it for as long as the volume is up.
    ///
    /// # Errors
    /// The reason for which the export is not served.
    fn start(&self, on: &Start<'_>) -> Result<Vec<Warning>, RunError>;

    /// The facts of an export that was started.
    fn status(&self) -> ExportStatus;

    /// Returns true for a block device of this machine.
    fn is_device(&self) -> bool;

    /// The present users, for people.
    ///
    /// # Errors
    /// They cannot be found out.
    fn users(&self) -> Result<Vec<String>, ExportError>;

    /// Tells clients of a change that the shards have made, or are about to make. Returns what people must know.
    ///
    /// # Errors
    /// The error of the system.
    fn follow(&self, change: Change) -> io::Result<Option<String>>;

    /// # Errors
    /// The export stays while it is used, and it is.
    fn check_unused(&self) -> Result<(), ExportError>;

    /// Takes the export away; by `force` even while it is in use. Once it is away, this does nothing.
    ///
    /// # Errors
    /// It stays: never by force.
    fn take_down(&self, force: bool) -> Result<(), ExportError>;
}

/// Arguments with which an export is started.
pub(super) struct Start<'a> {
    pub(super) spec: &'a Spec,
    pub(super) shards: &'a [Shard],
    /// Sizes of its memory.
    pub(super) budget: Budget,
    /// Limits that clients are told.
    pub(super) limits: Limits,
    /// Receives the end of an export that was not taken down.
    pub(super) events: &'a Sender<Event>,
}

/// A change of the device that is offered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Clients may not write any more, or may again.
    ReadOnly(bool),
    /// The volume has another size, in bytes.
    Size(u64),
}

/// The exports of a volume.
pub(super) struct Exports(Vec<Box<dyn Export>>);

impl Exports {
    /// Prepares the exports that `spec` asks for, and adds what is to be said of them to `warnings`.
    ///
    /// # Errors
    /// One of them cannot be.
    pub(super) fn prepare(spec: &Spec, warnings: &mut Vec<Warning>) -> Result<Exports, RunError> {
        let prepared = KINDS.iter().filter_map(|kind| (kind.prepare)(spec, warnings).transpose());
        prepared.collect::<Result<_, RunError>>().map(Exports)
    }

    /// Starts all of them. What the start has to say is added to `told`, what lasts to `warnings`.
    ///
    /// # Errors
    /// One of them cannot be served.
    pub(super) fn start(
        &self,
        on: &Start<'_>,
        told: &mut Vec<String>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), RunError> {
        let mut is_held = false;
        for export in &self.0 {
            if export.is_device() && !std::mem::replace(&mut is_held, true) {
                told.extend(memory::hold(on.spec.attach, on.budget.heap)?);
            }
            warnings.extend(export.start(on)?);
        }
        Ok(())
    }

    pub(super) fn statuses(&self) -> Vec<ExportStatus> {
        self.0.iter().map(|export| export.status()).collect()
    }

    /// The users of all exports.
    ///
    /// # Errors
    /// They cannot be found out.
    pub(super) fn users(&self) -> Result<Vec<String>, ExportError> {
        self.users_of(|_| true)
    }

    /// The users of block devices of this machine.
    ///
    /// # Errors
    /// They cannot be found out.
    pub(super) fn holders(&self) -> Result<Vec<String>, ExportError> {
        self.users_of(|export| export.is_device())
    }

    fn users_of(&self, of: impl Fn(&dyn Export) -> bool) -> Result<Vec<String>, ExportError> {
        let exports = self.0.iter().filter(|export| of(&***export));
        let users: Vec<_> = exports.map(|export| export.users()).collect::<Result<_, _>>()?;
        Ok(users.concat())
    }

    /// Tells the clients of all exports of a change. Returns what people must know.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn follow(&self, change: Change) -> io::Result<Vec<String>> {
        self.0.iter().filter_map(|export| export.follow(change).transpose()).collect()
    }

    /// # Errors
    /// An export stays while it is used, and it is.
    pub(super) fn check_unused(&self) -> Result<(), ExportError> {
        self.0.iter().try_for_each(|export| export.check_unused())
    }

    /// Takes all of them down; by `force` even while they are in use.
    ///
    /// # Errors
    /// One stays, as do those that were started before it: never by force.
    pub(super) fn take_down(&self, force: bool) -> Result<(), ExportError> {
        self.0.iter().rev().try_for_each(|export| export.take_down(force))
    }
}
