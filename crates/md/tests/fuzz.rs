//! The committed corpora of superblocks, bitmaps and logs, and what chance makes of them, against the
//! promises in `braid_md::fuzz`. Seeds of these corpora are what the kernel wrote.

use braid_md::fuzz::{fuzz_bad_blocks, fuzz_bitmap, fuzz_ppl, fuzz_stripe_log, fuzz_superblock};

fn run(target: &str, entry: fn(&[u8])) {
    braid_mutate::run(target, &format!("cargo test -p braid-md --test fuzz {target}"), entry);
}

#[test]
fn superblock() {
    run("superblock", fuzz_superblock);
}

#[test]
fn bitmap() {
    run("bitmap", fuzz_bitmap);
}

#[test]
fn bad_blocks() {
    run("bad_blocks", fuzz_bad_blocks);
}

#[test]
fn ppl() {
    run("ppl", fuzz_ppl);
}

#[test]
fn stripe_log() {
    run("stripe_log", fuzz_stripe_log);
}
