//! The refusal of a member, with the name of the volume that has it.

use std::path::PathBuf;

use braid_probe::{Holder, Reason, Refusal};

use crate::control::{self, ErrorCode};
use crate::failure::Failure;
use crate::places::Places;

/// The failure that tells of a refusal. It names the volume that has the member, if it is one.
pub fn refused(refusal: &Refusal) -> Failure {
    let Reason::InUse { holders } = &refusal.reason else {
        let holds = matches!(refusal.reason, Reason::Contents { .. });
        return Failure::refused(refusal).code(holds.then_some(ErrorCode::HasContents));
    };
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
    match volume {
        Some(name) => Failure::refused(format!(
            "{} is refused: it is a member of {name}, which is up",
            refusal.path.display()
        ))
        .next(format!("braid down {name}")),
        None => Failure::refused(refusal),
    }
    .code(ErrorCode::InUse)
}
