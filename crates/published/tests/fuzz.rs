//! The entry point of the fuzzer on its committed corpus, and on what a seed makes of it.

#[test]
fn published() {
    let again = "cargo test -p braid-published --test fuzz published";
    braid_mutate::run("published", again, braid_published::fuzz::fuzz_published);
}
