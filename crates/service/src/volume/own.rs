//! Checks whether something that a volume is to use lies on the volume itself: it would wait for itself, and write
//! over its own content.
//!
//! Invariant: whatever an order, a start or a member that comes back names is asked for here, before it is
//! opened.

use std::path::{Path, PathBuf};

use braid_stack::Stack;

use super::left::process_of;
use super::spec::Spec;
use crate::control::{ErrorCode, Order, apply};
use crate::failure::Failure;

/// The names of a volume on this machine.
#[derive(Clone, Debug)]
pub(super) struct Own {
    name: String,
    /// The folder in which its file is served.
    mount: PathBuf,
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
        Own { name: spec.name.clone(), mount: spec.mount.clone() }
    }

    /// # Errors
    /// `path` lies on the volume, or that cannot be found out.
    pub(super) fn check(&self, path: &Path) -> Result<(), OnItself> {
        let path = path.to_owned();
        match braid_probe::stands_on(&path, &self.mount, &process_of) {
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

/// All paths that a stack reads or writes: of members, logs, maps, stores, saved caches and RAM disks, profiles.
fn paths(stack: &Stack) -> Vec<PathBuf> {
    let below = stack.members().iter().flat_map(paths);
    stack.own_path().map(PathBuf::from).into_iter().chain(below).collect()
}
