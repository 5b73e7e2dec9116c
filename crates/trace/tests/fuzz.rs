//! The committed corpora of traces and job files, and what chance makes of them, against the promises in
//! `braid_trace::fuzz`.

#[test]
fn trace() {
    let again = "cargo test -p braid-trace --test fuzz trace";
    braid_mutate::run("trace", again, braid_trace::fuzz::fuzz_trace);
}

#[test]
fn fio_job() {
    let again = "cargo test -p braid-trace --test fuzz fio_job";
    braid_mutate::run("fio_job", again, braid_trace::fuzz::fuzz_jobs);
}
