//! `braid serve`: a volume in the foreground.

use crate::cli::Serve;
use braid_service::failure::Failure;
use braid_service::places::Places;
use braid_service::process::{Start, Tell};
use braid_service::volume::{Attach, Printed, Spec, TlsOptions};

use super::stacks;

pub(super) fn serve(serve: &Serve) -> Result<(), Failure> {
    braid_service::places::check_name(&serve.name)?;
    let stack = stacks::parse_for(&serve.stack, serve.common.read_only)?;
    let forced = stacks::forced(&serve.common, &[&stack])?;
    let mut tls = TlsOptions::default();
    stacks::apply_tls(&serve.common.tls, &mut tls)?;
    let places = Places::from_environment();
    let spec = Spec {
        name: serve.name.clone(),
        stack: stack.clone(),
        // What is printed works from any folder.
        nbd: serve.nbd.iter().map(|address| stacks::absolute_address(address)).collect(),
        vhost: serve.vhost.as_deref().map(stacks::absolute_path).transpose()?,
        insecure: serve.common.insecure,
        tls,
        attach: Attach::None,
        read_only: serve.common.read_only,
        degraded: serve.common.degraded,
        re_add: braid_service::volume::ReAdd::Never,
        spare_group: None,
        lasting: Vec::new(),
        accepted: forced.clone(),
        forced,
        arrays: Vec::new(),
        notes: Vec::new(),
        io: serve.common.io,
        member_deadline: serve.common.member_deadline.unwrap_or_default(),
        shards: serve.common.shards.map_or(0, usize::from),
        memory: serve.common.memory,
        control: None,
        mount: std::path::PathBuf::new(),
        link: None,
        trace: stacks::trace_to(serve.trace.as_ref())?,
        given_up: places.given_up(),
        root_storage: false,
        scrubs: None,
        superblocks: Some(places.superblocks()),
        record: None,
    };
    let printed = Printed { json: false, quiet: serve.quiet, with_name: false };
    Err(Start::new(spec, None, Tell::User(printed)).exec())
}
