//! The committed corpora, and what chance makes of them, against the promises of the entry points in the modules
//! `fuzz` of the crates. The number of inputs of each target is what takes some ten seconds of a processor here;
//! `make nightly` gives a multiple of it.
//!
//! Deliberately absent: `control_body`, whose entry point is a part of the program `braid`.

mod campaign;
mod tool_output;

/// A test of each target's name, which gives its corpus to an entry point.
macro_rules! targets {
    ($($name:ident($count:literal): $entry:path,)+) => {
        $(#[test]
        fn $name() {
            let name = stringify!($name);
            let again = format!("cargo test -p braid-mutate --test fuzz {name}");
            braid_mutate::run(name, $count, &again, $entry);
        })+
    };
}

targets! {
    superblock(600_000): braid_md::fuzz::fuzz_superblock,
    bitmap(1_000_000): braid_md::fuzz::fuzz_bitmap,
    bad_blocks(2_500_000): braid_md::fuzz::fuzz_bad_blocks,
    ppl(600_000): braid_md::fuzz::fuzz_ppl,
    stripe_log(450_000): braid_md::fuzz::fuzz_stripe_log,
    cache_log(65_000): braid_cache::fuzz::fuzz_log,
    array_start(8_000): braid_sim::fuzz::fuzz_start,
    nbd_session(900_000): braid_export_nbd::fuzz::fuzz_session,
    nbd_client(2_000_000): braid_nbd::fuzz::fuzz_client,
    vhost(500_000): braid_export_vhost::fuzz::fuzz,
    fuse_request(35_000): braid_export_fuse::fuzz::fuzz_requests,
    stack_expression(190_000): braid_stack::fuzz::fuzz_expression,
    trace(1_100_000): braid_trace::fuzz::fuzz_trace,
    fio_job(1_400_000): braid_trace::fuzz::fuzz_jobs,
    files(12_000): braid_files::fuzz::fuzz_files,
    map(400_000): braid_holes::fuzz::fuzz_map,
    evidence(20_000): braid_rescue::evidence::fuzz::fuzz_evidence,
    samples(60_000): braid_rescue::samples::fuzz_samples,
    published(500_000): braid_reproduce::fuzz::fuzz_published,
    campaign(300_000): campaign::fuzz_campaign,
    tool_output(25_000): tool_output::fuzz_output,
}
