//! Checks whether something that a volume is to use lies on the volume itself: it would wait for itself, and write
//! over its own content.
//!
//! Invariant: whatever an order, a start or a member that comes back names is asked for here, before it is
//! opened.

use std::path::{Path, PathBuf};

use braid_nbd::uri::Uri;
use braid_stack::{Node, Stack};

use super::left::process_of;
use super::own_export;
use super::spec::Spec;
use crate::control::{ErrorCode, Order, apply};
use crate::failure::Failure;

/// The names of a volume on this machine.
#[derive(Clone, Debug)]
pub(super) struct Own {
    name: String,
    /// The folder in which its file is served.
    mount: PathBuf,
    /// Addresses that it listens on for NBD clients.
    nbd: Vec<String>,
    /// The folder of control sockets, its own and those of other volumes.
    run: Option<PathBuf>,
}

/// Why something is not used.
#[derive(Debug, thiserror::Error)]
pub enum OnItself {
    #[error("{} is refused: {way}", path.display())]
    Is { path: PathBuf, way: String, name: String },
    #[error("{} is refused: what it lies on cannot be found out: {error}", path.display())]
    Unknown { path: PathBuf, error: braid_probe::ProbeError },
}

impl OnItself {
    /// The failure that says so.
    pub(super) fn failure(&self) -> Failure {
        let failure = Failure::refused(self);
        match self {
            OnItself::Is { name, .. } => failure
                .next(format_args!("a file or device that does not lie on {name}"))
                .code(ErrorCode::OnItself),
            OnItself::Unknown { .. } => {
                failure.next("repair the cause, then again").code(ErrorCode::NotExamined)
            }
        }
    }
}

impl Own {
    pub(super) fn new(spec: &Spec) -> Own {
        Own {
            name: spec.name.clone(),
            mount: spec.mount.clone(),
            nbd: spec.nbd.clone(),
            run: spec.control.as_ref().and_then(|path| Some(path.parent()?.to_owned())),
        }
    }

    /// # Errors
    /// `path` lies on the volume, or that cannot be found out.
    pub(super) fn check(&self, path: &Path) -> Result<(), OnItself> {
        let path = path.to_owned();
        let way = match Stack::remote_called(&path) {
            Some(remote) => Ok(self.way_of(&remote, &mut Vec::new())),
            None => braid_probe::stands_on(&path, &self.mount, &process_of),
        };
        match way {
            Ok(None) => Ok(()),
            Ok(Some(way)) => Err(OnItself::Is { path, way, name: self.name.clone() }),
            // A path in no folder lies nowhere: opening it says so.
            Err(braid_probe::ProbeError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            Err(error) => Err(OnItself::Unknown { path, error }),
        }
    }

    /// Returns the way from a `remote` member to the volume: directly, or through volumes of this machine, of which
    /// those in `seen` were asked.
    fn way_of(&self, remote: &Stack, seen: &mut Vec<String>) -> Option<String> {
        let Node::Nbd(nbd) = &remote.node else { return None };
        let (uri, _) = Uri::parse_with_tls(&nbd.uri).ok()?;
        if self.nbd.iter().any(|address| own_export::is_at(address, &uri)) {
            return Some(format!("{} is an export of volume {} itself", nbd.uri, self.name));
        }
        for server in own_export::servers(self.run.as_deref()?, &self.name, &uri) {
            if seen.contains(&server.name) {
                continue;
            }
            seen.push(server.name.clone());
            let stack = Stack::parse_to_read(&server.stack).ok()?;
            let way = paths(&stack).iter().find_map(|path| match Stack::remote_called(path) {
                Some(remote) => self.way_of(&remote, seen),
                // A path that cannot be examined is that volume's trouble.
                None => braid_probe::stands_on(path, &self.mount, &process_of).ok().flatten(),
            });
            if let Some(way) = way {
                return Some(format!("{} is an export of volume {}: {way}", nbd.uri, server.name));
            }
        }
        None
    }

    /// # Errors
    /// Something that the volume is to be brought up with lies on it.
    pub(super) fn check_start(&self, spec: &Spec) -> Result<(), OnItself> {
        let trace = spec.trace.iter().map(|trace| trace.path.clone());
        paths(&spec.stack).into_iter().chain(trace).try_for_each(|path| self.check(&path))
    }

    /// # Errors
    /// Something that `order` names, for a volume with this stack, lies on it.
    pub(super) fn check_order(&self, order: &Order, stack: &Stack) -> Result<(), OnItself> {
        order.path().map_or(Ok(()), |path| self.check(path))?;
        let Order::Cache(order) = order else { return Ok(()) };
        // An order that cannot be carried out is refused later, with the reason.
        let after = apply(order, stack, &self.name).map_or(Vec::new(), |after| paths(&after));
        let before = paths(stack);
        let mut new = after.iter().filter(|path| !before.contains(path));
        new.try_for_each(|path| self.check(path))
    }
}

/// All that a stack reads or writes: paths of members, logs, maps, stores, saved caches and RAM disks, profiles; names of
/// remote members.
fn paths(stack: &Stack) -> Vec<PathBuf> {
    let below = stack.members().iter().flat_map(paths);
    let remote = stack.member_name().filter(|_| stack.is_remote());
    let own = stack.own_path().map(PathBuf::from);
    own.into_iter().chain(remote).chain(below).collect()
}
