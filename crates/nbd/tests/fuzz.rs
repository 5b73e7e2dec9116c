//! The committed corpus of what servers send, and what chance makes of it, against the promises in
//! `braid_nbd::fuzz`. What clients send goes to whole connections, in `braid-export-nbd`.

use braid_nbd::fuzz::fuzz_client;

#[test]
fn nbd_client() {
    braid_mutate::run("nbd_client", "cargo test -p braid-nbd --test fuzz nbd_client", fuzz_client);
}
