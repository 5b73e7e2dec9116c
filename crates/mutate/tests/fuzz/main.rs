//! The committed corpora, and what chance makes of them, against the promises of the entry points in the modules
//! `fuzz` of the crates. All in one program: its tests run beside each other, a minute each in `make test`.
//!
//! Deliberately absent: `control_body`, whose entry point is a part of the program `braid`.

mod campaign;
mod tool_output;

/// A test of each target's name, which gives its corpus to an entry point.
macro_rules! targets {
    ($($name:ident: $entry:path,)+) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            let again = format!("cargo test -p braid-mutate --test fuzz {name}");
            braid_mutate::run(name, &again, $entry);
        })+
    };
}

targets! {
    superblock: braid_md::fuzz::fuzz_superblock,
    bitmap: braid_md::fuzz::fuzz_bitmap,
    bad_blocks: braid_md::fuzz::fuzz_bad_blocks,
    ppl: braid_md::fuzz::fuzz_ppl,
    stripe_log: braid_md::fuzz::fuzz_stripe_log,
    cache_log: braid_cache::fuzz::fuzz_log,
    nbd_session: braid_export_nbd::fuzz::fuzz_session,
    nbd_client: braid_nbd::fuzz::fuzz_client,
    fuse_request: braid_export_fuse::fuzz::fuzz_requests,
    stack_expression: braid_stack::fuzz::fuzz_expression,
    trace: braid_trace::fuzz::fuzz_trace,
    fio_job: braid_trace::fuzz::fuzz_jobs,
    published: braid_published::fuzz::fuzz_published,
    campaign: campaign::fuzz_campaign,
    tool_output: tool_output::fuzz_output,
}
