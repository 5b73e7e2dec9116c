//! `braid serve`: a volume in the foreground.

use crate::cli::Serve;
use crate::failure::Failure;
use crate::places::Places;
use crate::volume::{Attach, RunError, Spec, run};

use super::{given, stacks};

pub(super) fn serve(serve: &Serve) -> Result<(), Failure> {
    crate::places::check_name(&serve.name)?;
    let stack = stacks::parse(&serve.stack)?;
    let forced = stacks::forced(&serve.common, &[&stack])?;
    let places = Places::from_environment();
    let spec = Spec {
        name: serve.name.clone(),
        stack: stack.clone(),
        // What is printed works from any folder.
        nbd: serve.nbd.iter().map(|address| stacks::absolute_address(address)).collect(),
        insecure: serve.common.insecure,
        attach: Attach::None,
        read_only: serve.common.read_only,
        degraded: serve.common.degraded,
        re_add: crate::volume::ReAdd::Never,
        spare_group: None,
        lasting: Vec::new(),
        accepted: forced.clone(),
        forced,
        arrays: Vec::new(),
        notes: Vec::new(),
        promised: stacks::promised_beside(&places, &stack),
        io: serve.common.io,
        member_deadline: serve.common.member_deadline.unwrap_or_default(),
        shards: serve.common.shards.map_or(0, usize::from),
        control: None,
        mount: std::path::PathBuf::new(),
        link: None,
        trace: stacks::trace_to(serve.trace.as_ref())?,
        given_up: places.given_up(),
        root_storage: false,
        scrubs: None,
        superblocks: Some(places.superblocks()),
    };
    raise_open_files();
    let ready = |ready: &crate::volume::Ready| {
        ready.warnings.iter().for_each(|warning| eprintln!("braid: warning: {warning}"));
        if !serve.quiet {
            ready.uris.iter().for_each(|uri| println!("{uri}"));
        }
    };
    run(&spec, None, ready).map_err(|error| failure_of(&error))
}

/// Many clients need many descriptors; with fewer, some are turned away, and that is said then.
pub(super) fn raise_open_files() {
    let _ = braid_sys::process::raise_open_files();
}

pub(super) fn failure_of(error: &RunError) -> Failure {
    if let RunError::Refused(refusal) = error {
        given::refused(refusal)
    } else if error.is_refusal() {
        Failure::refused(error.text())
    } else if error.is_usage() {
        Failure::usage(error.text())
    } else {
        Failure::failed(error.text())
    }
}
