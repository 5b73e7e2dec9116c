//! The committed corpus of FUSE requests, and what chance makes of it, against the promises in
//! `braid_export_fuse::fuzz`.

#[test]
fn fuse_request() {
    let again = "cargo test -p braid-export-fuse --test fuzz fuse_request";
    braid_mutate::run("fuse_request", again, braid_export_fuse::fuzz::fuzz_requests);
}
