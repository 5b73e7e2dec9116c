//! The committed corpus of logs, and what chance makes of it, against the promises in `braid_cache::fuzz`.

#[test]
fn cache_log() {
    let again = "cargo test -p braid-cache --test fuzz cache_log";
    braid_mutate::run("cache_log", again, braid_cache::fuzz::fuzz_log);
}
