//! The committed corpora of both sides of a connection, and what chance makes of them, against the
//! promises in `braid_export_nbd::fuzz`.

use braid_export_nbd::fuzz::{fuzz_client, fuzz_session};

fn run(target: &str, entry: fn(&[u8])) {
    let again = format!("cargo test -p braid-export-nbd --test fuzz {target}");
    braid_mutate::run(target, &again, entry);
}

#[test]
fn nbd_session() {
    run("nbd_session", fuzz_session);
}

#[test]
fn nbd_client() {
    run("nbd_client", fuzz_client);
}
