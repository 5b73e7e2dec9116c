//! The committed corpus of whole connections, and what chance makes of it, against the promises in
//! `braid_export_nbd::fuzz`.

use braid_export_nbd::fuzz::fuzz_session;

#[test]
fn nbd_session() {
    let again = "cargo test -p braid-export-nbd --test fuzz nbd_session";
    braid_mutate::run("nbd_session", again, fuzz_session);
}
