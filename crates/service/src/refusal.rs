//! The refusal of a member, with the name of the volume that has it.

use std::path::PathBuf;

use braid_probe::{Holder, Reason, Refusal};

use crate::control::{self, ErrorCode};
use crate::failure::Failure;
use crate::places::Places;

/// The failure that tells of a refusal.
pub fn said(refusal: &Refusal) -> Failure {
    let code = match &refusal.reason {
        Reason::Missing => ErrorCode::Missing,
        Reason::WrongKind { .. } => ErrorCode::WrongKind,
        Reason::TooSmall { .. } => ErrorCode::TooSmall,
        Reason::InUse { .. } => ErrorCode::InUse,
        Reason::Contents { .. } => ErrorCode::HasContents,
        Reason::NotRaw { .. } => ErrorCode::NotRaw,
        Reason::Shared { .. } => ErrorCode::SharedBytes,
        Reason::Unknown { .. } => ErrorCode::NotExamined,
        _ => ErrorCode::Refused,
    };
    let failure = Failure::refused(refusal).next(refusal.next()).code(code);
    failure.value("device", refusal.path.display().to_string())
}

/// The failure that tells of a refusal. It names the volume that has the member, if it is one.
pub fn refused(refusal: &Refusal) -> Failure {
    let failure = said(refusal);
    let Reason::InUse { holders } = &refusal.reason else { return failure };
    let places = Places::from_environment();
    let names = places.running_names().unwrap_or_default();
    let sockets: Vec<PathBuf> = names.iter().map(|name| places.control(name)).collect();
    let is_it =
        |holder: &Holder, of: u32| matches!(holder, Holder::Process { pid, .. } if *pid == of);
    let volume =
        names.into_iter().zip(control::get_statuses(&sockets)).find_map(|(name, status)| {
            let pid = status.ok()?.pid;
            holders.iter().any(|holder| is_it(holder, pid)).then_some(name)
        });
    let Some(name) = volume else { return failure };
    let path = refusal.path.display();
    let why = format!("{path} is refused: it is a member of {name}, which is up");
    Failure { why, ..failure }.next(format!("braid down {name}")).value("volume", name)
}
